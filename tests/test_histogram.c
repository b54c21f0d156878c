/* SPDX-License-Identifier: MIT */
/* Latencies in buckets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/histogram.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof(a)[0])

static struct histogram histogram;

static int
setup(void **state)
{
	(void)state;
	memset(&histogram, 0, sizeof(histogram));
	return 0;
}

static void
an_empty_histogram_has_no_percentiles(void **state)
{
	(void)state;
	assert_int_equal(histogram_at(&histogram, 500), 0);
	assert_int_equal(histogram_at(&histogram, 1000), 0);
	assert_int_equal(histogram.count, 0);
}

/* The larger value behind it keeps the maximum from hiding the bucket. */
static int64_t
read_back(int64_t value)
{
	memset(&histogram, 0, sizeof(histogram));
	histogram_add(&histogram, value);
	histogram_add(&histogram, value * 2 + 1);
	return histogram_at(&histogram, 500);
}

static void
a_small_value_is_exact(void **state)
{
	(void)state;
	for (int64_t value = 0; value < 256; value++)
		assert_int_equal(read_back(value), value);
}

static void
a_value_is_known_to_four_in_a_thousand(void **state)
{
	(void)state;
	for (int64_t value = 256; value < (int64_t)1 << 38; value += value / 97) {
		int64_t off = llabs(read_back(value) - value);
		if (off * 1000 > value * 4)
			fail_msg("%jd is off by %jd", (intmax_t)value, (intmax_t)off);
	}
}

/* Bucket by bucket: neighbours at every power of two fall neither together nor out of order. */
static void
a_larger_value_never_reads_smaller(void **state)
{
	(void)state;
	for (int bits = 1; bits < 39; bits++) {
		int64_t edge = (int64_t)1 << bits;
		if (read_back(edge - 1) >= read_back(edge))
			fail_msg("row %d", bits);
	}
}

static void
percentiles_are_nearest_ranks(void **state)
{
	static const struct {
		int count; /* of the values 1, 2, ... */
		int permille;
		int64_t value;
	} rows[] = {
		{ 1, 1, 1 },
		{ 1, 500, 1 },
		{ 1, 1000, 1 },
		{ 2, 500, 1 },
		{ 2, 501, 2 },
		{ 3, 500, 2 },
		{ 4, 500, 2 },
		{ 10, 900, 9 },
		{ 10, 901, 10 },
		{ 100, 990, 99 },
		{ 100, 999, 100 },
		{ 200, 999, 200 },
		{ 200, 995, 199 },
		{ 200, 5, 1 },
		{ 200, 6, 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		setup(state);
		for (int value = 1; value <= rows[i].count; value++)
			histogram_add(&histogram, value);
		if (histogram_at(&histogram, rows[i].permille) != rows[i].value)
			fail_msg("row %zu", i);
	}
}

static void
a_percentile_never_exceeds_the_largest_value(void **state)
{
	(void)state;
	histogram_add(&histogram, (1 << 20) + 1);
	assert_int_equal(histogram_at(&histogram, 999), (1 << 20) + 1);
	assert_int_equal(histogram.max, (1 << 20) + 1);
}

static void
values_out_of_range_are_counted_at_its_ends(void **state)
{
	(void)state;
	histogram_add(&histogram, -5);
	histogram_add(&histogram, INT64_MAX);
	assert_int_equal(histogram.count, 2);
	assert_int_equal(histogram_at(&histogram, 500), 0);
	assert_int_equal(histogram.max, INT64_MAX);
	assert_true(histogram_at(&histogram, 999) >= ((int64_t)1 << 40) / 1000 * 996);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_histogram_has_no_percentiles, setup),
		cmocka_unit_test_setup(a_small_value_is_exact, setup),
		cmocka_unit_test_setup(a_value_is_known_to_four_in_a_thousand, setup),
		cmocka_unit_test_setup(a_larger_value_never_reads_smaller, setup),
		cmocka_unit_test_setup(percentiles_are_nearest_ranks, setup),
		cmocka_unit_test_setup(a_percentile_never_exceeds_the_largest_value, setup),
		cmocka_unit_test_setup(values_out_of_range_are_counted_at_its_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What counts as growing: the soak's own allowances, on series that are made up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tests/soak.h"
#include "tests/support/trend.h"

#define SECONDS 600
#define CALLS_A_SECOND 1000 /* less than the slowest machine we mean does */
#define BASE (120.0 * 1024 * 1024)

static double series[SECONDS];

/* A level with noise of so much, up and down, always the same. */
static void
make_level(double level, double noise)
{
	unsigned seed = 1;

	for (int i = 0; i < SECONDS; i++)
		series[i] = level + noise * (2.0 * rand_r(&seed) / RAND_MAX - 1);
}

static void
add_a_second(double growth)
{
	for (int i = 0; i < SECONDS; i++)
		series[i] += growth * i;
}

static bool
grows(double allowance)
{
	struct trend trend = trend_of(series, SECONDS, 1);

	return trend_grows(&trend, allowance);
}

static void
noise_is_no_growth(void **state)
{
	(void)state;
	make_level(BASE, 4 << 20);
	assert_false(grows(SOAK_RSS_BYTES));
	make_level(60, 30);
	assert_false(grows(SOAK_DESCRIPTORS));
	make_level(8 << 20, 8 << 20);
	assert_false(grows(SOAK_LOG_BYTES));
}

static void
warming_up_and_single_spikes_are_no_growth(void **state)
{
	(void)state;
	make_level(BASE, 1 << 20);
	for (int i = 0; i < SECONDS / 4; i++)
		series[i] = BASE * i * 4 / SECONDS;
	for (int i = 0; i < SECONDS; i += 7)
		series[i] *= 3;
	assert_false(grows(SOAK_RSS_BYTES));
}

static void
a_hundred_bytes_a_call_are_growth(void **state)
{
	(void)state;
	make_level(BASE, 4 << 20);
	add_a_second(100.0 * CALLS_A_SECOND);
	assert_true(grows(SOAK_RSS_BYTES));
}

static void
a_descriptor_every_ten_seconds_is_growth(void **state)
{
	(void)state;
	make_level(60, 30);
	add_a_second(0.1);
	assert_true(grows(SOAK_DESCRIPTORS));
}

static void
a_log_that_is_never_folded_is_growth(void **state)
{
	(void)state;
	make_level(4 << 20, 1 << 20);
	add_a_second(100.0 * CALLS_A_SECOND);
	assert_true(grows(SOAK_LOG_BYTES));
}

static void
a_shrinking_series_does_not_grow(void **state)
{
	(void)state;
	make_level(BASE, 1 << 20);
	add_a_second(-100.0 * CALLS_A_SECOND);
	assert_false(grows(0));
}

static void
the_slope_is_that_of_the_second_half_an_hour(void **state)
{
	const double samples[] = { 90, 0, 50, 7, 10, 12, 14, 16 };
	struct trend trend = trend_of(samples, 8, 2);

	(void)state;
	assert_true(trend.slope > 3599.9 && trend.slope < 3600.1);
	assert_true(trend.early > 28.4 && trend.early < 28.6);
	assert_true(trend.late > 14.9 && trend.late < 15.1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_is_no_growth),
		cmocka_unit_test(warming_up_and_single_spikes_are_no_growth),
		cmocka_unit_test(a_hundred_bytes_a_call_are_growth),
		cmocka_unit_test(a_descriptor_every_ten_seconds_is_growth),
		cmocka_unit_test(a_log_that_is_never_folded_is_growth),
		cmocka_unit_test(a_shrinking_series_does_not_grow),
		cmocka_unit_test(the_slope_is_that_of_the_second_half_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Ids: their form, their order, and what is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sodium.h>

#include "core/ident.h"

#define NOW_MS INT64_C(0x0190a1b2c3d4)
#define IDS 100000

static int64_t
ms_of(const struct id *id)
{
	int64_t ms = 0;

	for (int i = 0; i < 6; i++)
		ms = ms << 8 | id->bytes[i];
	return ms;
}

static int
compare(const struct id *a, const struct id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void
an_id_has_time_version_and_variant(void **state)
{
	struct id_source source;
	struct id ids[2];

	(void)state;
	id_source_init(&source, 0);
	ids[0] = id_next(&source, NOW_MS);
	ids[1] = id_random(NOW_MS);
	for (int i = 0; i < 2; i++) {
		assert_true(ms_of(&ids[i]) == NOW_MS);
		assert_int_equal(ids[i].bytes[6] >> 4, 7);
		assert_int_equal(ids[i].bytes[8] >> 6, 2);
	}
	assert_int_not_equal(compare(&ids[0], &ids[1]), 0);
}

static void
ids_rise_whatever_the_clock_does(void **state)
{
	struct id_source source;
	struct id last, next;

	(void)state;
	id_source_init(&source, 0);
	last = id_next(&source, NOW_MS);
	for (int i = 0; i < IDS; i++) {
		next = id_next(&source, NOW_MS + (i % 7) - 3);
		assert_true(compare(&last, &next) < 0);
		last = next;
	}
	assert_true(ms_of(&last) == NOW_MS + 3);
}

static void
ids_of_one_millisecond_are_not_counted_in_ones(void **state)
{
	struct id_source source;
	uint64_t before;
	int ones = 0;

	(void)state;
	id_source_init(&source, 0);
	id_next(&source, NOW_MS);
	for (int i = 0; i < 100; i++) {
		before = source.rand_b;
		id_next(&source, NOW_MS);
		ones += source.rand_b - before == 1;
	}
	assert_true(ones < 3);
}

static void
a_full_counter_moves_to_the_next_millisecond(void **state)
{
	struct id_source source;
	struct id id;

	(void)state;
	source = (struct id_source){ NOW_MS, 0xffe, ((uint64_t)1 << 62) - 1 };
	id = id_next(&source, NOW_MS);
	assert_true(ms_of(&id) == NOW_MS);
	assert_int_equal(source.rand_a, 0xfff);
	source.rand_b = ((uint64_t)1 << 62) - 1;
	id = id_next(&source, NOW_MS);
	assert_true(ms_of(&id) == NOW_MS + 1);
}

static void
a_new_source_starts_behind_the_newest_id(void **state)
{
	struct id_source old, new;
	struct id newest, next;

	(void)state;
	id_source_init(&old, 0);
	newest = id_next(&old, NOW_MS);
	id_source_init(&new, NOW_MS);
	next = id_next(&new, NOW_MS - 1000);
	assert_true(compare(&newest, &next) < 0);
}

static void
an_id_reads_back_from_its_text(void **state)
{
	struct arena a;
	struct id id = id_random(NOW_MS), back;
	char *text;

	(void)state;
	arena_init(&a);
	text = id_text(&a, "lease", &id);
	assert_int_equal(strlen(text), strlen("lease_") + 32);
	assert_memory_equal(text, "lease_0190a1b2c3d47", 19);
	assert_true(id_parse(&back, "lease", text));
	assert_int_equal(compare(&id, &back), 0);
	arena_free(&a);
}

static void
what_is_not_exactly_an_id_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"lease",
		"lease_",
		"lease_0190a1b2c3d47000800000000000000",
		"lease_0190a1b2c3d4700080000000000000000",
		"lease_0190A1b2c3d470008000000000000000",
		"lease_0190a1b2c3d4700080000000000000g0",
		"lease-0190a1b2c3d470008000000000000000",
		"leas_0190a1b2c3d470008000000000000000",
		"leases_0190a1b2c3d470008000000000000000",
		" lease_0190a1b2c3d470008000000000000000",
		"lease_0190a1b2c3d470008000000000000000 ",
		"lease_0190a1b2-c3d4-7000-8000-000000000000",
		"ckpt_0190a1b2c3d470008000000000000000",
	};
	struct id id;

	(void)state;
	assert_true(id_parse(&id, "lease", "lease_0190a1b2c3d470008000000000000000"));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (id_parse(&id, "lease", texts[i]))
			fail_msg("row %zu was taken for an id", i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_has_time_version_and_variant),
		cmocka_unit_test(ids_rise_whatever_the_clock_does),
		cmocka_unit_test(ids_of_one_millisecond_are_not_counted_in_ones),
		cmocka_unit_test(a_full_counter_moves_to_the_next_millisecond),
		cmocka_unit_test(a_new_source_starts_behind_the_newest_id),
		cmocka_unit_test(an_id_reads_back_from_its_text),
		cmocka_unit_test(what_is_not_exactly_an_id_is_refused),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The clock under a wall clock that is moved about, and times as text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/clock.h"

struct hands {
	int64_t wall_ms;
	int64_t boot_ms;
};

static int64_t
wall(void *arg)
{
	return ((struct hands *)arg)->wall_ms;
}

static int64_t
boot(void *arg)
{
	return ((struct hands *)arg)->boot_ms;
}

static void
start(struct clock *clock, struct hands *hands, int64_t newest_ms)
{
	struct clock_source source = { wall, boot, hands };

	clock_init(clock, &source, newest_ms);
}

/* REAL_MS pass, and somebody sets the wall clock STEP_MS forward. */
static void
pass(struct hands *hands, int64_t real_ms, int64_t step_ms)
{
	hands->boot_ms += real_ms;
	hands->wall_ms += real_ms + step_ms;
}

static void
the_clock_follows_the_wall(void **state)
{
	struct hands hands = { 100000, 7 };
	struct clock clock;

	(void)state;
	start(&clock, &hands, 0);
	assert_int_equal(clock_now_ms(&clock), 100000);
	pass(&hands, 10, 0);
	assert_int_equal(clock_now_ms(&clock), 100010);
	pass(&hands, 10, 5000);
	assert_int_equal(clock_now_ms(&clock), 105020);
}

static void
a_wall_clock_set_back_does_not_stop_time(void **state)
{
	struct hands hands = { 100000, 7 };
	struct clock clock;

	(void)state;
	start(&clock, &hands, 0);
	assert_int_equal(clock_now_ms(&clock), 100000);
	pass(&hands, 10, -50000);
	assert_int_equal(clock_now_ms(&clock), 100010);
	pass(&hands, 30, 0);
	assert_int_equal(clock_now_ms(&clock), 100040);
}

static void
a_wall_clock_set_forward_and_back_does_not_freeze_time(void **state)
{
	struct hands hands = { 100000, 7 };
	struct clock clock;

	(void)state;
	start(&clock, &hands, 0);
	pass(&hands, 0, 50000);
	assert_int_equal(clock_now_ms(&clock), 150000);
	pass(&hands, 1, -50000);
	assert_int_equal(clock_now_ms(&clock), 150001);
	pass(&hands, 1, 0);
	assert_int_equal(clock_now_ms(&clock), 150002);
}

static void
time_begins_at_the_newest_time_given_out_before(void **state)
{
	struct hands hands = { 100000, 7 };
	struct clock clock;

	(void)state;
	start(&clock, &hands, 200000);
	pass(&hands, 3, 0);
	assert_int_equal(clock_now_ms(&clock), 200003);
}

static void
the_system_clock_is_in_milliseconds(void **state)
{
	struct clock clock;

	(void)state;
	clock_init(&clock, &clock_system, 0);
	assert_true(clock_now_ms(&clock) > INT64_C(1700000000000));
	assert_true(clock_now_ms(&clock) < INT64_C(99000000000000));
	assert_true(clock_monotonic_ms() > 0);
}

static void
times_are_written_as_rfc_3339_says(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 1, "1970-01-01T00:00:00.001Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ -1000, "1969-12-31T23:59:59.000Z" },
		{ INT64_C(1785409093829), "2026-07-30T10:58:13.829Z" },
		{ INT64_C(951782400000), "2000-02-29T00:00:00.000Z" },
		{ INT64_C(951868799999), "2000-02-29T23:59:59.999Z" },
		{ INT64_C(4107542400000), "2100-03-01T00:00:00.000Z" },
		{ INT64_C(253402300799999), "9999-12-31T23:59:59.999Z" },
		{ INT64_C(-62135596800000), "0001-01-01T00:00:00.000Z" },
		{ INT64_C(-62162035200001), "0000-02-29T23:59:59.999Z" },
		{ INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z" },
	};
	char text[TIMESTAMP_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		timestamp_write(text, rows[i].ms);
		assert_string_equal(text, rows[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_follows_the_wall),
		cmocka_unit_test(a_wall_clock_set_back_does_not_stop_time),
		cmocka_unit_test(a_wall_clock_set_forward_and_back_does_not_freeze_time),
		cmocka_unit_test(time_begins_at_the_newest_time_given_out_before),
		cmocka_unit_test(the_system_clock_is_in_milliseconds),
		cmocka_unit_test(times_are_written_as_rfc_3339_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Writing JSON: commas, escapes, and numbers as JavaScript prints them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/json_write.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct arena arena;
static struct json_writer w;

static int
start(void **state)
{
	(void)state;
	arena_init(&arena);
	json_write_begin(&w, &arena);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void
commas_stand_between_members_and_values(void **state)
{
	(void)state;
	json_write_open(&w, '{');
	json_write_text_member(&w, "a", "b");
	json_write_int_member(&w, "n", -7);
	json_write_time_member(&w, "at", 0);
	json_write_name(&w, "list");
	json_write_open(&w, '[');
	json_write_bool(&w, true);
	json_write_null(&w);
	json_write_open(&w, '{');
	json_write_close(&w, '}');
	json_write_raw(&w, "[1]", 3);
	json_write_close(&w, ']');
	json_write_text_member(&w, "nothing", NULL);
	json_write_close(&w, '}');
	assert_string_equal(w.text, "{\"a\":\"b\",\"n\":-7,\"at\":\"1970-01-01T00:00:00.000Z\","
				    "\"list\":[true,null,{},[1]],\"nothing\":null}");
	assert_int_equal(w.bytes, strlen(w.text));
}

static void
a_new_writer_holds_an_empty_text(void **state)
{
	(void)state;
	assert_string_equal(w.text, "");
	assert_int_equal(w.bytes, 0);
}

static void
only_what_must_be_is_escaped(void **state)
{
	(void)state;
	json_write_text(&w, "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9");
	assert_string_equal(w.text, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"");
}

static void
a_long_text_grows_in_place_of_the_old(void **state)
{
	(void)state;
	json_write_open(&w, '[');
	for (int i = 0; i < 10000; i++)
		json_write_int(&w, i % 10);
	json_write_close(&w, ']');
	assert_int_equal(w.bytes, 20001);
	assert_memory_equal(w.text, "[0,1,2,3", 8);
	assert_string_equal(w.text + w.bytes - 4, "8,9]");
}

static void
integers_are_written_whole(void **state)
{
	(void)state;
	json_write_int(&w, INT64_MIN);
	json_write_int(&w, INT64_MAX);
	assert_string_equal(w.text, "-9223372036854775808,9223372036854775807");
}

static void
numbers_are_written_as_javascript_prints_them(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{ 0.0, "0" },
		{ -0.0, "0" },
		{ 1e2, "100" },
		{ -1.5, "-1.5" },
		{ 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 1e-6, "0.000001" },
		{ 1.5e-6, "0.0000015" },
		{ 1e-7, "1e-7" },
		{ 1.25e-7, "1.25e-7" },
		{ 123456.789, "123456.789" },
		{ 9007199254740991.0, "9007199254740991" },
		{ 9007199254740992.0, "9007199254740992" },
		{ 9007199254740994.0, "9007199254740994" },
		{ 123456789012345680000.0, "123456789012345680000" },
		{ 999999999999999900000.0, "999999999999999900000" },
		{ 1e20, "100000000000000000000" },
		{ 1e21, "1e+21" },
		{ -1.5e21, "-1.5e+21" },
		{ 1e22, "1e+22" },
		{ 1e23, "1e+23" },
		{ 5e-324, "5e-324" },
		{ 0x1p-1073, "1e-323" },
		{ 2.225073858507201e-308, "2.225073858507201e-308" },
		{ 2.2250738585072014e-308, "2.2250738585072014e-308" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		/* Powers of two, where the nearest decimal of that length is another double. */
		{ 0x1p-44, "5.684341886080802e-14" },
		{ 0x1p-24, "5.960464477539063e-8" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		json_write_begin(&w, &arena);
		json_write_real(&w, rows[i].value);
		if (strcmp(w.text, rows[i].text) != 0)
			fail_msg("row %zu: %s", i, w.text);
	}
}

static void
every_power_of_two_reads_back(void **state)
{
	(void)state;
	for (double value = 5e-324; value < 1e308; value *= 2) {
		json_write_begin(&w, &arena);
		json_write_real(&w, value);
		if (strtod(w.text, NULL) != value)
			fail_msg("%a became %s", value, w.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    commas_stand_between_members_and_values, start, stop),
		cmocka_unit_test_setup_teardown(a_new_writer_holds_an_empty_text, start, stop),
		cmocka_unit_test_setup_teardown(only_what_must_be_is_escaped, start, stop),
		cmocka_unit_test_setup_teardown(a_long_text_grows_in_place_of_the_old, start, stop),
		cmocka_unit_test_setup_teardown(integers_are_written_whole, start, stop),
		cmocka_unit_test_setup_teardown(
		    numbers_are_written_as_javascript_prints_them, start, stop),
		cmocka_unit_test_setup_teardown(every_power_of_two_reads_back, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

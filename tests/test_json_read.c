/* SPDX-License-Identifier: MIT */
/* Reading JSON strictly, and the compact text that hashes are taken of. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/json_read.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))
#define BODY_BYTES ((size_t)1 << 20)

static struct arena arena;

static int
start(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* Reads TEXT; NULL with *ERROR when it is refused. */
static json_t *
read_text(const char *text, const char **error)
{
	return json_read(&arena, text, strlen(text), JSON_DEPTH_MAX, error);
}

static void
what_is_no_json_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} rows[] = {
		{ "", "is not JSON: the text ends too early at line 1, column 0" },
		{ " \n ", "is not JSON: the text ends too early at line 2, column 1" },
		{ "[1,", "is not JSON: the text ends too early at line 1, column 3" },
		{ "{\"a\":1,}", "is not JSON: the syntax is wrong at line 1, column 8" },
		{ "[1,]", "is not JSON: the syntax is wrong at line 1, column 4" },
		{ "01", "is not JSON: the syntax is wrong at line 1, column 1" },
		{ "{} {}", "is not JSON: something follows the value at line 1, column 4" },
		{ "secret", "is not JSON: the syntax is wrong at line 1, column 6" },
		{ "'a'", "is not JSON: the syntax is wrong at line 1, column 1" },
		{ "NaN", "is not JSON: the syntax is wrong at line 1, column 3" },
		{ "1e400", "is not JSON: a number is too large at line 1, column 5" },
		{ "\"\xff\"", "is not JSON: invalid UTF-8 at line 1, column 1" },
		{ "\"\\u0000\"", "is not JSON: a string contains NUL at line 1, column 8" },
		{ "{\"\\u0000\":1}", "is not JSON: a string contains NUL at line 1, column 9" },
		{ "\"\\ud800\"", "is not JSON: the syntax is wrong at line 1, column 8" },
		{ "\"a\nb\"", "is not JSON: the syntax is wrong at line 1, column 2" },
		{ "\xef\xbb\xbf{}", "is not JSON: the syntax is wrong at line 1, column 1" },
	};
	const char *error;

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		if (read_text(rows[i].text, &error) != NULL)
			fail_msg("row %zu was read", i);
		if (strcmp(error, rows[i].error) != 0)
			fail_msg("row %zu: %s", i, error);
	}
}

static void
nul_bytes_are_refused(void **state)
{
	const char *error;

	(void)state;
	assert_null(json_read(&arena, "{}\0", 3, JSON_DEPTH_MAX, &error));
	assert_null(json_read(&arena, "\"a\0b\"", 5, JSON_DEPTH_MAX, &error));
}

/* TEXT with DEPTH brackets around it. */
static char *
nested(size_t depth, const char *text)
{
	size_t length = strlen(text);
	char *out = arena_alloc(&arena, 2 * depth + length + 1);

	memset(out, '[', depth);
	memcpy(out + depth, text, length);
	memset(out + depth + length, ']', depth);
	return out;
}

static void
nesting_is_counted_before_it_is_followed(void **state)
{
	const char *error;
	json_t *value;

	(void)state;
	value = read_text(nested(JSON_DEPTH_MAX, "\"[[\\\"[[\""), &error);
	assert_non_null(value);
	assert_non_null(json_compact(&arena, value));
	json_done(value);
	assert_null(read_text(nested(JSON_DEPTH_MAX + 1, "1"), &error));
	assert_string_equal(error, "is nested deeper than 64 levels");
	assert_null(read_text(nested(1000000, "\"[\""), &error));
	assert_string_equal(error, "is nested deeper than 64 levels");
	assert_null(read_text("\"[[\\", &error));
	assert_null(read_text("\"", &error));
}

/* PIECE again and again between brackets, as much as a body may be. */
static char *
body_of(const char *piece)
{
	size_t length = strlen(piece), used = 1;
	char *out = malloc(BODY_BYTES + 1);

	assert_non_null(out);
	out[0] = '[';
	for (; used + 2 * length < BODY_BYTES; used += length)
		memcpy(out + used, piece, length);
	out[used - 1] = ']'; /* in place of the last comma */
	out[used] = '\0';
	return out;
}

static void
a_body_that_inflates_is_refused(void **state)
{
	static const char *const pieces[] = { "{},", "[],", "{\"\":[]}," };
	const char *error;
	char *body;

	(void)state;
	for (size_t i = 0; i < ROWS(pieces); i++) {
		body = body_of(pieces[i]);
		if (read_text(body, &error) != NULL)
			fail_msg("row %zu was read", i);
		assert_string_equal(error, "is too complex");
		free(body);
	}
}

static void
an_honest_large_body_is_read(void **state)
{
	const char *error;
	char *body = body_of("{\"resource_id\":\"repo/main/src/a.c\",\"purpose\":\"edit\"},");
	json_t *value = read_text(body, &error);

	(void)state;
	assert_non_null(value);
	json_done(value);
	free(body);
}

static void
the_compact_text_is_that_of_javascript(void **state)
{
	static const struct {
		const char *text;
		const char *compact;
	} rows[] = {
		{ "{ \"a\" : [ 1 , 2 ] }", "{\"a\":[1,2]}" },
		{ "{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}" },
		{ "[1.0,1e2,-0,0.50,1E-7,123456789012]", "[1,100,0,0.5,1e-7,123456789012]" },
		{ "\"\\u0041\\/\\n\\t\\u00e9\\\"\\\\\"", "\"A/\\n\\t\xc3\xa9\\\"\\\\\"" },
		{ "[\"\xc3\xa9\",\"\xe5\xae\x8c\xe4\xba\x86\"]",
		    "[\"\xc3\xa9\",\"\xe5\xae\x8c\xe4\xba\x86\"]" },
		{ "{\"b\":1,\"10\":2,\"2\":3}", "{\"2\":3,\"10\":2,\"b\":1}" },
		{ "{\"x\":{\"y\":[true,false,null,{}]}}", "{\"x\":{\"y\":[true,false,null,{}]}}" },
		{ "\"\\b\\f\\r\\u0001\\u001F\\u007f\\u2028\"",
		    "\"\\b\\f\\r\\u0001\\u001f\x7f\xe2\x80\xa8\"" },
		{ "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
		{ "{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}" },
		{ "{\"01\":1,\"4294967295\":2,\"4294967294\":3,\"0\":4,\"-1\":5,\"1.0\":6}",
		    "{\"0\":4,\"4294967294\":3,\"01\":1,\"4294967295\":2,\"-1\":5,\"1.0\":6}" },
		{ "{\"18446744073709551617\":1,\"7\":2}", "{\"7\":2,\"18446744073709551617\":1}" },
		{ "{\"\":{\"2\":[],\"1\":{}}}", "{\"\":{\"1\":{},\"2\":[]}}" },
		{ "\"\"", "\"\"" },
		{ "null", "null" },
		{ "[]", "[]" },
	};
	const char *error;
	char *compact;
	json_t *value;

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		value = read_text(rows[i].text, &error);
		if (value == NULL)
			fail_msg("row %zu %s", i, error);
		compact = json_compact(&arena, value);
		json_done(value);
		if (compact == NULL || strcmp(compact, rows[i].compact) != 0)
			fail_msg("row %zu: %s", i, compact);
	}
}

static void
a_compact_text_beyond_the_arena_is_refused(void **state)
{
	static const char *const pieces[] = { "\"\\u0001\\u0001\\u0001\",",
		"\"aaaaaaaaaaaaaaaaa\"," };
	const char *error;
	char *body;
	json_t *value;

	(void)state;
	for (size_t i = 0; i < ROWS(pieces); i++) {
		body = body_of(pieces[i]);
		value = read_text(body, &error);
		assert_non_null(value);
		arena_alloc(&arena, ARENA_BYTES_MAX / 4 * 3);
		assert_null(json_compact(&arena, value));
		assert_true(arena.refused);
		json_done(value);
		free(body);
		arena_reset(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    what_is_no_json_is_refused_with_its_place, start, stop),
		cmocka_unit_test_setup_teardown(nul_bytes_are_refused, start, stop),
		cmocka_unit_test_setup_teardown(
		    nesting_is_counted_before_it_is_followed, start, stop),
		cmocka_unit_test_setup_teardown(a_body_that_inflates_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(an_honest_large_body_is_read, start, stop),
		cmocka_unit_test_setup_teardown(
		    the_compact_text_is_that_of_javascript, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_compact_text_beyond_the_arena_is_refused, start, stop),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

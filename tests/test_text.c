/* SPDX-License-Identifier: MIT */
/* Texts from outside: what is refused, and in which words. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/text.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
only_well_formed_utf8_without_nul_is_utf8(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		bool good;
	} rows[] = {
		{ "", 0, true },
		{ "lease", 5, true },
		{ "\xc3\xa9", 2, true },
		{ "\xf4\x8f\xbf\xbf", 4, true },
		{ "a\0b", 3, false },
		{ "\xc3", 1, false },
		{ "\xa9", 1, false },
		{ "\xc0\x80", 2, false },
		{ "\xed\xa0\x80", 3, false },
		{ "\xf4\x90\x80\x80", 4, false },
		{ "\xff", 1, false },
	};

	(void)state;
	assert_true(text_utf8(NULL, 0));
	for (size_t i = 0; i < ROWS(rows); i++)
		if (text_utf8(rows[i].bytes, rows[i].length) != rows[i].good)
			fail_msg("row %zu", i);
}

static void
a_fault_says_what_is_wrong(void **state)
{
	static const struct {
		const char *text;
		const char *fault;
	} rows[] = {
		{ "lease", NULL },
		{ "a b\tc\nd", NULL },
		{ "12345678", NULL },
		{ "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", NULL },
		{ "\u200b", NULL },
		{ "\U0001f600", NULL },
		{ "\xff", "must be valid UTF-8" },
		{ "a\xed\xa0\x80", "must be valid UTF-8" },
		{ "", "must not be blank" },
		{ " \t\n", "must not be blank" },
		{ "\u3000\u00a0\u2003\u2028", "must not be blank" },
		{ "\ufeff", "must not be blank" },
		{ "123456789", "must be at most 8 characters" },
		{ "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
		    "must be at most 8 characters" },
		{ "a\x01", "must not contain control characters" },
		{ "a\r", "must not contain control characters" },
		{ "\x1b", "must not contain control characters" },
		{ "a\x7f", "must not contain control characters" },
		{ "a\xc2\x85", "must not contain control characters" },
		{ "a\xc2\x9f", "must not contain control characters" },
		{ "a\u061c", "must not contain bidirectional controls" },
		{ "a\u200e", "must not contain bidirectional controls" },
		{ "a\u200f", "must not contain bidirectional controls" },
		{ "a\u202a", "must not contain bidirectional controls" },
		{ "a\u202e", "must not contain bidirectional controls" },
		{ "a\u2066", "must not contain bidirectional controls" },
		{ "a\u2069", "must not contain bidirectional controls" },
		{ "a\u2065", NULL },
		{ "a\u202f", NULL },
		{ "a\u200d", NULL },
	};
	char buffer[80];
	const char *fault;

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		fault = text_fault(rows[i].text, 8, buffer);
		if ((fault == NULL) != (rows[i].fault == NULL) ||
		    (fault != NULL && strcmp(fault, rows[i].fault) != 0))
			fail_msg("row %zu: %s", i, fault == NULL ? "no fault" : fault);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_well_formed_utf8_without_nul_is_utf8),
		cmocka_unit_test(a_fault_says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

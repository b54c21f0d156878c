/* SPDX-License-Identifier: MIT */
/* Entity tags in headers, as the call sees them and as the client does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/support/web.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
entity_tags_are_listed(void **state)
{
	static const struct {
		const char *headers;
		const char *tags;
	} rows[] = {
		{ "", "[]" },
		{ "If-Match: \"a\"\r\n", "[\\\"a\\\"]" },
		{ "If-Match: *\r\n", "[\\\"*\\\"]" },
		{ "If-Match: \"*\"\r\n", "[\\\"\\\\\\\"*\\\\\\\"\\\"]" },
		{ "if-match:  \"a\" , ,\"b,c\",\r\n", "[\\\"a\\\",\\\"b,c\\\"]" },
		{ "If-Match: \"a\"\r\nIf-Match: \"b\"\r\n", "[\\\"a\\\",\\\"b\\\"]" },
		{ "If-Match: W/\"a\"\r\n", "[\\\"W/\\\\\\\"a\\\\\\\"\\\"]" },
		{ "If-Match: \r\n", "[\\\"\\\"]" },
		{ "If-Match: ,\r\n", "[\\\"\\\"]" },
		{ "If-Match: \"\xff\"\r\n", "An entity tag must be UTF-8." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		web_ask(web_post("/v1/subjects/s", rows[i].headers, "{}"));
		if (strstr(web_body, rows[i].tags) == NULL)
			fail_msg("row %zu: %s: %s", i, rows[i].headers, web_body);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entity_tags_are_listed),
	};

	return cmocka_run_group_tests(tests, web_start, web_stop);
}

/* SPDX-License-Identifier: MIT */
/* Framing that is in doubt, and what comes after an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/web.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
framing_in_doubt_is_refused_and_ends_the_connection(void **state)
{
	static const struct {
		const char *raw;
		int status;
	} rows[] = {
		{ POST_LEASE "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400 },
		{ POST_LEASE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		    400 },
		{ POST_LEASE "Transfer-Encoding: gzip\r\n\r\n", 400 },
		{ POST_LEASE "Transfer-Encoding: identity\r\n\r\n", 400 },
		{ POST_LEASE "Content-Length: +2\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 2x\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 2, 2\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 0x2\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: -1\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: ten\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: \r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length: 99999999999999999999999999999999999999\r\n\r\n",
		    413 },
		{ POST_LEASE "Content-Length: 5000000000\r\n\r\n{", 413 },
		{ POST_LEASE "Host: y\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE "X: a\r\n\tb\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE ": v\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE " : v\r\nContent-Length: 2\r\n\r\n{}", 400 },
		{ POST_LEASE "Content-Length : 2\r\n\r\n{}", 400 },
		{ POST_LEASE "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400 },
		{ HEAD("GET /healthz") "Connection: close, keep-alive\r\n\r\n", 200 },
		{ "GET /healthz HTTP/1.1\r\n\r\n", 400 },
		{ "GET /healthz HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", 400 },
		{ "GET /healthz HTTP/1.0\r\n\r\n", 200 },
		{ POST_LEASE "Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417 },
		{ POST_LEASE "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n", 413 },
		{ HEAD("DELETE /v1/leases/x") "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
		    200 },
		{ HEAD("GET /healthz") "Connection: close\r\n\r\n", 200 },
		{ HEAD("GET /healthz") "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		int status = web_ask(rows[i].raw);
		if (status != rows[i].status || strcmp(web_header("Connection"), "close") != 0 ||
		    !web_ended())
			fail_msg("row %zu: %d %s%s", i, status, web_head, web_body);
	}
}

static void
more_headers_than_are_kept_are_refused(void **state)
{
	static const int rows[][2] = { { 63, 200 }, { 64, 400 }, { 65, 400 } };

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		char raw[4096];
		int n = snprintf(raw, sizeof(raw), HEAD("GET /v1/events"));
		for (int line = 2; line < rows[i][0]; line++)
			n += snprintf(raw + n, sizeof(raw) - (size_t)n, "X: y\r\n");
		snprintf(raw + n, sizeof(raw) - (size_t)n, "\r\n");
		if (web_ask(raw) != rows[i][1])
			fail_msg("row %zu: %s", i, web_head);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing_in_doubt_is_refused_and_ends_the_connection),
		cmocka_unit_test(more_headers_than_are_kept_are_refused),
	};

	return cmocka_run_group_tests(tests, web_start, web_stop);
}

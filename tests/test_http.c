/* SPDX-License-Identifier: MIT */
/*
 * Exchanges over real sockets, with requests that no polite client would send: answers, gates,
 * bodies, bindings.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/support/web.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))
#define MEBIBYTE ((size_t)1 << 20)

static void
a_success_has_data_and_meta(void **state)
{
	char wanted[256];

	(void)state;
	assert_int_equal(web_ask(web_post("/v1/leases", "", "{\"resource_id\":\"r\"}")), 201);
	snprintf(wanted, sizeof(wanted),
	    "{\"data\":{\"lease_id\":\"r\",\"expires_at\":null,\"fence\":null},"
	    "\"meta\":{\"request_id\":\"%s\"}}",
	    web_header("X-Request-Id"));
	assert_string_equal(web_body, wanted);
	web_ask(web_post("/v1/leases", "", "{\"purpose\":\"replayed\"}"));
	assert_non_null(strstr(web_body, ",\"replayed\":true}}"));
}

static void
a_failure_has_error_and_meta(void **state)
{
	char wanted[256];

	(void)state;
	assert_int_equal(web_ask(web_post("/v1/leases", "", "{\"purpose\":\"conflict\"}")), 409);
	snprintf(wanted, sizeof(wanted),
	    "{\"error\":{\"code\":\"CONFLICT\",\"message\":\"Taken.\"},"
	    "\"meta\":{\"request_id\":\"%s\"}}",
	    web_header("X-Request-Id"));
	assert_string_equal(web_body, wanted);
}

static void
every_answer_has_the_common_headers(void **state)
{
	static const char *const rows[] = { HEAD("GET /healthz") "\r\n", HEAD("GET /nope") "\r\n",
		"POST /v1/leases HTTP/1.1\r\nHost: x\r\n\r\n", "what is this\r\n\r\n",
		"GET /healthz HTTP/9.9\r\n\r\n" };

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		int status = web_ask(rows[i]);
		if (strcmp(web_header("Content-Type"), "application/json; charset=utf-8") != 0 ||
		    strcmp(web_header("Cache-Control"), "no-store") != 0 ||
		    strcmp(web_header("X-Content-Type-Options"), "nosniff") != 0 ||
		    strncmp(web_header("X-Request-Id"), "req_", 4) != 0 ||
		    *web_header("Date") == '\0')
			fail_msg("row %zu: %d %s", i, status, web_head);
	}
}

static void
some_answers_have_headers_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(web_ask("POST /v1/leases HTTP/1.1\r\nHost: x\r\n\r\n"), 401);
	assert_string_equal(web_header("WWW-Authenticate"), "Bearer");
	assert_int_equal(web_ask(HEAD("PUT /v1/leases") "\r\n"), 405);
	assert_string_equal(web_header("Allow"), "POST, OPTIONS");
	assert_int_equal(web_ask(web_post("/v1/leases", "", "{\"purpose\":\"busy\"}")), 503);
	assert_string_equal(web_header("Retry-After"), "2");
	assert_int_equal(web_ask(web_post("/v1/subjects/s", "", "{}")), 200);
	assert_string_equal(web_header("ETag"), "\"abc\"");
	assert_int_equal(web_ask(web_post("/v1/subjects/s", "", "{\"run_id\":\"r\"}")), 201);
}

static void
the_gates_come_in_order(void **state)
{
	static const struct {
		const char *raw;
		int status;
	} rows[] = {
		{ "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n", 404 },
		{ "PUT /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n", 405 },
		{ "POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n",
		    401 },
		{ "POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{", 401 },
		{ "POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer poor\r\n"
		  "Content-Length: 1\r\n\r\n{",
		    403 },
		{ POST_LEASE "Content-Length: 9999999999\r\n\r\n", 413 },
		{ POST_LEASE "Content-Length: 1\r\n\r\n{", 400 },
		{ POST_LEASE "Content-Length: 2\r\n\r\n[]", 400 },
		{ POST_LEASE "\r\n", 400 },
		{ POST_LEASE "Content-Length: 13\r\n\r\n{\"purpose\":1}", 400 },
		{ POST_LEASE "Content-Length: 2\r\n\r\n{}", 201 },
		{ HEAD("DELETE /v1/leases/%zz") "\r\n", 400 },
		{ POST_LEASE "Authorization: Bearer good\r\nContent-Length: 2\r\n\r\n{}", 401 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		int status = web_ask(rows[i].raw);
		if (status != rows[i].status)
			fail_msg("row %zu: %d %s", i, status, web_body);
	}
}

static void
a_connection_serves_many_requests_errors_included(void **state)
{
	(void)state;
	web_dial();
	for (int i = 0; i < 3; i++) {
		web_say(POST_LEASE "Content-Length: 2 \r\n\r\n{}");
		assert_int_equal(web_hear(true), 201);
		web_say(POST_LEASE "Content-Length: 1\r\n\r\n{");
		assert_int_equal(web_hear(true), 400);
		web_say("POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
		assert_int_equal(web_hear(true), 401);
		web_say("POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
		assert_int_equal(web_hear(true), 404);
		web_say(HEAD("DELETE /v1/leases/x") "Content-Length: 2\r\n\r\n{}");
		assert_int_equal(web_hear(true), 200);
	}
}

static void
requests_may_be_pipelined(void **state)
{
	(void)state;
	web_dial();
	web_say(POST_LEASE "Content-Length: 2\r\n\r\n{}" HEAD(
	    "GET /nope") "\r\n" POST_LEASE
			 "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" HEAD(
			     "GET /livez") "\r\n");
	assert_int_equal(web_hear(true), 201);
	assert_int_equal(web_hear(true), 404);
	assert_int_equal(web_hear(true), 201);
	assert_int_equal(web_hear(true), 200);
}

static void
a_body_may_come_in_chunks(void **state)
{
	static const struct {
		const char *chunks;
		int status;
	} rows[] = {
		{ "2\r\n{}\r\n0\r\n\r\n", 201 },
		{ "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 201 },
		{ "A\r\n{        }\r\n00\r\n\r\n", 201 },
		{ "0\r\n\r\n", 400 },
		{ "2\r\n{}}\r\n0\r\n\r\n", 400 },
		{ "x\r\n{}\r\n0\r\n\r\n", 400 },
		{ "-2\r\n{}\r\n0\r\n\r\n", 400 },
		{ "ffffffffffffffff\r\n{}\r\n0\r\n\r\n", 400 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		web_dial();
		web_say(POST_LEASE "Transfer-Encoding: chunked\r\n\r\n");
		web_say(rows[i].chunks);
		int status = web_hear(true);
		if (status != rows[i].status)
			fail_msg("row %zu: %d %s", i, status, web_body);
	}
}

static void
a_request_may_come_byte_by_byte(void **state)
{
	const char *raw = web_post("/v1/leases", "", "{\"resource_id\":\"slow\"}");

	(void)state;
	web_dial();
	for (; *raw != '\0'; raw++)
		web_say_n(raw, 1);
	assert_int_equal(web_hear(true), 201);
	assert_non_null(strstr(web_body, "\"slow\""));
}

static void
a_body_that_is_cut_off_is_refused(void **state)
{
	(void)state;
	web_dial();
	web_say(POST_LEASE "Content-Length: 100\r\n\r\n{}");
	shutdown(web_sock, SHUT_WR);
	assert_int_equal(web_hear(true), 400);
	assert_true(web_ended());
}

/* Sends a body of BYTES, declared or in one chunk, whole before it listens. */
static int
post_large(size_t bytes, bool chunked)
{
	char *spaces = malloc(bytes);
	char start_of[256];

	memset(spaces, ' ', bytes);
	spaces[0] = '{';
	spaces[1] = '}';
	snprintf(start_of, sizeof(start_of),
	    chunked ? POST_LEASE "Transfer-Encoding: chunked\r\n\r\n%zx\r\n"
		    : POST_LEASE "Content-Length: %zu\r\n\r\n",
	    bytes);
	web_dial();
	web_say(start_of);
	web_say_n(spaces, bytes);
	if (chunked)
		web_say("\r\n0\r\n\r\n");
	free(spaces);
	return web_hear(true);
}

static void
a_body_may_have_one_mebibyte(void **state)
{
	(void)state;
	assert_int_equal(post_large(MEBIBYTE, false), 201);
	assert_int_equal(post_large(MEBIBYTE, true), 201);
	assert_int_equal(post_large(MEBIBYTE + 1, false), 413);
	assert_string_equal(web_header("Connection"), "close");
	assert_int_equal(post_large(MEBIBYTE + 1, true), 413);
	assert_string_equal(web_header("Connection"), "close");
	/* Refused, but read, or the client would never see the answer. */
	assert_int_equal(post_large(3 * MEBIBYTE, false), 413);
}

static void
a_client_that_waits_to_continue_is_told_to(void **state)
{
	(void)state;
	assert_int_equal(
	    web_ask(POST_LEASE "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n"), 100);
	web_say("{}");
	assert_int_equal(web_hear(true), 201);
	assert_string_equal(web_header("Connection"), "keep-alive");
}

static void
a_client_without_a_key_is_not_told_to_continue(void **state)
{
	(void)state;
	assert_int_equal(web_ask("POST /v1/leases HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
				 "Content-Length: 2\r\n\r\n"),
	    401);
	assert_true(web_ended());
}

static void
head_is_get_without_the_body(void **state)
{
	(void)state;
	assert_int_equal(web_ask(HEAD("HEAD /healthz") "\r\n"), 200);
	assert_string_not_equal(web_header("Content-Length"), "0");
	web_say(HEAD("GET /healthz") "\r\n");
	assert_int_equal(web_hear(true), 200);
	assert_int_equal(web_ask(HEAD("HEAD /v1/leases") "\r\n"), 405);
}

static void
options_lists_the_verbs_of_a_path(void **state)
{
	(void)state;
	assert_int_equal(web_ask("OPTIONS /v1/leases/x HTTP/1.1\r\nHost: x\r\nOrigin: http://o\r\n"
				 "Access-Control-Request-Method: DELETE\r\n\r\n"),
	    204);
	assert_string_equal(web_header("Allow"), "DELETE, OPTIONS");
	assert_string_equal(web_header("Content-Length"), "");
	assert_string_equal(web_header("Access-Control-Allow-Origin"), "");
	assert_int_equal(web_ask(HEAD("OPTIONS /nope") "\r\n"), 404);
}

static void
a_query_sets_fields(void **state)
{
	static const struct {
		const char *query;
		const char *outcome; /* a part of the body */
	} rows[] = {
		{ "after=a+b%2B&limit=5",
		    "\\\"after\\\":\\\"a b+\\\",\\\"limit\\\":5,\\\"kind\\\":[]" },
		{ "kind=a&kind=b", "\\\"kind\\\":[\\\"a\\\",\\\"b\\\"]" },
		{ "limit=1&limit=2", "\\\"limit\\\":2" },
		{ "%6Cimit=3", "\\\"limit\\\":3" },
		{ "foo=%zz&&=&x", "\\\"limit\\\":null" },
		{ "after", "\\\"after\\\":\\\"\\\"" },
		{ "limit=", "limit must be an integer." },
		{ "limit=1.5", "limit must be an integer." },
		{ "after=%zz", "after is not well-formed in the query." },
		{ "after=%00", "after is not well-formed in the query." },
		{ "%zz=1", "The query is not well-formed." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		char raw[256];
		snprintf(raw, sizeof(raw), HEAD("GET /v1/events?%s") "\r\n", rows[i].query);
		web_ask(raw);
		if (strstr(web_body, rows[i].outcome) == NULL)
			fail_msg("row %zu: %s: %s", i, rows[i].query, web_body);
	}
}

static void
the_path_wins_over_the_body_and_the_query_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(web_ask(web_post("/v1/subjects/a%2Fb?run_id=r", "",
			     "{\"subject_id\":1,\"ttl_seconds\":7}")),
	    200);
	assert_non_null(strstr(web_body, "\"subject_id\":\"a/b\""));
	assert_non_null(strstr(web_body, "\\\"ttl_seconds\\\":7"));
	assert_non_null(strstr(web_body, "\\\"run_id\\\":null"));
}

static void
an_idempotency_key_is_trimmed_and_not_blank(void **state)
{
	static const char *const rows[][2] = {
		{ "Idempotency-Key:   a b  \r\n", "<a b>" },
		{ "Idempotency-Key:   \r\n", "<(null)>" },
		{ "", "<(null)>" },
		{ "Idempotency-Key: \xff\r\n", "Idempotency-Key must be UTF-8." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		web_ask(web_post("/v1/leases", rows[i][0], "{\"purpose\":\"key\"}"));
		if (strstr(web_body, rows[i][1]) == NULL)
			fail_msg("row %zu: %s", i, web_body);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_success_has_data_and_meta),
		cmocka_unit_test(a_failure_has_error_and_meta),
		cmocka_unit_test(every_answer_has_the_common_headers),
		cmocka_unit_test(some_answers_have_headers_of_their_own),
		cmocka_unit_test(the_gates_come_in_order),
		cmocka_unit_test(a_connection_serves_many_requests_errors_included),
		cmocka_unit_test(requests_may_be_pipelined),
		cmocka_unit_test(a_body_may_come_in_chunks),
		cmocka_unit_test(a_request_may_come_byte_by_byte),
		cmocka_unit_test(a_body_that_is_cut_off_is_refused),
		cmocka_unit_test(a_body_may_have_one_mebibyte),
		cmocka_unit_test(a_client_that_waits_to_continue_is_told_to),
		cmocka_unit_test(a_client_without_a_key_is_not_told_to_continue),
		cmocka_unit_test(head_is_get_without_the_body),
		cmocka_unit_test(options_lists_the_verbs_of_a_path),
		cmocka_unit_test(a_query_sets_fields),
		cmocka_unit_test(the_path_wins_over_the_body_and_the_query_is_not_read),
		cmocka_unit_test(an_idempotency_key_is_trimmed_and_not_blank),
	};

	return cmocka_run_group_tests(tests, web_start, web_stop);
}

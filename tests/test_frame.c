/* SPDX-License-Identifier: MIT */
/* Requests read from bytes, Replies written to bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/rpc.h"
#include "transport/frame.h"

#define FULL_ARENAS (ARENA_BUDGET_BYTES / ARENA_BYTES_MAX)

/* A call without a core, and what was packed for it. */
struct desk {
	struct arena arena;
	struct call call;
	struct method method;
	uint8_t *bytes;
	size_t length;
	PB(Request) *request;
	nng_msg *msg;
	PB(Reply) *reply;
};

static int
open_desk(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));

	arena_init(&desk->arena);
	call_init(&desk->call, &desk->arena, NULL, NULL);
	desk->call.method = &desk->method;
	*state = desk;
	return 0;
}

static int
close_desk(void **state)
{
	struct desk *desk = *state;

	arena_free(&desk->arena);
	titen__v1__reply__free_unpacked(desk->reply, NULL);
	nng_msg_free(desk->msg);
	free(desk->bytes);
	free(desk);
	return 0;
}

static enum status
parse(struct desk *desk, const PB(Request) *request)
{
	desk->length = titen__v1__request__get_packed_size(request);
	desk->bytes = realloc(desk->bytes, desk->length + 1);
	titen__v1__request__pack(request, desk->bytes);
	return frame_parse(&desk->call, desk->bytes, desk->length, &desk->request);
}

static const PB(Reply) *
build(struct desk *desk)
{
	desk->msg = frame_build(&desk->call, INT64_C(1785408493829));
	desk->reply =
	    titen__v1__reply__unpack(NULL, nng_msg_len(desk->msg), nng_msg_body(desk->msg));
	assert_non_null(desk->reply);
	return desk->reply;
}

static void
a_request_says_what_the_call_needs(void **state)
{
	struct desk *desk = *state;
	PB(Request) request = TITEN__V1__REQUEST__INIT;
	int64_t before = clock_monotonic_ms();

	request.method = "a.Service/Call";
	request.authorization = "Bearer key";
	request.idempotency_key = "once";
	request.has_timeout_ms = true;
	request.timeout_ms = 5000;
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ 3, (uint8_t *)"abc" };
	assert_int_equal(parse(desk, &request), STATUS_OK);
	memset(desk->bytes, 0, desk->length);
	assert_string_equal(desk->request->method, "a.Service/Call");
	assert_memory_equal(desk->request->payload.data, "abc", 3);
	assert_string_equal(desk->call.authorization, "Bearer key");
	assert_string_equal(desk->call.idempotency_key, "once");
	assert_in_range(desk->call.deadline_ms, before + 5000, clock_monotonic_ms() + 5000);
}

static void
a_request_may_leave_out_all_but_the_method(void **state)
{
	struct desk *desk = *state;
	PB(Request) request = TITEN__V1__REQUEST__INIT;

	request.method = "a.Service/Call";
	assert_int_equal(parse(desk, &request), STATUS_OK);
	assert_int_equal(desk->request->payload.len, 0);
	assert_null(desk->call.authorization);
	assert_null(desk->call.idempotency_key);
	assert_int_equal(desk->call.deadline_ms, 0);
	request.method = NULL;
	assert_int_equal(parse(desk, &request), STATUS_VALIDATION_ERROR);
	assert_non_null(desk->call.message);
}

static void
garbage_is_no_request(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", 18 },
		{ "\xff\xff\xff\xff", 4 },
		{ "\x0a\x7f" /* a method of 127 bytes that are not there */, 2 },
		{ "\x0a\x02\xc3\x28" /* a method that is not UTF-8 */, 4 },
		{ "\x0a\x03"
		  "a\0b" /* a method with a NUL in it */,
		    5 },
		{ "\x08\x01" /* a method that is a number */, 2 },
	};
	struct desk *desk = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum status st = frame_parse(
		    &desk->call, (const uint8_t *)rows[i].bytes, rows[i].length, &desk->request);
		if (st != STATUS_VALIDATION_ERROR)
			fail_msg("row %zu: %s", i, status_reason(st));
	}
}

static void
a_payload_ends_at_1_MiB(void **state)
{
	struct desk *desk = *state;
	PB(Request) request = TITEN__V1__REQUEST__INIT;
	uint8_t *payload = calloc(1, PAYLOAD_BYTES_MAX + 1);

	request.method = "a.Service/Call";
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ PAYLOAD_BYTES_MAX, payload };
	assert_int_equal(parse(desk, &request), STATUS_OK);
	arena_reset(&desk->arena);
	request.payload.len++;
	assert_int_equal(parse(desk, &request), STATUS_PAYLOAD_TOO_LARGE);
	free(payload);
}

static void
a_timeout_is_above_zero_and_cannot_overflow(void **state)
{
	static const struct {
		int64_t timeout_ms;
		enum status status;
	} rows[] = {
		{ INT64_MIN, STATUS_VALIDATION_ERROR },
		{ -1, STATUS_VALIDATION_ERROR },
		{ 0, STATUS_VALIDATION_ERROR },
		{ 1, STATUS_OK },
		{ TIMEOUT_MS_MAX, STATUS_OK },
		{ INT64_MAX, STATUS_OK },
	};
	struct desk *desk = *state;
	PB(Request) request = TITEN__V1__REQUEST__INIT;

	request.method = "a.Service/Call";
	request.has_timeout_ms = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		request.timeout_ms = rows[i].timeout_ms;
		enum status st = parse(desk, &request);
		if (st != rows[i].status ||
		    desk->call.deadline_ms > clock_monotonic_ms() + TIMEOUT_MS_MAX)
			fail_msg("row %zu: %s", i, status_reason(st));
	}
}

static void
without_memory_to_spare_the_client_shall_come_again(void **state)
{
	struct desk *desk = *state;
	PB(Request) request = TITEN__V1__REQUEST__INIT;
	struct arena *others = calloc(FULL_ARENAS, sizeof(*others));

	for (size_t i = 0; i < FULL_ARENAS; i++) {
		arena_init(&others[i]);
		while (arena_try(&others[i], ARENA_BYTES_MAX / 8) != NULL)
			;
	}
	request.method = "a.Service/Call";
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ PAYLOAD_BYTES_MAX, calloc(1, PAYLOAD_BYTES_MAX) };
	assert_int_equal(parse(desk, &request), STATUS_UNAVAILABLE);
	free(request.payload.data);
	for (size_t i = 0; i < FULL_ARENAS; i++)
		arena_free(&others[i]);
	free(others);
}

static void
a_success_carries_the_packed_response(void **state)
{
	struct desk *desk = *state;
	PB(Json) json = TITEN__V1__JSON__INIT, *unpacked;
	const PB(Reply) *reply;

	json.text = "{}";
	desk->call.response = &json.base;
	reply = build(desk);
	assert_int_equal(reply->code, 0);
	assert_true(reply->has_code);
	assert_null(reply->reason);
	assert_null(reply->message);
	assert_false(reply->has_replayed);
	assert_string_equal(reply->request_id, desk->call.request_id);
	assert_true(reply->server_time->seconds > 1700000000);
	unpacked = titen__v1__json__unpack(NULL, reply->payload.len, reply->payload.data);
	assert_string_equal(unpacked->text, "{}");
	titen__v1__json__free_unpacked(unpacked, NULL);
}

static void
a_failure_says_why_and_when_to_come_again(void **state)
{
	struct desk *desk = *state;
	const PB(Reply) *reply;

	desk->call.status = call_fail(&desk->call, STATUS_CONFLICT, "Taken.");
	desk->call.retry_after_ms = 70;
	reply = build(desk);
	assert_int_equal(reply->code, 10);
	assert_string_equal(reply->reason, "CONFLICT");
	assert_string_equal(reply->message, "Taken.");
	assert_int_equal(reply->retry_after_ms, 70);
	assert_false(reply->has_payload);
	assert_false(reply->has_created);
	assert_string_equal(reply->request_id, desk->call.request_id);
}

static void
created_is_said_where_something_can_be_new(void **state)
{
	static const struct {
		enum result result;
		bool made, has_created, created;
	} rows[] = {
		{ RESULT_OK, false, false, false },
		{ RESULT_UPSERT, false, true, false },
		{ RESULT_UPSERT, true, true, true },
		{ RESULT_CREATED, false, true, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct desk *desk;

		open_desk(state);
		desk = *state;
		desk->method.result = rows[i].result;
		desk->call.created = rows[i].made;
		build(desk);
		if (desk->reply->has_created != rows[i].has_created ||
		    desk->reply->created != rows[i].created)
			fail_msg("row %zu", i);
		close_desk(state);
	}
}

static void
a_replay_says_so(void **state)
{
	struct desk *desk = *state;

	desk->call.replayed = true;
	assert_true(build(desk)->replayed);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, open_desk, close_desk)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(a_request_says_what_the_call_needs),
		DESK_TEST(a_request_may_leave_out_all_but_the_method),
		DESK_TEST(garbage_is_no_request),
		DESK_TEST(a_payload_ends_at_1_MiB),
		DESK_TEST(a_timeout_is_above_zero_and_cannot_overflow),
		DESK_TEST(without_memory_to_spare_the_client_shall_come_again),
		DESK_TEST(a_success_carries_the_packed_response),
		DESK_TEST(a_failure_says_why_and_when_to_come_again),
		cmocka_unit_test(created_is_said_where_something_can_be_new),
		DESK_TEST(a_replay_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

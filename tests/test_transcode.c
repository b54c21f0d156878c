/* SPDX-License-Identifier: MIT */
/* JSON to messages and back: every kind of value, its edges, and the places that errors name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "checkpoint.pb-c.h"
#include "envelope.pb-c.h"
#include "event.pb-c.h"
#include "health.pb-c.h"
#include "key.pb-c.h"
#include "lease.pb-c.h"
#include "core/json_read.h"
#include "gateway/render.h"
#include "gateway/transcode.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct arena arena;
static struct call call;
static struct method method;

static int
start(void **state)
{
	(void)state;
	arena_init(&arena);
	call_init(&call, &arena, NULL, NULL);
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
begin(const ProtobufCMessageDescriptor *type)
{
	method = (struct method){ .name = "test", .request = type };
	call.method = &method;
	assert_int_equal(transcode_begin(&call), STATUS_OK);
}

/* Read TEXT as a message of TYPE into call.request. */
static enum status
read_as(const ProtobufCMessageDescriptor *type, const char *text)
{
	const char *error;
	json_t *json = json_read(&arena, text, strlen(text), JSON_DEPTH_MAX, &error);
	enum status st;

	if (json == NULL)
		fail_msg("%s %s", text, error);
	begin(type);
	st = transcode_object(&call, json);
	json_done(json);
	return st;
}

/* What is wrong with TEXT as a message of TYPE. */
static const char *
fault_of(const ProtobufCMessageDescriptor *type, const char *text)
{
	return read_as(type, text) == STATUS_OK ? "nothing" : call.message;
}

static const char *
written(const ProtobufCMessage *message)
{
	struct json_writer w;

	json_write_begin(&w, &arena);
	json_write_open(&w, '{');
	render_members(&w, message, NULL);
	json_write_close(&w, '}');
	return w.text;
}

static void
a_message_and_its_json_are_the_same(void **state)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *text;
	} rows[] = {
		{ &titen__v1__lease_acquire_request__descriptor,
		    "{\"resource_type\":\"deploy\",\"resource_id\":\"\xc3\xa9\\n\",\"purpose\":"
		    "\"\","
		    "\"ttl_seconds\":9007199254740992}" },
		{ &titen__v1__checkpoint__descriptor,
		    "{\"checkpoint_id\":\"c\",\"subject_id\":null,\"agent_id\":null,\"run_id\":"
		    "null,"
		    "\"kind\":\"task_state\",\"state\":{\"b\":[1,null,true],\"a\":\"x\"},"
		    "\"state_hash\":null,\"version\":-1,\"ttl_seconds\":0,"
		    "\"expires_at\":\"0000-01-01T00:00:00.000Z\","
		    "\"created_at\":\"9999-12-31T23:59:59.999Z\","
		    "\"updated_at\":\"1969-12-31T23:59:59.999Z\"}" },
		{ &titen__v1__event_list_response__descriptor,
		    "{\"events\":[{\"id\":\"e1\",\"kind\":null,\"actor_id\":null,\"resource_type\":"
		    "null,"
		    "\"resource_id\":null,\"payload\":[],\"created_at\":null},"
		    "{\"id\":\"e2\",\"kind\":null,\"actor_id\":null,\"resource_type\":null,"
		    "\"resource_id\":null,\"payload\":\"\\\"\",\"created_at\":null}],"
		    "\"cursor\":null}" },
		{ &titen__v1__event_list_response__descriptor, "{\"events\":[],\"cursor\":null}" },
		{ &titen__v1__health_ready_response__descriptor,
		    "{\"ready\":false,\"runtime\":null,\"revision\":null,"
		    "\"schema\":{\"applied\":1,\"expected\":null}}" },
		{ &titen__v1__key_list_response__descriptor,
		    "{\"keys\":[{\"key_id\":null,\"principal_id\":null,\"principal_kind\":"
		    "\"human\","
		    "\"label\":null,\"scopes\":[\"a\",\"b\",\"c\",\"d\",\"e\"],"
		    "\"max_trust\":\"policy_approved\",\"status\":\"revoked\",\"created_at\":null,"
		    "\"revoked_at\":null}],\"cursor\":\"k\"}" },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"AP/+\"}" },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"AA==\"}" },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"\"}" },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":null}" },
		{ &titen__v1__health_check_request__descriptor, "{}" },
		{ &titen__v1__reply__descriptor,
		    "{\"code\":-2147483648,\"reason\":null,\"message\":null,\"payload\":null,"
		    "\"request_id\":null,\"replayed\":true,\"created\":null,\"retry_after_ms\":5,"
		    "\"server_time\":null}" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		if (read_as(rows[i].type, rows[i].text) != STATUS_OK)
			fail_msg("row %zu: %s", i, call.message);
		if (strcmp(written(call.request), rows[i].text) != 0)
			fail_msg("row %zu: %s", i, written(call.request));
	}
}

static void
what_is_unknown_or_null_is_absent(void **state)
{
	(void)state;
	assert_int_equal(
	    read_as(&titen__v1__lease_acquire_request__descriptor,
		"{\"x\":1,\"\":2,\"Purpose\":3,\"purpose\":null,\"ttl_seconds\":null}"),
	    STATUS_OK);
	PB(LeaseAcquireRequest) *request = (PB(LeaseAcquireRequest) *)call.request;
	assert_null(request->purpose);
	assert_false(request->has_ttl_seconds);
}

static void
an_integer_is_an_integral_number_within_range(void **state)
{
	static const struct {
		const char *text;
		const char *fault;
	} rows[] = {
		{ "600", "nothing" },
		{ "600.0", "nothing" },
		{ "6e2", "nothing" },
		{ "-0", "nothing" },
		{ "-9007199254740992", "nothing" },
		{ "9007199254740994", "ttl_seconds must be an integer within range." },
		{ "1e300", "ttl_seconds must be an integer within range." },
		{ "600.5", "ttl_seconds must be an integer." },
		{ "\"600\"", "ttl_seconds must be an integer." },
		{ "true", "ttl_seconds must be an integer." },
		{ "[]", "ttl_seconds must be an integer." },
		{ "{}", "ttl_seconds must be an integer." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *text = arena_printf(&arena, "{\"ttl_seconds\":%s}", rows[i].text);
		const char *fault = fault_of(&titen__v1__lease_acquire_request__descriptor, text);
		if (strcmp(fault, rows[i].fault) != 0)
			fail_msg("row %zu: %s: %s", i, text, fault);
	}
}

static void
a_small_integer_has_a_smaller_range(void **state)
{
	(void)state;
	assert_string_equal(
	    fault_of(&titen__v1__reply__descriptor, "{\"code\":2147483647}"), "nothing");
	assert_string_equal(fault_of(&titen__v1__reply__descriptor, "{\"code\":2147483648}"),
	    "code must be an integer within range.");
}

static void
a_value_of_the_wrong_kind_names_its_place(void **state)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *text;
		const char *fault;
	} rows[] = {
		{ &titen__v1__lease_acquire_request__descriptor, "{\"purpose\":1}",
		    "purpose must be a string." },
		{ &titen__v1__checkpoint_save_request__descriptor, "{\"kind\":\"x\"}",
		    "kind must be one of task_state, conversation, workflow, cursor." },
		{ &titen__v1__checkpoint_save_request__descriptor, "{\"kind\":\"TASK_STATE\"}",
		    "kind must be one of task_state, conversation, workflow, cursor." },
		{ &titen__v1__checkpoint_save_request__descriptor, "{\"kind\":\"task_stat\"}",
		    "kind must be one of task_state, conversation, workflow, cursor." },
		{ &titen__v1__checkpoint_save_request__descriptor, "{\"kind\":1}",
		    "kind must be a string." },
		{ &titen__v1__key_create_request__descriptor, "{\"scopes\":\"a\"}",
		    "scopes must be a list." },
		{ &titen__v1__key_create_request__descriptor, "{\"scopes\":[\"a\",null]}",
		    "scopes[1] must be a string." },
		{ &titen__v1__key_list_response__descriptor, "{\"keys\":[{},{\"scopes\":[1]}]}",
		    "keys[1].scopes[0] must be a string." },
		{ &titen__v1__key_list_response__descriptor, "{\"keys\":[[]]}",
		    "keys[0] must be an object." },
		{ &titen__v1__health_ready_response__descriptor, "{\"schema\":{\"applied\":\"\"}}",
		    "schema.applied must be an integer." },
		{ &titen__v1__health_ready_response__descriptor, "{\"ready\":1}",
		    "ready must be true or false." },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":[]}",
		    "payload must be a string of base64." },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"A\"}",
		    "payload must be base64." },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"AP_-\"}",
		    "payload must be base64." },
		{ &titen__v1__health_echo_request__descriptor, "{\"payload\":\"AA== \"}",
		    "payload must be base64." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *fault = fault_of(rows[i].type, rows[i].text);
		if (strcmp(fault, rows[i].fault) != 0)
			fail_msg("row %zu: %s: %s", i, rows[i].text, fault);
	}
}

static void
a_time_is_read_strictly(void **state)
{
	static const struct {
		const char *text;
		const char *same; /* as written again; NULL when it is refused */
	} rows[] = {
		{ "2026-07-30T10:58:13.829Z", "2026-07-30T10:58:13.829Z" },
		{ "2026-07-30T10:58:13Z", "2026-07-30T10:58:13.000Z" },
		{ "2026-07-30T10:58:13.8299999999Z", "2026-07-30T10:58:13.829Z" },
		{ "2026-07-30T10:58:13+02:00", "2026-07-30T08:58:13.000Z" },
		{ "2026-07-30T10:58:13-00:30", "2026-07-30T11:28:13.000Z" },
		{ "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z" },
		{ "2023-02-29T00:00:00Z", NULL },
		{ "2026-02-30T00:00:00Z", NULL },
		{ "2026-13-01T00:00:00Z", NULL },
		{ "2026-00-01T00:00:00Z", NULL },
		{ "2026-01-00T00:00:00Z", NULL },
		{ "2026-01-01T24:00:00Z", NULL },
		{ "2026-01-01T00:60:00Z", NULL },
		{ "2026-12-31T23:59:60Z", NULL },
		{ "2026-01-01T00:00:00", NULL },
		{ "2026-01-01", NULL },
		{ "2026-01-01 00:00:00Z", NULL },
		{ "2026-01-01T00:00:00.Z", NULL },
		{ "2026-01-01T00:00:00,5Z", NULL },
		{ "2026-01-01T00:00:00ZZ", NULL },
		{ "2026-01-01T00:00:00+0200", NULL },
		{ "2026-01-01T00:00:00+24:00", NULL },
		{ "2026-01-01T00:00:00+00:60", NULL },
		{ "10000-01-01T00:00:00Z", NULL },
		{ "-001-01-01T00:00:00Z", NULL },
		{ "0000-01-01T00:00:00+00:01", NULL },
		{ "9999-12-31T23:59:59-00:01", NULL },
		{ "", NULL },
		{ "Jul 30 2026", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *text = arena_printf(&arena, "{\"created_at\":\"%s\"}", rows[i].text);
		enum status st = read_as(&titen__v1__event__descriptor, text);
		if ((st == STATUS_OK) != (rows[i].same != NULL))
			fail_msg("row %zu: %s", i, rows[i].text);
		if (st == STATUS_OK && strstr(written(call.request), rows[i].same) == NULL)
			fail_msg("row %zu: %s", i, written(call.request));
	}
	assert_string_equal(fault_of(&titen__v1__event__descriptor, "{\"created_at\":\"x\"}"),
	    "created_at must be a time like 2026-07-30T10:58:13.829Z.");
}

static void
json_inside_json_is_kept_compact(void **state)
{
	(void)state;
	assert_int_equal(read_as(&titen__v1__checkpoint_save_request__descriptor,
			     "{\"state\":{ \"b\" : 1.0, \"2\":[ ], \"a\":\"\\u0041\" }}"),
	    STATUS_OK);
	assert_string_equal(((PB(CheckpointSaveRequest) *)call.request)->state->text,
	    "{\"2\":[],\"b\":1,\"a\":\"A\"}");
}

static void
a_list_keeps_its_order_however_long(void **state)
{
	(void)state;
	begin(&titen__v1__event_list_request__descriptor);
	for (int i = 0; i < 100; i++)
		assert_int_equal(
		    transcode_text(&call, "kind", arena_printf(&arena, "k%d", i)), STATUS_OK);
	PB(EventListRequest) *request = (PB(EventListRequest) *)call.request;
	assert_int_equal(request->n_kind, 100);
	for (int i = 0; i < 100; i++)
		assert_string_equal(request->kind[i], arena_printf(&arena, "k%d", i));
}

static void
bare_text_sets_a_field(void **state)
{
	static const struct {
		const ProtobufCMessageDescriptor *type;
		const char *name;
		const char *text;
		const char *outcome; /* a part of the message as JSON, or the fault */
	} rows[] = {
		{ &titen__v1__event_list_request__descriptor, "after", "a b", "\"after\":\"a b\"" },
		{ &titen__v1__event_list_request__descriptor, "limit", "50", "\"limit\":50" },
		{ &titen__v1__event_list_request__descriptor, "limit", "007", "\"limit\":7" },
		{ &titen__v1__event_list_request__descriptor, "limit", "",
		    "limit must be an integer." },
		{ &titen__v1__event_list_request__descriptor, "limit", "1.5",
		    "limit must be an integer." },
		{ &titen__v1__event_list_request__descriptor, "limit", "0x10",
		    "limit must be an integer." },
		{ &titen__v1__event_list_request__descriptor, "limit", "-1",
		    "limit must be an integer." },
		{ &titen__v1__event_list_request__descriptor, "limit", "1e2",
		    "limit must be an integer." },
		{ &titen__v1__event_list_request__descriptor, "limit", "99999999999999999999",
		    "limit must be an integer within range." },
		{ &titen__v1__event_list_request__descriptor, "nope", "1", "\"after\":null" },
		{ &titen__v1__checkpoint_find_request__descriptor, "kind", "cursor",
		    "\"kind\":\"cursor\"" },
		{ &titen__v1__checkpoint_find_request__descriptor, "kind", "4",
		    "kind must be one of task_state, conversation, workflow, cursor." },
		{ &titen__v1__health_ready_response__descriptor, "ready", "true",
		    "\"ready\":true" },
		{ &titen__v1__health_ready_response__descriptor, "ready", "1",
		    "ready must be true or false." },
		{ &titen__v1__health_ready_response__descriptor, "schema", "{}",
		    "\"schema\":null" },
		{ &titen__v1__event__descriptor, "created_at", "2026-01-01T00:00:00Z",
		    "\"created_at\":\"2026-01-01T00:00:00.000Z\"" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		begin(rows[i].type);
		const char *outcome = transcode_text(&call, rows[i].name, rows[i].text) == STATUS_OK
					  ? written(call.request)
					  : call.message;
		if (strstr(outcome, rows[i].outcome) == NULL)
			fail_msg("row %zu: %s", i, outcome);
	}
}

static void
of_a_repeated_name_the_last_counts(void **state)
{
	(void)state;
	begin(&titen__v1__event_list_request__descriptor);
	transcode_text(&call, "limit", "1");
	transcode_text(&call, "limit", "2");
	assert_int_equal(((PB(EventListRequest) *)call.request)->limit, 2);
}

/* JSON of 450 KB, of which every empty string takes 24 bytes and more. */
static void
a_message_too_large_for_the_arena_is_refused(void **state)
{
	const size_t n = 150000;
	char *text = test_malloc(n * 3 + 16);
	size_t bytes = (size_t)sprintf(text, "{\"scopes\":[\"\"");

	(void)state;
	for (size_t i = 1; i < n; i++)
		bytes += (size_t)sprintf(text + bytes, ",\"\"");
	sprintf(text + bytes, "]}");
	enum status st = read_as(&titen__v1__key_create_request__descriptor, text);
	test_free(text);
	assert_int_equal(st, STATUS_PAYLOAD_TOO_LARGE);
}

static void
one_member_can_be_left_out(void **state)
{
	struct json_writer w;

	(void)state;
	read_as(&titen__v1__event_list_response__descriptor, "{\"cursor\":\"c\"}");
	json_write_begin(&w, &arena);
	json_write_open(&w, '{');
	render_members(&w, call.request, "events");
	json_write_close(&w, '}');
	assert_string_equal(w.text, "{\"cursor\":\"c\"}");
}

static void
a_field_can_be_looked_up_by_name(void **state)
{
	(void)state;
	read_as(&titen__v1__health_ready_response__descriptor,
	    "{\"runtime\":\"c\",\"schema\":{\"applied\":3}}");
	assert_string_equal(render_text_in(call.request, "runtime"), "c");
	assert_null(render_text_in(call.request, "revision"));
	assert_null(render_text_in(call.request, "nope"));
	assert_null(render_text_in(call.request, "schema"));
	assert_non_null(render_message_in(call.request, "schema"));
	assert_null(render_message_in(call.request, "meta"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_message_and_its_json_are_the_same, start, stop),
		cmocka_unit_test_setup_teardown(what_is_unknown_or_null_is_absent, start, stop),
		cmocka_unit_test_setup_teardown(
		    an_integer_is_an_integral_number_within_range, start, stop),
		cmocka_unit_test_setup_teardown(a_small_integer_has_a_smaller_range, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_value_of_the_wrong_kind_names_its_place, start, stop),
		cmocka_unit_test_setup_teardown(a_time_is_read_strictly, start, stop),
		cmocka_unit_test_setup_teardown(json_inside_json_is_kept_compact, start, stop),
		cmocka_unit_test_setup_teardown(a_list_keeps_its_order_however_long, start, stop),
		cmocka_unit_test_setup_teardown(bare_text_sets_a_field, start, stop),
		cmocka_unit_test_setup_teardown(of_a_repeated_name_the_last_counts, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_message_too_large_for_the_arena_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(one_member_can_be_left_out, start, stop),
		cmocka_unit_test_setup_teardown(a_field_can_be_looked_up_by_name, start, stop),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

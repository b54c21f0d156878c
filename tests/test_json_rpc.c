/* SPDX-License-Identifier: MIT */
/* Calls as people write them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lease.pb-c.h"
#include "cmd/command.h"
#include "cmd/json_rpc.h"
#include "core/json_read.h"
#include "gateway/field.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof(a)[0])

static struct arena arena;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void
a_call_is_found_by_each_of_its_names(void **state)
{
	static const char *const names[] = { "titen.v1.LeaseService/Acquire",
		"LeaseService/Acquire", "lease.acquire", "Lease.Acquire" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct method *method = json_rpc_method(names[i]);
		if (method == NULL || strcmp(method->name, names[0]) != 0)
			fail_msg("row %zu: %s", i, names[i]);
	}
}

static void
what_is_no_name_finds_nothing(void **state)
{
	static const char *const names[] = { "", ".", "lease", "lease.", "lease.acquired",
		"leases.acquire", "LeaseService.Acquire", "Acquire", "titen.v1.LeaseService" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_rpc_method(names[i]) != NULL)
			fail_msg("row %zu: %s", i, names[i]);
}

static void
every_short_name_finds_its_call(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++)
		assert_ptr_equal(
		    json_rpc_method(json_rpc_short_name(&arena, method_at(i))), method_at(i));
}

static void
a_request_is_read_from_json(void **state)
{
	const char *text = "{\"resource_type\":\"deploy\",\"ttl_seconds\":600}";
	const char *error = NULL;
	const PB(LeaseAcquireRequest) *request;

	(void)state;
	request = (const PB(LeaseAcquireRequest) *)json_rpc_request(
	    &arena, json_rpc_method("lease.acquire"), text, strlen(text), &error);
	assert_non_null(request);
	assert_string_equal(request->resource_type, "deploy");
	assert_null(request->resource_id);
	assert_int_equal(request->ttl_seconds, 600);
}

static void
a_misspelt_member_is_refused_with_what_was_meant(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} rows[] = {
		{ "{\"resource_typ\":\"x\"}",
		    "resource_typ is not a field of lease.acquire; did you mean resource_type?" },
		{ "{\"ttl_seconds\":600,\"Purpose\":\"x\"}",
		    "Purpose is not a field of lease.acquire; did you mean purpose?" },
		{ "{\"other\":null}", "other is not a field of lease.acquire" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *error = "";
		if (json_rpc_request(&arena, json_rpc_method("lease.acquire"), rows[i].text,
			strlen(rows[i].text), &error) != NULL ||
		    strcmp(error, rows[i].error) != 0)
			fail_msg("row %zu: %s", i, error);
	}
}

static void
a_misspelt_call_gives_the_one_that_was_meant(void **state)
{
	(void)state;
	assert_string_equal(json_rpc_hint(&arena, "lease.aquire"), "; did you mean lease.acquire?");
	assert_string_equal(json_rpc_hint(&arena, "nonsense"), "");
}

/* The check of names looks no further than the first level. */
static void
no_request_has_messages_as_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		const ProtobufCMessageDescriptor *type = method_at(i)->request;
		for (unsigned j = 0; j < type->n_fields; j++)
			if (type->fields[j].type == PROTOBUF_C_TYPE_MESSAGE &&
			    !field_is_json(&type->fields[j]) && !field_is_time(&type->fields[j]))
				fail_msg("%s.%s", type->name, type->fields[j].name);
	}
}

static void
what_is_no_request_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "1", "null", "{} {}",
		"{\"ttl_seconds\":\"x\"}", "{\"resource_type\":{}}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *error = NULL;
		if (json_rpc_request(&arena, json_rpc_method("lease.acquire"), texts[i],
			strlen(texts[i]), &error) != NULL ||
		    error == NULL)
			fail_msg("row %zu: %s", i, texts[i]);
	}
}

static void
a_success_reads_like_the_one_of_rest(void **state)
{
	PB(Reply) reply = TITEN__V1__REPLY__INIT;
	PB(LeaseReleaseResponse) response = TITEN__V1__LEASE_RELEASE_RESPONSE__INIT;

	(void)state;
	reply.request_id = "req_1";
	reply.has_replayed = 1;
	reply.replayed = 1;
	response.lease_id = "lease_1";
	assert_string_equal(json_rpc_answer(&arena, &reply, &response.base),
	    "{\"data\":{\"lease_id\":\"lease_1\",\"released_at\":null},"
	    "\"meta\":{\"request_id\":\"req_1\",\"replayed\":true}}");
}

static void
a_failure_reads_like_the_one_of_rest(void **state)
{
	PB(Reply) reply = TITEN__V1__REPLY__INIT;

	(void)state;
	reply.request_id = "req_1";
	reply.reason = "NOT_FOUND";
	reply.message = "There is no such lease.";
	assert_string_equal(json_rpc_answer(&arena, &reply, NULL),
	    "{\"error\":{\"code\":\"NOT_FOUND\",\"message\":\"There is no such lease.\"},"
	    "\"meta\":{\"request_id\":\"req_1\"}}");
}

static void
a_payload_that_is_no_message_is_no_response(void **state)
{
	PB(Reply) reply = TITEN__V1__REPLY__INIT;
	uint8_t bytes[] = { 0x0a, 0x7f };

	(void)state;
	reply.payload.data = bytes;
	reply.payload.len = sizeof(bytes);
	assert_null(json_rpc_response(&arena, json_rpc_method("lease.release"), &reply));
}

static void
every_failure_has_its_exit_code(void **state)
{
	static const struct {
		enum status status;
		enum command_exit code;
	} rows[] = {
		{ STATUS_OK, EXIT_OK },
		{ STATUS_VALIDATION_ERROR, EXIT_ERROR },
		{ STATUS_UNAUTHENTICATED, EXIT_FORBIDDEN },
		{ STATUS_FORBIDDEN, EXIT_FORBIDDEN },
		{ STATUS_NOT_FOUND, EXIT_NOT_FOUND },
		{ STATUS_CONFLICT, EXIT_CONFLICT },
		{ STATUS_PRECONDITION_FAILED, EXIT_CONFLICT },
		{ STATUS_UNAVAILABLE, EXIT_UNREACHABLE },
		{ STATUS_RATE_LIMITED, EXIT_RATE_LIMITED },
		{ STATUS_DEADLINE_EXCEEDED, EXIT_TIMED_OUT },
		{ STATUS_INTERNAL, EXIT_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (command_exit_of(rows[i].status) != rows[i].code)
			fail_msg("row %zu: %d", i, (int)command_exit_of(rows[i].status));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_call_is_found_by_each_of_its_names, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_name_finds_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(every_short_name_finds_its_call, setup, teardown),
		cmocka_unit_test_setup_teardown(a_request_is_read_from_json, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_misspelt_member_is_refused_with_what_was_meant, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_misspelt_call_gives_the_one_that_was_meant, setup, teardown),
		cmocka_unit_test(no_request_has_messages_as_fields),
		cmocka_unit_test_setup_teardown(
		    what_is_no_request_is_refused_with_a_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_success_reads_like_the_one_of_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_failure_reads_like_the_one_of_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_payload_that_is_no_message_is_no_response, setup, teardown),
		cmocka_unit_test_setup_teardown(every_failure_has_its_exit_code, setup, teardown),
	};
	const char *error;

	json_init();
	if (!methods_init(&error)) {
		print_error("%s\n", error);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

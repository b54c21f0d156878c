/* SPDX-License-Identifier: MIT */
/* Rules at their edges, and the words of each refusal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "checkpoint.pb-c.h"
#include "handoff.pb-c.h"
#include "health.pb-c.h"
#include "key.pb-c.h"
#include "lease.pb-c.h"
#include "core/call.h"
#include "core/json_read.h"
#include "core/rules.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

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

/* What RULES say about REQUEST: "" when nothing is wrong. */
static const char *
verdict(const struct rule *rules, ProtobufCMessage *request)
{
	struct method method = { .rules = rules };
	struct call c = { .method = &method, .arena = &arena, .request = request };
	enum status st = rules_check(&c);

	if (st == STATUS_OK)
		return "";
	assert_int_equal(st, STATUS_VALIDATION_ERROR);
	return c.message;
}

static const struct rule lease_rules[] = {
	TEXT("resource_type", 8),
	ID("resource_id"),
	TEXT_OPTIONAL("purpose", 4),
	INT("ttl_seconds", 10, 86400),
	RULES_END,
};

static void
texts_and_numbers_are_checked_in_order(void **state)
{
	static const struct {
		const char *type, *id, *purpose;
		bool has_ttl;
		int64_t ttl;
		const char *verdict;
	} rows[] = {
		{ "repo", "r", "edit", true, 10, "" },
		{ "repo", "r", NULL, true, 86400, "" },
		{ "repo", "", NULL, true, 10, "" },
		{ NULL, NULL, NULL, false, 0, "resource_type is required." },
		{ " ", "r", NULL, true, 10, "resource_type must not be blank." },
		{ "123456789", "r", NULL, true, 10, "resource_type must be at most 8 characters." },
		{ "repo", NULL, NULL, true, 10, "resource_id is required." },
		{ "repo", "r", "", true, 10, "purpose must not be blank." },
		{ "repo", "r", "edits", true, 10, "purpose must be at most 4 characters." },
		{ "repo", "r", "e\a", true, 10, "purpose must not contain control characters." },
		{ "repo", "r", NULL, false, 10, "ttl_seconds is required." },
		{ "repo", "r", NULL, true, 9, "ttl_seconds must be an integer from 10 to 86400." },
		{ "repo", "r", NULL, true, 86401,
		    "ttl_seconds must be an integer from 10 to 86400." },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		PB(LeaseAcquireRequest) request = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
		const char *said;

		request.resource_type = (char *)rows[i].type;
		request.resource_id = (char *)rows[i].id;
		request.purpose = (char *)rows[i].purpose;
		request.has_ttl_seconds = rows[i].has_ttl;
		request.ttl_seconds = rows[i].ttl;
		said = verdict(lease_rules, &request.base);
		if (strcmp(said, rows[i].verdict) != 0)
			fail_msg("row %zu: %s", i, said);
	}
}

static void
an_enum_must_be_known(void **state)
{
	static const struct rule rules[] = { ID("handoff_id"), ENUM("status"), RULES_END };
	PB(HandoffResolveRequest) request = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;

	(void)state;
	request.handoff_id = "hnd_1";
	assert_string_equal(verdict(rules, &request.base), "status is required.");
	request.has_status = 1;
	request.status = TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__REJECTED;
	assert_string_equal(verdict(rules, &request.base), "");
	memcpy(&request.status, &(int){ 1 }, sizeof(int));
	assert_string_equal(
	    verdict(rules, &request.base), "status must be one of accepted, rejected.");
}

static const struct rule state_rules[] = { JSON("state", 10), RULES_END };

static void
json_is_checked_and_stored_in_its_compact_form(void **state)
{
	static const struct {
		const char *text;
		const char *verdict;
		const char *compact;
	} rows[] = {
		{ " { \"a\" : 1e2 } ", "", "{\"a\":100}" },
		{ "\"12345678\"", "", "\"12345678\"" },
		{ "false", "", "false" },
		{ "\"123456789\"", "state must be at most 10 bytes.", "\"123456789\"" },
		{ "\"\\u00e9\\u00e9\\u00e9\\u00e9\"", "", "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"" },
		{ "null", "state must not be null.", "null" },
		{ NULL, "state is required.", NULL },
		{ "{", "state is not JSON: the text ends too early at line 1, column 1.", "{" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		PB(CheckpointSaveRequest) request = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;
		PB(Json) json = TITEN__V1__JSON__INIT;
		const char *said;

		request.state = &json;
		json.text = (char *)rows[i].text;
		said = verdict(state_rules, &request.base);
		if (strcmp(said, rows[i].verdict) != 0)
			fail_msg("row %zu: %s", i, said);
		if (json.text != NULL)
			assert_string_equal(json.text, rows[i].compact);
	}
}

static void
json_nests_one_level_less_than_a_body(void **state)
{
	PB(CheckpointSaveRequest) request = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;
	PB(Json) json = TITEN__V1__JSON__INIT;
	char text[2 * JSON_DEPTH_MAX + 1] = { 0 };

	(void)state;
	request.state = &json;
	json.text = text;
	memset(text, '[', JSON_DEPTH_MAX);
	memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_string_equal(
	    verdict(state_rules, &request.base), "state is nested deeper than 63 levels.");
	json.text = text + 1;
	text[2 * JSON_DEPTH_MAX - 1] = '\0';
	assert_string_equal(verdict(state_rules, &request.base), "state must be at most 10 bytes.");
}

static void
lists_are_checked_item_by_item(void **state)
{
	static const struct rule some[] = { TEXTS("scopes", 1, 3, 5), RULES_END };
	static const struct rule any[] = { TEXTS("scopes", 0, 2, 5), RULES_END };
	PB(KeyCreateRequest) request = TITEN__V1__KEY_CREATE_REQUEST__INIT;
	char *scopes[] = { "a", "b", "12345", "d" };

	(void)state;
	request.scopes = scopes;
	assert_string_equal(verdict(any, &request.base), "");
	assert_string_equal(verdict(some, &request.base), "scopes must have 1 to 3 items.");
	request.n_scopes = 3;
	assert_string_equal(verdict(any, &request.base), "scopes must have at most 2 items.");
	assert_string_equal(verdict(some, &request.base), "");
	scopes[2] = "123456";
	assert_string_equal(
	    verdict(some, &request.base), "scopes[2] must be at most 5 characters.");
	request.n_scopes = 4;
	assert_string_equal(verdict(some, &request.base), "scopes must have 1 to 3 items.");
}

static void
bytes_are_counted(void **state)
{
	static const struct rule rules[] = { BYTES_OPTIONAL("payload", 4), RULES_END };
	PB(HealthEchoRequest) request = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;

	(void)state;
	assert_string_equal(verdict(rules, &request.base), "");
	request.has_payload = 1;
	request.payload.data = (uint8_t *)"12345";
	request.payload.len = 4;
	assert_string_equal(verdict(rules, &request.base), "");
	request.payload.len = 5;
	assert_string_equal(verdict(rules, &request.base), "payload must be at most 4 bytes.");
}

static void
rules_and_fields_must_agree(void **state)
{
	static const struct rule missing[] = { TEXT("resource_type", 8), ID("resource_id"),
		INT("ttl_seconds", 1, 2), RULES_END };
	static const struct rule twice[] = { TEXT("resource_type", 8), ID("resource_id"),
		ID("resource_id"), TEXT("purpose", 4), INT("ttl_seconds", 1, 2), RULES_END };
	static const struct rule unknown[] = { TEXT("resource", 8), RULES_END };
	static const struct rule type[] = { INT("resource_type", 1, 2), RULES_END };
	static const struct rule label[] = { TEXTS("resource_type", 1, 2, 3), RULES_END };
	static const struct {
		const struct rule *rules;
		const char *error;
	} rows[] = {
		{ missing, "A field of a request does not have exactly one rule." },
		{ twice, "A field of a request does not have exactly one rule." },
		{ unknown, "A rule names a field that its request does not have." },
		{ type, "A rule does not fit the type of its field." },
		{ label, "A rule does not fit the type of its field." },
	};
	const ProtobufCMessageDescriptor *request = &titen__v1__lease_acquire_request__descriptor;
	const char *error;

	(void)state;
	assert_true(rules_fit(lease_rules, request, &error));
	for (size_t i = 0; i < ROWS(rows); i++) {
		if (rules_fit(rows[i].rules, request, &error))
			fail_msg("row %zu fits", i);
		assert_string_equal(error, rows[i].error);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    texts_and_numbers_are_checked_in_order, start, stop),
		cmocka_unit_test_setup_teardown(an_enum_must_be_known, start, stop),
		cmocka_unit_test_setup_teardown(
		    json_is_checked_and_stored_in_its_compact_form, start, stop),
		cmocka_unit_test_setup_teardown(json_nests_one_level_less_than_a_body, start, stop),
		cmocka_unit_test_setup_teardown(lists_are_checked_item_by_item, start, stop),
		cmocka_unit_test_setup_teardown(bytes_are_counted, start, stop),
		cmocka_unit_test(rules_and_fields_must_agree),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

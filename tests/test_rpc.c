/* SPDX-License-Identifier: MIT */
/* The pipeline: the order of its checks, and that every call is answered exactly once. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"

static const struct agent nobody = { "", "", NULL };

/* --- find and decode */

static void
an_unknown_method_is_answered(void **state)
{
	struct fixture *f = *state;
	PB(PrincipalGetRequest) req = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;

	expect(f, METHOD_NOT_ALLOWED, ask(f, f->alice, "LeaseService/Steal", &req));
	expect(f, METHOD_NOT_ALLOWED, ask(f, &nobody, "", &req));
	assert_null(f->last->call.response);
	assert_int_equal(strlen(f->last->call.request_id), strlen("req_") + 32);
}

/* What decoding BYTES as a request to acquire says. */
static enum status
decode(struct fixture *f, const void *bytes, size_t length)
{
	PB(PrincipalGetRequest) req = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;
	struct answer *a = draft(f, f->alice, "PrincipalService/Get", &req);
	enum status st = rpc_find(&a->call, "titen.v1.LeaseService/Acquire");

	f->last = a;
	return st == STATUS_OK ? rpc_decode(&a->call, bytes, length) : st;
}

static void
bytes_that_are_no_message_are_refused(void **state)
{
	struct fixture *f = *state;

	expect(f, VALIDATION_ERROR, decode(f, "\xff", 1));
	expect(f, VALIDATION_ERROR, decode(f, "\x0a\x05x", 3));
	expect(f, VALIDATION_ERROR, decode(f, "\x0a\x01\xff", 3));
	expect(f, VALIDATION_ERROR, decode(f, "\x0a\x01\x00", 3));
	expect(f, VALIDATION_ERROR, decode(f, "\x08\x01", 2));
	expect(f, OK, decode(f, "\x0a\x01x", 3));
	expect(f, OK, decode(f, "", 0));
	assert_null(((PB(LeaseAcquireRequest) *)f->last->call.request)->purpose);
}

static void
a_payload_has_one_mebibyte_at_most(void **state)
{
	struct fixture *f = *state;
	uint8_t *bytes = calloc(1, PAYLOAD_BYTES_MAX + 1);
	size_t text = PAYLOAD_BYTES_MAX - 4;

	bytes[0] = 0x0a;
	memset(bytes + 1, 'x', PAYLOAD_BYTES_MAX);
	bytes[1] = (uint8_t)(text | 0x80);
	bytes[2] = (uint8_t)(text >> 7 | 0x80);
	bytes[3] = (uint8_t)(text >> 14);
	expect(f, OK, decode(f, bytes, PAYLOAD_BYTES_MAX));
	expect(f, PAYLOAD_TOO_LARGE, decode(f, bytes, PAYLOAD_BYTES_MAX + 1));
	free(bytes);
}

/* --- the order of the checks */

static void
key_then_right_then_rules_then_the_handler(void **state)
{
	struct fixture *f = *state;
	static const char *const scopes[] = { "events:read", NULL };
	const struct agent *reader = agent_join(f, f->owner, "reader", scopes);

	expect(f, UNAUTHENTICATED, acquire(f, &nobody, "", "", 0));
	expect(f, FORBIDDEN, acquire(f, reader, "", "", 0));
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "", "", 0));
	assert_non_null(strstr(last_message(f), "resource_type"));
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "deploy", "", 0));
	assert_non_null(strstr(last_message(f), "resource_id"));
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "deploy", "x", 0));
	assert_non_null(strstr(last_message(f), "ttl_seconds"));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

static void
a_door_may_check_the_key_before_it_reads_the_body(void **state)
{
	struct fixture *f = *state;
	PB(HandoffListRequest) req = TITEN__V1__HANDOFF_LIST_REQUEST__INIT;
	struct answer *a = draft(f, f->bob, "HandoffService/List", &req);

	assert_int_equal(rpc_admit(f->core, &a->call), STATUS_OK);
	assert_string_equal(a->call.who.principal_id, "bob");
	assert_string_equal(a->call.who.key_id, f->bob->key_id);
	a->call.authorization = NULL;
	submit(f, a);
	assert_int_equal(await(a), STATUS_OK);
	a = draft(f, &nobody, "HandoffService/List", &req);
	assert_int_equal(rpc_admit(f->core, &a->call), STATUS_UNAUTHENTICATED);
	assert_false(a->call.admitted);
	rpc_refuse(&a->call, STATUS_UNAUTHENTICATED);
	assert_int_equal(await(a), STATUS_UNAUTHENTICATED);
}

static void
a_call_admitted_before_its_key_was_revoked_writes_nothing(void **state)
{
	struct fixture *f = *state;
	PB(HandoffCreateRequest) req = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;
	char to[] = "bob", subject[] = "task";
	struct answer *a;

	req.to_principal = to;
	req.subject_id = subject;
	a = draft(f, f->alice, "HandoffService/Create", &req);
	assert_int_equal(rpc_admit(f->core, &a->call), STATUS_OK);
	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	submit(f, a);
	assert_int_equal(await(a), STATUS_UNAUTHENTICATED);
	assert_int_equal(inbox_size(f, f->bob), 0);
}

/* --- answers */

static void
request_ids_are_never_alike(void **state)
{
	struct fixture *f = *state;
	const char *first;

	expect(f, OK, inbox(f, f->bob, NULL));
	first = f->last->call.request_id;
	assert_memory_equal(first, "req_", 4);
	expect(f, OK, inbox(f, f->bob, NULL));
	assert_string_not_equal(f->last->call.request_id, first);
}

static enum status
fail_without_a_word(struct call *c)
{
	(void)c;
	return STATUS_INTERNAL;
}

static void
a_refusal_has_a_sentence_and_no_response(void **state)
{
	struct fixture *f = *state;
	static const enum access accesses[] = { ACCESS_NONE, ACCESS_READ, ACCESS_WRITE };

	for (int i = 0; i < 3; i++) {
		struct answer *a = draft_own(f, accesses[i], fail_without_a_word, NULL);

		submit(f, a);
		assert_int_equal(await(a), STATUS_INTERNAL);
		assert_null(a->call.response);
		assert_string_equal(a->call.message, "The server failed; nothing was changed.");
	}
}

static enum status
everything_there_is(struct fixture *f, int racer)
{
	PB(HealthEchoRequest) req = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;
	uint8_t byte = (uint8_t)racer;

	req.has_payload = true;
	req.payload = (ProtobufCBinaryData){ 1, &byte };
	for (int i = 0; i < 25; i++) {
		if (ask(f, &nobody, "HealthService/Echo", &req) != STATUS_OK ||
		    GOT(f, HealthEchoResponse)->payload.data[0] != byte ||
		    save(f, f->alice, "task", "1") != STATUS_OK ||
		    find(f, f->alice, "task") != STATUS_OK ||
		    acquire(f, f->bob, "", "x", 30) != STATUS_VALIDATION_ERROR ||
		    inbox(f, &nobody, NULL) != STATUS_UNAUTHENTICATED)
			return STATUS_INTERNAL;
	}
	return STATUS_OK;
}

static void
every_call_of_many_threads_gets_its_own_answer_once(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];
	int more;

	race(f, everything_there_is, results);
	assert_int_equal(how_many(results, STATUS_OK), RACERS);
	for (struct answer *a = f->answers; a != NULL; a = a->next) {
		assert_int_equal(sem_getvalue(&a->done, &more), 0);
		assert_int_equal(more, 0);
	}
}

static void
echo_gives_back_what_it_got(void **state)
{
	struct fixture *f = *state;
	PB(HealthEchoRequest) req = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;
	uint8_t bytes[4097] = { 0, 1, 255 };

	expect(f, OK, ask(f, &nobody, "HealthService/Echo", &req));
	assert_false(GOT(f, HealthEchoResponse)->has_payload);
	req.has_payload = true;
	req.payload = (ProtobufCBinaryData){ 4096, bytes };
	expect(f, OK, ask(f, &nobody, "HealthService/Echo", &req));
	assert_memory_equal(GOT(f, HealthEchoResponse)->payload.data, bytes, 4096);
	req.payload.len = 4097;
	expect(f, VALIDATION_ERROR, ask(f, &nobody, "HealthService/Echo", &req));
}

static void
the_server_describes_itself(void **state)
{
	struct fixture *f = *state;
	PB(ReflectionDescribeRequest) req = TITEN__V1__REFLECTION_DESCRIBE_REQUEST__INIT;
	const ProtobufCBinaryData *set;

	expect(f, OK, ask(f, &nobody, "ReflectionService/Describe", &req));
	set = &GOT(f, ReflectionDescribeResponse)->file_descriptor_set;
	assert_non_null(memmem(set->data, set->len, "LeaseAcquireRequest", 19));
	assert_non_null(memmem(set->data, set->len, "google/protobuf/timestamp.proto", 31));
}

/* --- opening */

static void
a_core_that_cannot_open_says_why_in_one_line(void **state)
{
	struct fixture *f = *state;
	struct core_options options = { f->path, NULL, false, "test" };
	char error[256] = "";

	assert_null(core_open(&options, error, sizeof error));
	assert_non_null(strstr(error, "in use"));
	assert_null(strchr(error, '\n'));
	options.path = "/nowhere/titen.db";
	assert_null(core_open(&options, error, sizeof error));
	assert_non_null(strstr(error, "No such file"));
	expect(f, OK, inbox(f, f->bob, NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(an_unknown_method_is_answered),
		STORY(bytes_that_are_no_message_are_refused),
		STORY(a_payload_has_one_mebibyte_at_most),
		STORY(key_then_right_then_rules_then_the_handler),
		STORY(a_door_may_check_the_key_before_it_reads_the_body),
		STORY(a_call_admitted_before_its_key_was_revoked_writes_nothing),
		STORY(request_ids_are_never_alike),
		STORY(a_refusal_has_a_sentence_and_no_response),
		STORY(every_call_of_many_threads_gets_its_own_answer_once),
		STORY(echo_gives_back_what_it_got),
		STORY(the_server_describes_itself),
		STORY(a_core_that_cannot_open_says_why_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

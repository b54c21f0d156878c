/* SPDX-License-Identifier: MIT */
/* Retries: the first answer again, and nothing done twice. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_MS INT64_C(86400000)

static const char *const agent_scopes[] = { AGENT_SCOPES, NULL };

/* Alice takes x for 30 seconds, under KEY. */
static enum status
acquire_as(struct fixture *f, const struct agent *who, const char *key)
{
	retry_as(f, key);
	return acquire(f, who, "deploy", "x", 30);
}

static const char *
lease_id(struct fixture *f)
{
	return GOT(f, LeaseAcquireResponse)->lease_id;
}

static void
a_retry_gets_the_first_answer_and_writes_nothing(void **state)
{
	struct fixture *f = *state;
	const PB(LeaseAcquireResponse) *first;
	char *before, *after;

	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_false(f->last->call.replayed);
	first = GOT(f, LeaseAcquireResponse);
	before = dump(f);
	advance_seconds(f, 5);
	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_true(f->last->call.replayed);
	assert_string_equal(lease_id(f), first->lease_id);
	assert_int_equal(GOT(f, LeaseAcquireResponse)->fence, first->fence);
	assert_int_equal(
	    time_of(GOT(f, LeaseAcquireResponse)->expires_at), time_of(first->expires_at));
	after = dump(f);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void
the_same_key_with_another_message_or_call_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire_as(f, f->alice, "k"));
	id = lease_id(f);
	retry_as(f, "k");
	expect(f, CONFLICT, acquire(f, f->alice, "deploy", "x", 31));
	retry_as(f, "k");
	expect(f, CONFLICT, release(f, f->alice, id));
	retry_as(f, "k");
	expect(f, CONFLICT, save(f, f->alice, "task", "1"));
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 1);
	expect(f, OK, release(f, f->alice, id));
}

static void
keys_of_different_principals_are_different(void **state)
{
	struct fixture *f = *state;
	const struct agent *other = agent_join(f, f->zed, "alice", agent_scopes);

	expect(f, OK, acquire_as(f, f->alice, "k"));
	expect(f, CONFLICT, acquire_as(f, f->bob, "k"));
	assert_non_null(strstr(last_message(f), "leased by another principal"));
	expect(f, OK, acquire_as(f, other, "k"));
	assert_false(f->last->call.replayed);
}

static void
a_retry_may_come_through_another_key_of_the_principal(void **state)
{
	struct fixture *f = *state;
	const struct agent *again = agent_join(f, f->owner, "alice", agent_scopes);
	const char *id;

	expect(f, OK, acquire_as(f, f->alice, "k"));
	id = lease_id(f);
	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	expect(f, UNAUTHENTICATED, acquire_as(f, f->alice, "k"));
	expect(f, OK, acquire_as(f, again, "k"));
	assert_true(f->last->call.replayed);
	assert_string_equal(lease_id(f), id);
}

static void
a_refused_call_is_not_remembered(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->bob, "deploy", "x", 30));
	expect(f, CONFLICT, acquire_as(f, f->alice, "k"));
	retry_as(f, "k");
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "deploy", "x", 1));
	assert_int_equal(count(f, "SELECT count(*) FROM idempotency"), 0);
	advance_seconds(f, 30);
	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_false(f->last->call.replayed);
}

static void
an_answer_is_kept_for_a_day_and_over_restarts(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire_as(f, f->alice, "k"));
	id = lease_id(f);
	restart(f);
	advance_ms(f, DAY_MS - 1);
	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_true(f->last->call.replayed);
	assert_string_equal(lease_id(f), id);
	advance_ms(f, 1);
	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_false(f->last->call.replayed);
	assert_string_not_equal(lease_id(f), id);
	expect(f, OK, acquire_as(f, f->alice, "k"));
	assert_true(f->last->call.replayed);
}

static void
old_answers_are_forgotten_while_others_write(void **state)
{
	struct fixture *f = *state;
	char key[16];

	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "k%d", i);
		expect(f, OK, acquire_as(f, f->alice, key));
	}
	assert_int_equal(count(f, "SELECT count(*) FROM idempotency"), 40);
	advance_ms(f, DAY_MS);
	for (int i = 0; i < 3; i++)
		expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	assert_int_equal(count(f, "SELECT count(*) FROM idempotency"), 0);
}

static void
a_young_answer_is_not_forgotten_with_the_old(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire_as(f, f->alice, "old"));
	advance_ms(f, 1);
	expect(f, OK, acquire_as(f, f->alice, "young"));
	advance_ms(f, DAY_MS - 1);
	expect(f, OK, acquire(f, f->alice, "deploy", "y", 30));
	assert_int_equal(count(f, "SELECT count(*) FROM idempotency WHERE key = 'young'"), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM idempotency"), 1);
	expect(f, OK, acquire_as(f, f->alice, "young"));
	assert_true(f->last->call.replayed);
}

static void
a_secret_is_not_told_twice(void **state)
{
	struct fixture *f = *state;
	const char *key_id;
	char *rows;

	retry_as(f, "k");
	expect(f, OK, make_key(f, f->owner, "carol", agent_scopes));
	assert_non_null(GOT(f, KeyCreateResponse)->api_key);
	key_id = GOT(f, KeyCreateResponse)->key_id;
	expect(f, OK, inbox(f, agent_made(f), NULL));
	retry_as(f, "k");
	expect(f, OK, make_key(f, f->owner, "carol", agent_scopes));
	assert_true(f->last->call.replayed);
	assert_null(GOT(f, KeyCreateResponse)->api_key);
	assert_string_equal(GOT(f, KeyCreateResponse)->key_id, key_id);
	rows = dump(f);
	assert_null(strstr(rows, "746974656e5f736b5f")); /* titen_sk_ in hexadecimal */
	free(rows);
}

static void
the_local_socket_has_its_own_keys(void **state)
{
	struct fixture *f = *state;
	const char *organization_id;

	retry_as(f, "k");
	expect(f, OK, bootstrap(f, "third"));
	organization_id = GOT(f, KeyBootstrapResponse)->organization_id;
	retry_as(f, "k");
	expect(f, OK, bootstrap(f, "third"));
	assert_true(f->last->call.replayed);
	assert_null(GOT(f, KeyBootstrapResponse)->api_key);
	assert_string_equal(GOT(f, KeyBootstrapResponse)->organization_id, organization_id);
}

static void
a_replay_says_again_whether_something_was_made(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		retry_as(f, "first");
		expect(f, OK, save(f, f->alice, "task", "1"));
		assert_true(f->last->call.created);
		retry_as(f, "second");
		expect(f, OK, save(f, f->alice, "task", "1"));
		assert_false(f->last->call.created);
	}
	expect(f, OK, find(f, f->alice, "task"));
	assert_int_equal(GOT(f, Checkpoint)->version, 2);
}

static void
equal_messages_are_equal_however_their_json_is_written(void **state)
{
	struct fixture *f = *state;

	retry_as(f, "k");
	expect(f, OK, save(f, f->alice, "task", "{\"a\":1}"));
	retry_as(f, "k");
	expect(f, OK, save(f, f->alice, "task", " {\"a\" : 1.0} "));
	assert_true(f->last->call.replayed);
	retry_as(f, "k");
	expect(f, CONFLICT, save(f, f->alice, "task", "{\"a\":2}"));
}

static void
a_key_is_utf8_of_1_to_200_bytes(void **state)
{
	struct fixture *f = *state;
	char key[202];

	memset(key, 'k', sizeof key);
	key[201] = '\0';
	expect(f, VALIDATION_ERROR, acquire_as(f, f->alice, key));
	expect(f, OK, acquire_as(f, f->alice, key + 1));
	expect(f, VALIDATION_ERROR, acquire_as(f, f->alice, ""));
	expect(f, VALIDATION_ERROR, acquire_as(f, f->alice, "\xff"));
}

static void
reads_pay_no_heed_to_keys(void **state)
{
	struct fixture *f = *state;

	retry_as(f, "k");
	expect(f, OK, inbox(f, f->bob, NULL));
	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	retry_as(f, "k");
	expect(f, OK, inbox(f, f->bob, NULL));
	assert_int_equal(GOT(f, HandoffListResponse)->n_handoffs, 1);
	assert_false(f->last->call.replayed);
}

static enum status
hand_off_as_k(struct fixture *f, int racer)
{
	enum status st;

	(void)racer;
	retry_as(f, "k");
	st = hand_off(f, f->alice, "bob", "task");
	return st == STATUS_OK && f->last->call.replayed ? STATUS_COUNT : st;
}

static void
of_equal_keys_at_the_same_moment_one_writes_and_the_rest_replay(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	race(f, hand_off_as_k, results);
	assert_int_equal(how_many(results, STATUS_OK), 1);
	assert_int_equal(how_many(results, STATUS_COUNT), RACERS - 1);
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_int_equal(event_count(f, f->bob, "*"), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_retry_gets_the_first_answer_and_writes_nothing),
		STORY(the_same_key_with_another_message_or_call_is_a_conflict),
		STORY(keys_of_different_principals_are_different),
		STORY(a_retry_may_come_through_another_key_of_the_principal),
		STORY(a_refused_call_is_not_remembered),
		STORY(an_answer_is_kept_for_a_day_and_over_restarts),
		STORY(old_answers_are_forgotten_while_others_write),
		STORY(a_young_answer_is_not_forgotten_with_the_old),
		STORY(a_secret_is_not_told_twice),
		STORY(the_local_socket_has_its_own_keys),
		STORY(a_replay_says_again_whether_something_was_made),
		STORY(equal_messages_are_equal_however_their_json_is_written),
		STORY(a_key_is_utf8_of_1_to_200_bytes),
		STORY(reads_pay_no_heed_to_keys),
		STORY(of_equal_keys_at_the_same_moment_one_writes_and_the_rest_replay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

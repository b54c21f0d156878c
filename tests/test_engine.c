/* SPDX-License-Identifier: MIT */
/* The writer: what shares a transaction, what a call keeps when it is repeated, what is turned
 * away. What happens when the store fails is told in test_faults.c. */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/stat.h>

#include "core/auth.h"
#include "core/core.h"
#include "core/engine.h"

static struct answer *
draft_acquire(struct fixture *f, const struct agent *who, const char *resource)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	char type[] = "deploy", purpose[] = "p";

	req.resource_type = type;
	req.resource_id = (char *)(uintptr_t)resource;
	req.purpose = purpose;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 30;
	return draft(f, who, "LeaseService/Acquire", &req);
}

static struct answer *
draft_revoke(struct fixture *f, const struct agent *who, const char *key_id)
{
	PB(KeyRevokeRequest) req = TITEN__V1__KEY_REVOKE_REQUEST__INIT;

	req.key_id = (char *)(uintptr_t)key_id;
	return draft(f, who, "KeyService/Revoke", &req);
}

/* --- one batch */

static void
a_call_sees_what_the_calls_before_it_in_the_batch_did(void **state)
{
	struct fixture *f = *state;
	struct answer *alice = draft_acquire(f, f->alice, "x");
	struct answer *bob = draft_acquire(f, f->bob, "x");
	struct answer *tom = draft_acquire(f, f->tom, "y");
	struct hold hold;

	hold_writer(f, &hold);
	submit(f, alice);
	submit(f, bob);
	submit(f, tom);
	let_go(&hold);
	assert_int_equal(await(alice), STATUS_OK);
	assert_int_equal(await(bob), STATUS_CONFLICT);
	assert_int_equal(await(tom), STATUS_OK);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 2);
}

static void
a_revocation_counts_for_those_behind_it_in_the_batch(void **state)
{
	struct fixture *f = *state;
	struct answer *early = draft_acquire(f, f->alice, "x");
	struct answer *end = draft_revoke(f, f->owner, f->alice->key_id);
	struct answer *late = draft_acquire(f, f->alice, "y");
	struct answer *other = draft_acquire(f, f->bob, "z");
	struct hold hold;

	hold_writer(f, &hold);
	submit(f, early);
	submit(f, end);
	submit(f, late);
	submit(f, other);
	let_go(&hold);
	assert_int_equal(await(early), STATUS_OK);
	assert_int_equal(await(end), STATUS_OK);
	assert_int_equal(await(late), STATUS_UNAUTHENTICATED);
	assert_int_equal(await(other), STATUS_OK);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 2);
}

/* The writer's N-th step and all behind it fail while alice's key is revoked and alice acts. */
static enum status
revoke_in_trouble(struct fixture *f, int n)
{
	struct answer *end = draft_revoke(f, f->owner, f->alice->key_id);
	struct answer *late = draft_acquire(f, f->alice, "x");
	struct hold hold;

	hold_writer(f, &hold);
	submit(f, end);
	submit(f, late);
	fail_step(f, n, true);
	let_go(&hold);
	await(end);
	assert_int_not_equal(await(late), STATUS_OK);
	fail_step(f, 0, false);
	return end->call.status;
}

static void
a_revocation_that_was_rolled_back_revokes_nothing(void **state)
{
	struct fixture *f = *state;
	int n = 1;

	for (; revoke_in_trouble(f, n) != STATUS_OK; n++) {
		assert_true(n < 40);
		expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	}
	assert_true(n > 5);
	expect(f, UNAUTHENTICATED, acquire(f, f->alice, "deploy", "x", 30));
}

static void
who_revokes_its_own_key_is_out(void **state)
{
	static const char *const all[] = { "*", NULL };
	struct fixture *f = *state;

	agent_join(f, f->owner, "second", all);
	expect(f, OK, revoke_key(f, f->owner, f->owner->key_id));
	expect(f, UNAUTHENTICATED, revoke_key(f, f->owner, f->alice->key_id));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

/* --- what a repeated call keeps */

struct attempts {
	int n;
	int64_t now_ms[2];
	struct id ids[2][2];
	struct fixture *f;
};

/* Notes its time and ids, and at the first attempt moves the clock and breaks the next step. */
static enum status
note_attempt(struct call *c)
{
	struct attempts *seen = own_arg(c);

	if (seen->n == 2)
		abort();
	seen->now_ms[seen->n] = c->now_ms;
	seen->ids[seen->n][0] = call_id(c);
	seen->ids[seen->n][1] = call_id(c);
	if (seen->n++ == 0) {
		advance_seconds(seen->f, 60);
		db_fail_step(c->db, 1, false);
	}
	return STATUS_OK;
}

static void
a_repeated_call_keeps_its_time_and_its_ids(void **state)
{
	struct fixture *f = *state;
	struct attempts seen = { .f = f };
	struct answer *a = draft_own(f, ACCESS_WRITE, note_attempt, &seen);

	submit(f, a);
	assert_int_equal(await(a), STATUS_OK);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.now_ms[0], START_MS);
	assert_int_equal(seen.now_ms[1], START_MS);
	assert_memory_equal(&seen.ids[0], &seen.ids[1], sizeof seen.ids[0]);
	assert_true(memcmp(&seen.ids[0][0], &seen.ids[0][1], sizeof seen.ids[0][0]) < 0);
}

/* --- turned away */

static void
a_call_whose_time_is_over_is_not_begun(void **state)
{
	struct fixture *f = *state;
	struct answer *late = draft_acquire(f, f->alice, "x");
	struct answer *fine = draft_acquire(f, f->bob, "x");
	struct hold hold;

	late->call.deadline_ms = clock_monotonic_ms() + 20;
	fine->call.deadline_ms = clock_monotonic_ms() + HOUR_MS;
	hold_writer(f, &hold);
	submit(f, late);
	submit(f, fine);
	while (clock_monotonic_ms() < late->call.deadline_ms)
		sched_yield();
	let_go(&hold);
	assert_int_equal(await(late), STATUS_DEADLINE_EXCEEDED);
	assert_null(late->call.response);
	assert_non_null(late->call.message);
	assert_int_equal(await(fine), STATUS_OK);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 1);
}

static void
a_full_queue_turns_calls_away_with_a_time_to_come_again(void **state)
{
	struct fixture *f = *state;
	struct answer *first, *last, *a;
	struct hold hold;
	int done = 0;

	hold_writer(f, &hold);
	first = f->answers;
	for (int i = 0; i < WRITES_WAITING_MAX; i++)
		submit(f, draft_acquire(f, f->alice, "x"));
	submit(f, last = draft_acquire(f, f->alice, "x"));
	assert_int_equal(await(last), STATUS_UNAVAILABLE);
	assert_int_equal(last->call.retry_after_ms, RETRY_SOON_MS);
	let_go(&hold);
	for (a = last->next; a != first; a = a->next)
		done += await(a) == STATUS_OK;
	assert_int_equal(done, WRITES_WAITING_MAX);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), WRITES_WAITING_MAX);
	assert_int_equal(count(f, "SELECT max(seq) FROM events"), WRITES_WAITING_MAX);
	assert_int_equal(count(f, "SELECT count(*) FROM leases WHERE released_ms IS NULL"), 1);
}

static void
closing_finishes_what_was_submitted(void **state)
{
	struct fixture *f = *state;
	struct answer *answers[50];
	char name[16];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "r-%d", i);
		submit(f, answers[i] = draft_acquire(f, f->alice, name));
	}
	restart(f);
	for (int i = 0; i < 50; i++)
		assert_int_equal(await(answers[i]), STATUS_OK);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 50);
}

/* --- order and log */

static void
ids_start_behind_those_of_the_last_run_whatever_the_clock_says(void **state)
{
	struct fixture *f = *state;
	const char *before;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	before = GOT(f, LeaseAcquireResponse)->lease_id;
	set_wall(f, -24 * HOUR_MS);
	restart(f);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	assert_true(strcmp(before, GOT(f, LeaseAcquireResponse)->lease_id) < 0);
	assert_true(count(f, "SELECT clock_ms FROM titen") >= START_MS);
}

static void
a_refused_call_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	int64_t clock_ms = count(f, "SELECT clock_ms FROM titen");

	advance_seconds(f, 1);
	expect(f, NOT_FOUND, hand_off(f, f->alice, "nobody", "task"));
	assert_int_equal(count(f, "SELECT clock_ms FROM titen"), clock_ms);
	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	assert_true(count(f, "SELECT clock_ms FROM titen") >= START_MS + 1000);
}

#define STATE_BYTES 60000

static void
the_log_does_not_grow_without_end(void **state)
{
	struct fixture *f = *state;
	char *text = malloc(STATE_BYTES + 1), log_path[128];
	struct stat log;

	text[STATE_BYTES] = '\0';
	for (int i = 0; i < 400; i++) {
		memset(text, '0' + i % 10, STATE_BYTES);
		text[0] = text[STATE_BYTES - 1] = '"';
		expect(f, OK, save(f, f->alice, "task", text));
	}
	snprintf(log_path, sizeof log_path, "%s-wal", f->path);
	assert_int_equal(stat(log_path, &log), 0);
	assert_true(log.st_size < 8 << 20); /* of 24 MB that went through it */
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_call_sees_what_the_calls_before_it_in_the_batch_did),
		STORY(a_revocation_counts_for_those_behind_it_in_the_batch),
		STORY(a_revocation_that_was_rolled_back_revokes_nothing),
		STORY(who_revokes_its_own_key_is_out),
		STORY(a_repeated_call_keeps_its_time_and_its_ids),
		STORY(a_call_whose_time_is_over_is_not_begun),
		STORY(a_full_queue_turns_calls_away_with_a_time_to_come_again),
		STORY(closing_finishes_what_was_submitted),
		STORY(ids_start_behind_those_of_the_last_run_whatever_the_clock_says),
		STORY(a_refused_call_leaves_no_trace),
		STORY(the_log_does_not_grow_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The readers: what they see, and what they turn away. */
#include "tests/support/fault.h"

#include <stdlib.h>

#include "core/core.h"
#include "core/engine.h"
#include "core/readers.h"

static struct answer *
draft_inbox(struct fixture *f, const struct agent *who)
{
	PB(HandoffListRequest) req = TITEN__V1__HANDOFF_LIST_REQUEST__INIT;

	return draft(f, who, "HandoffService/List", &req);
}

static void
a_read_sees_what_was_answered_before_it_started(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 1; i <= 50; i++) {
		expect(f, OK, hand_off(f, f->alice, "bob", "task"));
		assert_int_equal(inbox_size(f, f->bob), i);
	}
}

static enum status
write_or_read(struct fixture *f, int racer)
{
	size_t seen = 0;

	for (int i = 0; i < 20; i++) {
		if (racer % 2 == 0) {
			if (hand_off(f, f->alice, "bob", "task") != STATUS_OK)
				return STATUS_INTERNAL;
			continue;
		}
		if (inbox(f, f->bob, NULL) != STATUS_OK ||
		    GOT(f, HandoffListResponse)->n_handoffs < seen)
			return STATUS_INTERNAL;
		seen = GOT(f, HandoffListResponse)->n_handoffs;
	}
	return STATUS_OK;
}

static void
readers_and_the_writer_do_not_disturb_each_other(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	race(f, write_or_read, results);
	assert_int_equal(how_many(results, STATUS_OK), RACERS);
	assert_int_equal(inbox_size(f, f->bob), RACERS / 2 * 20);
}

static enum status
try_to_write(struct call *c)
{
	return db_run(c->db, "UPDATE organizations SET seq = 99", NO_VALUES);
}

static void
a_reader_cannot_write(void **state)
{
	struct fixture *f = *state;
	struct answer *a = draft_own(f, ACCESS_READ, try_to_write, NULL);

	submit(f, a);
	assert_int_not_equal(await(a), STATUS_OK);
	assert_int_equal(count(f, "SELECT sum(seq) FROM organizations"), 0);
	assert_int_equal(inbox_size(f, f->bob), 0);
}

static void
reads_go_on_while_the_writer_is_held(void **state)
{
	struct fixture *f = *state;
	struct hold hold;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	hold_writer(f, &hold);
	assert_int_equal(inbox_size(f, f->bob), 1);
	let_go(&hold);
}

static void
a_read_whose_time_is_over_is_not_begun(void **state)
{
	struct fixture *f = *state;
	struct answer *a = draft_inbox(f, f->bob);

	a->call.deadline_ms = clock_monotonic_ms() - 1;
	submit(f, a);
	assert_int_equal(await(a), STATUS_DEADLINE_EXCEEDED);
	assert_null(a->call.response);
}

static void
too_many_reads_are_turned_away_with_a_time_to_come_again(void **state)
{
	struct fixture *f = *state;
	struct hold holds[READERS];
	struct answer *first, *last, *a;
	int done = 0;

	for (int i = 0; i < READERS; i++)
		hold_reader(f, &holds[i]);
	first = f->answers;
	for (int i = 0; i < READS_WAITING_MAX; i++)
		submit(f, draft_inbox(f, f->bob));
	submit(f, last = draft_inbox(f, f->bob));
	assert_int_equal(await(last), STATUS_UNAVAILABLE);
	assert_int_equal(last->call.retry_after_ms, RETRY_SOON_MS);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(let_go(&holds[i]), STATUS_OK);
	for (a = last->next; a != first; a = a->next)
		done += await(a) == STATUS_OK;
	assert_int_equal(done, READS_WAITING_MAX);
}

static void
ready_is_read_from_the_store(void **state)
{
	struct fixture *f = *state;
	PB(HealthReadyRequest) req = TITEN__V1__HEALTH_READY_REQUEST__INIT;

	expect(f, OK, ask(f, NULL, "HealthService/Ready", &req));
	assert_true(GOT(f, HealthReadyResponse)->ready);
	assert_string_equal(GOT(f, HealthReadyResponse)->revision, "test");
	assert_int_equal(GOT(f, HealthReadyResponse)->schema->applied, STORE_SCHEMA_VERSION);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_read_sees_what_was_answered_before_it_started),
		STORY(readers_and_the_writer_do_not_disturb_each_other),
		STORY(a_reader_cannot_write),
		STORY(reads_go_on_while_the_writer_is_held),
		STORY(a_read_whose_time_is_over_is_not_begun),
		STORY(too_many_reads_are_turned_away_with_a_time_to_come_again),
		STORY(ready_is_read_from_the_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

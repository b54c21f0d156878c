/* SPDX-License-Identifier: MIT */
/* Handoffs: offered to one principal, settled once, by nobody else. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const char *
handoff_id(struct fixture *f)
{
	return GOT(f, HandoffCreateResponse)->handoff_id;
}

static const char *
checkpoint_id(struct fixture *f)
{
	return GOT(f, CheckpointSaveResponse)->checkpoint_id;
}

static const PB(Handoff) *
in_inbox(struct fixture *f, size_t i)
{
	assert_true(i < GOT(f, HandoffListResponse)->n_handoffs);
	return GOT(f, HandoffListResponse)->handoffs[i];
}

/* --- create and inbox */

static void
a_handoff_waits_in_the_inbox_of_its_target_alone(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	assert_memory_equal(handoff_id(f), "hoff_", 5);
	assert_int_equal(
	    GOT(f, HandoffCreateResponse)->status, TITEN__V1__HANDOFF__STATUS__PENDING);
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_int_equal(inbox_size(f, f->alice), 0);
	assert_int_equal(inbox_size(f, f->tom), 0);
	assert_int_equal(inbox_size(f, f->owner), 0);
	assert_int_equal(inbox_size(f, f->dora), 0);
}

static void
an_inbox_row_says_what_was_offered(void **state)
{
	struct fixture *f = *state;
	const char *id;
	const PB(Handoff) *row;

	expect(f, OK, hand_over(f, f->alice, "bob", "task", NULL, "go \"on\"\n\u20ac"));
	id = handoff_id(f);
	expect(f, OK, inbox(f, f->bob, NULL));
	row = in_inbox(f, 0);
	assert_string_equal(row->handoff_id, id);
	assert_string_equal(row->from_principal, "alice");
	assert_string_equal(row->to_principal, "bob");
	assert_string_equal(row->subject_id, "task");
	assert_null(row->context_id);
	assert_null(row->checkpoint_id);
	assert_string_equal(row->message, "go \"on\"\n\u20ac");
	assert_int_equal(row->status, TITEN__V1__HANDOFF__STATUS__PENDING);
	assert_int_equal(time_of(row->created_at), START_MS);
	assert_null(GOT(f, HandoffListResponse)->cursor);
}

static void
the_oldest_handoff_comes_first(void **state)
{
	struct fixture *f = *state;
	static const char *const subjects[] = { "c", "a", "b" };

	for (int i = 0; i < 3; i++)
		expect(f, OK, hand_off(f, i == 1 ? f->tom : f->alice, "bob", subjects[i]));
	for (int poll = 0; poll < 3; poll++) {
		assert_int_equal(inbox_size(f, f->bob), 3);
		for (size_t i = 0; i < 3; i++)
			assert_string_equal(in_inbox(f, i)->subject_id, subjects[i]);
	}
	assert_int_equal(event_count(f, f->bob, "*"), 3);
}

static void
a_handoff_left_alone_stays_pending(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	advance_seconds(f, 604800);
	restart(f);
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_int_equal(event_count(f, f->bob, "*"), 1);
}

static void
a_recipient_must_be_known_in_the_organization(void **state)
{
	struct fixture *f = *state;

	expect(f, NOT_FOUND, hand_off(f, f->alice, "nobody", "task"));
	assert_non_null(strstr(last_message(f), "recipient"));
	expect(f, NOT_FOUND, hand_off(f, f->alice, "dora", "task"));
	expect(f, OK, revoke_key(f, f->owner, f->bob->key_id));
	expect(f, NOT_FOUND, hand_off(f, f->alice, "bob", "task"));
	assert_int_equal(count(f, "SELECT count(*) FROM handoffs"), 0);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 0);
	assert_int_equal(inbox_size(f, f->dora), 0);
}

static void
a_handoff_may_be_to_oneself(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, hand_off(f, f->alice, "alice", "task"));
	assert_int_equal(inbox_size(f, f->alice), 1);
	assert_int_equal(event_count(f, f->alice, "handoff.created"), 1);
	expect(f, OK, inbox(f, f->alice, NULL));
	expect(f, OK, resolve(f, f->alice, in_inbox(f, 0)->handoff_id, ACCEPTED));
	assert_int_equal(event_count(f, f->alice, "handoff.accepted"), 1);
}

static void
its_texts_have_limits(void **state)
{
	struct fixture *f = *state;
	char message[4002], name[202];

	memset(message, 'm', sizeof message);
	message[4001] = '\0';
	memset(name, 'n', sizeof name);
	name[201] = '\0';
	expect(f, OK, hand_over(f, f->alice, "bob", name + 1, NULL, message + 1));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, "bob", "task", NULL, message));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, "bob", name, NULL, NULL));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, name, "task", NULL, NULL));
	expect(f, NOT_FOUND, hand_over(f, f->alice, name + 1, "task", NULL, NULL));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, "bob", "task", name, NULL));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, "bob", "task", NULL, ""));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, " ", "task", NULL, NULL));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, NULL, "task", NULL, NULL));
	expect(f, VALIDATION_ERROR, hand_over(f, f->alice, "bob", NULL, NULL, NULL));
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_string_equal(in_inbox(f, 0)->message, message + 1);
}

/* --- what is attached */

static void
a_context_is_not_known_yet(void **state)
{
	struct fixture *f = *state;
	PB(HandoffCreateRequest) req = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;
	char to[] = "bob", subject[] = "task", context[] = "ctx_1";

	req.to_principal = to;
	req.subject_id = subject;
	req.context_id = context;
	expect(f, NOT_FOUND, ask(f, f->alice, "HandoffService/Create", &req));
	assert_int_equal(inbox_size(f, f->bob), 0);
}

static void
a_checkpoint_comes_along(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "{\"step\":3}"));
	id = checkpoint_id(f);
	expect(f, NOT_FOUND, load(f, f->bob, id));
	expect(f, OK, hand_over(f, f->alice, "bob", "task", id, NULL));
	expect(f, OK, inbox(f, f->bob, NULL));
	assert_string_equal(in_inbox(f, 0)->checkpoint_id, id);
	expect(f, OK, load(f, f->bob, id));
	assert_string_equal(GOT(f, Checkpoint)->state->text, "{\"step\":3}");
	expect(f, NOT_FOUND, load(f, f->tom, id));
	expect(f, NOT_FOUND, load(f, f->zed, id));
}

static void
only_the_senders_own_live_checkpoint_of_the_subject_can_be_attached(void **state)
{
	struct fixture *f = *state;
	const char *mine, *bobs, *doras;

	expect(f, OK, save(f, f->bob, "task", "1"));
	bobs = checkpoint_id(f);
	expect(f, OK, save(f, f->dora, "task", "1"));
	doras = checkpoint_id(f);
	expect(f, OK, save(f, f->alice, "task", "1"));
	mine = checkpoint_id(f);
	expect(f, NOT_FOUND, hand_over(f, f->alice, "bob", "task", bobs, NULL));
	expect(f, NOT_FOUND, hand_over(f, f->alice, "bob", "task", doras, NULL));
	expect(f, NOT_FOUND, hand_over(f, f->alice, "bob", "other", mine, NULL));
	expect(f, NOT_FOUND, hand_over(f, f->alice, "bob", "task", "ckpt_1", NULL));
	advance_seconds(f, 600);
	expect(f, NOT_FOUND, hand_over(f, f->alice, "bob", "task", mine, NULL));
	assert_int_equal(count(f, "SELECT count(*) FROM handoffs"), 0);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 0);
}

static void
who_accepts_keeps_reading_and_who_rejects_does_not(void **state)
{
	struct fixture *f = *state;
	const char *checkpoint, *to_bob, *to_tom;

	expect(f, OK, save(f, f->alice, "task", "1"));
	checkpoint = checkpoint_id(f);
	expect(f, OK, hand_over(f, f->alice, "bob", "task", checkpoint, NULL));
	to_bob = handoff_id(f);
	expect(f, OK, hand_over(f, f->alice, "tom", "task", checkpoint, NULL));
	to_tom = handoff_id(f);
	expect(f, OK, resolve(f, f->bob, to_bob, ACCEPTED));
	expect(f, OK, resolve(f, f->tom, to_tom, REJECTED));
	expect(f, OK, load(f, f->bob, checkpoint));
	expect(f, NOT_FOUND, load(f, f->tom, checkpoint));
	expect(f, NOT_FOUND, discard(f, f->bob, checkpoint));
	advance_seconds(f, 600);
	expect(f, NOT_FOUND, load(f, f->bob, checkpoint));
}

static void
deleting_the_checkpoint_leaves_the_handoff_without_one(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "1"));
	id = checkpoint_id(f);
	expect(f, OK, hand_over(f, f->alice, "bob", "task", id, "go on"));
	expect(f, OK, discard(f, f->alice, id));
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_null(in_inbox(f, 0)->checkpoint_id);
	assert_string_equal(in_inbox(f, 0)->message, "go on");
	expect(f, OK, save(f, f->alice, "task", "2"));
	expect(f, NOT_FOUND, load(f, f->bob, checkpoint_id(f)));
}

/* --- resolve */

static void
the_target_accepts_or_rejects(void **state)
{
	struct fixture *f = *state;
	static const int decisions[] = { ACCEPTED, REJECTED };

	for (int i = 0; i < 2; i++) {
		expect(f, OK, hand_off(f, f->alice, "bob", "task"));
		advance_ms(f, 5);
		expect(f, OK, resolve(f, f->bob, handoff_id(f), decisions[i]));
		assert_int_equal(GOT(f, HandoffResolveResponse)->status, decisions[i]);
		assert_int_equal(time_of(GOT(f, HandoffResolveResponse)->resolved_at),
		    START_MS + INT64_C(5) * (i + 1));
		assert_int_equal(inbox_size(f, f->bob), 0);
	}
}

static void
nobody_else_can_resolve_it_and_trying_changes_nothing(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "Only the target principal can resolve a handoff.";
	const char *id;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	id = handoff_id(f);
	expect(f, VALIDATION_ERROR, resolve(f, f->alice, id, ACCEPTED));
	assert_string_equal(last_message(f), text);
	expect(f, VALIDATION_ERROR, resolve(f, f->tom, id, REJECTED));
	assert_string_equal(last_message(f), text);
	expect(f, VALIDATION_ERROR, resolve(f, f->owner, id, REJECTED));
	expect(f, NOT_FOUND, resolve(f, f->zed, id, ACCEPTED));
	expect(f, NOT_FOUND, resolve(f, f->bob, "hoff_1", ACCEPTED));
	expect(f, NOT_FOUND, resolve(f, f->bob, "hoff_00000000000000000000000000000000", REJECTED));
	assert_int_equal(inbox_size(f, f->bob), 1);
	assert_int_equal(event_count(f, f->bob, "*"), 1);
}

static void
there_are_only_two_decisions(void **state)
{
	struct fixture *f = *state;
	PB(HandoffResolveRequest) req = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;
	const char *id;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	id = handoff_id(f);
	expect(f, VALIDATION_ERROR, resolve(f, f->bob, id, 1));
	expect(f, VALIDATION_ERROR, resolve(f, f->bob, id, 0));
	expect(f, VALIDATION_ERROR, resolve(f, f->bob, id, 4));
	req.handoff_id = (char *)(uintptr_t)id;
	expect(f, VALIDATION_ERROR, ask(f, f->bob, "HandoffService/Resolve", &req));
	assert_int_equal(inbox_size(f, f->bob), 1);
}

static void
a_resolved_handoff_is_gone_for_everybody(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	id = handoff_id(f);
	expect(f, OK, resolve(f, f->bob, id, ACCEPTED));
	expect(f, NOT_FOUND, resolve(f, f->bob, id, ACCEPTED));
	expect(f, NOT_FOUND, resolve(f, f->bob, id, REJECTED));
	expect(f, NOT_FOUND, resolve(f, f->alice, id, REJECTED));
	expect(f, VALIDATION_ERROR, resolve(f, f->bob, id, 9));
	assert_int_equal(count(f, "SELECT status FROM handoffs"), ACCEPTED);
	assert_int_equal(event_count(f, f->bob, "*"), 2);
}

static void
another_key_of_the_target_resolves_as_well(void **state)
{
	struct fixture *f = *state;
	static const char *const scopes[] = { AGENT_SCOPES, NULL };
	const struct agent *bob_again = agent_join(f, f->owner, "bob", scopes);

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	expect(f, OK, resolve(f, bob_again, handoff_id(f), ACCEPTED));
}

/* --- events and audit */

static void
events_say_what_happened_and_never_the_message(void **state)
{
	struct fixture *f = *state;
	const PB(Event) *event;
	const char *id;

	expect(f, OK, hand_over(f, f->alice, "bob", "task", NULL, "a secret"));
	id = handoff_id(f);
	expect(f, OK, resolve(f, f->bob, id, REJECTED));
	assert_int_equal(event_count(f, f->alice, NULL), 2);
	event = GOT(f, EventListResponse)->events[0];
	assert_string_equal(event->resource_type, "handoff");
	assert_string_equal(event->resource_id, id);
	assert_string_equal(event->actor_id, "alice");
	assert_string_equal(
	    event->payload->text, "{\"to_principal\":\"bob\",\"subject_id\":\"task\"}");
	event = GOT(f, EventListResponse)->events[1];
	assert_string_equal(event->kind, "handoff.rejected");
	assert_string_equal(event->actor_id, "bob");
	assert_string_equal(event->payload->text, "{\"status\":\"rejected\"}");
}

static void
every_step_leaves_an_audit_row(void **state)
{
	struct fixture *f = *state;
	int64_t before = count(f, "SELECT count(*) FROM audit");

	expect(f, OK, hand_over(f, f->alice, "bob", "task", NULL, "a secret"));
	expect(f, OK, resolve(f, f->bob, handoff_id(f), ACCEPTED));
	assert_int_equal(count(f, "SELECT count(*) FROM audit"), before + 2);
	assert_int_equal(count(f, "SELECT count(*) FROM audit a JOIN principals p ON p.id = "
				  "a.actor WHERE a.action = 'handoff.create' AND p.name = 'alice'"),
	    1);
	assert_int_equal(count(f, "SELECT count(*) FROM audit WHERE action = 'handoff.accept'"), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM audit WHERE detail LIKE '%secret%'"), 0);
}

/* --- pages */

static void
a_long_inbox_comes_in_pages(void **state)
{
	struct fixture *f = *state;
	const char *cursor;

	for (int i = 0; i < 203; i++)
		expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	assert_int_equal(inbox_size(f, f->bob), 200);
	cursor = GOT(f, HandoffListResponse)->cursor;
	assert_string_equal(cursor, in_inbox(f, 199)->handoff_id);
	expect(f, OK, inbox(f, f->bob, cursor));
	assert_int_equal(GOT(f, HandoffListResponse)->n_handoffs, 3);
	assert_null(GOT(f, HandoffListResponse)->cursor);
	expect(f, OK, resolve(f, f->bob, cursor, ACCEPTED));
	expect(f, OK, inbox(f, f->bob, cursor));
	assert_int_equal(GOT(f, HandoffListResponse)->n_handoffs, 3);
}

static void
a_page_of_long_messages_ends_at_half_a_mebibyte(void **state)
{
	struct fixture *f = *state;
	char message[4 * 4000 + 1] = "";
	size_t bytes, n, seen = 0;
	const char *cursor = NULL;

	for (int i = 0; i < 4000; i++)
		memcpy(message + 4 * (size_t)i, "\U0001f680", 5);
	for (int i = 0; i < 80; i++)
		expect(f, OK, hand_over(f, f->alice, "bob", "task", NULL, message));
	do {
		expect(f, OK, inbox(f, f->bob, cursor));
		n = GOT(f, HandoffListResponse)->n_handoffs;
		bytes = protobuf_c_message_get_packed_size(last_response(f));
		cursor = GOT(f, HandoffListResponse)->cursor;
		assert_true(n > 0 && bytes < (512 << 10) + 20000);
		assert_true(cursor == NULL || bytes > 500 << 10);
		seen += n;
	} while (cursor != NULL);
	assert_int_equal(seen, 80);
}

static void
the_place_in_an_inbox_must_be_ones_own(void **state)
{
	struct fixture *f = *state;
	const char *to_tom;

	expect(f, OK, hand_off(f, f->alice, "tom", "task"));
	to_tom = handoff_id(f);
	expect(f, VALIDATION_ERROR, inbox(f, f->bob, to_tom));
	expect(f, VALIDATION_ERROR, inbox(f, f->alice, to_tom));
	expect(f, VALIDATION_ERROR, inbox(f, f->bob, "hoff_1"));
	expect(f, OK, inbox(f, f->tom, to_tom));
}

/* --- many at once */

static enum status
resolve_the_one(struct fixture *f, int racer)
{
	return resolve(f, f->bob, handoff_id(f), racer % 2 == 0 ? ACCEPTED : REJECTED);
}

static void
of_parallel_resolves_one_succeeds(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	for (int round = 1; round <= 20; round++) {
		expect(f, OK, hand_off(f, f->alice, "bob", "task"));
		race(f, resolve_the_one, results);
		assert_int_equal(how_many(results, STATUS_OK), 1);
		assert_int_equal(how_many(results, STATUS_NOT_FOUND), RACERS - 1);
		assert_int_equal(event_count(f, f->bob, "handoff.accepted") +
				     event_count(f, f->bob, "handoff.rejected"),
		    round);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_handoff_waits_in_the_inbox_of_its_target_alone),
		STORY(an_inbox_row_says_what_was_offered),
		STORY(the_oldest_handoff_comes_first),
		STORY(a_handoff_left_alone_stays_pending),
		STORY(a_recipient_must_be_known_in_the_organization),
		STORY(a_handoff_may_be_to_oneself),
		STORY(its_texts_have_limits),
		STORY(a_context_is_not_known_yet),
		STORY(a_checkpoint_comes_along),
		STORY(only_the_senders_own_live_checkpoint_of_the_subject_can_be_attached),
		STORY(who_accepts_keeps_reading_and_who_rejects_does_not),
		STORY(deleting_the_checkpoint_leaves_the_handoff_without_one),
		STORY(the_target_accepts_or_rejects),
		STORY(nobody_else_can_resolve_it_and_trying_changes_nothing),
		STORY(there_are_only_two_decisions),
		STORY(a_resolved_handoff_is_gone_for_everybody),
		STORY(another_key_of_the_target_resolves_as_well),
		STORY(events_say_what_happened_and_never_the_message),
		STORY(every_step_leaves_an_audit_row),
		STORY(a_long_inbox_comes_in_pages),
		STORY(a_page_of_long_messages_ends_at_half_a_mebibyte),
		STORY(the_place_in_an_inbox_must_be_ones_own),
		STORY(of_parallel_resolves_one_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Events: their order, who sees which, and how they are read page by page. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const PB(Event) *
event_at(struct fixture *f, size_t i)
{
	assert_true(i < GOT(f, EventListResponse)->n_events);
	return GOT(f, EventListResponse)->events[i];
}

static const char *
cursor(struct fixture *f)
{
	return GOT(f, EventListResponse)->cursor;
}

/* N leases for WHO, so N events. */
static void
make_events(struct fixture *f, const struct agent *who, int n)
{
	for (int i = 0; i < n; i++)
		expect(f, OK, acquire(f, who, "deploy", "x", 30));
}

static enum status
read_event(struct fixture *f, const struct agent *who, const char *id)
{
	PB(EventGetRequest) req = TITEN__V1__EVENT_GET_REQUEST__INIT;

	req.event_id = (char *)(uintptr_t)id;
	return ask(f, who, "EventService/Get", &req);
}

/* --- who sees what */

/* One event of every kind: a lease taken and given back, handoffs accepted and rejected. */
static void
one_of_each(struct fixture *f)
{
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	id = GOT(f, LeaseAcquireResponse)->lease_id;
	expect(f, OK, release(f, f->alice, id));
	for (int i = 0; i < 2; i++) {
		expect(f, OK, hand_off(f, f->alice, "bob", "task"));
		id = GOT(f, HandoffCreateResponse)->handoff_id;
		expect(f, OK, resolve(f, f->bob, id, i == 0 ? ACCEPTED : REJECTED));
	}
}

static void
events_come_only_to_those_they_concern(void **state)
{
	struct fixture *f = *state;
	const struct {
		const char *kind;
		const struct agent *who;
		size_t seen;
	} rows[] = {
		{ "lease.acquired", f->alice, 1 },
		{ "lease.acquired", f->bob, 0 },
		{ "lease.acquired", f->tom, 0 },
		{ "lease.acquired", f->owner, 1 },
		{ "lease.acquired", f->dora, 0 },
		{ "lease.acquired", f->zed, 0 },
		{ "lease.released", f->alice, 1 },
		{ "lease.released", f->bob, 0 },
		{ "lease.released", f->owner, 1 },
		{ "lease.released", f->zed, 0 },
		{ "handoff.created", f->alice, 2 },
		{ "handoff.created", f->bob, 2 },
		{ "handoff.created", f->tom, 0 },
		{ "handoff.created", f->owner, 2 },
		{ "handoff.created", f->zed, 0 },
		{ "handoff.accepted", f->alice, 1 },
		{ "handoff.accepted", f->bob, 1 },
		{ "handoff.accepted", f->tom, 0 },
		{ "handoff.accepted", f->owner, 1 },
		{ "handoff.rejected", f->alice, 1 },
		{ "handoff.rejected", f->bob, 1 },
		{ "handoff.rejected", f->tom, 0 },
		{ "handoff.rejected", f->zed, 0 },
	};

	one_of_each(f);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t seen = event_count(f, rows[i].who, rows[i].kind);

		if (seen != rows[i].seen)
			fail_msg(
			    "row %zu: %s sees %zu of %s", i, rows[i].who->name, seen, rows[i].kind);
	}
}

static void
a_key_for_all_events_sees_those_of_its_organization(void **state)
{
	struct fixture *f = *state;
	static const char *const scopes[] = { "events:read", "events:all", NULL };
	const struct agent *watcher = agent_join(f, f->owner, "watcher", scopes);

	one_of_each(f);
	make_events(f, f->dora, 3);
	assert_int_equal(event_count(f, watcher, "*"), 6);
	assert_int_equal(event_count(f, f->zed, "*"), 3);
}

static void
one_event_is_found_by_whom_it_concerns(void **state)
{
	struct fixture *f = *state;
	const char *id;

	make_events(f, f->alice, 1);
	expect(f, OK, events_of(f, f->alice, NULL));
	id = event_at(f, 0)->id;
	expect(f, OK, read_event(f, f->alice, id));
	assert_string_equal(GOT(f, Event)->id, id);
	assert_string_equal(GOT(f, Event)->kind, "lease.acquired");
	expect(f, OK, read_event(f, f->owner, id));
	expect(f, NOT_FOUND, read_event(f, f->bob, id));
	expect(f, NOT_FOUND, read_event(f, f->zed, id));
	expect(f, NOT_FOUND, read_event(f, f->alice, "evt_00000000000000000000000000000000"));
	expect(f, NOT_FOUND, read_event(f, f->alice, "evt"));
}

static void
reading_events_makes_nobody_a_member(void **state)
{
	struct fixture *f = *state;
	static const char *const scopes[] = { "events:read", NULL };
	const struct agent *reader = agent_join(f, f->owner, "reader", scopes);

	expect(f, OK, events_of(f, reader, "*"));
	expect(f, FORBIDDEN, acquire(f, reader, "deploy", "x", 30));
	expect(f, FORBIDDEN, hand_off(f, reader, "bob", "task"));
	expect(f, FORBIDDEN, inbox(f, reader, NULL));
	expect(f, FORBIDDEN, find(f, reader, "task"));
	expect(f, FORBIDDEN, save(f, reader, "task", "1"));
}

/* --- kinds */

static void
a_reader_gets_what_is_documented_or_what_it_names(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *kind;
		size_t seen;
	} rows[] = { { NULL, 5 }, { "*", 6 }, { "lease.*", 2 }, { "handoff.*", 4 },
		{ "lease.released", 1 }, { "lease", 0 }, { "lease.", 0 }, { "*.acquired", 0 },
		{ "LEASE.ACQUIRED", 0 }, { "claim.materialized", 0 } };

	one_of_each(f);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t seen = event_count(f, f->alice, rows[i].kind);

		if (seen != rows[i].seen)
			fail_msg("row %zu: %zu", i, seen);
	}
}

static void
several_kinds_may_be_asked_for(void **state)
{
	struct fixture *f = *state;
	PB(EventListRequest) req = TITEN__V1__EVENT_LIST_REQUEST__INIT;
	char released[] = "lease.released", rejected[] = "handoff.rejected";
	char *kinds[] = { released, rejected };

	one_of_each(f);
	req.kind = kinds;
	req.n_kind = 2;
	expect(f, OK, ask(f, f->bob, "EventService/List", &req));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 1);
	expect(f, OK, ask(f, f->alice, "EventService/List", &req));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 2);
	assert_string_equal(event_at(f, 0)->kind, "lease.released");
}

/* --- order */

static void
seq_has_no_gap_in_any_organization(void **state)
{
	struct fixture *f = *state;

	make_events(f, f->alice, 3);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
	make_events(f, f->dora, 2);
	expect(f, NOT_FOUND, hand_off(f, f->alice, "nobody", "task"));
	restart(f);
	make_events(f, f->alice, 2);
	make_events(f, f->dora, 1);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 8);
	assert_int_equal(
	    count(f, "SELECT count(*) FROM (SELECT count(*) AS n, max(seq) AS most, min(seq) AS "
		     "least FROM events GROUP BY organization) WHERE n = most AND least = 1"),
	    2);
	assert_int_equal(count(f, "SELECT sum(seq) FROM organizations"), 8);
}

static void
ids_rise_in_the_order_of_the_log_over_restarts_and_clocks(void **state)
{
	struct fixture *f = *state;

	make_events(f, f->alice, 3);
	restart(f);
	make_events(f, f->alice, 2);
	set_wall(f, -HOUR_MS);
	restart(f);
	make_events(f, f->alice, 2);
	advance_ms(f, 1);
	make_events(f, f->alice, 2);
	assert_int_equal(count(f, "SELECT count(*) FROM events a JOIN events b ON "
				  "b.organization = a.organization AND b.seq = a.seq + 1 WHERE "
				  "b.public_id > a.public_id"),
	    8);
	assert_int_equal(
	    count(f, "SELECT count(*) FROM leases a JOIN leases b ON b.fence > a.fence "
		     "WHERE b.public_id <= a.public_id"),
	    0);
}

static void
created_comes_before_accepted(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, hand_off(f, f->alice, "bob", "task"));
	expect(f, OK, resolve(f, f->bob, GOT(f, HandoffCreateResponse)->handoff_id, ACCEPTED));
	assert_int_equal(event_count(f, f->alice, NULL), 2);
	assert_string_equal(event_at(f, 0)->kind, "handoff.created");
	assert_string_equal(event_at(f, 1)->kind, "handoff.accepted");
	assert_true(strcmp(event_at(f, 0)->id, event_at(f, 1)->id) < 0);
}

/* --- pages */

/* Every event WHO sees, in pages of LIMIT; fails when one comes twice or out of order. */
static size_t
read_all(struct fixture *f, const struct agent *who, int64_t limit)
{
	const char *after = NULL, *last = "";
	size_t seen = 0, n;

	do {
		expect(f, OK, events_after(f, who, after, limit, NULL));
		n = GOT(f, EventListResponse)->n_events;
		assert_true(n <= (size_t)limit);
		for (size_t i = 0; i < n; i++) {
			assert_true(strcmp(last, event_at(f, i)->id) < 0);
			last = event_at(f, i)->id;
		}
		seen += n;
		after = cursor(f);
	} while (n == (size_t)limit);
	return seen;
}

static void
pages_hold_every_event_once_whatever_their_size(void **state)
{
	struct fixture *f = *state;
	static const int64_t limits[] = { 1, 2, 7, 20, 21, 200 };

	for (int i = 0; i < 10; i++) {
		make_events(f, f->alice, 2);
		expect(f, OK, acquire(f, f->bob, "deploy", "y", 30));
	}
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		assert_int_equal(read_all(f, f->alice, limits[i]), 20);
		assert_int_equal(read_all(f, f->owner, limits[i]), 30);
	}
}

static void
a_page_has_fifty_events_when_nothing_is_said_and_two_hundred_at_most(void **state)
{
	struct fixture *f = *state;

	make_events(f, f->alice, 205);
	expect(f, OK, events_after(f, f->alice, NULL, 0, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 50);
	expect(f, OK, events_after(f, f->alice, NULL, INT64_MAX, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 200);
	expect(f, OK, events_after(f, f->alice, cursor(f), 201, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 5);
	expect(f, VALIDATION_ERROR, events_after(f, f->alice, NULL, -1, NULL));
}

static void
an_empty_page_gives_the_cursor_back(void **state)
{
	struct fixture *f = *state;
	const char *last;

	expect(f, OK, events_of(f, f->alice, NULL));
	assert_null(cursor(f));
	make_events(f, f->alice, 2);
	expect(f, OK, events_of(f, f->alice, NULL));
	last = cursor(f);
	assert_string_equal(last, event_at(f, 1)->id);
	expect(f, OK, events_after(f, f->alice, last, 10, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 0);
	assert_string_equal(cursor(f), last);
	make_events(f, f->alice, 1);
	expect(f, OK, events_after(f, f->alice, last, 10, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 1);
}

static void
a_cursor_must_be_an_event_that_the_reader_can_read(void **state)
{
	struct fixture *f = *state;
	const char *id;

	make_events(f, f->alice, 1);
	expect(f, OK, events_of(f, f->alice, NULL));
	id = cursor(f);
	expect(f, OK, events_after(f, f->owner, id, 10, NULL));
	expect(f, VALIDATION_ERROR, events_after(f, f->bob, id, 10, NULL));
	expect(f, VALIDATION_ERROR, events_after(f, f->zed, id, 10, NULL));
	expect(f, VALIDATION_ERROR, events_after(f, f->alice, "evt_", 10, NULL));
	expect(f, VALIDATION_ERROR, events_after(f, f->alice, "", 10, NULL));
	expect(f, VALIDATION_ERROR,
	    events_after(f, f->alice, "evt_00000000000000000000000000000000", 10, NULL));
}

static void
a_cursor_of_another_kind_keeps_its_place(void **state)
{
	struct fixture *f = *state;

	one_of_each(f);
	expect(f, OK, events_of(f, f->alice, "lease.released"));
	expect(f, OK, events_after(f, f->alice, cursor(f), 10, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 4);
}

static void
events_outlive_a_restart(void **state)
{
	struct fixture *f = *state;
	const char *id;

	make_events(f, f->alice, 2);
	expect(f, OK, events_of(f, f->alice, NULL));
	id = event_at(f, 0)->id;
	restart(f);
	expect(f, OK, events_after(f, f->alice, id, 10, NULL));
	assert_int_equal(GOT(f, EventListResponse)->n_events, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(events_come_only_to_those_they_concern),
		STORY(a_key_for_all_events_sees_those_of_its_organization),
		STORY(one_event_is_found_by_whom_it_concerns),
		STORY(reading_events_makes_nobody_a_member),
		STORY(a_reader_gets_what_is_documented_or_what_it_names),
		STORY(several_kinds_may_be_asked_for),
		STORY(seq_has_no_gap_in_any_organization),
		STORY(ids_rise_in_the_order_of_the_log_over_restarts_and_clocks),
		STORY(created_comes_before_accepted),
		STORY(pages_hold_every_event_once_whatever_their_size),
		STORY(a_page_has_fifty_events_when_nothing_is_said_and_two_hundred_at_most),
		STORY(an_empty_page_gives_the_cursor_back),
		STORY(a_cursor_must_be_an_event_that_the_reader_can_read),
		STORY(a_cursor_of_another_kind_keeps_its_place),
		STORY(events_outlive_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

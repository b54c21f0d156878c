/* SPDX-License-Identifier: MIT */
/* Leases: who gets a resource, until when, and what others learn by asking. */
#include "tests/support/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define UNRELEASED "SELECT count(*) FROM leases WHERE released_ms IS NULL"

static const char *
lease_id(struct fixture *f)
{
	return GOT(f, LeaseAcquireResponse)->lease_id;
}

static int64_t
expiry(struct fixture *f)
{
	return time_of(GOT(f, LeaseAcquireResponse)->expires_at);
}

static int64_t
fence(struct fixture *f)
{
	return GOT(f, LeaseAcquireResponse)->fence;
}

/* --- taking */

static void
a_lease_names_a_resource_for_a_bounded_time(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "checkout-service", 600));
	assert_int_equal(expiry(f), START_MS + 600000);
	assert_int_equal(strlen(lease_id(f)), strlen("lease_") + 32);
	assert_memory_equal(lease_id(f), "lease_", 6);
	assert_int_equal(lease_id(f)[6 + 12], '7');
	assert_true(fence(f) > 0);
}

static void
a_second_agent_cannot_take_a_live_lease(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "checkout", 30));
	id = lease_id(f);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "checkout", 30));
	assert_string_equal(last_message(f),
	    "Resource is leased by another principal until 2026-07-30T10:58:43.829Z.");
	assert_int_equal(f->last->call.retry_after_ms, 30000);
	expect(f, OK, release(f, f->alice, id));
}

static void
asking_teaches_neither_holder_nor_purpose(void **state)
{
	struct fixture *f = *state;
	const char *first;

	expect(f, OK, acquire_for(f, f->alice, "x", 30, "a secret plan"));
	expect(f, OK, acquire_for(f, f->bob, "y", 30, "another"));
	expect(f, CONFLICT, acquire(f, f->tom, "deploy", "x", 30));
	first = last_message(f);
	assert_null(strstr(first, "alice"));
	assert_null(strstr(first, "secret"));
	assert_null(strstr(first, "lease_"));
	expect(f, CONFLICT, acquire(f, f->tom, "deploy", "y", 30));
	assert_string_equal(last_message(f), first);
}

static void
a_lease_expires_exactly_at_its_expiry(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "checkout", 10));
	advance_ms(f, 9999);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "checkout", 10));
	assert_int_equal(f->last->call.retry_after_ms, 1);
	advance_ms(f, 1);
	expect(f, OK, acquire(f, f->bob, "deploy", "checkout", 10));
}

static void
resources_differ_by_organization_type_and_every_byte_of_their_id(void **state)
{
	struct fixture *f = *state;
	static const char *const rows[][2] = { { "deploy", "x" }, { "Deploy", "x" },
		{ "deploy", "X" }, { "deploy", "x " }, { "deploy ", "x" }, { "build", "x" } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		expect(
		    f, OK, acquire(f, i % 2 == 0 ? f->alice : f->bob, rows[i][0], rows[i][1], 30));
	expect(f, OK, acquire(f, f->dora, "deploy", "x", 30));
	expect(f, CONFLICT, acquire(f, f->tom, "deploy", "x ", 30));
}

static void
the_time_asked_for_has_limits(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int64_t ttl_seconds;
		enum status wanted;
	} rows[] = { { 10, STATUS_OK }, { 86400, STATUS_OK }, { 9, STATUS_VALIDATION_ERROR },
		{ 0, STATUS_VALIDATION_ERROR }, { -1, STATUS_VALIDATION_ERROR },
		{ 86401, STATUS_VALIDATION_ERROR }, { INT64_MAX, STATUS_VALIDATION_ERROR } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum status st = acquire(f, f->alice, "deploy", "x", rows[i].ttl_seconds);

		if (st != rows[i].wanted)
			fail_msg("row %zu: %s", i, status_reason(st));
	}
}

static void
texts_have_limits_counted_in_code_points(void **state)
{
	struct fixture *f = *state;
	char id[3 * 201 + 1], type[122];

	memset(type, 't', 121);
	type[121] = '\0';
	for (int i = 0; i < 201; i++)
		memcpy(id + 3 * (size_t)i, "\u20ac", 4);
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, type, "x", 30));
	expect(f, OK, acquire(f, f->alice, type + 1, id + 3, 30));
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "t", id, 30));
	expect(f, VALIDATION_ERROR, acquire_for(f, f->alice, "x", 30, type));
	expect(f, VALIDATION_ERROR, acquire_for(f, f->alice, "x", 30, "  "));
	expect(f, VALIDATION_ERROR, acquire_for(f, f->alice, "x", 30, NULL));
}

static void
a_refused_request_changes_nothing(void **state)
{
	struct fixture *f = *state;

	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "deploy", "x", 9));
	expect(f, VALIDATION_ERROR, acquire(f, f->alice, "deploy", " ", 30));
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 0);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 0);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 30));
}

static void
the_holder_is_the_principal_not_the_key(void **state)
{
	struct fixture *f = *state;
	static const char *const scopes[] = { AGENT_SCOPES, NULL };
	const struct agent *alice_again = agent_join(f, f->owner, "alice", scopes);

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, OK, acquire(f, alice_again, "deploy", "x", 30));
	expect(f, OK, release(f, f->alice, lease_id(f)));
}

/* --- taking again */

static void
the_holder_gets_a_new_lease_and_the_old_id_is_void(void **state)
{
	struct fixture *f = *state;
	const char *old, *new;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	old = lease_id(f);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 60));
	new = lease_id(f);
	assert_string_not_equal(old, new);
	assert_int_equal(expiry(f), START_MS + 60000);
	expect(f, NOT_FOUND, release(f, f->alice, old));
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
	assert_non_null(strstr(last_message(f), "10:59:13.829Z"));
	expect(f, OK, release(f, f->alice, new));
}

static void
the_holder_may_shorten_its_time(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 86400));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	advance_seconds(f, 10);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 30));
}

static void
the_holder_takes_its_expired_lease_again_under_a_new_id(void **state)
{
	struct fixture *f = *state;
	const char *old;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	old = lease_id(f);
	advance_seconds(f, 11);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	assert_string_not_equal(old, lease_id(f));
	expect(f, NOT_FOUND, release(f, f->alice, old));
}

static void
who_takes_an_expired_lease_ends_the_old_id(void **state)
{
	struct fixture *f = *state;
	const char *old;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	old = lease_id(f);
	advance_seconds(f, 10);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 10));
	expect(f, NOT_FOUND, release(f, f->alice, old));
	expect(f, CONFLICT, acquire(f, f->alice, "deploy", "x", 10));
}

static void
fifty_acquires_leave_one_unreleased_row(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 50; i++) {
		expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
		expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
	}
	assert_int_equal(count(f, UNRELEASED), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 50);
}

/* A fence is a time, so it does not tell how many leases others took. */
static void
a_fence_tells_the_time_and_not_the_leases(void **state)
{
	struct fixture *f = *state;
	int64_t first;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	first = fence(f);
	assert_in_range(first, START_MS * 1000, START_MS * 1000 + 999);
	for (int i = 0; i < 5; i++)
		expect(f, OK, acquire(f, f->bob, "deploy", "y", 30));
	advance_seconds(f, 1);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	assert_in_range(fence(f), (START_MS + 1000) * 1000, (START_MS + 1000) * 1000 + 999);
}

static void
fences_only_rise(void **state)
{
	struct fixture *f = *state;
	int64_t last = 0;

	for (int i = 0; i < 12; i++) {
		expect(f, OK, acquire(f, i % 2 == 0 ? f->alice : f->dora, "deploy", "x", 10));
		assert_true(fence(f) > last);
		last = fence(f);
		if (i % 3 == 0)
			expect(f, OK, release(f, i % 2 == 0 ? f->alice : f->dora, lease_id(f)));
		if (i % 4 == 0)
			restart(f);
	}
}

/* --- giving back */

static void
a_release_says_when_and_frees_the_resource(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	id = lease_id(f);
	advance_ms(f, 1234);
	expect(f, OK, release(f, f->alice, id));
	assert_string_equal(GOT(f, LeaseReleaseResponse)->lease_id, id);
	assert_int_equal(time_of(GOT(f, LeaseReleaseResponse)->released_at), START_MS + 1234);
	assert_int_equal(count(f, "SELECT released_ms FROM leases"), START_MS + 1234);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 30));
}

static void
what_cannot_be_released_is_not_found_whatever_the_cause(void **state)
{
	struct fixture *f = *state;
	const char *released, *held, *said;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	released = lease_id(f);
	expect(f, OK, release(f, f->alice, released));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	held = lease_id(f);
	expect(f, NOT_FOUND, release(f, f->alice, "lease_00000000000000000000000000000000"));
	said = last_message(f);
	expect(f, NOT_FOUND, release(f, f->alice, released));
	assert_string_equal(last_message(f), said);
	expect(f, NOT_FOUND, release(f, f->alice, "x"));
	assert_string_equal(last_message(f), said);
	expect(f, NOT_FOUND, release(f, f->bob, held));
	assert_string_equal(last_message(f), said);
	expect(f, NOT_FOUND, release(f, f->dora, held));
	expect(f, NOT_FOUND, release(f, f->owner, held));
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
}

static void
the_holder_may_release_an_expired_lease(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	id = lease_id(f);
	advance_seconds(f, 3600);
	expect(f, OK, release(f, f->alice, id));
	expect(f, NOT_FOUND, release(f, f->alice, id));
}

/* --- nothing happens by itself */

static void
an_expired_lease_stays_as_it_is_until_the_next_acquire(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	advance_seconds(f, 604800);
	expect(f, OK, acquire(f, f->tom, "deploy", "other", 10));
	assert_int_equal(count(f, UNRELEASED), 2);
	assert_int_equal(event_count(f, f->alice, "*"), 1);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 10));
	assert_int_equal(count(f, UNRELEASED), 2);
	assert_int_equal(event_count(f, f->alice, "*"), 1);
}

static void
revoking_a_key_releases_nothing(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
}

static void
a_lease_outlives_a_restart(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	id = lease_id(f);
	restart(f);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
	assert_non_null(strstr(last_message(f), "10:58:43.829Z"));
	expect(f, OK, release(f, f->alice, id));
}

/* --- when somebody sets the clock */

static void
a_clock_set_back_neither_revives_nor_lengthens_a_lease(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	advance_seconds(f, 10);
	expect(f, OK, acquire(f, f->tom, "deploy", "y", 10));
	set_wall(f, -HOUR_MS);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 10));
	advance_ms(f, 9999);
	expect(f, CONFLICT, acquire(f, f->alice, "deploy", "x", 10));
	advance_ms(f, 1);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
}

static void
a_clock_set_back_over_a_restart_revives_nothing(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	advance_seconds(f, 10);
	expect(f, OK, acquire(f, f->tom, "deploy", "y", 10));
	set_wall(f, -HOUR_MS);
	restart(f);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 10));
}

static void
a_clock_set_forward_and_back_does_not_freeze_time(void **state)
{
	struct fixture *f = *state;

	set_wall(f, HOUR_MS);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 10));
	set_wall(f, -HOUR_MS);
	advance_ms(f, 9999);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 10));
	advance_ms(f, 1);
	expect(f, OK, acquire(f, f->bob, "deploy", "x", 10));
}

/* --- events */

static void
each_acquire_is_one_event_with_its_lease(void **state)
{
	struct fixture *f = *state;
	const PB(Event) *event;
	const char *id;
	char payload[256];
	int64_t granted;

	expect(f, OK, acquire_for(f, f->alice, "x", 30, "ship \"it\""));
	expect(f, OK, acquire_for(f, f->alice, "x", 60, "ship \"it\""));
	id = lease_id(f);
	granted = fence(f);
	expect(f, CONFLICT, acquire(f, f->bob, "deploy", "x", 30));
	assert_int_equal(event_count(f, f->bob, "*"), 0);
	assert_int_equal(event_count(f, f->alice, "lease.acquired"), 2);
	event = GOT(f, EventListResponse)->events[1];
	assert_string_equal(event->resource_id, id);
	assert_string_equal(event->resource_type, "lease");
	assert_string_equal(event->actor_id, "alice");
	assert_int_equal(time_of(event->created_at), START_MS);
	snprintf(payload, sizeof(payload),
	    "{\"resource_type\":\"deploy\",\"resource_id\":\"x\",\"purpose\":\"ship \\\"it\\\"\","
	    "\"expires_at\":\"2026-07-30T10:59:13.829Z\",\"fence\":%" PRId64 "}",
	    granted);
	assert_string_equal(event->payload->text, payload);
}

static void
a_release_is_an_event_only_for_those_who_ask_for_it(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	id = lease_id(f);
	expect(f, OK, release(f, f->alice, id));
	assert_int_equal(event_count(f, f->alice, NULL), 1);
	assert_int_equal(event_count(f, f->alice, "lease.released"), 1);
	assert_string_equal(GOT(f, EventListResponse)->events[0]->resource_id, id);
	assert_int_equal(event_count(f, f->bob, "lease.released"), 0);
}

/* --- many at once */

static enum status
race_for_x(struct fixture *f, int racer)
{
	const struct agent *agents[] = { f->alice, f->bob, f->tom, f->owner };

	return acquire(f, agents[racer % 4], "deploy", racer < 4 ? "x" : "y", 30);
}

static void
of_those_who_race_for_a_resource_one_wins(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	for (int round = 1; round <= 20; round++) {
		race(f, race_for_x, results);
		assert_int_equal(how_many(results, STATUS_OK), 2);
		assert_int_equal(how_many(results, STATUS_CONFLICT), 6);
		assert_int_equal(count(f, UNRELEASED), 2);
		assert_int_equal(event_count(f, f->owner, "lease.acquired"), 2 * round);
		advance_seconds(f, 30);
	}
}

static enum status
release_what_owner_told(struct fixture *f, int racer)
{
	(void)racer;
	return release(f, f->alice, lease_id(f));
}

static void
of_parallel_releases_one_succeeds(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	race(f, release_what_owner_told, results);
	assert_int_equal(how_many(results, STATUS_OK), 1);
	assert_int_equal(how_many(results, STATUS_NOT_FOUND), RACERS - 1);
	assert_int_equal(event_count(f, f->alice, "lease.released"), 1);
}

static enum status
keep_or_take(struct fixture *f, int racer)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < 20 && (st == STATUS_OK || racer != 0); i++) {
		st = acquire(f, racer == 0 ? f->alice : f->bob, "deploy", "x", 30);
		if (racer != 0 && st == STATUS_OK)
			return st;
	}
	return st;
}

static void
taking_again_never_leaves_a_gap(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	race(f, keep_or_take, results);
	assert_int_equal(results[0], STATUS_OK);
	assert_int_equal(how_many(results, STATUS_CONFLICT), RACERS - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_lease_names_a_resource_for_a_bounded_time),
		STORY(a_second_agent_cannot_take_a_live_lease),
		STORY(asking_teaches_neither_holder_nor_purpose),
		STORY(a_lease_expires_exactly_at_its_expiry),
		STORY(resources_differ_by_organization_type_and_every_byte_of_their_id),
		STORY(the_time_asked_for_has_limits),
		STORY(texts_have_limits_counted_in_code_points),
		STORY(a_refused_request_changes_nothing),
		STORY(the_holder_is_the_principal_not_the_key),
		STORY(the_holder_gets_a_new_lease_and_the_old_id_is_void),
		STORY(the_holder_may_shorten_its_time),
		STORY(the_holder_takes_its_expired_lease_again_under_a_new_id),
		STORY(who_takes_an_expired_lease_ends_the_old_id),
		STORY(fifty_acquires_leave_one_unreleased_row),
		STORY(a_fence_tells_the_time_and_not_the_leases),
		STORY(fences_only_rise),
		STORY(a_release_says_when_and_frees_the_resource),
		STORY(what_cannot_be_released_is_not_found_whatever_the_cause),
		STORY(the_holder_may_release_an_expired_lease),
		STORY(an_expired_lease_stays_as_it_is_until_the_next_acquire),
		STORY(revoking_a_key_releases_nothing),
		STORY(a_lease_outlives_a_restart),
		STORY(a_clock_set_back_neither_revives_nor_lengthens_a_lease),
		STORY(a_clock_set_back_over_a_restart_revives_nothing),
		STORY(a_clock_set_forward_and_back_does_not_freeze_time),
		STORY(each_acquire_is_one_event_with_its_lease),
		STORY(a_release_is_an_event_only_for_those_who_ask_for_it),
		STORY(of_those_who_race_for_a_resource_one_wins),
		STORY(of_parallel_releases_one_succeeds),
		STORY(taking_again_never_leaves_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

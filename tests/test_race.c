/* SPDX-License-Identifier: MIT */
/*
 * Many at once, half over REST and half over nng, each with a connection of its own: whatever the
 * order, one wins and the others are told so. Read race_run() first.
 *
 * With the argument real-time: the one race that waits for a real clock.
 */
#include "tests/support/scenes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RACERS 64
#define RESOLVERS 12
#define RETRIERS 32
#define ROUNDS 100
#define EXPIRY_ROUNDS 20
#define TTL_MS 10000
#define AGENT "[\"leases:write\",\"handoffs:write\",\"events:read\"]"

/* The gun: all wait for ready, then the clock is moved, then all wait for set. */
struct race {
	pthread_barrier_t ready;
	pthread_barrier_t set;
	int64_t start_ms; /* of the real clock; 0: at once */
};

struct racer {
	struct race *race;
	pthread_t thread;
	struct caller who;
	enum door door;
	const char *method;
	const char *request;
	const char *key;
	struct answer answer;
};

static struct racer racers[RACERS];

static void
wait_until(int64_t ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL) != 0)
		;
}

static void *
racer_main(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(&r->race->ready);
	pthread_barrier_wait(&r->race->set);
	if (r->race->start_ms > 0)
		wait_until(r->race->start_ms);
	r->answer = caller_ask(&r->who, r->door, r->method, r->request, r->key);
	return NULL;
}

/* The first N racers call, ADVANCE_MS later by the clock of D than now. */
static void
race_run(struct doors *d, int n, int64_t advance_ms, int64_t start_ms)
{
	struct race race = { .start_ms = start_ms };

	pthread_barrier_init(&race.ready, NULL, (unsigned)n + 1);
	pthread_barrier_init(&race.set, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		racers[i].race = &race;
		assert_int_equal(
		    pthread_create(&racers[i].thread, NULL, racer_main, &racers[i]), 0);
	}
	pthread_barrier_wait(&race.ready);
	doors_advance(d, advance_ms);
	pthread_barrier_wait(&race.set);
	for (int i = 0; i < n; i++)
		pthread_join(racers[i].thread, NULL);
	pthread_barrier_destroy(&race.ready);
	pthread_barrier_destroy(&race.set);
}

/* PRINCIPAL NULL: each is another one. Every fourth comes through the other kind of socket. */
static void
racers_meet(struct house *h, int n, const char *principal)
{
	char name[40];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof name, "racer_%d", i);
		racers[i] = (struct racer){ .door = i % 2 == 0 ? REST : NNG };
		scenes_join(h, &racers[i].who, principal == NULL ? name : principal, AGENT);
		if (i % 4 == 1)
			racers[i].who.url = h->owner.doors->ipc;
	}
}

static void
racers_say(int n, const char *method, const char *request, const char *key)
{
	for (int i = 0; i < n; i++) {
		racers[i].method = method;
		racers[i].request = request;
		racers[i].key = key;
	}
}

static void
racers_leave(int n)
{
	for (int i = 0; i < n; i++)
		caller_leave(&racers[i].who);
}

static void
racers_forget(int n)
{
	for (int i = 0; i < n; i++)
		caller_forget(&racers[i].answer);
}

/* The one whose answer is OK, when there is exactly one; the others have the code word LOST. */
static const struct answer *
winner(int n, const char *lost)
{
	const struct answer *won = NULL;

	for (int i = 0; i < n; i++) {
		const struct answer *a = &racers[i].answer;

		if (strcmp(a->code, "OK") == 0 && won == NULL)
			won = a;
		else if (strcmp(a->code, lost) != 0)
			fail_msg("racer %d: %s %s", i, a->code, a->message);
	}
	assert_non_null(won);
	return won;
}

static const char *
text_of(const struct answer *a, const char *field)
{
	const char *text = json_string_value(json_object_get(a->data, field));

	assert_non_null(text);
	return text;
}

/* --- one resource --- */

static void
acquire_request(char request[SCENE_REQUEST_BYTES], const char *resource)
{
	snprintf(request, SCENE_REQUEST_BYTES,
	    "{\"resource_type\":\"race\",\"resource_id\":\"%s\",\"purpose\":\"win\","
	    "\"ttl_seconds\":10}",
	    resource);
}

/* Whoever lost has read until when. */
static void
expect_until(int n, const char *expires_at)
{
	for (int i = 0; i < n; i++) {
		const struct answer *a = &racers[i].answer;

		if (strcmp(a->code, "CONFLICT") == 0 && strstr(a->message, expires_at) == NULL)
			fail_msg("racer %d: %s, not %s", i, a->message, expires_at);
	}
}

/* Kinds of events as proto/kinds.def numbers them. */
static void
expect_grants(const struct doors *d, const char *resource, int grants)
{
	static const char unreleased[] =
	    "SELECT count(*) FROM leases WHERE resource_id = ?1 AND released_ms IS NULL";
	static const char granted[] = "SELECT count(*) FROM leases WHERE resource_id = ?1";
	static const char events[] =
	    "SELECT count(*) FROM events e JOIN leases l ON l.public_id = e.resource"
	    " WHERE l.resource_id = ?1 AND e.kind = 1";

	assert_int_equal(doors_count(d, unreleased, resource), 1);
	assert_int_equal(doors_count(d, granted, resource), grants);
	assert_int_equal(doors_count(d, events, resource), grants);
}

static void
one_of_64_gets_the_lease(void **state)
{
	char request[SCENE_REQUEST_BYTES], resource[40];
	struct doors *d = *state;
	struct house h;

	scenes_found(d, &h);
	racers_meet(&h, RACERS, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		snprintf(resource, sizeof resource, "round-%d", round);
		acquire_request(request, resource);
		racers_say(RACERS, "LeaseService/Acquire", request, NULL);
		race_run(d, RACERS, 0, 0);
		expect_until(RACERS, text_of(winner(RACERS, "CONFLICT"), "expires_at"));
		expect_grants(d, resource, 1);
		racers_forget(RACERS);
	}
	racers_leave(RACERS);
	scenes_leave(&h);
}

static void
hold(struct house *h, const char *request, char expires_at[40])
{
	struct answer a = caller_ask(&h->coder, NNG, "LeaseService/Acquire", request, NULL);

	assert_string_equal(a.code, "OK");
	snprintf(expires_at, 40, "%s", text_of(&a, "expires_at"));
	caller_forget(&a);
}

static void
nobody_wins(int n, const char *expires_at)
{
	for (int i = 0; i < n; i++)
		assert_string_equal(racers[i].answer.code, "CONFLICT");
	expect_until(n, expires_at);
	racers_forget(n);
}

static void
a_lease_is_free_at_the_instant_it_expires_and_not_before(void **state)
{
	char request[SCENE_REQUEST_BYTES], resource[40], expires_at[40];
	struct doors *d = *state;
	struct house h;

	scenes_found(d, &h);
	racers_meet(&h, RACERS, NULL);
	for (int round = 0; round < EXPIRY_ROUNDS; round++) {
		snprintf(resource, sizeof resource, "expiry-%d", round);
		acquire_request(request, resource);
		racers_say(RACERS, "LeaseService/Acquire", request, NULL);
		hold(&h, request, expires_at);
		race_run(d, RACERS, TTL_MS - 1, 0);
		nobody_wins(RACERS, expires_at);
		race_run(d, RACERS, 1, 0);
		expect_until(RACERS, text_of(winner(RACERS, "CONFLICT"), "expires_at"));
		expect_grants(d, resource, 2);
		racers_forget(RACERS);
	}
	racers_leave(RACERS);
	scenes_leave(&h);
}

/* --- one handoff --- */

static void
one_of_12_resolves_a_handoff(void **state)
{
	static const char events[] =
	    "SELECT count(*) FROM events e JOIN handoffs o ON o.public_id = e.resource"
	    " WHERE o.id = (SELECT max(id) FROM handoffs) AND e.kind IN (4, 5)";
	const struct scene *scene = scenes_find(caller_method("HandoffService/Resolve"));
	char id[SCENE_ID_BYTES], accept[SCENE_REQUEST_BYTES], reject[SCENE_REQUEST_BYTES];
	struct doors *d = *state;
	struct house h;

	scenes_found(d, &h);
	racers_meet(&h, RESOLVERS, "agent_coder");
	for (int round = 0; round < EXPIRY_ROUNDS; round++) {
		scene->make(&h, false, id);
		snprintf(
		    accept, sizeof accept, "{\"handoff_id\":\"%s\",\"status\":\"accepted\"}", id);
		snprintf(
		    reject, sizeof reject, "{\"handoff_id\":\"%s\",\"status\":\"rejected\"}", id);
		racers_say(RESOLVERS, scene->method, accept, NULL);
		for (int i = 0; i < RESOLVERS; i++)
			if (i % 4 < 2)
				racers[i].request = reject;
		race_run(d, RESOLVERS, 0, 0);
		assert_string_equal(text_of(winner(RESOLVERS, "NOT_FOUND"), "handoff_id"), id);
		assert_int_equal(doors_count(d, events, NULL), 1);
		racers_forget(RESOLVERS);
	}
	racers_leave(RESOLVERS);
	scenes_leave(&h);
}

/* --- one idempotency key --- */

static void
equal_keyed_acquires_are_one(void **state)
{
	char request[SCENE_REQUEST_BYTES], resource[40];
	struct doors *d = *state;
	struct house h;

	scenes_found(d, &h);
	racers_meet(&h, RETRIERS, "agent_coder");
	for (int round = 0; round < EXPIRY_ROUNDS; round++) {
		int firsts = 0;

		snprintf(resource, sizeof resource, "retry-%d", round);
		acquire_request(request, resource);
		racers_say(RETRIERS, "LeaseService/Acquire", request, resource);
		race_run(d, RETRIERS, 0, 0);
		for (int i = 0; i < RETRIERS; i++) {
			assert_string_equal(racers[i].answer.code, "OK");
			assert_true(json_equal(racers[i].answer.data, racers[0].answer.data));
			firsts += !racers[i].answer.replayed;
		}
		assert_int_equal(firsts, 1);
		expect_grants(d, resource, 1);
		racers_forget(RETRIERS);
	}
	racers_leave(RETRIERS);
	scenes_leave(&h);
}

/* --- in real time --- */

static int64_t
now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void
a_lease_is_free_after_its_real_10_seconds(void **state)
{
	char request[SCENE_REQUEST_BYTES], expires_at[40];
	struct doors *d = *state;
	struct house h;
	int64_t expires_ms;

	scenes_found(d, &h);
	racers_meet(&h, RACERS, NULL);
	acquire_request(request, "real");
	racers_say(RACERS, "LeaseService/Acquire", request, NULL);
	hold(&h, request, expires_at);
	expires_ms = doors_count(d, "SELECT expires_ms FROM leases WHERE resource_id = ?1", "real");
	assert_in_range(expires_ms, now_ms() + 1, now_ms() + TTL_MS);
	race_run(d, RACERS, 0, 0);
	nobody_wins(RACERS, expires_at);
	race_run(d, RACERS, 0, expires_ms);
	expect_until(RACERS, text_of(winner(RACERS, "CONFLICT"), "expires_at"));
	expect_grants(d, "real", 2);
	racers_forget(RACERS);
	racers_leave(RACERS);
	scenes_leave(&h);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_64_gets_the_lease),
		cmocka_unit_test(a_lease_is_free_at_the_instant_it_expires_and_not_before),
		cmocka_unit_test(one_of_12_resolves_a_handoff),
		cmocka_unit_test(equal_keyed_acquires_are_one),
	};
	const struct CMUnitTest slow_tests[] = {
		cmocka_unit_test(a_lease_is_free_after_its_real_10_seconds),
	};

	if (argc == 2 && strcmp(argv[1], "real-time") == 0)
		return cmocka_run_group_tests(slow_tests, doors_open_in_real_time, doors_close);
	return cmocka_run_group_tests(tests, doors_open, doors_close);
}

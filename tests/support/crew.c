/* SPDX-License-Identifier: MIT */
/*
 * A crew at work: a few members with one key, half of them at each door. A member works in spells,
 * each on a connection of its own: rounds of a story that uses every kind of record, and at the end
 * of a spell over nng the connection is dropped with calls under way.
 */
#include "tests/support/churn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <curl/curl.h>

#include "core/clock.h"
#include "tests/support/act.h"

#define MEMBERS 4
#define ROUNDS 25    /* of a spell */
#define UNDER_WAY 10 /* calls when a connection is dropped */

struct crew {
	const char *rpc;
	const char *http;
	struct agent agent;
	const char *number; /* unlike that of any other: its resources begin with it */
	int64_t until_ms;
	atomic_int faults;
};

struct member {
	struct crew *crew;
	int number;
	int round;
	pthread_t thread;
	struct titen_client *client; /* one of these two, in a spell */
	struct rest *rest;
	char cursor[NAME_BYTES];
};

/* --- a round */

/* Do it; whether it was done. A crew has its records for itself, so nothing may be refused. */
static bool
member_do(struct member *m, struct act *act)
{
	act->agent = &m->crew->agent;
	act->strand = m->number;
	act->step = m->round;
	if (act->name[0] == '\0')
		snprintf(act->name, sizeof act->name, "%s-%d-%d", m->crew->number, m->number,
		    m->round % 50);
	if (act->kind < ACT_CHANGES && m->round % 2 == 0)
		snprintf(act->key, sizeof act->key, "%d-%d-%d", m->number, m->round, act->kind);
	if (m->client != NULL)
		act_by_rpc(act, m->client);
	else
		act_by_rest(act, m->rest);
	if (act_done(act) && !act->answer.disordered)
		return true;
	fprintf(stderr, "%s over %s: %s %s\n", act_method(act), m->client != NULL ? "nng" : "REST",
	    act->answered ? act->reason : "not answered", act->message);
	atomic_fetch_add(&m->crew->faults, 1);
	return false;
}

/* The inbox is looked at, but only its own offer is a member's to accept: others may be quicker. */
static bool
member_round(struct member *m)
{
	struct act acquire = { .kind = ACT_ACQUIRE }, release = { .kind = ACT_RELEASE };
	struct act save = { .kind = ACT_SAVE }, find = { .kind = ACT_FIND };
	struct act offer = { .kind = ACT_HAND_OFF, .peer = &m->crew->agent };
	struct act accept = { .kind = ACT_RESOLVE, .accept = true };
	struct act inbox = { .kind = ACT_INBOX }, events = { .kind = ACT_EVENTS };

	m->round++;
	if (!member_do(m, &acquire) || !member_do(m, &save) || !member_do(m, &find))
		return false;
	snprintf(offer.target, sizeof offer.target, "%s", save.answer.id);
	if (!member_do(m, &offer) || !member_do(m, &inbox))
		return false;
	snprintf(accept.target, sizeof accept.target, "%s", offer.answer.id);
	snprintf(events.target, sizeof events.target, "%s", m->cursor);
	if (!member_do(m, &accept) || !member_do(m, &events))
		return false;
	snprintf(m->cursor, sizeof m->cursor, "%s", events.answer.id);
	snprintf(release.target, sizeof release.target, "%s", acquire.answer.id);
	return member_do(m, &release);
}

/* --- a spell */

static void
forget(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	(void)arg;
	(void)outcome;
	titen_reply_free(reply);
}

/* Leave in the middle of a sentence. */
static void
member_drop(struct member *m)
{
	struct act act = { .kind = ACT_EVENTS, .agent = &m->crew->agent };
	const struct titen_call call = { .method = act_method(&act), .timeout_ms = ACT_TIMEOUT_MS };
	uint8_t request[ACT_REQUEST_BYTES];
	size_t bytes = act_pack(&act, request);

	for (int i = 0; i < UNDER_WAY; i++)
		titen_call_start(m->client, &call, request, bytes, forget, NULL);
	titen_close(&m->client);
}

static bool
member_arrive(struct member *m)
{
	const struct titen_options options = { .url = m->crew->rpc, .key = m->crew->agent.key };
	char error[200];

	if (m->number % 2 == 0) {
		m->rest = rest_open(m->crew->http);
		return true;
	}
	m->client = titen_connect(&options, error, sizeof error);
	if (m->client == NULL) {
		fprintf(stderr, "no connection: %s\n", error);
		atomic_fetch_add(&m->crew->faults, 1);
	}
	return m->client != NULL;
}

static bool
member_spell(struct member *m)
{
	bool good = member_arrive(m);

	for (int i = 0; i < ROUNDS && good && clock_monotonic_ms() < m->crew->until_ms; i++)
		good = member_round(m);
	if (m->client != NULL)
		member_drop(m);
	if (m->rest != NULL)
		rest_close(&m->rest);
	return good;
}

static void *
member_main(void *arg)
{
	struct member *m = arg;

	while (clock_monotonic_ms() < m->crew->until_ms)
		if (!member_spell(m))
			break;
	return NULL;
}

/* ARGV: the program, CHURN_CREW, nng url, REST url, key, principal, number, milliseconds. */
int
churn_crew(int argc, char **argv)
{
	static struct crew crew;
	static struct member members[MEMBERS];

	if (argc != 8 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	crew.rpc = argv[2];
	crew.http = argv[3];
	snprintf(crew.agent.key, sizeof crew.agent.key, "%s", argv[4]);
	snprintf(crew.agent.principal, sizeof crew.agent.principal, "%s", argv[5]);
	crew.number = argv[6];
	crew.until_ms = clock_monotonic_ms() + strtol(argv[7], NULL, 10);
	for (int i = 0; i < MEMBERS; i++) {
		members[i] = (struct member){ .crew = &crew, .number = i };
		if (pthread_create(&members[i].thread, NULL, member_main, &members[i]) != 0)
			abort();
	}
	for (int i = 0; i < MEMBERS; i++)
		pthread_join(members[i].thread, NULL);
	return atomic_load(&crew.faults) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

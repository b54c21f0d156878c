/* SPDX-License-Identifier: MIT */
/*
 * A strand does one act after the other; read strand_plan() for what it does next, and the two
 * strand_... functions of each door for how. Strands over nng live in the callbacks of the client,
 * those over REST in threads.
 */
#include "tests/support/load.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <curl/curl.h>

#include "envelope.pb-c.h"

#define RESOURCES_SHARED 4 /* that all want: most of their acquires conflict */
#define RESOURCES_OWN 3    /* of a strand, likewise its subjects */

struct strand {
	struct load *load;
	int number;
	const struct agent *agent;
	struct titen_client *client; /* its agent's, or NULL: over REST */
	pthread_t thread;            /* over REST */
	unsigned random;
	int step;
	struct act act;
	char lease[NAME_BYTES]; /* to be released; empty: none */
	char offer[NAME_BYTES]; /* a handoff to be resolved */
	char cursor[NAME_BYTES];
	char checkpoint[NAME_BYTES];
	char subject[NAME_BYTES]; /* of that checkpoint */
};

struct load {
	struct load_options options;
	struct agent owner;
	struct agent *agents;
	int agents_n;
	struct titen_client **clients;
	struct strand *strands;
	int strands_n;

	pthread_rwlock_t gate; /* of halting: acts start under the read lock */
	bool halting;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t idle;
	int working; /* strands */
	struct act *acts;
	size_t acts_room;
	struct load_result result;
};

/* --- what was answered */

static void
result_fault(struct load_result *result, const struct act *act)
{
	if (result->faults++ == 0)
		snprintf(result->first_fault, sizeof result->first_fault, "%s: %s %s",
		    act_method(act), act->reason, act->message);
}

static void
result_keep(struct load *load, const struct act *act)
{
	struct load_result *result = &load->result;

	if (load->options.only_acquire)
		return;
	if (result->acts_n == load->acts_room) {
		load->acts_room = load->acts_room == 0 ? 4096 : 2 * load->acts_room;
		load->acts = realloc(load->acts, load->acts_room * sizeof *load->acts);
		if (load->acts == NULL)
			abort();
	}
	load->acts[result->acts_n++] = *act;
}

static bool
refusal_expected(const struct act *act)
{
	return strcmp(act->reason, "CONFLICT") == 0 || strcmp(act->reason, "NOT_FOUND") == 0;
}

static void
result_add(struct load *load, const struct act *act)
{
	struct load_result *result = &load->result;

	pthread_mutex_lock(&load->lock);
	result->answers += act->answered;
	result->kinds[act->kind] += act_done(act);
	if (act->answered && !act_done(act) && refusal_expected(act))
		result->refusals++;
	else if ((act->answered && !act_done(act)) || act->answer.disordered)
		result_fault(result, act);
	if (act->kind < ACT_CHANGES && (act_done(act) || !act->answered))
		result_keep(load, act);
	pthread_mutex_unlock(&load->lock);
}

/* --- what to do next */

static unsigned
strand_dice(struct strand *s, unsigned sides)
{
	return (unsigned)rand_r(&s->random) / 7 % sides;
}

static void
plan_acquire(struct strand *s, struct act *act)
{
	act->kind = ACT_ACQUIRE;
	if (s->load->options.only_acquire)
		snprintf(act->name, sizeof act->name, "fresh-%d-%d", s->number, s->step);
	else if (strand_dice(s, 4) == 0)
		snprintf(
		    act->name, sizeof act->name, "shared-%u", strand_dice(s, RESOURCES_SHARED));
	else
		snprintf(act->name, sizeof act->name, "own-%d-%u", s->number,
		    strand_dice(s, RESOURCES_OWN));
}

static void
plan_release(struct strand *s, struct act *act)
{
	act->kind = ACT_RELEASE;
	strcpy(act->target, s->lease);
	s->lease[0] = '\0';
}

static void
plan_hand_off(struct strand *s, struct act *act)
{
	act->kind = ACT_HAND_OFF;
	act->peer = &s->load->agents[strand_dice(s, (unsigned)s->load->agents_n)];
	if (s->checkpoint[0] != '\0') {
		strcpy(act->target, s->checkpoint);
		strcpy(act->name, s->subject);
	} else {
		snprintf(act->name, sizeof act->name, "task-%d-%d", s->number, s->step);
	}
}

static void
plan_resolve(struct strand *s, struct act *act)
{
	act->kind = ACT_RESOLVE;
	strcpy(act->target, s->offer);
	act->accept = strand_dice(s, 3) > 0;
	s->offer[0] = '\0';
}

static void
plan_checkpoint(struct strand *s, struct act *act, enum act_kind kind)
{
	act->kind = kind;
	act->step = s->step;
	snprintf(
	    act->name, sizeof act->name, "work-%d-%u", s->number, strand_dice(s, RESOURCES_OWN));
}

static void
plan_any(struct strand *s, struct act *act)
{
	unsigned dice = strand_dice(s, 100);

	if (dice < 30) {
		plan_acquire(s, act);
	} else if (dice < 45) {
		plan_checkpoint(s, act, ACT_SAVE);
	} else if (dice < 60) {
		plan_hand_off(s, act);
	} else if (dice < 75) {
		plan_checkpoint(s, act, ACT_FIND);
	} else if (dice < 90) {
		act->kind = ACT_INBOX;
	} else if (dice < 98) {
		act->kind = ACT_EVENTS;
		strcpy(act->target, s->cursor);
	} else {
		act->kind = ACT_MAKE_KEY;
		snprintf(act->name, sizeof act->name, "key-%d-%d", s->number, s->step);
	}
}

static void
strand_plan(struct strand *s)
{
	struct act *act = &s->act;

	*act = (struct act){ .agent = s->agent, .strand = s->number };
	s->step++;
	if (s->load->options.only_acquire)
		plan_acquire(s, act);
	else if (s->lease[0] != '\0' && strand_dice(s, 3) == 0)
		plan_release(s, act);
	else if (s->offer[0] != '\0')
		plan_resolve(s, act);
	else
		plan_any(s, act);
	if (act->kind < ACT_CHANGES && !s->load->options.only_acquire && strand_dice(s, 2) == 0)
		snprintf(act->key, sizeof act->key, "retry-%d-%d", s->number, s->step);
}

/* A server that is there and not about to stop. */
static bool
strand_served(const struct strand *s)
{
	return s->act.answered && strcmp(s->act.reason, "UNAVAILABLE") != 0;
}

/* What an answer lets the strand do later. */
static void
strand_learn(struct strand *s)
{
	const struct act *act = &s->act;

	result_add(s->load, act);
	if (!act_done(act))
		return;
	if (act->kind == ACT_ACQUIRE)
		strcpy(s->lease, act->answer.id);
	if (act->kind == ACT_INBOX)
		strcpy(s->offer, act->answer.id);
	if (act->kind == ACT_EVENTS)
		strcpy(s->cursor, act->answer.id);
	if (act->kind == ACT_SAVE) {
		strcpy(s->checkpoint, act->answer.id);
		strcpy(s->subject, act->name);
	}
}

static void
strand_end(struct load *load)
{
	pthread_mutex_lock(&load->lock);
	if (--load->working == 0)
		pthread_cond_broadcast(&load->idle);
	pthread_mutex_unlock(&load->lock);
}

/* --- over nng */

static void strand_called(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply);

static void
strand_call(struct strand *s)
{
	struct load *load = s->load;
	uint8_t request[ACT_REQUEST_BYTES];
	struct titen_call call = { .timeout_ms = ACT_TIMEOUT_MS };
	bool halting;

	strand_plan(s);
	call.method = act_method(&s->act);
	call.idempotency_key = s->act.key[0] == '\0' ? NULL : s->act.key;
	pthread_rwlock_rdlock(&load->gate);
	halting = load->halting;
	if (!halting)
		titen_call_start(
		    s->client, &call, request, act_pack(&s->act, request), strand_called, s);
	pthread_rwlock_unlock(&load->gate);
	if (halting)
		strand_end(load);
}

static void
strand_called(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	struct strand *s = arg;

	act_take_reply(&s->act, outcome, reply);
	strand_learn(s);
	if (strand_served(s))
		strand_call(s);
	else
		strand_end(s->load);
}

/* --- over REST */

static bool
load_halting(struct load *load)
{
	bool halting;

	pthread_rwlock_rdlock(&load->gate);
	halting = load->halting;
	pthread_rwlock_unlock(&load->gate);
	return halting;
}

static void *
strand_main(void *arg)
{
	struct strand *s = arg;
	struct rest *rest = rest_open(s->load->options.http);

	do {
		strand_plan(s);
		act_by_rest(&s->act, rest);
		strand_learn(s);
	} while (strand_served(s) && !load_halting(s->load));
	rest_close(&rest);
	strand_end(s->load);
	return NULL;
}

/* --- the fleet */

static bool
agent_hire(struct load *load, int i, struct titen_client *client, struct rest *rest)
{
	struct act act = { .kind = ACT_MAKE_KEY, .agent = &load->owner };
	struct agent *agent = &load->agents[i];

	snprintf(act.name, sizeof act.name, "agent-%d", i);
	if (client != NULL)
		act_by_rpc(&act, client);
	else
		act_by_rest(&act, rest);
	strcpy(agent->principal, act.answer.principal);
	strcpy(agent->key_id, act.answer.id);
	strcpy(agent->key, act.answer.text);
	return act_done(&act);
}

static bool
agents_hire(struct load *load, char *error, size_t error_bytes)
{
	const struct titen_options owner = { .url = load->options.rpc, .key = load->options.key };
	struct titen_client *client = NULL;
	struct rest *rest = NULL;
	bool hired = true;

	if (owner.url != NULL && (client = titen_connect(&owner, error, error_bytes)) == NULL)
		return false;
	if (load->options.http != NULL)
		rest = rest_open(load->options.http);
	snprintf(error, error_bytes, "an agent's key could not be made");
	for (int i = 0; i < load->agents_n && hired; i++)
		hired = agent_hire(load, i, client, rest);
	if (client != NULL)
		titen_close(&client);
	if (rest != NULL)
		rest_close(&rest);
	return hired;
}

static bool
clients_connect(struct load *load, char *error, size_t error_bytes)
{
	for (int i = 0; i < load->options.rpc_agents; i++) {
		const struct titen_options wanted = { .url = load->options.rpc,
			.key = load->agents[i].key };

		load->clients[i] = titen_connect(&wanted, error, error_bytes);
		if (load->clients[i] == NULL)
			return false;
	}
	return true;
}

static void
strands_start(struct load *load)
{
	int over_rpc = load->options.rpc_agents * load->options.rpc_strands;

	load->working = load->strands_n;
	for (int i = 0; i < load->strands_n; i++) {
		struct strand *s = &load->strands[i];
		int agent = i < over_rpc ? i % load->options.rpc_agents
					 : load->options.rpc_agents + i - over_rpc;

		s->load = load;
		s->number = i;
		s->random = load->options.seed * 7919 + (unsigned)i;
		s->agent = &load->agents[agent];
		if (i < over_rpc)
			s->client = load->clients[agent];
	}
	for (int i = 0; i < load->strands_n; i++) {
		struct strand *s = &load->strands[i];

		if (s->client != NULL)
			strand_call(s);
		else if (pthread_create(&s->thread, NULL, strand_main, s) != 0)
			abort();
	}
}

static void *
must(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

struct load *
load_start(const struct load_options *options, char *error, size_t error_bytes)
{
	struct load *load = must(calloc(1, sizeof *load));

	load->options = *options;
	snprintf(load->owner.key, sizeof load->owner.key, "%s", options->key);
	load->agents_n = options->rpc_agents + options->rest_agents;
	load->agents = must(calloc((size_t)load->agents_n, sizeof *load->agents));
	load->clients = must(calloc((size_t)load->agents_n, sizeof(struct titen_client *)));
	load->strands_n = options->rpc_agents * options->rpc_strands + options->rest_agents;
	load->strands = must(calloc((size_t)load->strands_n, sizeof *load->strands));
	pthread_rwlock_init(&load->gate, NULL);
	pthread_mutex_init(&load->lock, NULL);
	pthread_cond_init(&load->idle, NULL);
	if (agents_hire(load, error, error_bytes) && clients_connect(load, error, error_bytes)) {
		strands_start(load);
		return load;
	}
	load->strands_n = 0;
	load_free(&load);
	return NULL;
}

static void
clients_close(struct load *load)
{
	for (int i = 0; i < load->options.rpc_agents; i++)
		if (load->clients[i] != NULL)
			titen_close(&load->clients[i]);
}

void
load_halt(struct load *load, bool gone)
{
	pthread_rwlock_wrlock(&load->gate);
	load->halting = true;
	pthread_rwlock_unlock(&load->gate);
	if (gone)
		clients_close(load);
	pthread_mutex_lock(&load->lock);
	while (load->working > 0)
		pthread_cond_wait(&load->idle, &load->lock);
	pthread_mutex_unlock(&load->lock);
	clients_close(load);
	for (int i = 0; i < load->strands_n; i++)
		if (load->strands[i].client == NULL)
			pthread_join(load->strands[i].thread, NULL);
	load->result.acts = load->acts;
	load->result.agents = load->agents;
	load->result.agents_n = (size_t)load->agents_n;
}

const struct load_result *
load_result(const struct load *load)
{
	return &load->result;
}

void
load_free(struct load **load)
{
	struct load *l = *load;

	*load = NULL;
	clients_close(l);
	pthread_cond_destroy(&l->idle);
	pthread_mutex_destroy(&l->lock);
	pthread_rwlock_destroy(&l->gate);
	free(l->acts);
	free(l->strands);
	free(l->clients);
	free(l->agents);
	free(l);
}

/* SPDX-License-Identifier: MIT */
/* Those who send the crews and end them: one thread. The crews themselves are in crew.c. */
#include "tests/support/churn.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "envelope.pb-c.h"
#include "key.pb-c.h"
#include "core/call.h"
#include "core/clock.h"
#include "tests/support/act.h"

#define CREWS 4         /* at a time */
#define TURN_MS 20      /* between two looks at them */
#define LIFE_MS_MIN 300 /* long enough to connect and to work */
#define LIFE_MS_SPAN 4000

struct crew {
	pid_t pid; /* 0: there is none */
	bool doomed;
	int64_t dies_ms; /* CLOCK_MONOTONIC */
	struct agent agent;
};

struct churn {
	struct churn_options options;
	struct titen_client *client;
	struct agent owner;
	pthread_t thread;
	atomic_bool stopping;
	unsigned random;
	int sent;
	struct crew crews[CREWS];
	struct churn_result result;
};

__attribute__((format(printf, 2, 3))) static void
fault(struct churn *churn, const char *format, ...)
{
	va_list args;

	if (churn->result.fault[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(churn->result.fault, sizeof churn->result.fault, format, args);
	va_end(args);
}

static unsigned
dice(struct churn *churn, unsigned sides)
{
	return (unsigned)rand_r(&churn->random) / 7 % sides;
}

/* --- keys */

static bool
crew_hire(struct churn *churn, struct crew *crew)
{
	struct act act = { .kind = ACT_MAKE_KEY, .agent = &churn->owner };

	snprintf(act.name, sizeof act.name, "crew-%d", churn->sent);
	act_by_rpc(&act, churn->client);
	if (!act_done(&act)) {
		fault(churn, "no key for a crew: %s %s", act.reason, act.message);
		return false;
	}
	snprintf(crew->agent.principal, sizeof crew->agent.principal, "%s", act.answer.principal);
	snprintf(crew->agent.key_id, sizeof crew->agent.key_id, "%s", act.answer.id);
	snprintf(crew->agent.key, sizeof crew->agent.key, "%s", act.answer.text);
	return true;
}

static void
crew_dismiss(struct churn *churn, struct crew *crew)
{
	PB(KeyRevokeRequest) request = TITEN__V1__KEY_REVOKE_REQUEST__INIT;
	const struct titen_call call = { .method = "titen.v1.KeyService/Revoke",
		.request = &request.base,
		.timeout_ms = ACT_TIMEOUT_MS };
	enum titen_outcome outcome;
	Titen__V1__Reply *reply;

	request.key_id = crew->agent.key_id;
	outcome = titen_call(churn->client, &call, &reply);
	if (outcome != TITEN_ANSWERED)
		fault(churn, "a key could not be revoked: %s", titen_outcome_text(outcome));
	else if (reply->code != 0)
		fault(churn, "a key could not be revoked: %s", reply->message);
	titen_reply_free(reply);
}

/* --- processes */

static void
crew_send(struct churn *churn, struct crew *crew)
{
	int life_ms = LIFE_MS_MIN + (int)dice(churn, LIFE_MS_SPAN);
	char life[16], number[16];
	char *const argv[] = { "soak", CHURN_CREW, (char *)churn->options.rpc,
		(char *)churn->options.http, crew->agent.key, crew->agent.principal, number, life,
		NULL };

	if (!crew_hire(churn, crew))
		return;
	crew->doomed = churn->sent++ % 2 == 1;
	crew->dies_ms = clock_monotonic_ms() + life_ms;
	/* A doomed crew would work on for long after its end. */
	snprintf(life, sizeof life, "%d", crew->doomed ? 2 * life_ms + LIFE_MS_SPAN : life_ms);
	snprintf(number, sizeof number, "%d", churn->sent);
	if (posix_spawn(&crew->pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0) {
		crew->pid = 0;
		fault(churn, "a crew cannot be started");
	}
}

static void
crew_ended(struct churn *churn, struct crew *crew, int status)
{
	crew->pid = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && crew->doomed)
		churn->result.killed++;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		churn->result.left++;
	else
		fault(churn, "a crew ended with status %x; it said why", (unsigned)status);
	crew_dismiss(churn, crew);
}

static void
crew_look(struct churn *churn, struct crew *crew)
{
	int status;

	if (crew->pid == 0) {
		if (!atomic_load(&churn->stopping))
			crew_send(churn, crew);
		return;
	}
	if (crew->doomed && clock_monotonic_ms() >= crew->dies_ms)
		kill(crew->pid, SIGKILL);
	if (waitpid(crew->pid, &status, WNOHANG) == crew->pid)
		crew_ended(churn, crew, status);
}

static bool
crews_there(const struct churn *churn)
{
	for (int i = 0; i < CREWS; i++)
		if (churn->crews[i].pid != 0)
			return true;
	return false;
}

static void *
churn_main(void *arg)
{
	struct churn *churn = arg;

	while (!atomic_load(&churn->stopping) || crews_there(churn)) {
		for (int i = 0; i < CREWS; i++)
			crew_look(churn, &churn->crews[i]);
		poll(NULL, 0, TURN_MS);
	}
	return NULL;
}

struct churn *
churn_start(const struct churn_options *options, char *error, size_t error_bytes)
{
	const struct titen_options owner = { .url = options->rpc, .key = options->key };
	struct churn *churn = calloc(1, sizeof *churn);

	if (churn == NULL)
		abort();
	churn->options = *options;
	churn->random = options->seed;
	churn->client = titen_connect(&owner, error, error_bytes);
	if (churn->client == NULL) {
		free(churn);
		return NULL;
	}
	if (pthread_create(&churn->thread, NULL, churn_main, churn) != 0)
		abort();
	return churn;
}

struct churn_result
churn_stop(struct churn **churn)
{
	struct churn *c = *churn;
	struct churn_result result;

	*churn = NULL;
	atomic_store(&c->stopping, true);
	pthread_join(c->thread, NULL);
	result = c->result;
	titen_close(&c->client);
	free(c);
	return result;
}

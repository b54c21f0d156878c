/* SPDX-License-Identifier: MIT */
/*
 * A server that is killed in the middle of its work. Each round has a fresh database, a fleet that
 * works through both doors, and a kill at a random moment; then everything that was acknowledged
 * must be there, and nothing may be half there. The argument is the number of rounds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "tests/support/load.h"
#include "tests/support/program.h"
#include "tests/support/proof.h"

#define ROUNDS_SHORT 20
#define ROUNDS_MAX 1000
#define KILL_MS_MAX 300 /* the fleet works so long at most */
#define RETRIES_MAX 10  /* of each agent and door */
#define LEASES_LOOKED_AT 20

static struct load *
work(const struct program *p, unsigned seed)
{
	const struct load_options fleet = {
		.rpc = p->rpc,
		.http = p->http,
		.key = p->owner_key,
		.rpc_agents = 3,
		.rpc_strands = 16,
		.rest_agents = 8,
		.seed = seed,
	};
	char error[256] = "";
	struct load *load = load_start(&fleet, error, sizeof error);

	if (load == NULL)
		fail_msg("%s", error);
	return load;
}

static void
file_copy(const char *from, const char *to, const char *suffix)
{
	char name[200], bytes[4096];
	FILE *in, *out;
	size_t n;

	snprintf(name, sizeof name, "%s%s", from, suffix);
	in = fopen(name, "r");
	assert_non_null(in);
	snprintf(name, sizeof name, "%s%s", to, suffix);
	out = fopen(name, "w");
	assert_non_null(out);
	while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* What any program would find that opens the files as they were left. */
static void
check_left_behind(const struct program *p, const struct load_result *result)
{
	char copy[200];

	snprintf(copy, sizeof copy, "%s/copy.db", p->directory);
	file_copy(p->db, copy, "");
	file_copy(p->db, copy, "-wal");
	proof_of_store(copy);
	proof_of_acts(copy, result);
}

static void
check_recovered(const struct program *p, const struct load_result *result)
{
	proof_of_store(p->db);
	proof_of_acts(p->db, result);
}

/* --- retries */

static void
check_first_answer(const struct act *again, const struct act *first)
{
	if (!again->answered)
		fail_msg("no answer to the retry %s", first->key);
	if (!first->answered) {
		assert_true(act_done(again) || strcmp(again->reason, "CONFLICT") == 0 ||
			    strcmp(again->reason, "NOT_FOUND") == 0);
		return;
	}
	if (!act_done(again))
		fail_msg("retry %s: %s %s", first->key, again->reason, again->message);
	assert_true(again->replayed);
	assert_string_equal(again->answer.id, first->answer.id);
	assert_int_equal(again->answer.time_ms, first->answer.time_ms);
	assert_int_equal(again->answer.number, first->answer.number);
}

/* Through the one door and the other, whichever the first answer came by. */
static void
check_retry(const struct act *first, struct titen_client *client, struct rest *rest)
{
	struct act by_rpc = *first, by_rest = *first;

	act_by_rpc(&by_rpc, client);
	check_first_answer(&by_rpc, first);
	act_by_rest(&by_rest, rest);
	check_first_answer(&by_rest, first);
}

/* The newest acts of the agent: among them are those that were not answered. */
static void
check_retries_of(const struct program *p, const struct load_result *result,
    const struct agent *agent, struct rest *rest)
{
	const struct titen_options options = { .url = p->rpc, .key = agent->key };
	char error[256];
	struct titen_client *client = titen_connect(&options, error, sizeof error);
	int retries = 0;

	assert_non_null(client);
	for (size_t i = result->acts_n; i-- > 0 && retries < RETRIES_MAX;) {
		const struct act *act = &result->acts[i];

		if (act->agent != agent || act->key[0] == '\0')
			continue;
		check_retry(act, client, rest);
		retries++;
	}
	titen_close(&client);
}

static void
check_retries(const struct program *p, const struct load_result *result)
{
	struct rest *rest = rest_open(p->http);

	for (size_t i = 0; i < result->agents_n; i++)
		check_retries_of(p, result, &result->agents[i], rest);
	rest_close(&rest);
}

/* --- leases */

static bool
stands(const struct program *p, const struct act *acquired)
{
	char sql[128];

	snprintf(sql, sizeof sql,
	    "SELECT count(*) FROM leases WHERE fence = %lld AND released_ms IS NULL",
	    (long long)acquired->answer.number);
	return proof_number(p->db, sql) == 1;
}

static void
check_conflict(struct rest *rest, const struct agent *owner, const struct act *acquired)
{
	struct act act = { .kind = ACT_ACQUIRE, .agent = owner };
	char until[TIMESTAMP_BYTES];

	strcpy(act.name, acquired->name);
	act_by_rest(&act, rest);
	assert_string_equal(act.reason, "CONFLICT");
	timestamp_write(until, acquired->answer.time_ms);
	assert_non_null(strstr(act.message, until));
}

/* Leases of before the kill keep others out until the time they said; a new one has a higher fence
 * than all of them. */
static void
check_leases(const struct program *p, const struct load_result *result)
{
	struct agent owner = { .principal = "owner" };
	struct act act = { .kind = ACT_ACQUIRE, .agent = &owner, .name = "afterwards" };
	struct rest *rest = rest_open(p->http);
	int looked_at = 0;

	strcpy(owner.key, p->owner_key);
	for (size_t i = result->acts_n; i-- > 0 && looked_at < LEASES_LOOKED_AT;) {
		const struct act *old = &result->acts[i];

		if (old->kind != ACT_ACQUIRE || !act_done(old) || !stands(p, old))
			continue;
		check_conflict(rest, &owner, old);
		looked_at++;
	}
	act_by_rest(&act, rest);
	assert_true(act_done(&act));
	for (size_t i = 0; i < result->acts_n; i++)
		if (result->acts[i].kind == ACT_ACQUIRE)
			assert_true(result->acts[i].answer.number < act.answer.number);
	rest_close(&rest);
}

/* --- the round */

static void
what_was_acknowledged_survives_a_kill(void **state)
{
	struct program *p = *state;
	const struct load_result *result;
	struct load *load;

	program_bootstrap(p);
	program_serve(p);
	load = work(p, randombytes_random());
	poll(NULL, 0, 1 + (int)randombytes_uniform(KILL_MS_MAX));
	program_signal(p, SIGKILL);
	assert_int_equal(program_await(p, NULL), -SIGKILL);
	load_halt(load, true);
	result = load_result(load);
	assert_string_equal(result->first_fault, "");
	check_left_behind(p, result);

	program_serve(p);
	check_recovered(p, result);
	check_retries(p, result);
	check_recovered(p, result);
	check_leases(p, result);
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, NULL), 0);
	proof_of_store(p->db);
	load_free(&load);
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest round = { "what_was_acknowledged_survives_a_kill",
		what_was_acknowledged_survives_a_kill, program_open, program_close, NULL };
	static struct CMUnitTest rounds[ROUNDS_MAX];
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_SHORT;

	if (n == 0 || n > ROUNDS_MAX || sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < n; i++)
		rounds[i] = round;
	return _cmocka_run_group_tests("crash", rounds, n, NULL, NULL);
}

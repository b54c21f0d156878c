/* SPDX-License-Identifier: MIT */
/*
 * An answer is lost on its way, and the request comes again with the same idempotency key: from a
 * client of nng that re-sends by itself, from one of HTTP, and after the server was killed when it
 * had committed and not answered. It was done once, and everybody gets the first answer, at both
 * doors.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envelope.pb-c.h"
#include "core/clock.h"
#include "tests/support/act.h"
#include "tests/support/program.h"
#include "tests/support/proof.h"
#include "tests/support/swallow.h"

#define HELLO_BYTES 8   /* with which an SP peer greets */
#define RECONNECT_MS 50 /* nng's own second would only make the test long */
#define KILLS_WANTED 5  /* between commit and answer */
#define KILLS_TRIED 40
#define LOAD 256       /* requests under way when the server is killed */
#define RETRIES_MAX 10 /* of one kill: each goes through both doors */

/* --- one act, and what there must be of it --- */

static struct act
act_make(const struct agent *agent, const char *name)
{
	struct act act = { .kind = ACT_ACQUIRE, .agent = agent };

	snprintf(act.name, sizeof(act.name), "%s", name);
	snprintf(act.key, sizeof(act.key), "key-%s", name);
	return act;
}

static struct agent
owner_of(const struct program *p)
{
	struct agent owner = { .principal = "owner" };

	strcpy(owner.key, p->owner_key);
	return owner;
}

/* The number of rows FROM which are about the resource NAME. */
static int64_t
count(const struct program *p, const char *from, const char *name)
{
	char sql[256];

	snprintf(
	    sql, sizeof(sql), "SELECT count(*) FROM %s WHERE l.resource_id = '%s'", from, name);
	return proof_number(p->db, sql);
}

/* proof_of_store() adds that every lease has its one event and every event its lease. */
static void
expect_once(const struct program *p, const struct act *act)
{
	assert_int_equal(count(p, "leases l", act->name), 1);
	assert_int_equal(
	    count(p, "events e JOIN leases l ON l.public_id = e.resource", act->name), 1);
}

static void
expect_same(const struct act *act, const struct act *first)
{
	if (!act_done(act))
		fail_msg(
		    "%s: answered %d: %s %s", act->key, act->answered, act->reason, act->message);
	assert_true(act->replayed);
	assert_string_equal(act->answer.id, first->answer.id);
	assert_int_equal(act->answer.time_ms, first->answer.time_ms);
	assert_int_equal(act->answer.number, first->answer.number);
}

/* The same request at both doors of P is answered alike, and like FIRST if that was answered. */
static void
retry(const struct program *p, const struct act *first)
{
	struct act by_rpc = *first, by_rest = *first;
	char error[256];
	struct titen_client *client =
	    titen_connect(&(struct titen_options){ .url = p->rpc, .key = first->agent->key }, error,
		sizeof(error));
	struct rest *rest = rest_open(p->http);

	assert_non_null(client);
	act_by_rpc(&by_rpc, client);
	expect_same(&by_rpc, act_done(first) ? first : &by_rpc);
	act_by_rest(&by_rest, rest);
	expect_same(&by_rest, &by_rpc);
	titen_close(&client);
	rest_close(&rest);
	expect_once(p, first);
}

/* --- answers that a proxy swallows --- */

/* The request as a message of nng. */
static nng_msg *
message_of(const struct act *act)
{
	Titen__V1__Request request = TITEN__V1__REQUEST__INIT;
	uint8_t payload[ACT_REQUEST_BYTES];
	char authorization[2 * NAME_BYTES];
	nng_msg *msg;

	snprintf(authorization, sizeof(authorization), "Bearer %s", act->agent->key);
	request.method = (char *)act_method(act);
	request.authorization = authorization;
	request.idempotency_key = (char *)act->key;
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ act_pack(act, payload), payload };
	assert_int_equal(nng_msg_alloc(&msg, titen__v1__request__get_packed_size(&request)), 0);
	titen__v1__request__pack(&request, nng_msg_body(msg));
	return msg;
}

/* A bare socket of nng, which sends a request again when its connection breaks. */
static void
act_by_nng(struct act *act, int port)
{
	char url[64];
	nng_socket socket;
	nng_msg *msg = message_of(act);

	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port);
	assert_int_equal(nng_req0_open(&socket), 0);
	nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
	nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, ACT_TIMEOUT_MS);
	assert_int_equal(nng_dial(socket, url, NULL, 0), 0);
	assert_int_equal(nng_sendmsg(socket, msg, 0), 0);
	assert_int_equal(nng_recvmsg(socket, &msg, 0), 0);
	act_take_reply(act, TITEN_ANSWERED,
	    titen__v1__reply__unpack(NULL, nng_msg_len(msg), nng_msg_body(msg)));
	nng_msg_free(msg);
	nng_close(socket);
}

static void
a_request_that_nng_sends_again_is_done_once(void **state)
{
	struct program *p = *state;
	struct agent owner;
	struct swallow *proxy;
	struct act act;

	program_bootstrap(p);
	program_serve(p);
	owner = owner_of(p);
	act = act_make(&owner, "resent");
	proxy = swallow_start(p->rpc_port, HELLO_BYTES);
	act_by_nng(&act, swallow_port(proxy));
	assert_int_equal(swallow_stop(&proxy), 1);
	assert_true(act_done(&act));
	assert_true(act.replayed);
	retry(p, &act);
	proof_of_store(p->db);
}

static void
a_request_whose_answer_rest_loses_is_done_once(void **state)
{
	struct program *p = *state;
	struct agent owner;
	struct swallow *proxy;
	struct rest *rest;
	struct act act;
	char url[64];

	program_bootstrap(p);
	program_serve(p);
	owner = owner_of(p);
	act = act_make(&owner, "lost");
	proxy = swallow_start(atoi(strrchr(p->http, ':') + 1), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", swallow_port(proxy));
	rest = rest_open(url);
	act_by_rest(&act, rest);
	assert_false(act.answered);
	retry(p, &act);
	act_by_rest(&act, rest);
	assert_true(act.replayed);
	rest_close(&rest);
	assert_int_equal(swallow_stop(&proxy), 1);
	retry(p, &act);
	proof_of_store(p->db);
}

/* --- a server that is killed between commit and answer --- */

/* Requests under way on one connection. */
struct burst {
	struct act acts[LOAD];
	atomic_int open;
};

static struct burst *burst; /* nng's threads need an argument each, the act; this is the rest */

static void
burst_done(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	act_take_reply(arg, outcome, reply);
	burst->open--;
}

static void
burst_start(struct titen_client *client, const struct agent *agent, int round)
{
	char name[NAME_BYTES];
	uint8_t request[ACT_REQUEST_BYTES];

	burst->open = LOAD;
	for (int i = 0; i < LOAD; i++) {
		struct act *act = &burst->acts[i];

		snprintf(name, sizeof(name), "killed-%d-%d", round, i);
		*act = act_make(agent, name);
		titen_call_start(client,
		    &(struct titen_call){ .method = act_method(act),
			.idempotency_key = act->key,
			.timeout_ms = ACT_TIMEOUT_MS },
		    request, act_pack(act, request), burst_done, act);
	}
}

/* Until the store has more than N leases: a commit has just been. */
static void
await_commit(const struct program *p, int64_t n)
{
	int64_t end_ms = clock_monotonic_ms() + PROGRAM_PATIENCE_MS;
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int64_t found = 0;

	assert_int_equal(sqlite3_open_v2(p->db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(
	    sqlite3_prepare_v2(db, "SELECT max(fence) FROM leases", -1, &stmt, NULL), SQLITE_OK);
	while (found <= n && clock_monotonic_ms() < end_ms) {
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		found = sqlite3_column_int64(stmt, 0);
		sqlite3_reset(stmt);
	}
	program_signal(p, SIGKILL);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	assert_true(found > n);
}

/* Kill the server when it has committed about N of a burst. */
static void
kill_in_a_burst(struct program *p, const struct agent *agent, int round, int64_t n)
{
	char error[256];
	struct titen_client *client = titen_connect(
	    &(struct titen_options){ .url = p->rpc, .key = agent->key }, error, sizeof(error));
	int64_t before = proof_number(p->db, "SELECT coalesce(max(fence), 0) FROM leases");

	assert_non_null(client);
	burst_start(client, agent, round);
	await_commit(p, before + n);
	assert_int_equal(program_await(p, NULL), -SIGKILL);
	titen_close(&client);
	while (burst->open > 0)
		poll(NULL, 0, 1);
}

static bool
is_stored(const struct program *p, const struct act *act)
{
	return count(p, "leases l", act->name) == 1;
}

/* Ask again for what was committed and not answered. How much that was. */
static int
retry_lost(const struct program *p)
{
	int lost = 0;

	for (int i = 0; i < LOAD; i++) {
		const struct act *act = &burst->acts[i];

		if (act->answered || !is_stored(p, act))
			continue;
		if (lost++ < RETRIES_MAX)
			retry(p, act);
	}
	return lost;
}

static void
what_was_committed_and_not_answered_is_done_once(void **state)
{
	struct program *p = *state;
	struct agent owner;
	int kills = 0, tried = 0, lost;

	program_bootstrap(p);
	program_serve(p);
	owner = owner_of(p);
	burst = calloc(1, sizeof(*burst));
	for (; kills < KILLS_WANTED && tried < KILLS_TRIED; tried++) {
		kill_in_a_burst(p, &owner, tried, (int64_t)randombytes_uniform(LOAD / 2));
		program_serve(p);
		lost = retry_lost(p);
		print_message("%d answers lost\n", lost);
		kills += lost > 0;
	}
	free(burst);
	print_message("%d of %d kills came between commit and answer\n", kills, tried);
	assert_int_equal(kills, KILLS_WANTED);
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, NULL), 0);
	proof_of_store(p->db);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(a_request_that_nng_sends_again_is_done_once),
		SERVED(a_request_whose_answer_rest_loses_is_done_once),
		SERVED(what_was_committed_and_not_answered_is_done_once),
	};

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

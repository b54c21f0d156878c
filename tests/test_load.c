/* SPDX-License-Identifier: MIT */
/*
 * The whole server under load, inside this process, where sanitizers see it. The argument is for
 * how many seconds; "bench" measures instead.
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
#include <sys/stat.h>
#include <unistd.h>

#include "envelope.pb-c.h"
#include "key.pb-c.h"
#include "core/arena.h"
#include "core/json_read.h"
#include "core/rpc.h"
#include "gateway/gateway.h"
#include "tests/support/load.h"
#include "tests/support/proof.h"
#include "transport/server.h"

#define SECONDS_SHORT 3
#define ARENAS_IDLE_BYTES ((size_t)32 << 20) /* the first chunks that idle slots keep */

/* The server, as `titen serve` puts it together. */
struct stage {
	char directory[64];
	char db[96];
	char local[128];
	char rpc[64];
	char http[64];
	char owner_key[NAME_BYTES];
	struct core *core;
	struct server *server;
	struct gateway *gateway;
};

static int seconds = SECONDS_SHORT;

/* --- the stage */

static void
bootstrap(struct stage *s)
{
	PB(KeyBootstrapRequest) request = TITEN__V1__KEY_BOOTSTRAP_REQUEST__INIT;
	const struct titen_call call = { .method = "titen.v1.KeyService/Bootstrap",
		.request = &request.base };
	char error[256];
	struct titen_client *client =
	    titen_connect(&(struct titen_options){ .url = s->local }, error, sizeof error);
	PB(KeyBootstrapResponse) *response;
	Titen__V1__Reply *reply;

	assert_non_null(client);
	request.name = "acme";
	assert_int_equal(titen_call(client, &call, &reply), TITEN_ANSWERED);
	assert_int_equal(reply->code, 0);
	response = titen__v1__key_bootstrap_response__unpack(
	    NULL, reply->payload.len, reply->payload.data);
	snprintf(s->owner_key, sizeof s->owner_key, "%s", response->api_key);
	titen__v1__key_bootstrap_response__free_unpacked(response, NULL);
	titen_reply_free(reply);
	titen_close(&client);
}

static void
open_doors(struct stage *s)
{
	char error[256] = "";

	s->core =
	    core_open(&(struct core_options){ .path = s->db, .create = true, .revision = "test" },
		error, sizeof error);
	assert_string_equal(error, "");
	s->server = server_start(&(struct server_options){ .core = s->core,
				     .urls = (const char *const[]){ "tcp://127.0.0.1:0", NULL },
				     .local_url = s->local },
	    error, sizeof error);
	assert_string_equal(error, "");
	s->gateway =
	    gateway_start(&(struct gateway_options){ .core = s->core, .listen = "127.0.0.1:0" },
		error, sizeof error);
	assert_string_equal(error, "");
}

static int
open_stage(void **state)
{
	struct stage *s = calloc(1, sizeof *s);

	strcpy(s->directory, "/tmp/titen-load-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	snprintf(s->db, sizeof s->db, "%s/titen.db", s->directory);
	snprintf(s->local, sizeof s->local, "ipc://%s/rpc.sock", s->directory);
	open_doors(s);
	snprintf(s->rpc, sizeof s->rpc, "tcp://127.0.0.1:%d", server_port(s->server));
	snprintf(s->http, sizeof s->http, "http://127.0.0.1:%d", gateway_port(s->gateway));
	bootstrap(s);
	*state = s;
	return 0;
}

static void
close_doors(struct stage *s)
{
	if (s->gateway != NULL)
		gateway_stop(&s->gateway);
	if (s->core != NULL)
		core_close(&s->core);
	if (s->server != NULL)
		server_stop(&s->server);
}

static int
close_stage(void **state)
{
	static const char *const left[] = { "", "-wal", "-shm", ".lock" };
	struct stage *s = *state;
	char name[128];

	close_doors(s);
	for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
		snprintf(name, sizeof name, "%s%s", s->db, left[i]);
		unlink(name);
	}
	assert_int_equal(rmdir(s->directory), 0);
	free(s);
	return 0;
}

/* --- the load */

static struct load *
work(const struct load_options *fleet)
{
	char error[256] = "";
	struct load *load = load_start(fleet, error, sizeof error);

	if (load == NULL)
		fail_msg("%s", error);
	return load;
}

static void
check_everything_happened(const struct load_result *result)
{
	for (size_t i = 0; i < ACT_KINDS; i++)
		if (result->kinds[i] == 0)
			fail_msg("no act of kind %zu was done", i);
	for (size_t i = 0; i < result->acts_n; i++)
		assert_true(result->acts[i].answered);
}

static void
a_fleet_through_both_doors_leaves_the_store_as_it_was_told(void **state)
{
	struct stage *s = *state;
	const struct load_options fleet = { .rpc = s->rpc,
		.http = s->http,
		.key = s->owner_key,
		.rpc_agents = 3,
		.rpc_strands = 32,
		.rest_agents = 12,
		.seed = 1 };
	struct load *load = work(&fleet);
	const struct load_result *result;

	poll(NULL, 0, seconds * 1000);
	load_halt(load, false);
	result = load_result(load);
	print_message("%lld answers, %zu changes, %lld refused in each other's way\n",
	    (long long)result->answers, result->acts_n, (long long)result->refusals);
	assert_string_equal(result->first_fault, "");
	check_everything_happened(result);
	proof_of_store(s->db);
	proof_of_acts(s->db, result);
	assert_in_range(arena_budget_used(), 0, ARENAS_IDLE_BYTES);
	close_doors(s);
	assert_int_equal(arena_budget_used(), 0);
	proof_of_store(s->db);
	load_free(&load);
}

/* --- measuring */

static void
measure(const char *what, struct load_options fleet)
{
	struct load *load;

	fleet.only_acquire = true;
	load = work(&fleet);
	poll(NULL, 0, seconds * 1000);
	load_halt(load, false);
	assert_string_equal(load_result(load)->first_fault, "");
	print_message("%s: %lld acquires/s\n", what,
	    (long long)(load_result(load)->kinds[ACT_ACQUIRE] / seconds));
	load_free(&load);
}

static void
how_many_leases_a_second(void **state)
{
	struct stage *s = *state;
	const struct load_options rpc = { .rpc = s->rpc, .key = s->owner_key, .rpc_agents = 4 };
	struct load_options fleet = rpc;

	fleet.rpc_strands = 64 / 4;
	measure("nng, 64 under way", fleet);
	fleet.rpc_strands = 1024 / 4;
	measure("nng, 1024 under way", fleet);
	measure("REST, 64 connections",
	    (struct load_options){ .http = s->http, .key = s->owner_key, .rest_agents = 64 });
}

int
main(int argc, char **argv)
{
	static const struct CMUnitTest proofs[] = { cmocka_unit_test_setup_teardown(
	    a_fleet_through_both_doors_leaves_the_store_as_it_was_told, open_stage, close_stage) };
	static const struct CMUnitTest measures[] = { cmocka_unit_test_setup_teardown(
	    how_many_leases_a_second, open_stage, close_stage) };
	const char *error;

	signal(SIGPIPE, SIG_IGN);
	umask(077);
	json_init();
	if (sodium_init() < 0 || !methods_init(&error) || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	if (argc > 1 && strcmp(argv[1], "bench") == 0)
		return cmocka_run_group_tests_name("bench", measures, NULL, NULL);
	if (argc > 1)
		seconds = atoi(argv[1]);
	return cmocka_run_group_tests_name("load", proofs, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * `titen bench`: options -> connections -> live leases -> measuring -> report. Read bench_run()
 * first; bench_load.h says how it measures.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "principal.pb-c.h"
#include "cmd/bench_disk.h"
#include "cmd/bench_http.h"
#include "cmd/bench_load.h"
#include "cmd/bench_nng.h"
#include "cmd/bench_report.h"
#include "cmd/command.h"
#include "cmd/remote.h"
#include "core/methods.h"

#define OUTSTANDING_MAX 4096
/* A server refuses more than 1024 on one, and counts a call a little longer than its caller. */
#define OUTSTANDING_PER_CONNECTION 512
#define REST_OUTSTANDING_MAX 512 /* each has a connection, and the gateway serves so many */
#define SECONDS_MAX 86400
#define CONNECTIONS_MAX 256
#define LIVE_MAX 100000000
#define PID_TOP 4194304 /* the kernel's own limit, proc(5) */

struct bench {
	struct arena *arena;
	const char *work;
	bool rest;
	const char *url;
	long outstanding;
	long seconds;
	long connections; /* 0: as many as are needed */
	long live;
	long server_pid; /* 0: not known */
	const char *fsync_directory;
	bool json;

	struct remote *remotes; /* over nng */
	struct bench_nng *nng;
	struct bench_http *http;
	struct bench_side *filled;
	struct bench_result *result;
	struct histogram *sync;
};

/* --- options */

enum { OPTION_CONNS = 256, OPTION_LIVE, OPTION_SERVER_PID, OPTION_FSYNC_DIR };

static const struct argp_option options[] = {
	{ "url", 'u', "URL", 0,
	    REMOTE_URL_HELP "; for rest http://HOST:PORT (default http://" CONFIG_HTTP_DEFAULT ")",
	    0 },
	{ "outstanding", 'c', "N", 0, "Calls under way at any time, 1 to 4096 (default 64)", 0 },
	{ "seconds", 'd', "SECONDS", 0, "How long to measure, half of it the baseline (default 10)",
	    0 },
	{ "conns", OPTION_CONNS, "N", 0,
	    "Connections to spread them over (default: one for each 512; for rest one for each "
	    "call)",
	    0 },
	{ "live", OPTION_LIVE, "N", 0, "Take so many leases before", 0 },
	{ "server-pid", OPTION_SERVER_PID, "PID", 0,
	    "The server's process on this machine: report its CPU time, too", 0 },
	{ "fsync-dir", OPTION_FSYNC_DIR, "DIR", 0,
	    "Measure fdatasync() there for a second before; take the directory of the database",
	    0 },
	{ "output", 'o', "json|table", 0,
	    "How to print (default: a table on a terminal, else json)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
    "Measure a server: throughput, latency and CPU time of calls, and of a baseline in turn with "
    "them.\n\n"
    "  acquire  take a fresh lease with each call\n"
    "  cycle    take a lease, give it back\n"
    "  handoff  hand off to oneself, accept\n"
    "  echo     the baseline against itself: what remains of 1 is noise\n"
    "  rest     acquire over HTTP/1.1, a connection for each call\n\n"
    "The key is taken from TITEN_API_KEY or the file TITEN_API_KEY_FILE. "
    "The calls change the database for good: measure with one of its own.\v"
    "The baseline is an echo in frames as large as those of an acquire, for rest GET /healthz on "
    "the same connections. Each runs a quarter of a second in turn with the calls, so that a busy "
    "machine slows both. The ratio compares, therefore, on any machine; rates and latencies are "
    "those of this machine, with the client on it. Latency is the time of one call among so many "
    "outstanding ones: it grows with -c even when the server does not get slower. Nothing here "
    "says what happens at a fixed rate of calls below the limit, or over a network. A ratio whose "
    "slices lie far apart was measured in noise: measure again.\n\n"
    "Refusals for too much work (RATE_LIMITED, UNAVAILABLE) are counted apart; any other is a "
    "failure (exit code 1).\n\n"
    "Examples:\n"
    "  titen bench acquire -c 64 -d 10\n"
    "  titen bench acquire -c 1 --fsync-dir . --server-pid $(pidof -s titen)\n"
    "  titen bench cycle -c 1024 --conns 4 --live 100000 -o json\n"
    "  titen bench rest --url http://127.0.0.1:8787 -c 64\n\n" EXIT_CODES_HELP;

static long
number_read(const char *text, const char *name, long min, long max, struct argp_state *state)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || number < min || number > max)
		argp_error(state, "%s takes %ld to %ld", name, min, max);
	return number;
}

static void
work_read(struct bench *b, const char *work, struct argp_state *state)
{
	static const char *const works[] = { "acquire", "cycle", "handoff", "echo", "rest" };

	if (b->work != NULL)
		argp_error(state, "'%s' is one argument too many", work);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (strcmp(work, works[i]) == 0)
			b->work = works[i];
	if (b->work == NULL)
		argp_error(state, "there is no work '%s'", work);
	b->rest = strcmp(work, "rest") == 0;
}

static void
output_read(struct bench *b, const char *how, struct argp_state *state)
{
	if (strcmp(how, "json") != 0 && strcmp(how, "table") != 0)
		argp_error(state, "--output takes json or table");
	b->json = strcmp(how, "json") == 0;
}

/* What can be judged only when everything is known. */
static void
options_check(struct bench *b, struct argp_state *state)
{
	if (b->work == NULL)
		argp_error(state, "which WORK? acquire, cycle, handoff, echo or rest");
	if (b->rest && b->outstanding > REST_OUTSTANDING_MAX)
		argp_error(state, "rest takes -c up to %d", REST_OUTSTANDING_MAX);
	if (b->rest && b->connections != 0)
		argp_error(state, "rest has a connection for each call, and takes no --conns");
	if (b->rest && b->url == NULL)
		b->url = "http://" CONFIG_HTTP_DEFAULT;
	if (b->rest)
		b->connections = b->outstanding;
	if (b->connections == 0)
		b->connections =
		    (b->outstanding + OUTSTANDING_PER_CONNECTION - 1) / OUTSTANDING_PER_CONNECTION;
}

static error_t
bench_option(int key, char *arg, struct argp_state *state)
{
	struct bench *b = state->input;

	switch (key) {
	case 'u':
		b->url = arg;
		return 0;
	case 'c':
		b->outstanding = number_read(arg, "-c", 1, OUTSTANDING_MAX, state);
		return 0;
	case 'd':
		b->seconds = number_read(arg, "-d", 1, SECONDS_MAX, state);
		return 0;
	case OPTION_CONNS:
		b->connections = number_read(arg, "--conns", 1, CONNECTIONS_MAX, state);
		return 0;
	case OPTION_LIVE:
		b->live = number_read(arg, "--live", 0, LIVE_MAX, state);
		return 0;
	case OPTION_SERVER_PID:
		b->server_pid = number_read(arg, "--server-pid", 1, PID_TOP, state);
		return 0;
	case OPTION_FSYNC_DIR:
		b->fsync_directory = arg;
		return 0;
	case 'o':
		output_read(b, arg, state);
		return 0;
	case ARGP_KEY_ARG:
		work_read(b, arg, state);
		return 0;
	case ARGP_KEY_END:
		options_check(b, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* --- connections */

/* Who the key is for; this is also where a bad key is found out. NULL without a key. */
static int
principal_find(struct bench *b, const char **name_r)
{
	PB(PrincipalGetRequest) request = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;
	struct remote_call call = { .method = method_find("titen.v1.PrincipalService/Get"),
		.request = &request.base };
	int code = EXIT_OK;

	*name_r = NULL;
	if (strcmp(b->work, "echo") == 0 && b->live == 0)
		return EXIT_OK;
	code = remote_call(&b->remotes[0], &call);
	if (code == EXIT_OK)
		*name_r = ((PB(Principal) *)call.response)->principal_id;
	remote_call_free(&call);
	return code;
}

static enum bench_work
nng_work(const char *name)
{
	if (strcmp(name, "cycle") == 0)
		return BENCH_CYCLE;
	if (strcmp(name, "handoff") == 0)
		return BENCH_HANDOFF;
	return strcmp(name, "echo") == 0 ? BENCH_ECHO : BENCH_ACQUIRE;
}

static int
nng_open(struct bench *b)
{
	struct titen_client **clients =
	    arena_alloc(b->arena, (size_t)b->connections * sizeof(struct titen_client *));
	struct bench_nng_options wanted = { .work = nng_work(b->work),
		.clients = clients,
		.clients_n = (int)b->connections,
		.outstanding = (int)b->outstanding };
	int code = EXIT_OK;

	b->remotes = arena_alloc(b->arena, (size_t)b->connections * sizeof(*b->remotes));
	for (int i = 0; i < wanted.clients_n && code == EXIT_OK; i++) {
		code = remote_open(&b->remotes[i], b->arena, b->url);
		clients[i] = b->remotes[i].client;
	}
	if (code == EXIT_OK)
		code = principal_find(b, &wanted.principal);
	if (code == EXIT_OK)
		b->nng = bench_nng_new(b->arena, &wanted);
	b->url = b->remotes[0].url;
	return code;
}

static int
http_open(struct bench *b)
{
	const char *key, *error;
	int code = remote_key(b->arena, &key);

	if (code != EXIT_OK)
		return code;
	if (key == NULL)
		return remote_keyless();
	b->http = bench_http_open(b->arena, b->url, key, (int)b->outstanding, &error);
	if (b->http == NULL)
		return command_fail(EXIT_UNREACHABLE, "UNAVAILABLE: %s: %s", b->url, error);
	return EXIT_OK;
}

static void
bench_close(struct bench *b)
{
	for (int i = 0; b->remotes != NULL && i < b->connections; i++)
		remote_close(&b->remotes[i]);
	if (b->http != NULL)
		bench_http_close(&b->http);
}

/* --- measuring */

static int
disk_measure(struct bench *b)
{
	const char *error;

	if (b->fsync_directory == NULL)
		return EXIT_OK;
	b->sync = arena_alloc(b->arena, sizeof(*b->sync));
	if (!bench_disk_sync(b->fsync_directory, b->sync, &error))
		return command_fail(EXIT_ERROR, "%s: %s", b->fsync_directory, error);
	return EXIT_OK;
}

static int
fill(struct bench *b)
{
	struct bench_door door = b->rest ? bench_http_door(b->http) : bench_nng_filler(b->nng);

	b->filled = arena_alloc(b->arena, sizeof(*b->filled));
	if (b->live == 0)
		return EXIT_OK;
	bench_load_fill(&door, b->live, b->filled);
	if (!bench_load_sound(b->filled))
		return command_fail(EXIT_ERROR, "only %ju of %ld leases could be taken",
		    (uintmax_t)b->filled->answered, b->live);
	return EXIT_OK;
}

static int
measure(struct bench *b)
{
	struct bench_door door = b->rest ? bench_http_door(b->http) : bench_nng_door(b->nng);

	b->result = arena_alloc(b->arena, sizeof(*b->result));
	bench_load_run(&door, (int)b->seconds, (pid_t)b->server_pid, b->result);
	if (!bench_load_sound(&b->result->measured) || !bench_load_sound(&b->result->baseline))
		return command_fail(EXIT_ERROR,
		    "calls failed, or were refused for other reasons than too much work");
	return EXIT_OK;
}

static void
report(const struct bench *b)
{
	const struct bench_report said = {
		.work = b->work,
		.baseline = b->rest ? "healthz" : "echo",
		.url = b->url,
		.outstanding = (int)b->outstanding,
		.connections = (int)b->connections,
		.seconds = (int)b->seconds,
		.server_known = b->server_pid != 0,
		.live = b->filled->answered,
		.sync = b->sync,
		.result = b->result,
	};

	if (b->json)
		printf("%s\n", bench_report_json(&said, b->arena));
	else
		bench_report_table(&said, stdout);
}

int
bench_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, bench_option, "WORK", doc, NULL, NULL, NULL };
	struct bench b = {
		.arena = arena, .outstanding = 64, .seconds = 10, .json = !isatty(STDOUT_FILENO)
	};
	int code;

	command_parse(&argp, 0, argc, argv, &b);
	code = disk_measure(&b);
	if (code == EXIT_OK)
		code = b.rest ? http_open(&b) : nng_open(&b);
	if (code == EXIT_OK)
		code = fill(&b);
	if (code == EXIT_OK)
		code = measure(&b);
	if (b.result != NULL)
		report(&b);
	bench_close(&b);
	return code;
}

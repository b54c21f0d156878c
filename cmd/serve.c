/* SPDX-License-Identifier: MIT */
/*
 * `titen serve`: settings -> core -> nng door -> web door -> wait for a signal -> the same in
 * reverse. Read serve_run() first.
 *
 * How it ends is told in stop.h.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/address.h"
#include "cmd/command.h"
#include "cmd/config.h"
#include "cmd/database.h"
#include "cmd/stop.h"
#include "core/log.h"
#include "core/rpc.h"
#include "gateway/gateway.h"
#include "gateway/openapi.h"
#include "transport/server.h"

struct serve {
	struct arena *arena;
	struct config config;
	const char *config_file;
	struct config_source flags;
	bool openapi;          /* print the document, serve nothing */
	const char *path;      /* of the database, absolute */
	const char *local_url; /* of the owner's socket */
	struct core *core;
	struct server *server;
	struct gateway *gateway; /* NULL without REST */
};

enum {
	OPTION_DB = 'd',
	OPTION_HTTP = 'H',
	OPTION_RPC = 'r',
	OPTION_EVENTS = 'e',
	OPTION_CONFIG = 'c',
	OPTION_OPENAPI = 256 /* it has no letter */
};

static const struct argp_option options[] = {
	{ "db", OPTION_DB, "FILE", 0, "The database (TITEN_DB; default " CONFIG_DB_DEFAULT ")", 0 },
	{ "http", OPTION_HTTP, "HOST:PORT", 0,
	    "Serve REST there, or 'off' (TITEN_HTTP; default " CONFIG_HTTP_DEFAULT ")", 0 },
	{ "rpc", OPTION_RPC, "URL", 0,
	    "Serve nng there: tcp://HOST:PORT or ipc:///PATH; may be repeated; 'off' leaves only "
	    "the owner's socket FILE.run/rpc.sock (TITEN_RPC; default " CONFIG_RPC_DEFAULT ")",
	    0 },
	{ "events", OPTION_EVENTS, "URL", 0,
	    "Reserved: live events do not exist yet (TITEN_EVENTS)", 0 },
	{ "config", OPTION_CONFIG, "FILE", 0,
	    "Read the settings db, http, rpc and events from section [serve] of this file", 0 },
	{ "openapi", OPTION_OPENAPI, NULL, 0,
	    "Print the OpenAPI document of the REST routes, and serve nothing", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
    "Serve a database until SIGTERM or SIGINT. Flags win over the environment, the environment "
    "over the file.\v"
    "Examples:\n"
    "  titen serve --db titen.db\n"
    "  titen serve --db titen.db --http off --rpc tcp://127.0.0.1:9000\n"
    "  titen serve --rpc tcp://127.0.0.1:8788 --rpc ipc:///run/titen.sock\n"
    "  titen serve --http 127.0.0.1:0 --rpc tcp://127.0.0.1:0\n\n"
    "Prints one line for each door when it serves, with the port in use. The first signal answers "
    "what is under way, in at most 10 seconds; a second one stops at once.\n\n" EXIT_CODES_HELP;

static error_t
serve_option(int key, char *arg, struct argp_state *state)
{
	struct serve *s = state->input;

	switch (key) {
	case OPTION_DB:
		config_add(&s->flags, s->arena, CONFIG_DB, arg);
		return 0;
	case OPTION_HTTP:
		config_add(&s->flags, s->arena, CONFIG_HTTP, arg);
		return 0;
	case OPTION_RPC:
		config_add(&s->flags, s->arena, CONFIG_RPC, arg);
		return 0;
	case OPTION_EVENTS:
		config_add(&s->flags, s->arena, CONFIG_EVENTS, arg);
		return 0;
	case OPTION_CONFIG:
		s->config_file = arg;
		return 0;
	case OPTION_OPENAPI:
		s->openapi = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is one argument too many", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int
serve_configure(struct serve *s, int argc, char **argv)
{
	static const struct argp argp = { options, serve_option, NULL, doc, NULL, NULL, NULL };
	const char *error;

	command_parse(&argp, 0, argc, argv, s);
	if (!config_resolve(&s->config, s->arena, &s->flags, s->config_file, &error))
		return command_fail(EXIT_USAGE, "%s", error);
	return EXIT_OK;
}

/* Everything that can be seen to be wrong before anything is touched. */
static int
serve_look(struct serve *s)
{
	const char *error = NULL;

	s->path = database_path(s->arena, s->config.db, &error);
	if (s->path == NULL)
		return command_fail(EXIT_ERROR, "%s", error);
	if (access(s->path, F_OK) != 0)
		return command_fail(EXIT_ERROR,
		    "there is no database %s; make one: titen bootstrap --db %s --org NAME",
		    s->config.db, s->config.db);
	s->local_url = database_url(s->arena, s->path);
	if (s->local_url == NULL)
		return command_fail(EXIT_ERROR,
		    "%s.run/rpc.sock is longer than the %d bytes a local socket may have; move the "
		    "database",
		    s->path, SOCKET_PATH_BYTES);
	return EXIT_OK;
}

/* Every connection costs a descriptor, and the limit that shells set is a small one from when
 * select(2) could not take more. */
static void
descriptors_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool
serve_open_core(struct serve *s, const char **error_r)
{
	const struct core_options wanted = { .path = s->path, .revision = TITEN_REVISION };
	char *error = arena_alloc(s->arena, ERROR_BYTES);

	*error_r = error;
	s->core = core_open(&wanted, error, ERROR_BYTES);
	return s->core != NULL && database_make_run(s->arena, s->path, error_r);
}

static bool
serve_open_server(struct serve *s, const char **error_r)
{
	const struct server_options wanted = {
		.core = s->core, .urls = s->config.rpc, .local_url = s->local_url
	};
	char *error = arena_alloc(s->arena, ERROR_BYTES);

	*error_r = error;
	s->server = server_start(&wanted, error, ERROR_BYTES);
	for (const char *const *url = s->config.rpc; s->server == NULL && *url != NULL; url++)
		if (strcmp(error, arena_printf(s->arena, "%s is in use", *url)) == 0)
			*error_r = arena_printf(s->arena, "%s; choose another with --rpc", error);
	return s->server != NULL;
}

static bool
serve_open_gateway(struct serve *s, const char **error_r)
{
	const struct gateway_options wanted = { .core = s->core, .listen = s->config.http };
	char *error = arena_alloc(s->arena, ERROR_BYTES);

	if (s->config.http == NULL)
		return true;
	*error_r = error;
	s->gateway = gateway_start(&wanted, error, ERROR_BYTES);
	if (s->gateway == NULL)
		address_free(s->arena, s->config.http, error_r);
	return s->gateway != NULL;
}

/* The address a url came to: the first tcp one knows the port that the system has chosen. */
static void
url_announce(const struct serve *s, const char *url)
{
	if (address_any_port(url))
		printf("listening %.*s:%d\n", (int)(strrchr(url, ':') - url), url,
		    server_port(s->server));
	else
		printf("listening %s\n", url);
}

/* People and scripts wait for these lines: they are printed when the doors are open. */
static void
serve_announce(const struct serve *s)
{
	for (const char *const *url = s->config.events; *url != NULL; url++)
		log_line(LOG_LEVEL_INFO, "%s will listen once there are live events.", *url);
	if (s->gateway != NULL) {
		int host = (int)(strrchr(s->config.http, ':') - s->config.http);
		printf(
		    "listening http://%.*s:%d\n", host, s->config.http, gateway_port(s->gateway));
	}
	for (const char *const *url = s->config.rpc; *url != NULL; url++)
		url_announce(s, *url);
	printf("listening %s\n", s->local_url);
	fflush(stdout);
}

static int
serve_outstanding(void *arg)
{
	const struct serve *s = arg;

	return server_outstanding(s->server) +
	       (s->gateway == NULL ? 0 : gateway_outstanding(s->gateway));
}

static void
serve_drain(struct serve *s)
{
	server_drain(s->server);
	if (s->gateway != NULL)
		gateway_drain(s->gateway);
	stop_drain(serve_outstanding, s);
	core_hurry(s->core); /* what waits now has waited for too long */
}

/* In reverse: each door waits until the core has answered what came through it. */
static void
serve_close(struct serve *s)
{
	if (s->gateway != NULL)
		gateway_stop(&s->gateway);
	if (s->server != NULL)
		server_stop(&s->server);
	if (s->core != NULL)
		core_close(&s->core);
}

int
serve_run(struct arena *arena, int argc, char **argv)
{
	struct serve s = { .arena = arena };
	const char *error = NULL;
	int code = serve_configure(&s, argc, argv);

	if (code == EXIT_OK && s.openapi) {
		fputs(openapi_text(), stdout);
		return EXIT_OK;
	}
	if (code == EXIT_OK)
		code = serve_look(&s);
	if (code != EXIT_OK)
		return code;
	umask(077);
	descriptors_raise();
	stop_block();
	if (serve_open_core(&s, &error) && serve_open_server(&s, &error) &&
	    serve_open_gateway(&s, &error)) {
		serve_announce(&s);
		stop_wait();
		serve_drain(&s);
	} else {
		code = command_fail(EXIT_ERROR, "%s", error);
	}
	serve_close(&s);
	return code;
}

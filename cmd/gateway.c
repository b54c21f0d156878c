/* SPDX-License-Identifier: MIT */
/* `titen gateway`: the REST door alone, in front of a core in another process. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/stop.h"
#include "gateway/gateway.h"

#define ERROR_BYTES 256 /* one line for people */

enum { OPTION_CORE = 'c', OPTION_HTTP = 'H' };

static const struct argp_option options[] = {
	{ "core", OPTION_CORE, "URL", 0, "The core: tcp://HOST:PORT or ipc:///PATH", 0 },
	{ "http", OPTION_HTTP, "HOST:PORT", 0, "Serve REST there (default 127.0.0.1:8787)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
    "Serve REST for a core in another process until SIGTERM or SIGINT. While the core is away, "
    "calls are answered UNAVAILABLE; it is found again when it is back.\v"
    "Examples:\n"
    "  titen serve --db titen.db --http off --rpc tcp://127.0.0.1:8788\n"
    "  titen gateway --core tcp://127.0.0.1:8788 --http 127.0.0.1:8787\n\n"
    "The first signal answers what is under way; a second one stops at once.\n";

static error_t
gateway_option(int key, char *arg, struct argp_state *state)
{
	struct gateway_options *wanted = state->input;

	switch (key) {
	case OPTION_CORE:
		wanted->core_url = arg;
		return 0;
	case OPTION_HTTP:
		wanted->listen = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is one argument too many", arg);
		return 0;
	case ARGP_KEY_END:
		if (wanted->core_url == NULL)
			argp_error(state, "--core names the core");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int
outstanding(void *arg)
{
	return gateway_outstanding(arg);
}

int
gateway_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, gateway_option, NULL, doc, NULL, NULL, NULL };
	struct gateway_options wanted = { .listen = "127.0.0.1:8787", .revision = TITEN_REVISION };
	char error[ERROR_BYTES] = "";
	struct gateway *gateway;

	(void)arena;
	argp_parse(&argp, argc, argv, 0, NULL, &wanted);
	stop_block();
	gateway = gateway_start(&wanted, error, sizeof error);
	if (gateway == NULL)
		return command_fail(EXIT_ERROR, "%s", error);
	printf("listening http://%.*s:%d\n", (int)strcspn(wanted.listen, ":"), wanted.listen,
	    gateway_port(gateway));
	fflush(stdout);
	stop_wait();
	gateway_drain(gateway);
	stop_drain(outstanding, gateway);
	gateway_stop(&gateway);
	return EXIT_OK;
}

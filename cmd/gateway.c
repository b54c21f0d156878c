/* SPDX-License-Identifier: MIT */
/* `titen gateway`: the REST door alone, in front of a core in another process. */
#include <stdio.h>
#include <string.h>

#include "cmd/address.h"
#include "cmd/command.h"
#include "cmd/config.h"
#include "cmd/stop.h"
#include "gateway/gateway.h"

enum { OPTION_CORE = 'c', OPTION_HTTP = 'H' };

static const struct argp_option options[] = {
	{ "core", OPTION_CORE, "URL", 0, "The core: tcp://HOST:PORT or ipc:///PATH", 0 },
	{ "http", OPTION_HTTP, "HOST:PORT", 0, "Serve REST there (default " CONFIG_HTTP_DEFAULT ")",
	    0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
    "Serve REST for a core in another process until SIGTERM or SIGINT. While the core is away, "
    "calls are answered UNAVAILABLE; it is found again when it is back.\v"
    "Examples:\n"
    "  titen serve --db titen.db --http off --rpc tcp://127.0.0.1:8788\n"
    "  titen gateway --core tcp://127.0.0.1:8788 --http 127.0.0.1:8787\n\n"
    "The first signal answers what is under way; a second one stops at once.\n\n" EXIT_CODES_HELP;

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

static int
addresses_check(struct arena *arena, const struct gateway_options *wanted)
{
	const char *error;

	if (!address_url(arena, wanted->core_url, &error))
		return command_fail(EXIT_USAGE, "--core: %s", error);
	if (!address_http(arena, wanted->listen, &error))
		return command_fail(EXIT_USAGE, "--http: %s", error);
	return EXIT_OK;
}

/* NULL: it has been said why not. */
static struct gateway *
start(struct arena *arena, const struct gateway_options *wanted)
{
	char said[ERROR_BYTES] = "";
	const char *error = said;
	struct gateway *gateway = gateway_start(wanted, said, sizeof(said));

	if (gateway == NULL) {
		address_free(arena, wanted->listen, &error);
		command_fail(EXIT_ERROR, "%s", error);
	}
	return gateway;
}

int
gateway_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, gateway_option, NULL, doc, NULL, NULL, NULL };
	struct gateway_options wanted = { .listen = CONFIG_HTTP_DEFAULT,
		.revision = TITEN_REVISION };
	struct gateway *gateway;
	int code;

	command_parse(&argp, 0, argc, argv, &wanted);
	code = addresses_check(arena, &wanted);
	if (code != EXIT_OK)
		return code;
	stop_block();
	gateway = start(arena, &wanted);
	if (gateway == NULL)
		return EXIT_ERROR;
	printf("listening http://%.*s:%d\n", (int)strcspn(wanted.listen, ":"), wanted.listen,
	    gateway_port(gateway));
	fflush(stdout);
	stop_wait();
	gateway_drain(gateway);
	stop_drain(outstanding, gateway);
	gateway_stop(&gateway);
	return EXIT_OK;
}

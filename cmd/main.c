/* SPDX-License-Identifier: MIT */
/* The program `titen`: what all commands need is made ready here, then the table decides. */
#include <argp.h>
#include <signal.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>

#include "cmd/command.h"
#include "core/json_read.h"
#include "core/methods.h"
#include "transport/server.h"

static const struct command commands[] = {
	{ "serve", "Serve a database over nng and REST", serve_run },
	{ "gateway", "Serve REST for a core in another process", gateway_run },
	{ "bootstrap", "Make a database, an organization and its first key", bootstrap_run },
	{ "key", "Make, list and revoke API keys", key_run },
	{ "rpc", "Make any call over nng", rpc_run },
	{ "bench", "Measure a server", bench_run },
	{ NULL, NULL, NULL },
};

static const struct command_group titen = {
	.doc = "Leases, handoffs, checkpoints and events for fleets of agents.",
	.examples = "Examples:\n"
		    "  titen bootstrap --db titen.db --org acme\n"
		    "  titen serve --db titen.db\n"
		    "  TITEN_API_KEY=titen_sk_... titen key list\n"
		    "  titen help key create\n\n" EXIT_CODES_HELP,
	.commands = commands,
};

static void
version_print(FILE *out, struct argp_state *state)
{
	(void)state;
	fprintf(out, "titen %s\nrevision %s\nSQLite %s\n%s\n", TITEN_VERSION, TITEN_REVISION,
	    sqlite3_libversion(), server_library());
}

/* A client that hangs up must not end the server: writing to it fails instead. */
static int
process_init(void)
{
	const char *error;

	signal(SIGPIPE, SIG_IGN);
	if (sodium_init() < 0)
		return command_fail(EXIT_ERROR, "the system gives no random numbers");
	json_init();
	if (!methods_init(&error))
		return command_fail(EXIT_BUG, "the table of calls is wrong: %s", error);
	return EXIT_OK;
}

int
main(int argc, char **argv)
{
	struct arena arena;
	int code;

	argp_err_exit_status = EXIT_USAGE;
	argp_program_version_hook = version_print;
	code = process_init();
	if (code != EXIT_OK)
		return code;
	arena_init(&arena);
	code = command_dispatch(&titen, &arena, argc, argv);
	arena_free(&arena);
	if (fflush(stdout) != 0 && code == EXIT_OK)
		code = command_fail(EXIT_ERROR, "the output could not be written");
	return code;
}

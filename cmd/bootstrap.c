/* SPDX-License-Identifier: MIT */
/*
 * `titen bootstrap`: the first organization of a database, its principal "owner" and a key for
 * everything. When a server runs on the database it is asked, through the socket only the owner can
 * reach; otherwise the database is opened, or made, here.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "key.pb-c.h"
#include "cmd/command.h"
#include "cmd/config.h"
#include "cmd/database.h"
#include "cmd/json_rpc.h"
#include "cmd/remote.h"
#include "core/rpc.h"
#include "core/rules.h"

#define METHOD "titen.v1.KeyService/Bootstrap"

struct bootstrap {
	struct arena *arena;
	const char *db;
	PB(KeyBootstrapRequest) request;
};

static const struct argp_option options[] = {
	{ "db", 'd', "FILE", 0,
	    "The database, made when it is not there (TITEN_DB; default " CONFIG_DB_DEFAULT ")",
	    0 },
	{ "org", 'o', "NAME", 0, "Name of the organization", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char doc[] =
    "Make an organization, its principal 'owner' and a key for everything, whether or not a server "
    "runs on the database.\v"
    "Example:\n"
    "  titen bootstrap --db titen.db --org acme\n\n"
    "Prints one JSON object: organization_id, principal_id, key_id and api_key. The key is shown "
    "this once.\n\n" EXIT_CODES_HELP;

static error_t
bootstrap_option(int key, char *arg, struct argp_state *state)
{
	struct bootstrap *b = state->input;

	switch (key) {
	case 'd':
		b->db = arg;
		return 0;
	case 'o':
		b->request.name = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is one argument too many", arg);
		return 0;
	case ARGP_KEY_END:
		if (b->request.name == NULL)
			argp_error(state, "--org NAME is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void
bootstrap_print(struct bootstrap *b, const ProtobufCMessage *response)
{
	printf("%s\n", json_rpc_message(b->arena, response));
}

static int
bootstrap_there(struct bootstrap *b, const char *url)
{
	struct remote remote = { .client = NULL };
	struct remote_call call = { .method = method_find(METHOD), .request = &b->request.base };
	int code;

	code = remote_open_local(&remote, b->arena, url);
	if (code == EXIT_OK)
		code = remote_call(&remote, &call);
	if (code == EXIT_OK)
		bootstrap_print(b, call.response);
	remote_call_free(&call);
	remote_close(&remote);
	return code;
}

/* What the core would refuse is refused before there is a database for it. */
static int
bootstrap_check(struct bootstrap *b)
{
	struct call c;
	enum status st;

	call_init(&c, b->arena, NULL, NULL);
	c.method = method_find(METHOD);
	c.request = &b->request.base;
	st = rules_check(&c);
	if (st != STATUS_OK)
		return command_fail(command_exit_of(st), "%s: %s", status_reason(st), c.message);
	return EXIT_OK;
}

static void
bootstrap_done(struct call *c)
{
	sem_post(c->owner);
}

static int
bootstrap_submit(struct bootstrap *b, struct core **core)
{
	struct call c;
	sem_t done;

	sem_init(&done, 0, 0);
	call_init(&c, b->arena, bootstrap_done, &done);
	c.method = method_find(METHOD);
	c.request = &b->request.base;
	c.local = true;
	rpc_submit(*core, &c);
	while (sem_wait(&done) != 0 && errno == EINTR)
		continue;
	/* The thread that has answered may still be inside sem_post(); closing waits for it. */
	core_close(core);
	sem_destroy(&done);
	if (c.status != STATUS_OK)
		return command_fail(command_exit_of(c.status), "%s: %s (%s)",
		    status_reason(c.status), c.message, c.request_id);
	bootstrap_print(b, c.response);
	return EXIT_OK;
}

static int
bootstrap_here(struct bootstrap *b, const char *path)
{
	const struct core_options wanted = {
		.path = path, .create = true, .revision = TITEN_REVISION
	};
	char error[ERROR_BYTES];
	struct core *core;
	int code = bootstrap_check(b);

	if (code != EXIT_OK)
		return code;
	umask(077);
	core = core_open(&wanted, error, sizeof(error));
	if (core == NULL)
		return command_fail(EXIT_ERROR, "%s", error);
	return bootstrap_submit(b, &core);
}

int
bootstrap_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, bootstrap_option, NULL, doc, NULL, NULL, NULL };
	const char *variable = getenv("TITEN_DB");
	struct bootstrap b = { .arena = arena, .request = TITEN__V1__KEY_BOOTSTRAP_REQUEST__INIT };
	const char *error = NULL;
	const char *path;
	const char *url;

	b.db = variable != NULL && variable[0] != '\0' ? variable : CONFIG_DB_DEFAULT;
	command_parse(&argp, 0, argc, argv, &b);
	path = database_path(arena, b.db, &error);
	if (path == NULL)
		return command_fail(EXIT_ERROR, "%s", error);
	url = database_url(arena, path);
	if (url != NULL && database_served(url))
		return bootstrap_there(&b, url);
	return bootstrap_here(&b, path);
}

/* SPDX-License-Identifier: MIT */
/* `titen rpc`: any call over nng, written and answered as the JSON of REST. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/describe.h"
#include "cmd/json_rpc.h"
#include "cmd/remote.h"
#include "core/rpc.h"

#define TIMEOUT_SECONDS_MAX 86400 /* a day, as long as the longest lease */

struct rpc {
	struct arena *arena;
	const char *url;
	const char *data;
	struct remote_call call;
};

enum { OPTION_URL = 'u', OPTION_DATA = 'd', OPTION_KEY = 'k', OPTION_TIMEOUT = 't' };

static const struct argp_option options[] = {
	{ "url", OPTION_URL, "URL", 0, REMOTE_URL_HELP, 0 },
	{ "data", OPTION_DATA, "JSON", 0,
	    "The request, an object; '-' reads it from standard input", 0 },
	{ "idempotency-key", OPTION_KEY, "KEY", 0,
	    "A retry with the same key and request gets the first answer", 0 },
	{ "timeout", OPTION_TIMEOUT, "SECONDS", 0, "How long to wait for the answer (default 30)",
	    0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const char call_doc[] =
    "Make one call and print its answer: {\"data\": ...} or {\"error\": ...}. The key is taken "
    "from TITEN_API_KEY or the file TITEN_API_KEY_FILE.\v"
    "Examples:\n"
    "  titen rpc call lease.acquire -d '{\"resource_type\":\"deploy\",\n"
    "    \"resource_id\":\"checkout\",\"purpose\":\"smoke\",\"ttl_seconds\":600}'\n"
    "  titen rpc call HandoffService/List\n\n" EXIT_CODES_HELP;

static int32_t
timeout_read(const char *text, struct argp_state *state)
{
	char *end;
	long seconds;

	errno = 0;
	seconds = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || seconds < 1 ||
	    seconds > TIMEOUT_SECONDS_MAX)
		argp_error(state, "--timeout takes 1 to %d seconds", TIMEOUT_SECONDS_MAX);
	return (int32_t)seconds * 1000;
}

static const char *
method_hint(struct rpc *rpc, const char *name)
{
	const char *hint = json_rpc_hint(rpc->arena, name);

	return hint[0] == '\0' ? "; see titen rpc list" : hint;
}

static void
method_read(struct rpc *rpc, const char *name, struct argp_state *state)
{
	if (rpc->call.method != NULL)
		argp_error(state, "'%s' is one argument too many", name);
	rpc->call.method = json_rpc_method(name);
	if (rpc->call.method == NULL)
		argp_error(state, "there is no call '%s'%s", name, method_hint(rpc, name));
}

static error_t
rpc_option(int key, char *arg, struct argp_state *state)
{
	struct rpc *rpc = state->input;

	switch (key) {
	case OPTION_URL:
		rpc->url = arg;
		return 0;
	case OPTION_DATA:
		rpc->data = arg;
		return 0;
	case OPTION_KEY:
		rpc->call.idempotency_key = arg;
		return 0;
	case OPTION_TIMEOUT:
		rpc->call.timeout_ms = timeout_read(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		method_read(rpc, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which METHOD? see titen rpc list");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* One byte more than the server takes is enough to let the server refuse it. */
static size_t
input_read(struct rpc *rpc)
{
	char *text = arena_alloc(rpc->arena, PAYLOAD_BYTES_MAX + 2);
	size_t bytes = fread(text, 1, PAYLOAD_BYTES_MAX + 1, stdin);

	rpc->data = text;
	return bytes;
}

static int
call_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, rpc_option, "METHOD", call_doc, NULL, NULL,
		NULL };
	struct rpc rpc = { .arena = arena, .data = "{}" };
	struct remote remote = { .client = NULL };
	const char *error = NULL;
	size_t bytes;
	int code;

	command_parse(&argp, 0, argc, argv, &rpc);
	bytes = strcmp(rpc.data, "-") == 0 ? input_read(&rpc) : strlen(rpc.data);
	rpc.call.request = json_rpc_request(arena, rpc.call.method, rpc.data, bytes, &error);
	if (rpc.call.request == NULL)
		return command_fail(EXIT_USAGE, "--data: %s", error);
	code = remote_open(&remote, arena, rpc.url);
	if (code == EXIT_OK)
		code = remote_call(&remote, &rpc.call);
	if (rpc.call.reply != NULL)
		printf("%s\n", json_rpc_answer(arena, rpc.call.reply, rpc.call.response));
	remote_call_free(&rpc.call);
	remote_close(&remote);
	return code;
}

int
rpc_run(struct arena *arena, int argc, char **argv)
{
	static const struct command commands[] = {
		{ "call", "Make one call", call_run },
		{ "list", "List every call", describe_list_run },
		{ "describe", "Show a call or a message", describe_run },
		{ NULL, NULL, NULL },
	};
	static const struct command_group group = {
		.doc = "Any call over nng, as JSON.",
		.examples = "Examples:\n"
			    "  titen rpc list\n"
			    "  titen rpc describe lease.acquire\n"
			    "  titen rpc call health.check\n\n" EXIT_CODES_HELP,
		.commands = commands,
	};

	return command_dispatch(&group, arena, argc, argv);
}

/* SPDX-License-Identifier: MIT */
/* Where the server is, which key to use, and what its answer means for the shell. */
#include "cmd/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/json_rpc.h"

#define URL_DEFAULT "tcp://127.0.0.1:8788"
#define KEY_BYTES 256 /* of a key file: a key has 52, the rest is blank space */

/* The key is never an argument: every user of the machine can read those. */
static int
key_read(struct arena *arena, const char **key)
{
	const char *path = getenv("TITEN_API_KEY_FILE");
	char text[KEY_BYTES] = "";
	FILE *file;

	*key = getenv("TITEN_API_KEY");
	if (*key != NULL && (*key)[0] != '\0')
		return EXIT_OK;
	*key = NULL;
	if (path == NULL || path[0] == '\0')
		return EXIT_OK;
	file = fopen(path, "re");
	if (file == NULL)
		return command_fail(EXIT_ERROR, "%s: %s", path, strerror(errno));
	if (fgets(text, sizeof text, file) != NULL)
		text[strcspn(text, " \t\r\n")] = '\0';
	fclose(file);
	if (text[0] == '\0')
		return command_fail(EXIT_ERROR, "%s: holds no key in its first line", path);
	*key = arena_text(arena, text);
	return EXIT_OK;
}

static int
remote_connect(struct remote *remote, struct arena *arena, const char *url, const char *key)
{
	char error[256];

	remote->arena = arena;
	remote->url = url;
	remote->client =
	    titen_connect(&(struct titen_options){ .url = url, .key = key }, error, sizeof error);
	if (remote->client == NULL)
		return command_fail(EXIT_UNREACHABLE, "UNAVAILABLE: %s", error);
	return EXIT_OK;
}

int
remote_open(struct remote *remote, struct arena *arena, const char *url)
{
	const char *variable = getenv("TITEN_RPC_URL");
	const char *key;
	int code = key_read(arena, &key);

	if (code != EXIT_OK)
		return code;
	if (url == NULL)
		url = variable != NULL && variable[0] != '\0' ? variable : URL_DEFAULT;
	return remote_connect(remote, arena, url, key);
}

int
remote_open_local(struct remote *remote, struct arena *arena, const char *url)
{
	return remote_connect(remote, arena, url, NULL);
}

static int
remote_refused(const PB(Reply) *reply)
{
	enum status st = reply->reason == NULL ? STATUS_INTERNAL : status_find(reply->reason);

	return command_fail(command_exit_of(st), "%s: %s (%s)",
	    reply->reason == NULL ? status_reason(st) : reply->reason,
	    reply->message == NULL ? "no reason given" : reply->message,
	    reply->request_id == NULL ? "no request id" : reply->request_id);
}

int
remote_call(struct remote *remote, struct remote_call *call)
{
	const struct titen_call wanted = { .method = call->method->name,
		.request = call->request,
		.idempotency_key = call->idempotency_key,
		.timeout_ms = call->timeout_ms };
	enum titen_outcome outcome = titen_call(remote->client, &wanted, &call->reply);

	if (outcome == TITEN_TIMED_OUT)
		return command_fail(
		    EXIT_TIMED_OUT, "DEADLINE_EXCEEDED: %s: no answer in time", remote->url);
	if (outcome == TITEN_LOST)
		return command_fail(EXIT_UNREACHABLE, "UNAVAILABLE: %s: %s", remote->url,
		    titen_outcome_text(outcome));
	if (outcome != TITEN_ANSWERED)
		return command_fail(EXIT_ERROR, "%s: %s", remote->url, titen_outcome_text(outcome));
	if (call->reply->code != 0)
		return remote_refused(call->reply);
	call->response = json_rpc_response(remote->arena, call->method, call->reply);
	if (call->response == NULL)
		return command_fail(
		    EXIT_ERROR, "%s: the answer is not one of %s", remote->url, call->method->name);
	return EXIT_OK;
}

void
remote_call_free(struct remote_call *call)
{
	if (call->reply != NULL)
		titen_reply_free(call->reply);
	call->reply = NULL;
}

void
remote_close(struct remote *remote)
{
	if (remote->client != NULL)
		titen_close(&remote->client);
}

/* SPDX-License-Identifier: MIT */
/* Where the server is, which key to use, and what its answer means for the shell. */
#include "cmd/remote.h"

#include <errno.h>
#include <nng/nng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/address.h"
#include "cmd/command.h"
#include "cmd/json_rpc.h"

#define KEY_BYTES 256 /* of a key file: a key has 52, the rest is blank space */

/* --- the key */

int
remote_key(struct arena *arena, const char **key_r)
{
	const char *path = getenv("TITEN_API_KEY_FILE");
	char text[KEY_BYTES] = "";
	FILE *file;

	*key_r = getenv("TITEN_API_KEY");
	if (*key_r != NULL && (*key_r)[0] != '\0')
		return EXIT_OK;
	*key_r = NULL;
	if (path == NULL || path[0] == '\0')
		return EXIT_OK;
	file = fopen(path, "re");
	if (file == NULL)
		return command_fail(
		    EXIT_ERROR, "TITEN_API_KEY_FILE: %s: %s", path, strerror(errno));
	if (fgets(text, sizeof(text), file) != NULL)
		text[strcspn(text, " \t\r\n")] = '\0';
	fclose(file);
	if (text[0] == '\0')
		return command_fail(
		    EXIT_ERROR, "TITEN_API_KEY_FILE: %s: holds no key in its first line", path);
	*key_r = arena_text(arena, text);
	return EXIT_OK;
}

int
remote_keyless(void)
{
	return command_fail(EXIT_FORBIDDEN, "TITEN_API_KEY is not set, nor TITEN_API_KEY_FILE");
}

/* --- the connection */

const char *
remote_named(void)
{
	const char *url = getenv("TITEN_RPC_URL");

	return url != NULL && url[0] != '\0' ? url : NULL;
}

/* What to do about a failure to connect, which ends in the name of an error of nng; or "". */
static const char *
connect_hint(const char *error)
{
	static const struct {
		int error;
		const char *hint;
	} rows[] = {
		{ NNG_ECONNREFUSED, "; is 'titen serve' running there? (--url, TITEN_RPC_URL)" },
		{ NNG_ENOENT, "; is 'titen serve' running there? (--url, TITEN_RPC_URL)" },
		{ NNG_ETIMEDOUT, "; is 'titen serve' running there? (--url, TITEN_RPC_URL)" },
		{ NNG_EPROTO, "; no Titen answers there (REST is 8787, nng 8788)" },
		{ NNG_ECONNSHUT, "; no Titen answers there (REST is 8787, nng 8788)" },
		{ NNG_EADDRINVAL, "; there is no such host" },
	};
	size_t bytes = strlen(error);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = nng_strerror(rows[i].error);
		size_t n = strlen(name);
		if (n <= bytes && strcmp(error + bytes - n, name) == 0)
			return rows[i].hint;
	}
	return "";
}

static int
remote_connect(struct remote *remote, struct arena *arena, const char *url, const char *key)
{
	char error[ERROR_BYTES];

	remote->arena = arena;
	remote->url = url;
	remote->key = key;
	remote->client =
	    titen_connect(&(struct titen_options){ .url = url, .key = key }, error, sizeof(error));
	if (remote->client == NULL)
		return command_fail(
		    EXIT_UNREACHABLE, "UNAVAILABLE: %s%s", error, connect_hint(error));
	return EXIT_OK;
}

int
remote_open(struct remote *remote, struct arena *arena, const char *url)
{
	const char *place = url != NULL ? "--url" : "TITEN_RPC_URL";
	const char *key, *error;
	int code = remote_key(arena, &key);

	if (code != EXIT_OK)
		return code;
	if (url == NULL)
		url = remote_named();
	if (url == NULL)
		url = CONFIG_RPC_DEFAULT;
	if (!address_url(arena, url, &error))
		return command_fail(EXIT_USAGE, "%s: %s", place, error);
	return remote_connect(remote, arena, url, key);
}

int
remote_open_local(struct remote *remote, struct arena *arena, const char *url)
{
	return remote_connect(remote, arena, url, NULL);
}

/* --- calls */

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
	enum right right = call->method->right;
	enum titen_outcome outcome;

	if (remote->key == NULL && right != RIGHT_PUBLIC && right != RIGHT_LOCAL)
		return remote_keyless();
	outcome = titen_call(remote->client, &wanted, &call->reply);
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

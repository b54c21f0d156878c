/* SPDX-License-Identifier: MIT */
/* Calls of the command to a running server, with the failures said and turned into exit codes. */
#ifndef TITEN_CMD_REMOTE_H
#define TITEN_CMD_REMOTE_H

#include "envelope.pb-c.h"
#include "client/client.h"
#include "cmd/config.h"
#include "core/arena.h"
#include "core/call.h"
#include "core/methods.h"

/* What --url is, wherever it is an option. */
#define REMOTE_URL_HELP "The server (TITEN_RPC_URL; default " CONFIG_RPC_DEFAULT ")"

struct remote {
	struct arena *arena;
	struct titen_client *client;
	const char *url;
	const char *key; /* NULL: none */
};

struct remote_call {
	const struct method *method;
	const ProtobufCMessage *request;
	const char *idempotency_key; /* or NULL */
	int32_t timeout_ms;          /* 0: 30 000 */
	/* Set by remote_call(). */
	PB(Reply) *reply;           /* NULL when no answer came; freed by remote_call_free() */
	ProtobufCMessage *response; /* NULL unless the call succeeded; in the arena */
};

/* The key in TITEN_API_KEY, or in the file TITEN_API_KEY_FILE; NULL without either. It is never an
 * argument: every user of the machine can read those. Gives an exit code. */
int remote_key(struct arena *arena, const char **key_r);
/* Say that there is no key where one is needed. Gives an exit code. */
int remote_keyless(void);

/* The server that TITEN_RPC_URL names, or NULL. */
const char *remote_named(void);

/* Connect to URL (NULL: remote_named(), or the default) with remote_key(). Gives an exit code. */
int remote_open(struct remote *remote, struct arena *arena, const char *url);
/* Connect to URL without a key. */
int remote_open_local(struct remote *remote, struct arena *arena, const char *url);
/* One call, which is not even tried without a key when it needs one. Gives an exit code; a failure
 * has been said on standard error. */
int remote_call(struct remote *remote, struct remote_call *call);
void remote_call_free(struct remote_call *call);
void remote_close(struct remote *remote);

#endif

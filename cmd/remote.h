/* SPDX-License-Identifier: MIT */
/* Calls of the command to a running server, with the failures said and turned into exit codes. */
#ifndef TITEN_CMD_REMOTE_H
#define TITEN_CMD_REMOTE_H

#include "envelope.pb-c.h"
#include "client/client.h"
#include "core/arena.h"
#include "core/call.h"
#include "core/methods.h"

struct remote {
	struct arena *arena;
	struct titen_client *client;
	const char *url;
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

/* Connect to URL (NULL: TITEN_RPC_URL, or the default) with the key of TITEN_API_KEY or of the file
 * TITEN_API_KEY_FILE; without either, call without a key. Gives an exit code. */
int remote_open(struct remote *remote, struct arena *arena, const char *url);
/* Connect to URL without a key. */
int remote_open_local(struct remote *remote, struct arena *arena, const char *url);
/* One call. Gives an exit code; a failure has been said on standard error. */
int remote_call(struct remote *remote, struct remote_call *call);
void remote_call_free(struct remote_call *call);
void remote_close(struct remote *remote);

#endif

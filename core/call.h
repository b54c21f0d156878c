/* SPDX-License-Identifier: MIT */
/*
 * Everything one call knows, from the door that took it to the answer. A call belongs to one thread
 * at a time: the door's, then the reader's or the writer's, then the one that calls done().
 */
#ifndef TITEN_CORE_CALL_H
#define TITEN_CORE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "common.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "core/arena.h"
#include "core/ident.h"
#include "core/methods.h"
#include "core/scopes.h"
#include "core/status.h"

#define PB(name) Titen__V1__##name

#define CALL_IDS_MAX 8            /* ids that one call makes; three is the most */
#define RETRY_SOON_MS 250         /* when somebody turned away for want of room may find some */
#define IDEMPOTENCY_KEY_BYTES 200 /* longer keys are refused; what clients send is a UUID */

struct core;
struct db;
struct key_change;
struct tally;

/* Who calls, copied from the key ring when the key was checked. Zero without a key. */
struct identity {
	int64_t key;          /* row of the key, 0 without one */
	int64_t organization; /* rows of the store */
	int64_t principal;
	const char *organization_id; /* public names, in the call's arena */
	const char *principal_id;
	const char *key_id;
	const char *label;
	int principal_kind; /* PB(Principal__Kind) */
	int max_trust;      /* PB(Trust) */
	scope_set scopes;
};

struct call {
	/* What the door sets. */
	const struct method *method;
	struct arena *arena;
	ProtobufCMessage *request;
	const char *authorization;   /* header value, or NULL */
	const char *idempotency_key; /* or NULL */
	int64_t deadline_ms;         /* CLOCK_MONOTONIC; 0: none */
	bool local;                  /* came through the owner's local socket */
	/* Takes the answer, exactly once, on any thread; must not block. */
	void (*done)(struct call *c);
	void *owner; /* the door's own */

	/* What the pipeline knows. */
	char request_id[ID_TEXT_BYTES];
	struct identity who;
	bool admitted; /* key and right were found good */
	struct core *core;
	struct db *db;      /* the connection to use, inside its transaction */
	int64_t now_ms;     /* fixed when the call is taken, kept when it is repeated */
	uint8_t digest[32]; /* SHA-256 of method and message, when there is an idempotency key */
	bool due;           /* to be run in this batch, not refused when it was taken */
	struct arena_mark mark; /* where a repeated call starts again */
	struct id_source *id_source;
	struct tally *tally; /* of the writer's transaction */
	struct id ids[CALL_IDS_MAX];
	int ids_made;
	int ids_used;
	struct key_change *key_change; /* to apply to the key ring after the commit */

	/* The answer. */
	enum status status;
	const char *message; /* static or in the arena; NULL on success */
	ProtobufCMessage *response;
	bool created;
	bool replayed;
	int64_t retry_after_ms; /* 0: nothing to say */

	struct call *next; /* in whatever queue holds the call */
};

/* An empty call with a fresh request id. ARENA is borrowed until done() has returned. */
void call_init(struct call *c, struct arena *arena, void (*done)(struct call *c), void *owner);

/* Say why and give ST back: return call_fail(c, STATUS_NOT_FOUND, "There is no such lease."). */
__attribute__((format(printf, 3, 4))) enum status call_fail(
    struct call *c, enum status st, const char *format, ...);

/* Forget an attempt: a fresh response, no answer yet, the same ids again. */
void call_rewind(struct call *c);
/* Give the answer to the door: c->status and what goes with it. */
void call_answer(struct call *c);

/* The next id of this call; a repeated call gets the same ids again. Writer thread. */
struct id call_id(struct call *c);

/* Messages of the arena, for responses. */
Google__Protobuf__Timestamp *call_time(struct call *c, int64_t time_ms);
PB(Json) *call_json(struct call *c, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One thing that an agent does, the same through either door, and what it was answered. The server
 * is somewhere else: everything here is said over nng or REST.
 *
 *	struct act act = { .kind = ACT_ACQUIRE, .agent = agent, .name = "own-1" };
 *	act_by_rest(&act, rest);
 *	if (act_done(&act))
 *		... act.answer.id is the lease
 */
#ifndef TITEN_TESTS_ACT_H
#define TITEN_TESTS_ACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/client.h"

#define NAME_BYTES 64          /* of a resource, subject or id */
#define ACT_REQUEST_BYTES 1024 /* packed; the largest is a save */
#define STATE_BYTES 128        /* of what a save stores */
#define ACT_TTL_SECONDS 3600   /* nothing expires while a test runs */
#define ACT_TIMEOUT_MS 20000   /* more than anything here takes on a busy machine */

enum act_kind {
	ACT_ACQUIRE,
	ACT_RELEASE,
	ACT_HAND_OFF,
	ACT_RESOLVE,
	ACT_SAVE,
	ACT_MAKE_KEY,
	ACT_FIND,   /* a checkpoint */
	ACT_INBOX,  /* of handoffs */
	ACT_EVENTS, /* of every kind, behind a cursor */
	ACT_KINDS
};

#define ACT_CHANGES ACT_FIND /* kinds below it change something */

struct agent {
	char principal[NAME_BYTES];
	char key_id[NAME_BYTES];
	char key[NAME_BYTES + 1];
};

/* What an answer says, by any door. Zero where it says nothing. */
struct answer {
	char id[NAME_BYTES]; /* lease, handoff, checkpoint, key; one in the inbox; the cursor */
	char text[NAME_BYTES + 1];  /* a checkpoint's state hash, a new key */
	char principal[NAME_BYTES]; /* of a new key */
	int64_t time_ms;            /* of expiry, release or decision */
	int64_t number;             /* fence, version, or rows in the page */
	bool disordered;            /* events that did not rise */
};

struct act {
	enum act_kind kind;
	const struct agent *agent;
	const struct agent *peer; /* HAND_OFF: to whom */
	int strand;               /* who of the load did it */
	int step;                 /* SAVE: goes into the state */
	bool accept;              /* RESOLVE */
	char name[NAME_BYTES];    /* resource, subject, or label */
	char target[NAME_BYTES];  /* lease, handoff, attached checkpoint, or cursor; may be empty */
	char key[NAME_BYTES];     /* of idempotency; may be empty */

	bool answered; /* false: the connection broke or time ran out */
	bool replayed;
	char reason[32];   /* "CONFLICT"; empty when it was done */
	char message[128]; /* of a refusal */
	struct answer answer;
};

/* Whether it was done and said so. */
bool act_done(const struct act *act);

/* The compact JSON that a SAVE stores. */
void act_state(const struct act *act, char state[static STATE_BYTES]);

/* --- nng */

const char *act_method(const struct act *act);
/* The packed request into OUT; its size. */
size_t act_pack(const struct act *act, uint8_t out[static ACT_REQUEST_BYTES]);
/* Take the outcome; frees REPLY. */
void act_take_reply(struct act *act, enum titen_outcome outcome, Titen__V1__Reply *reply);
/* Read a packed response of the act's method. False: it is none. */
bool act_unpack(const struct act *act, const void *bytes, size_t n, struct answer *answer);
/* Do it and wait. CLIENT has the agent's key. */
void act_by_rpc(struct act *act, struct titen_client *client);

/* --- REST */

struct rest;

/* A connection to http://HOST:PORT, kept alive between acts. One thread at a time. */
struct rest *rest_open(const char *base);
void rest_close(struct rest **rest);
/* Do it and wait, with the agent's key. */
void act_by_rest(struct act *act, struct rest *rest);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The C library: calls to a Titen server over nng.
 *
 * A client is one connection that reconnects by itself. Any number of threads may call on it at
 * once. Nothing is sent twice behind the caller's back: when the connection breaks, the call under
 * way fails with TITEN_LOST, and the caller decides. A retry is safe when it carries the same
 * idempotency key. While there is no connection, calls wait for one until their time is over.
 *
 * nng is not fork-safe: fork before the first titen_connect(), or exec.
 */
#ifndef TITEN_CLIENT_CLIENT_H
#define TITEN_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

struct titen_client;
typedef struct Titen__V1__Reply Titen__V1__Reply;

struct titen_options {
	const char *url;            /* tcp://HOST:PORT or ipc:///PATH */
	const char *key;            /* titen_sk_..., or NULL to call without; copied */
	int32_t connect_timeout_ms; /* 0: 5 000 */
};

struct titen_call {
	const char *method; /* titen.v1.LeaseService/Acquire */
	const ProtobufCMessage *request;
	const char *idempotency_key; /* or NULL */
	int32_t timeout_ms;          /* of the whole call; 0: 30 000 */
};

enum titen_outcome {
	TITEN_ANSWERED, /* the reply is there; it may still be a refusal: look at reply->code */
	TITEN_TIMED_OUT,
	TITEN_LOST,     /* the connection broke: whether the call was done is unknown */
	TITEN_GARBLED,  /* the answer is no Reply */
	TITEN_TOO_LARGE /* the request is above what a server reads; it was not sent */
};

/* Takes the outcome of one call, and owns REPLY, which is NULL unless ANSWERED. On a thread of nng:
 * must not block, but may start the next call when this one was ANSWERED. */
typedef void titen_done(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply);

/* Connect, or say why not. NULL: ERROR is one line for people. */
struct titen_client *titen_connect(
    const struct titen_options *options, char *error, size_t error_bytes);

/* One call. *REPLY is set when ANSWERED, and NULL otherwise; titen_reply_free() it. Blocks until
 * the answer or the timeout. */
enum titen_outcome titen_call(
    struct titen_client *client, const struct titen_call *call, Titen__V1__Reply **reply);

/* The same with an already packed request. */
enum titen_outcome titen_call_packed(struct titen_client *client, const struct titen_call *call,
    const uint8_t *payload, size_t bytes, Titen__V1__Reply **reply);

/* The same without waiting: DONE is called exactly once, perhaps before this returns. CALL and
 * PAYLOAD are not needed afterwards. */
void titen_call_start(struct titen_client *client, const struct titen_call *call,
    const uint8_t *payload, size_t bytes, titen_done *done, void *arg);

/* NULL is allowed. */
void titen_reply_free(Titen__V1__Reply *reply);

/* "timed out", ... Static text. */
const char *titen_outcome_text(enum titen_outcome outcome);

/* Calls under way fail with TITEN_LOST, and no other may be started. Not in a titen_done. Clears
 * *CLIENT. */
void titen_close(struct titen_client **client);

#endif

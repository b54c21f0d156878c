/* SPDX-License-Identifier: MIT */
/*
 * The pipeline every call goes through, whatever door it came by:
 *
 *	find the row -> decode -> authenticate -> authorize -> rules -> run in its transaction ->
 *done()
 *
 * A door may stop between the steps (REST checks the key before it reads the body); rpc_submit()
 *does what is left.
 */
#ifndef TITEN_CORE_RPC_H
#define TITEN_CORE_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "core/call.h"
#include "core/clock.h"

#define PAYLOAD_BYTES_MAX ((size_t)1 << 20) /* of a request, on every door */

struct core_options {
	const char *path;                 /* of the database */
	const struct clock_source *clock; /* NULL: the system's */
	bool create;                      /* make the database when it is not there */
	const char *revision;             /* what health answers; static */
};

/* Open the database and start the writer, the readers and the completer. NULL: ERROR is one line
 * for people. */
struct core *core_open(const struct core_options *options, char *error, size_t error_bytes);
/* From now on answer UNAVAILABLE to what waits, instead of doing it. Any thread. */
void core_hurry(struct core *core);
/* Finish what was submitted, answer it, and close. Nothing may be submitted any more. Clears *CORE.
 */
void core_close(struct core **core);

/* The time that decides about leases, milliseconds since 1970. Any thread. */
int64_t rpc_now_ms(struct core *core);

/* Set c->method. METHOD_NOT_ALLOWED (gRPC UNIMPLEMENTED) when nothing has that name. */
enum status rpc_find(struct call *c, const char *method_name);

/* Set c->request from the packed message of c->method, after checking the bytes. VALIDATION_ERROR,
 * PAYLOAD_TOO_LARGE, or UNAVAILABLE when the process has no memory to spare. Uses only the call's
 * arena. */
enum status rpc_decode(struct call *c, const uint8_t *payload, size_t bytes);

/* Check key and right: UNAUTHENTICATED, FORBIDDEN. Sets c->who. Does not block. */
enum status rpc_admit(struct core *core, struct call *c);

/* Run the call (c->method, c->request and what the door sets) and have done() called with the
 * answer: before rpc_submit() returns, or later on a thread of the core. Does not block. */
void rpc_submit(struct core *core, struct call *c);

/* Answer without running: calls done() at once. */
void rpc_refuse(struct call *c, enum status st);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the web door share: the gateway on a free port, in front of a core of a few
 * lines that answers what it was asked, and a client on a bare socket that can say anything.
 *
 *	key		"Bearer good" may call, "Bearer poor" lacks the scope, others are unknown
 *	Acquire		grants under the name of the resource, or does what the purpose says: key,
 *			conflict, busy, replayed
 *	Release		answers the id
 *	Event.List	answers its request as JSON in cursor
 *	Checkpoint.Save	answers its request as JSON in checkpoint_id; at /v1/subjects/{subject_id}
 */
#ifndef TITEN_TESTS_WEB_H
#define TITEN_TESTS_WEB_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "gateway/gateway.h"

#define HEAD(line) line " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n"
#define POST_LEASE HEAD("POST /v1/leases")

extern struct gateway *web_gateway;
extern int web_sock;

/* The last answer. */
extern char web_head[8 << 10];
extern char web_body[64 << 10];

/* While it is set, calls are answered only when somebody posts web_go_on, each once. */
extern atomic_bool web_hold;
extern sem_t web_go_on;

/* For a group of tests. */
int web_start(void **state);
int web_stop(void **state);

/* A new connection instead of the last one. */
void web_dial(void);
void web_say(const char *text);
void web_say_n(const char *bytes, size_t n);

/* The status of the next answer, which goes to web_head and, when it HAS_BODY, to web_body; 0 when
 * the connection ends instead. */
int web_hear(bool has_body);
/* Waits for the end of the connection. */
bool web_ended(void);

/* The status of the answer to RAW on a new connection. */
int web_ask(const char *raw);
/* A POST of TEXT with a good key; MORE_HEAD is header lines. Valid until the next one. */
const char *web_post(const char *path, const char *more_head, const char *text);

/* The value of a header of the last answer, or "". Valid until the next look. */
const char *web_header(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The nng door: a REP socket (nng SP/REP) that takes packed Requests (proto/envelope.proto) and
 * gives packed Replies. One small state machine for each request under way; see server.c.
 *
 *	start -> drain -> outstanding is 0, or patience ends -> stop
 */
#ifndef TITEN_TRANSPORT_SERVER_H
#define TITEN_TRANSPORT_SERVER_H

#include <stddef.h>

struct core;
struct server;

struct server_options {
	struct core *core;       /* borrowed until server_stop() has returned */
	const char *const *urls; /* tcp://HOST:PORT or ipc:///PATH, NULL behind the last */
	const char *local_url; /* ipc:///PATH of the owner's socket: its peers have the right LOCAL;
				  NULL: none */
};

/* Listen and serve. NULL: ERROR is one line for people (busy port, path too long). The socket file
 * of a server that died is taken over, that of a living one is in use. Main thread. */
struct server *server_start(const struct server_options *options, char *error, size_t error_bytes);

/* The port of the first tcp:// url, also when that asked for port 0; 0 without one. Any thread. */
int server_port(const struct server *server);

/* Take no new connections, and answer what still comes in on the others UNAVAILABLE; calls under
 * way go on. Addresses stay taken until server_stop(), because nng closes the connections of a
 * listener with it. Any thread. */
void server_drain(struct server *server);
/* Requests that have arrived and are not answered yet. Any thread. */
int server_outstanding(struct server *server);

/* Drain, wait until the core has answered every call, cut every connection and free everything.
 * The core must still be able to answer. Clears *SERVER. Main thread. */
void server_stop(struct server **server);

/* "nng 1.5.2 with link-time repairs" or "nng 1.7.3". Static text. */
const char *server_library(void);

#endif

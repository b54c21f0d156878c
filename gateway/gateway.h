/* SPDX-License-Identifier: MIT */
/*
 * The web door: the documented REST routes, translated into the same calls that nng brings.
 */
#ifndef TITEN_GATEWAY_GATEWAY_H
#define TITEN_GATEWAY_GATEWAY_H

#include <stddef.h>

struct core;
struct gateway;

struct gateway_options {
	const char *listen;   /* HOST:PORT, IPv4 (the HTTP library has no IPv6) */
	struct core *core;    /* of this process, or */
	const char *core_url; /* NULL, or that of a core in another: tcp://HOST:PORT, ipc:///PATH */
	const char *revision; /* what health answers beside a core in another; static */
};

/* Listen and serve. NULL: ERROR is one line for people. Main thread. */
struct gateway *gateway_start(
    const struct gateway_options *options, char *error, size_t error_bytes);

/* The port in use, for a listen address that ends in :0. */
int gateway_port(const struct gateway *gateway);

/* Requests that have arrived whole and are not answered yet. */
int gateway_outstanding(struct gateway *gateway);
/* From now on every answer closes its connection and readiness is refused. */
void gateway_drain(struct gateway *gateway);
/* Answer what is under way, close. A core in another process that does not answer holds that up for
 * 30 seconds at most. Clears *GATEWAY. */
void gateway_stop(struct gateway **gateway);

#endif

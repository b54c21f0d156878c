/* SPDX-License-Identifier: MIT */
/*
 * One HTTP exchange: from a request that civetweb has read the head of to the answer, written in
 * one piece. The checks come in the order the contract gives: route, key, scope, framing, size,
 * JSON, fields, and then the core. A route without a call is answered with its document.
 */
#ifndef TITEN_GATEWAY_HTTP_H
#define TITEN_GATEWAY_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <civetweb.h>

#include "gateway/backend.h"

/* What the exchanges of one listener share. */
struct http_door {
	struct backend backend;
	struct patience *patience;
	atomic_int outstanding; /* requests that have arrived whole and are not answered */
	atomic_bool draining;   /* answers close their connections, readiness is refused */
	atomic_bool stopping;   /* nothing is begun any more */
};

/* Serve the request on CONN. Blocks until the core has answered. The HTTP status. */
int http_serve(struct http_door *door, struct mg_connection *conn);

/* Answer what civetweb could not read as a request. STATUS is what it thinks of it. */
void http_reject(struct http_door *door, struct mg_connection *conn, int status);

#endif

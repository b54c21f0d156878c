/* SPDX-License-Identifier: MIT */
/*
 * The one vocabulary of outcomes, from proto/status.def. Every door translates it: nng sends the
 * gRPC number and the reason, REST the reason and the HTTP status.
 */
#ifndef TITEN_CORE_STATUS_H
#define TITEN_CORE_STATUS_H

enum status {
	STATUS_OK = 0,
#define STATUS(reason, grpc, name, http) STATUS_##reason,
#include "status.def"
	STATUS_COUNT
};

/* The code word ("CONFLICT"); "OK" for STATUS_OK. Static text. */
const char *status_reason(enum status st);

/* The gRPC code: 0 for STATUS_OK (grpc.github.io/grpc/core/md_doc_statuscodes.html). */
int status_grpc(enum status st);

/* The HTTP status of a failure; 200 for STATUS_OK. */
int status_http(enum status st);

/* The status whose code word is REASON; STATUS_INTERNAL when there is none. */
enum status status_find(const char *reason);

#endif

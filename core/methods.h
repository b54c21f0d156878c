/* SPDX-License-Identifier: MIT */
/* proto/methods.def, expanded: everything the server knows about its calls. */
#ifndef TITEN_CORE_METHODS_H
#define TITEN_CORE_METHODS_H

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>

#include "core/rules.h"
#include "core/scopes.h"
#include "core/status.h"

enum access { ACCESS_NONE, ACCESS_READ, ACCESS_WRITE };
enum result { RESULT_OK, RESULT_CREATED, RESULT_UPSERT };
enum verb { VERB_NONE, VERB_GET, VERB_POST, VERB_DELETE };

struct method {
	const char *name;    /* titen.v1.LeaseService/Acquire */
	const char *service; /* titen.v1.LeaseService */
	const char *rpc;     /* Acquire */
	enum access access;
	enum right right;
	enum result result;
	enum verb verb;
	const char *path; /* "/v1/leases/{lease_id}"; "" without a verb */
	const char *summary;
	const struct rule *rules;
	enum status (*run)(struct call *c); /* the handler, with its messages cast to their types */
	const char *response_name;
	size_t request_bytes; /* of the C structs, for the self-check */
	size_t response_bytes;
	/* Set by methods_init(). */
	const ProtobufCMessageDescriptor *request;
	const ProtobufCMessageDescriptor *response;
};

/* Bind every row to its descriptors and check that table, services and rules agree. False: *ERROR_R
 * says what does not (static text). Once, before any other function here; main thread. */
bool methods_init(const char **error_r);

size_t methods_count(void);
const struct method *method_at(size_t i);
/* By full name; NULL when there is none. */
const struct method *method_find(const char *name);

#endif

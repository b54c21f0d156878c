/* SPDX-License-Identifier: MIT */
/*
 * From verb and path to a call. The routes are the rows of proto/methods.def and gateway/doors.def;
 * a segment like {lease_id} of a row takes any segment and names the field that gets it. There are
 * dozens of rows, so finding one is a walk over all of them.
 */
#ifndef TITEN_GATEWAY_ROUTE_H
#define TITEN_GATEWAY_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/call.h"

#define ROUTE_SEGMENTS_MAX 8 /* of a template; the longest we have is four */
#define ROUTE_PARAMS_MAX 4

/* One row of either table. */
struct route {
	enum verb verb;
	const char *path;
	const struct method *method;   /* NULL for a document, or when a door names no call */
	const char *(*document)(void); /* the body of the answer: JSON that never changes */
	const char *summary;           /* of a document */
};

struct route_param {
	const char *field;
	const char *value; /* decoded */
};

struct route_match {
	struct route_param params[ROUTE_PARAMS_MAX];
	size_t params_n;
	const char *(*document)(void); /* in place of a call; else NULL */
	const char
	    *allow; /* the verbs of the path, for an Allow header, when VERB is none of them */
};

/* Whether the rows are fit to be walked: well-formed, no two alike, naming text fields of their
 * requests. *ERROR_R is static text. After methods_init(). */
bool route_check(const char **error_r);

/* The I-th row of all. False behind the last one. */
bool route_at(size_t i, struct route *r);

/* "GET"; "" for VERB_NONE. */
const char *route_verb(enum verb verb);

/* Set MATCH, and c->method unless the route is that of a document. PATH is as it came, percent
 * escapes and all. NOT_FOUND when no row has the path, METHOD_NOT_ALLOWED when only other verbs
 * have it, VALIDATION_ERROR when it cannot be decoded. All texts are in the call's arena. */
enum status route_find(
    struct call *c, const char *verb, const char *path, struct route_match *match);

/* TEXT without percent escapes (RFC 3986, section 2.1), and with PLUS a "+" is a space. NULL when
 * an escape is broken or the outcome is not UTF-8 or has a NUL. */
char *route_decode(struct arena *arena, const char *text, size_t bytes, bool plus);

#endif

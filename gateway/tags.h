/* SPDX-License-Identifier: MIT */
/*
 * Entity tags (RFC 9110, sections 8.8.3 and 13.1.1): the rows of gateway/doors.def that bind a
 * header to a list of tags in a request, and a field of a response to the ETag header.
 */
#ifndef TITEN_GATEWAY_TAGS_H
#define TITEN_GATEWAY_TAGS_H

#include <stdbool.h>
#include <civetweb.h>

#include "core/call.h"

/* Whether the rows name calls and fields that exist. *ERROR_R is static text. After
 * methods_init(). */
bool tags_check(const char **error_r);

/* The header that is bound to field *FIELD_R of METHOD's request; NULL when none is. */
const char *tags_header(const struct method *method, const char **field_r);
/* Whether the answers of METHOD have an entity tag. */
bool tags_given(const struct method *method);

/* Add the tags of INFO's headers to c->request: strong ones without their quotes, a star as it is,
 * and weak ones as they are too, which match nothing here. */
enum status tags_read(struct call *c, const struct mg_request_info *info);

/* The entity tag of the answer, quoted, in the call's arena; NULL when it has none. */
const char *tags_answer(const struct call *c);

#endif

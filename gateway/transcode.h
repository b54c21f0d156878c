/* SPDX-License-Identifier: MIT */
/*
 * JSON to messages, by descriptor, for any message of ours. Names are those of the .proto file.
 *
 *	string, bool, double		the same
 *	integers			a number: integral, at most 2^53 in magnitude
 *	bytes				base64 (RFC 4648, section 4)
 *	enum				the value's name in lower case
 *	repeated			an array
 *	message				an object
 *	google.protobuf.Timestamp	RFC 3339 text
 *	titen.v1.Json			any value, kept as its compact text
 *
 * Unknown members are ignored, and null means absent. Messages with oneofs are not supported.
 */
#ifndef TITEN_GATEWAY_TRANSCODE_H
#define TITEN_GATEWAY_TRANSCODE_H

#include <jansson.h>

#include "core/call.h"

/* All answer STATUS_OK or: VALIDATION_ERROR with the place and what belongs there;
 * PAYLOAD_TOO_LARGE when the call's arena refuses; UNAVAILABLE when the process is out of memory.
 */

/* Give the call an empty request of its method's type. */
enum status transcode_begin(struct call *c);

/* Set fields of c->request from the members of OBJECT, an object that is copied from. */
enum status transcode_object(struct call *c, const json_t *object);

/* Set field NAME of c->request, or add to it when it is repeated, from well-formed TEXT. Integers
 * are decimal digits. A name that is no field, or one of a kind that is not written so, is ignored.
 */
enum status transcode_text(struct call *c, const char *name, const char *text);

#endif

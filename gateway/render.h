/* SPDX-License-Identifier: MIT */
/*
 * Messages to JSON, by descriptor: the mapping that transcode.h reads, with every field of the
 * descriptor in its order, absent ones as null and empty lists as [].
 */
#ifndef TITEN_GATEWAY_RENDER_H
#define TITEN_GATEWAY_RENDER_H

#include <protobuf-c/protobuf-c.h>

#include "core/json_write.h"

/* The fields of MESSAGE as members of the object that W is in, without the one called EXCEPT (NULL:
 * all of them). Times are within the years 0000 to 9999, and texts are well-formed. */
void render_members(struct json_writer *w, const ProtobufCMessage *message, const char *except);

/* What field NAME of MESSAGE holds; NULL when it is absent or MESSAGE has no such field. */
const ProtobufCMessage *render_message_in(const ProtobufCMessage *message, const char *name);
const char *render_text_in(const ProtobufCMessage *message, const char *name);

#endif

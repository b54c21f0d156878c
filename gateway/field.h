/* SPDX-License-Identifier: MIT */
/* What both directions of the translation between JSON and messages ask about a field. */
#ifndef TITEN_GATEWAY_FIELD_H
#define TITEN_GATEWAY_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>

#include "core/arena.h"

/* The two message types that JSON does not write as objects. */
bool field_is_time(const ProtobufCFieldDescriptor *f);
bool field_is_json(const ProtobufCFieldDescriptor *f);

/* What one value takes in the C struct. */
size_t field_value_bytes(const ProtobufCFieldDescriptor *f);

/* NAME, of an enum value, as JSON spells it. In ARENA. */
char *field_enum_name(struct arena *arena, const char *name);

#endif

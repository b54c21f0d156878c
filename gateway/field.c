/* SPDX-License-Identifier: MIT */
/* Answers from protobuf-c's descriptors. */
#include "gateway/field.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static bool
field_is(const ProtobufCFieldDescriptor *f, const char *message_name)
{
	return f->type == PROTOBUF_C_TYPE_MESSAGE &&
	       strcmp(((const ProtobufCMessageDescriptor *)f->descriptor)->name, message_name) == 0;
}

bool
field_is_time(const ProtobufCFieldDescriptor *f)
{
	return field_is(f, "google.protobuf.Timestamp");
}

bool
field_is_json(const ProtobufCFieldDescriptor *f)
{
	return field_is(f, "titen.v1.Json");
}

size_t
field_value_bytes(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(char *);
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(ProtobufCMessage *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(int64_t);
	default:
		return sizeof(int32_t);
	}
}

char *
field_enum_name(struct arena *arena, const char *name)
{
	char *text = arena_text(arena, name);

	for (char *p = text; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return text;
}

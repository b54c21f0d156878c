/* SPDX-License-Identifier: MIT */
/*
 * One walk over the bytes beside the descriptors, from the bottom up: bytes, values, fields,
 * messages. It is at least as strict as protobuf-c, so what passes also unpacks.
 */
#include "core/wire.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"

#define VARINT_BYTES_MAX 10 /* 64 bits, seven in each byte */
#define PREFIX_BYTES_MAX 5  /* of tags and lengths, which have 32 bits */
#define FIELD_NUMBER_MAX (((uint64_t)1 << 29) - 1)

struct walk {
	int members;
	char *error;
	size_t error_bytes;
};

/* What is left of a message. */
struct span {
	const uint8_t *at;
	const uint8_t *end;
};

/* A field number with its wire type, and where the value begins. */
struct tag {
	uint32_t number;
	uint8_t wire_type;
};

static bool check_message(
    struct walk *w, const ProtobufCMessageDescriptor *type, struct span s, int depth);

__attribute__((format(printf, 2, 3))) static bool
fail(struct walk *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->error, w->error_bytes, format, args);
	va_end(args);
	return false;
}

static bool
malformed(struct walk *w)
{
	return fail(w, "The message is not well-formed.");
}

static bool
read_varint(struct span *s, int bytes_max, uint64_t *value_r)
{
	*value_r = 0;
	for (int i = 0; i < bytes_max && s->at < s->end; i++) {
		uint8_t byte = *s->at++;

		*value_r |= (uint64_t)(byte & 0x7f) << (7 * i);
		if ((byte & 0x80) == 0)
			return i < VARINT_BYTES_MAX - 1 || byte <= 1;
	}
	return false;
}

static bool
skip(struct span *s, size_t bytes)
{
	if ((size_t)(s->end - s->at) < bytes)
		return false;
	s->at += bytes;
	return true;
}

static bool
read_tag(struct span *s, struct tag *tag)
{
	uint64_t key;

	if (!read_varint(s, PREFIX_BYTES_MAX, &key))
		return false;
	if (key >> 3 == 0 || key >> 3 > FIELD_NUMBER_MAX)
		return false;
	*tag = (struct tag){ (uint32_t)(key >> 3), key & 7 };
	return true;
}

/* Take the value of a field off S; *VALUE is what lies behind its length, if it has one, or the number. Groups and
 * the wire types 6 and 7 are not for us. */
static bool
read_value(struct span *s, uint8_t wire_type, struct span *value)
{
	uint64_t number;

	value->at = value->end = s->at;
	switch (wire_type) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		if (!read_varint(s, VARINT_BYTES_MAX, &number))
			return false;
		value->end = s->at;
		return true;
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		return skip(s, 8);
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		return skip(s, 4);
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		if (!read_varint(s, PREFIX_BYTES_MAX, &number))
			return false;
		value->at = s->at;
		if (!skip(s, number))
			return false;
		value->end = s->at;
		return true;
	default:
		return false;
	}
}

static uint8_t
wire_type_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return PROTOBUF_C_WIRE_TYPE_64BIT;
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return PROTOBUF_C_WIRE_TYPE_32BIT;
	default:
		return PROTOBUF_C_WIRE_TYPE_VARINT;
	}
}

/* One more member, which costs memory when it is unpacked. */
static bool
count_member(struct walk *w)
{
	if (++w->members <= WIRE_MEMBERS_MAX)
		return true;
	return fail(w, "The message has more than %d fields.", WIRE_MEMBERS_MAX);
}

/* The values of a repeated scalar in one field. */
static bool
check_packed(struct walk *w, uint8_t wire_type, struct span s)
{
	struct span value;

	while (s.at < s.end) {
		if (!read_value(&s, wire_type, &value))
			return malformed(w);
		if (!count_member(w))
			return false;
	}
	return true;
}

/* protobuf-c would cut a larger number down to one that may be known. */
static bool
enum_fits(struct span value)
{
	uint64_t number = 0;

	return read_varint(&value, VARINT_BYTES_MAX, &number) && number <= INT32_MAX;
}

static bool
check_field(struct walk *w, const ProtobufCFieldDescriptor *field, uint8_t wire_type,
    struct span value, int depth)
{
	uint8_t expected = wire_type_of(field->type);

	if (wire_type != expected) {
		if (field->label == PROTOBUF_C_LABEL_REPEATED &&
		    wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
			return check_packed(w, expected, value);
		return fail(w, "%s has another type.", field->name);
	}
	if (field->type == PROTOBUF_C_TYPE_ENUM && !enum_fits(value))
		return fail(w, "%s is out of range.", field->name);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_message(w, field->descriptor, value, depth + 1);
	if (field->type == PROTOBUF_C_TYPE_STRING &&
	    !text_utf8((const char *)value.at, (size_t)(value.end - value.at)))
		return fail(w, "%s must be valid UTF-8 without NUL.", field->name);
	return true;
}

static bool
check_message(struct walk *w, const ProtobufCMessageDescriptor *type, struct span s, int depth)
{
	const ProtobufCFieldDescriptor *field;
	struct span value;
	struct tag tag;

	if (depth > WIRE_DEPTH_MAX)
		return fail(w, "The message is nested deeper than %d levels.", WIRE_DEPTH_MAX);
	while (s.at < s.end) {
		if (!read_tag(&s, &tag) || !read_value(&s, tag.wire_type, &value))
			return malformed(w);
		if (!count_member(w))
			return false;
		field = protobuf_c_message_descriptor_get_field(type, tag.number);
		if (field != NULL && !check_field(w, field, tag.wire_type, value, depth))
			return false;
	}
	return true;
}

bool
wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length, char *error,
    size_t error_bytes)
{
	struct walk w = { .error = error, .error_bytes = error_bytes };

	assert(error_bytes > 0);
	if (length == 0)
		return true;
	return check_message(&w, type, (struct span){ bytes, bytes + length }, 1);
}

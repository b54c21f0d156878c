/* SPDX-License-Identifier: MIT */
/* From the bottom up: a function for each kind of value, then fields, then messages. */
#include "gateway/render.h"

#include <sodium.h>
#include <string.h>

#include "core/call.h"
#include "gateway/field.h"

static void
bytes_write(struct json_writer *w, const ProtobufCBinaryData *data)
{
	size_t room = sodium_base64_encoded_len(data->len, sodium_base64_VARIANT_ORIGINAL);
	char *text = arena_alloc(w->arena, room);

	json_write_text(w,
	    sodium_bin2base64(text, room, data->data, data->len, sodium_base64_VARIANT_ORIGINAL));
}

static void
enum_write(struct json_writer *w, const ProtobufCEnumDescriptor *type, int number)
{
	const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);

	json_write_text(w, value == NULL ? NULL : field_enum_name(w->arena, value->name));
}

static void
message_write(
    struct json_writer *w, const ProtobufCFieldDescriptor *f, const ProtobufCMessage *message)
{
	if (field_is_time(f)) {
		const Google__Protobuf__Timestamp *t = (const Google__Protobuf__Timestamp *)message;
		json_write_time(w, t->seconds * 1000 + t->nanos / 1000000);
	} else if (field_is_json(f)) {
		const char *text = ((const PB(Json) *)message)->text;
		json_write_raw(
		    w, text == NULL ? "null" : text, strlen(text == NULL ? "null" : text));
	} else {
		json_write_open(w, '{');
		render_members(w, message, NULL);
		json_write_close(w, '}');
	}
}

static void
number_write(struct json_writer *w, ProtobufCType type, const void *value)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		json_write_int(w, *(const int32_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		json_write_int(w, *(const uint32_t *)value);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		json_write_real(w, (double)*(const float *)value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		json_write_real(w, *(const double *)value);
		break;
	default:
		json_write_int(w, *(const int64_t *)value);
	}
}

static void
value_write(struct json_writer *w, const ProtobufCFieldDescriptor *f, const void *value)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		json_write_text(w, *(char *const *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		bytes_write(w, value);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		enum_write(w, f->descriptor, *(const int *)value);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		json_write_bool(w, *(const protobuf_c_boolean *)value);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		message_write(w, f, *(ProtobufCMessage *const *)value);
		break;
	default:
		number_write(w, f->type, value);
	}
}

/* The value of a field that is not repeated; NULL when it is absent. */
static const void *
field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
	const char *base = (const char *)message;
	const void *value = base + f->offset;

	if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(void *const *)value == NULL ? NULL : value;
	if (f->quantifier_offset != 0 &&
	    !*(const protobuf_c_boolean *)(const void *)(base + f->quantifier_offset))
		return NULL;
	return value;
}

static void
list_write(
    struct json_writer *w, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
	const char *base = (const char *)message;
	size_t n = *(const size_t *)(const void *)(base + f->quantifier_offset);
	const char *elements = *(char *const *)(const void *)(base + f->offset);

	json_write_open(w, '[');
	for (size_t i = 0; i < n; i++)
		value_write(w, f, elements + i * field_value_bytes(f));
	json_write_close(w, ']');
}

void
render_members(struct json_writer *w, const ProtobufCMessage *message, const char *except)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;

	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];

		if (except != NULL && strcmp(f->name, except) == 0)
			continue;
		json_write_name(w, f->name);
		const void *value = NULL;
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			list_write(w, message, f);
		else if ((value = field_value(message, f)) != NULL)
			value_write(w, f, value);
		else
			json_write_null(w);
	}
}

/* The pointer in a field of the given type that is not repeated. */
static const void *
pointer_in(const ProtobufCMessage *message, const char *name, ProtobufCType type)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

	if (f == NULL || f->type != type || f->label == PROTOBUF_C_LABEL_REPEATED)
		return NULL;
	return *(void *const *)(const void *)((const char *)message + f->offset);
}

const ProtobufCMessage *
render_message_in(const ProtobufCMessage *message, const char *name)
{
	return pointer_in(message, name, PROTOBUF_C_TYPE_MESSAGE);
}

const char *
render_text_in(const ProtobufCMessage *message, const char *name)
{
	return pointer_in(message, name, PROTOBUF_C_TYPE_STRING);
}

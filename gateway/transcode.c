/* SPDX-License-Identifier: MIT */
/*
 * From the bottom up: a place for error texts, a slot for the next value of a field, a function for
 * each kind of value, then fields and objects, and fields given as bare text.
 */
#include "gateway/transcode.h"

#include <ctype.h>
#include <math.h>
#include <sodium.h>
#include <string.h>
#include <time.h>

#include "core/json_read.h"
#include "gateway/field.h"

#define EXACT_MAX ((int64_t)1 << 53) /* beyond it doubles skip integers (RFC 8259, section 6) */
#define SECONDS_MIN INT64_C(-62167219200) /* 0000-01-01T00:00:00Z */
#define SECONDS_MAX INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

/* Where a value stands, innermost first. Written out only when the value is at fault. */
struct place {
	const struct place *parent;
	const char *field;
	long index; /* in a repeated field; -1 otherwise */
};

static enum status object_read(
    struct call *c, const struct place *parent, ProtobufCMessage *message, const json_t *object);

static const char *
place_text(struct arena *arena, const struct place *at)
{
	const char *text = at->field;

	if (at->parent != NULL)
		text = arena_printf(arena, "%s.%s", place_text(arena, at->parent), text);
	return at->index < 0 ? text : arena_printf(arena, "%s[%ld]", text, at->index);
}

static enum status
value_fault(struct call *c, const struct place *at, const char *wanted)
{
	return call_fail(
	    c, STATUS_VALIDATION_ERROR, "%s must be %s.", place_text(c->arena, at), wanted);
}

/* The arena has refused: because of this request, unless the whole process is near its budget. */
static enum status
arena_fault(struct call *c)
{
	if (arena_budget_used() + ARENA_BYTES_MAX < ARENA_BUDGET_BYTES)
		return call_fail(
		    c, STATUS_PAYLOAD_TOO_LARGE, "The request takes too much memory to read.");
	return call_fail(c, STATUS_UNAVAILABLE, "The server has no memory to spare.");
}

/* Room for one more element, and then it is the caller's to fill. The capacity is the next power of
 * two, so it need not be kept anywhere. */
static void *
list_slot(struct arena *arena, const ProtobufCFieldDescriptor *f, size_t *n, void *list)
{
	size_t bytes = field_value_bytes(f);
	char *elements;

	memcpy(&elements, list, sizeof(elements));
	if ((*n & (*n - 1)) == 0) {
		char *more = arena_try(arena, (*n == 0 ? 1 : 2 * *n) * bytes);
		if (more == NULL)
			return NULL;
		if (*n > 0)
			memcpy(more, elements, *n * bytes);
		elements = more;
		memcpy(list, &elements, sizeof(elements));
	}
	return elements + (*n)++ * bytes;
}

/* Where the next value of a field goes; the field counts as present from now on. NULL when the
 * arena refuses. */
static void *
field_slot(struct arena *arena, ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
	char *base = (char *)message;
	void *value = base + f->offset, *quantifier = base + f->quantifier_offset;

	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return list_slot(arena, f, quantifier, value);
	if (f->quantifier_offset != 0)
		*(protobuf_c_boolean *)quantifier = 1;
	return value;
}

static ProtobufCMessage *
message_new(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
	ProtobufCMessage *message = arena_try(arena, type->sizeof_message);

	if (message != NULL)
		protobuf_c_message_init(type, message);
	return message;
}

/* --- values that are text in JSON */

static enum status
string_read(struct call *c, const char *text, size_t bytes, char **slot)
{
	*slot = arena_try(c->arena, bytes + 1);
	if (*slot == NULL)
		return arena_fault(c);
	memcpy(*slot, text, bytes);
	return STATUS_OK;
}

static enum status
bytes_read(struct call *c, const struct place *at, const char *text, size_t bytes,
    ProtobufCBinaryData *slot)
{
	size_t room = bytes / 4 * 3 + 3;
	const char *end;

	slot->data = arena_try(c->arena, room);
	if (slot->data == NULL)
		return arena_fault(c);
	if (sodium_base642bin(slot->data, room, text, bytes, NULL, &slot->len, &end,
		sodium_base64_VARIANT_ORIGINAL) != 0 ||
	    end != text + bytes)
		return value_fault(c, at, "base64");
	return STATUS_OK;
}

static bool
enum_name_is(const char *name, const char *text)
{
	while (*name != '\0' && tolower((unsigned char)*name) == *text) {
		name++;
		text++;
	}
	return *name == '\0' && *text == '\0';
}

static enum status
enum_read(struct call *c, const struct place *at, const ProtobufCEnumDescriptor *type,
    const char *text, int *slot)
{
	const char *names = "one of ";

	for (unsigned i = 0; i < type->n_values; i++) {
		if (enum_name_is(type->values[i].name, text)) {
			*slot = type->values[i].value;
			return STATUS_OK;
		}
		names = arena_printf(c->arena, "%s%s%s", names, i == 0 ? "" : ", ",
		    field_enum_name(c->arena, type->values[i].name));
	}
	return value_fault(c, at, names);
}

/* Whether TEXT begins like SHAPE, where 0 stands for any digit. */
static bool
shape_is(const char *text, const char *shape)
{
	for (; *shape != '\0'; shape++, text++)
		if (*shape == '0' ? *text < '0' || *text > '9' : *text != *shape)
			return false;
	return true;
}

static int
digits_value(const char *text, int digits)
{
	int value = 0;

	while (digits-- > 0)
		value = value * 10 + (*text++ - '0');
	return value;
}

/* "Z" or "+hh:mm" and then the end. */
static bool
offset_read(const char *text, int64_t *seconds_r)
{
	*seconds_r = 0;
	if (strcmp(text, "Z") == 0)
		return true;
	if ((*text != '+' && *text != '-') || !shape_is(text + 1, "00:00") || text[6] != '\0')
		return false;
	int hours = digits_value(text + 1, 2), minutes = digits_value(text + 4, 2);
	*seconds_r = (*text == '-' ? -1 : 1) * (hours * INT64_C(3600) + minutes * INT64_C(60));
	return hours < 24 && minutes < 60;
}

/* RFC 3339, section 5.6, with capital T and Z and without leap seconds. */
static bool
time_parse(const char *text, Google__Protobuf__Timestamp *t)
{
	int64_t offset;

	if (!shape_is(text, "0000-00-00T00:00:00"))
		return false;
	struct tm tm = {
		.tm_year = digits_value(text, 4) - 1900,
		.tm_mon = digits_value(text + 5, 2) - 1,
		.tm_mday = digits_value(text + 8, 2),
		.tm_hour = digits_value(text + 11, 2),
		.tm_min = digits_value(text + 14, 2),
		.tm_sec = digits_value(text + 17, 2),
	};
	struct tm proper = tm;
	t->seconds = timegm(&proper);
	/* timegm() carries what is out of range, the 30th of February too. */
	if (proper.tm_mon != tm.tm_mon || proper.tm_mday != tm.tm_mday ||
	    proper.tm_hour != tm.tm_hour || proper.tm_min != tm.tm_min ||
	    proper.tm_sec != tm.tm_sec)
		return false;
	text += strlen("0000-00-00T00:00:00");
	if (*text == '.') {
		if (!isdigit((unsigned char)*++text))
			return false;
		for (int32_t unit = 100000000; isdigit((unsigned char)*text); unit /= 10)
			t->nanos += (*text++ - '0') * unit;
	}
	if (!offset_read(text, &offset))
		return false;
	t->seconds -= offset;
	return t->seconds >= SECONDS_MIN && t->seconds <= SECONDS_MAX;
}

static enum status
time_read(struct call *c, const struct place *at, const ProtobufCFieldDescriptor *f,
    const char *text, ProtobufCMessage **slot)
{
	*slot = message_new(c->arena, f->descriptor);
	if (*slot == NULL)
		return arena_fault(c);
	if (!time_parse(text, (Google__Protobuf__Timestamp *)*slot))
		return value_fault(c, at, "a time like 2026-07-30T10:58:13.829Z");
	return STATUS_OK;
}

/* A value that JSON and queries both write as text. */
static enum status
text_read(struct call *c, const struct place *at, const ProtobufCFieldDescriptor *f,
    const char *text, size_t bytes, void *slot)
{
	if (f->type == PROTOBUF_C_TYPE_STRING)
		return string_read(c, text, bytes, slot);
	if (f->type == PROTOBUF_C_TYPE_BYTES)
		return bytes_read(c, at, text, bytes, slot);
	if (f->type == PROTOBUF_C_TYPE_ENUM)
		return enum_read(c, at, f->descriptor, text, slot);
	return time_read(c, at, f, text, slot);
}

/* --- the other values */

/* False when VALUE is out of the type's range. */
static bool
integer_store(ProtobufCType type, int64_t value, void *slot)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		*(int32_t *)slot = (int32_t)value;
		return value >= INT32_MIN && value <= INT32_MAX;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		*(uint32_t *)slot = (uint32_t)value;
		return value >= 0 && value <= UINT32_MAX;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		*(uint64_t *)slot = (uint64_t)value;
		return value >= 0;
	default:
		*(int64_t *)slot = value;
		return true;
	}
}

static enum status
integer_read(
    struct call *c, const struct place *at, ProtobufCType type, const json_t *json, void *slot)
{
	double value = json_number_value(json);

	if (!json_is_number(json) || value != trunc(value))
		return value_fault(c, at, "an integer");
	if (fabs(value) > (double)EXACT_MAX || !integer_store(type, (int64_t)value, slot))
		return value_fault(c, at, "an integer within range");
	return STATUS_OK;
}

static enum status
real_read(
    struct call *c, const struct place *at, ProtobufCType type, const json_t *json, void *slot)
{
	if (!json_is_number(json))
		return value_fault(c, at, "a number");
	if (type == PROTOBUF_C_TYPE_FLOAT)
		*(float *)slot = (float)json_number_value(json);
	else
		*(double *)slot = json_number_value(json);
	return STATUS_OK;
}

static enum status
json_value_read(struct call *c, const json_t *json, PB(Json) **slot)
{
	*slot = (PB(Json) *)message_new(c->arena, &titen__v1__json__descriptor);
	if (*slot == NULL)
		return arena_fault(c);
	(*slot)->text = json_compact(c->arena, json);
	return (*slot)->text == NULL ? arena_fault(c) : STATUS_OK;
}

static enum status
message_read(struct call *c, const struct place *at, const ProtobufCFieldDescriptor *f,
    const json_t *json, ProtobufCMessage **slot)
{
	if (!json_is_object(json))
		return value_fault(c, at, "an object");
	*slot = message_new(c->arena, f->descriptor);
	if (*slot == NULL)
		return arena_fault(c);
	return object_read(c, at, *slot, json);
}

/* What a value that JSON writes as text is called; NULL for values that are no text there. */
static const char *
text_kind(const ProtobufCFieldDescriptor *f)
{
	if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_ENUM)
		return "a string";
	if (f->type == PROTOBUF_C_TYPE_BYTES)
		return "a string of base64";
	return field_is_time(f) ? "a string with a time" : NULL;
}

static enum status
value_read(struct call *c, const struct place *at, const ProtobufCFieldDescriptor *f,
    const json_t *json, void *slot)
{
	const char *kind = text_kind(f);

	if (kind != NULL)
		return json_is_string(json) ? text_read(c, at, f, json_string_value(json),
						  json_string_length(json), slot)
					    : value_fault(c, at, kind);
	switch (f->type) {
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)slot = json_is_true(json);
		return json_is_boolean(json) ? STATUS_OK : value_fault(c, at, "true or false");
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		return real_read(c, at, f->type, json, slot);
	case PROTOBUF_C_TYPE_MESSAGE:
		return field_is_json(f) ? json_value_read(c, json, slot)
					: message_read(c, at, f, json, slot);
	default:
		return integer_read(c, at, f->type, json, slot);
	}
}

static enum status
field_read(struct call *c, const struct place *at, ProtobufCMessage *message,
    const ProtobufCFieldDescriptor *f, const json_t *json)
{
	void *slot = field_slot(c->arena, message, f);

	return slot == NULL ? arena_fault(c) : value_read(c, at, f, json, slot);
}

static enum status
list_read(struct call *c, struct place *at, ProtobufCMessage *message,
    const ProtobufCFieldDescriptor *f, const json_t *json)
{
	enum status st = STATUS_OK;

	if (!json_is_array(json))
		return value_fault(c, at, "a list");
	for (size_t i = 0; st == STATUS_OK && i < json_array_size(json); i++) {
		at->index = (long)i;
		st = field_read(c, at, message, f, json_array_get(json, i));
	}
	return st;
}

static enum status
object_read(
    struct call *c, const struct place *parent, ProtobufCMessage *message, const json_t *object)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	enum status st = STATUS_OK;

	for (unsigned i = 0; st == STATUS_OK && i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		const json_t *json = json_object_get(object, f->name);
		struct place at = { parent, f->name, -1 };

		if (json == NULL || json_is_null(json))
			continue;
		st = f->label == PROTOBUF_C_LABEL_REPEATED ? list_read(c, &at, message, f, json)
							   : field_read(c, &at, message, f, json);
	}
	return st;
}

enum status
transcode_begin(struct call *c)
{
	c->request = message_new(c->arena, c->method->request);
	return c->request == NULL ? arena_fault(c) : STATUS_OK;
}

enum status
transcode_object(struct call *c, const json_t *object)
{
	return object_read(c, NULL, c->request, object);
}

/* --- fields given as bare text */

static enum status
digits_read(
    struct call *c, const struct place *at, ProtobufCType type, const char *text, void *slot)
{
	int64_t value = 0;

	for (const char *p = text; *p != '\0' || p == text; p++) {
		if (!isdigit((unsigned char)*p))
			return value_fault(c, at, "an integer");
		value = value * 10 + (*p - '0');
		if (value > EXACT_MAX)
			return value_fault(c, at, "an integer within range");
	}
	return integer_store(type, value, slot) ? STATUS_OK
						: value_fault(c, at, "an integer within range");
}

static enum status
bool_read(struct call *c, const struct place *at, const char *text, protobuf_c_boolean *slot)
{
	*slot = strcmp(text, "true") == 0;
	return *slot || strcmp(text, "false") == 0 ? STATUS_OK
						   : value_fault(c, at, "true or false");
}

enum status
transcode_text(struct call *c, const char *name, const char *text)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(c->method->request, name);

	if (f == NULL || f->type == PROTOBUF_C_TYPE_FLOAT || f->type == PROTOBUF_C_TYPE_DOUBLE ||
	    (f->type == PROTOBUF_C_TYPE_MESSAGE && !field_is_time(f)))
		return STATUS_OK;
	struct place at = { NULL, f->name, -1 };
	void *slot = field_slot(c->arena, c->request, f);
	if (slot == NULL)
		return arena_fault(c);
	if (text_kind(f) != NULL)
		return text_read(c, &at, f, text, strlen(text), slot);
	return f->type == PROTOBUF_C_TYPE_BOOL ? bool_read(c, &at, text, slot)
					       : digits_read(c, &at, f->type, text, slot);
}

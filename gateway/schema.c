/* SPDX-License-Identifier: MIT */
/* From the bottom up: values, their limits, null, fields, messages. */
#include "gateway/schema.h"

#include <stdint.h>
#include <string.h>

#include "core/call.h"
#include "gateway/field.h"
#include "gateway/comments.h"
#include "gateway/route.h"
#include "gateway/tags.h"

#define EXACT_MAX ((int64_t)1 << 53) /* a limit beyond it limits nothing that JSON can say */

json_t *
schema_ref(const char *kind, const char *name)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

void
schema_describe(const struct schema_book *book, json_t *object, const char *full_name)
{
	const char *text = comments_of(book->arena, book->descriptors, full_name);

	if (text != NULL)
		json_object_set_new(object, "description", json_string(text));
}

const struct rule *
schema_rule(const struct method *method, const char *field)
{
	for (const struct rule *r = method->rules; r->kind != RULE_END; r++)
		if (strcmp(r->field, field) == 0)
			return r;
	return NULL;
}

/* --- values */

static json_t *
enum_schema(struct schema_book *book, const ProtobufCEnumDescriptor *type)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < type->n_values; i++)
		json_array_append_new(
		    names, json_string(field_enum_name(book->arena, type->values[i].name)));
	return json_pack("{s:s, s:o}", "type", "string", "enum", names);
}

static json_t *
message_schema(struct schema_book *book, const ProtobufCFieldDescriptor *f)
{
	if (field_is_time(f))
		return json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
	return field_is_json(f) ? json_object() : schema_answer(book, f->descriptor);
}

static json_t *
value_schema(struct schema_book *book, const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return json_pack("{s:s}", "type", "string");
	case PROTOBUF_C_TYPE_BYTES:
		return json_pack("{s:s, s:s}", "type", "string", "contentEncoding", "base64");
	case PROTOBUF_C_TYPE_BOOL:
		return json_pack("{s:s}", "type", "boolean");
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		return json_pack("{s:s}", "type", "number");
	case PROTOBUF_C_TYPE_ENUM:
		return enum_schema(book, f->descriptor);
	case PROTOBUF_C_TYPE_MESSAGE:
		return message_schema(book, f);
	default:
		return json_pack("{s:s, s:s}", "type", "integer", "format",
		    field_value_bytes(f) == sizeof(int64_t) ? "int64" : "int32");
	}
}

/* --- limits */

static void
limit_set(json_t *schema, const char *name, int64_t limit)
{
	if (limit >= -EXACT_MAX && limit <= EXACT_MAX)
		json_object_set_new(schema, name, json_integer(limit));
}

/* What core/rules.h says of one value. */
static void
value_limit(json_t *schema, const struct rule *rule)
{
	switch (rule->kind) {
	case RULE_TEXT:
		limit_set(schema, "minLength", rule->min);
		limit_set(schema, "maxLength", rule->max);
		break;
	case RULE_TEXTS:
		limit_set(schema, "minLength", 1);
		limit_set(schema, "maxLength", rule->text_max);
		break;
	case RULE_INT:
		limit_set(schema, "minimum", rule->min);
		limit_set(schema, "maximum", rule->max);
		break;
	default: /* the others are not told in this language */
		break;
	}
}

json_t *
schema_field(struct schema_book *book, const ProtobufCFieldDescriptor *f, const struct rule *rule)
{
	json_t *schema = value_schema(book, f);

	if (rule != NULL)
		value_limit(schema, rule);
	if (f->label != PROTOBUF_C_LABEL_REPEATED)
		return schema;
	schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
	if (rule != NULL && rule->kind == RULE_TEXTS) {
		limit_set(schema, "minItems", rule->min);
		limit_set(schema, "maxItems", rule->max);
	}
	return schema;
}

/* The same, or null. Takes SCHEMA over. */
static json_t *
or_null(json_t *schema)
{
	json_t *type = json_object_get(schema, "type");
	json_t *values = json_object_get(schema, "enum");

	if (json_object_get(schema, "$ref") != NULL)
		return json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
	if (type != NULL)
		json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
	if (values != NULL)
		json_array_append_new(values, json_null());
	return schema;
}

/* --- messages */

/* "LeaseAcquireResponse": the name without the package. */
static const char *
schema_name(const ProtobufCMessageDescriptor *type)
{
	return type->name + strlen(type->package_name) + 1;
}

static void
member_add(const struct schema_book *book, json_t *message, const ProtobufCMessageDescriptor *type,
    const ProtobufCFieldDescriptor *f, json_t *schema, bool required)
{
	schema_describe(book, schema, arena_printf(book->arena, "%s.%s", type->name, f->name));
	json_object_set_new(json_object_get(message, "properties"), f->name, schema);
	if (required)
		json_array_append_new(json_object_get(message, "required"), json_string(f->name));
}

/* An object that is in the book from now on, still without members; NULL when it was already. */
static json_t *
message_begin(struct schema_book *book, const ProtobufCMessageDescriptor *type)
{
	const char *name = schema_name(type);
	json_t *message;

	if (json_object_get(book->schemas, name) != NULL)
		return NULL;
	message = json_pack("{s:s}", "type", "object");
	schema_describe(book, message, type->name);
	json_object_set_new(message, "properties", json_object());
	json_object_set_new(message, "required", json_array());
	json_object_set_new(book->schemas, name, message);
	return message;
}

/* The field "meta" of an answer goes elsewhere (http.c). */
json_t *
schema_answer(struct schema_book *book, const ProtobufCMessageDescriptor *type)
{
	json_t *message = message_begin(book, type);

	for (unsigned i = 0; message != NULL && i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		json_t *schema;

		if (strcmp(f->name, "meta") == 0)
			continue;
		schema = schema_field(book, f, NULL);
		if (f->label != PROTOBUF_C_LABEL_REPEATED)
			schema = or_null(schema);
		member_add(book, message, type, f, schema, true);
	}
	return schema_ref("schemas", schema_name(type));
}

static bool
field_is_elsewhere(const struct schema_book *book, const struct method *method, const char *name)
{
	const char *tags_field;

	if (strstr(method->path, arena_printf(book->arena, "{%s}", name)) != NULL)
		return true;
	return tags_header(method, &tags_field) != NULL && strcmp(tags_field, name) == 0;
}

json_t *
schema_body(struct schema_book *book, const struct method *method)
{
	const ProtobufCMessageDescriptor *type = method->request;
	json_t *message = message_begin(book, type);

	for (unsigned i = 0; message != NULL && i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		const struct rule *rule = schema_rule(method, f->name);
		json_t *schema;

		if (field_is_elsewhere(book, method, f->name))
			continue;
		schema = schema_field(book, f, rule);
		if (rule->optional)
			schema = or_null(schema);
		member_add(book, message, type, f, schema, !rule->optional);
	}
	return schema_ref("schemas", schema_name(type));
}

/* SPDX-License-Identifier: MIT */
/*
 * One function for each kind of rule, and a table that knows them. A field is found through the
 * descriptor of its message, so a rule knows nothing but its name.
 */
#include "core/rules.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/call.h"
#include "core/json_read.h"
#include "core/text.h"

#define FAULT_BYTES 80    /* of text_fault() */
#define CHOICES_BYTES 256 /* the names of our longest enum fill a quarter */

/* A field of one request; VALUE points to the member of the C struct. */
struct subject {
	const struct rule *rule;
	const ProtobufCFieldDescriptor *field;
	void *value;
	const void *quantifier; /* has_... or n_...; meaningless for pointers */
};

static struct subject
subject_find(const struct rule *rule, ProtobufCMessage *request)
{
	const ProtobufCFieldDescriptor *field =
	    protobuf_c_message_descriptor_get_field_by_name(request->descriptor, rule->field);
	char *base = (char *)request;

	assert(field != NULL);
	return (
	    struct subject){ rule, field, base + field->offset, base + field->quantifier_offset };
}

/* A list is always there, if empty. */
static bool
is_present(const struct subject *s)
{
	if (s->field->label == PROTOBUF_C_LABEL_REPEATED)
		return true;
	if (s->field->type == PROTOBUF_C_TYPE_STRING || s->field->type == PROTOBUF_C_TYPE_MESSAGE)
		return *(void **)s->value != NULL;
	return *(const protobuf_c_boolean *)s->quantifier != 0;
}

static enum status
check_text(struct call *c, const struct subject *s)
{
	char buffer[FAULT_BYTES];
	const char *fault = text_fault(*(char **)s->value, s->rule->max, buffer);

	if (fault == NULL)
		return STATUS_OK;
	return call_fail(c, STATUS_VALIDATION_ERROR, "%s %s.", s->rule->field, fault);
}

static enum status
check_id(struct call *c, const struct subject *s)
{
	(void)c;
	(void)s;
	return STATUS_OK;
}

static enum status
check_int(struct call *c, const struct subject *s)
{
	const struct rule *rule = s->rule;
	int64_t value = *(const int64_t *)s->value;

	if (value >= rule->min && value <= rule->max)
		return STATUS_OK;
	return call_fail(c, STATUS_VALIDATION_ERROR,
	    "%s must be an integer from %" PRId64 " to %" PRId64 ".", rule->field, rule->min,
	    rule->max);
}

/* The values of TYPE as a client writes them: "accepted, rejected". */
static void
write_choices(char out[CHOICES_BYTES], const ProtobufCEnumDescriptor *type)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < type->n_values && used < CHOICES_BYTES; i++)
		used += (size_t)snprintf(out + used, CHOICES_BYTES - used, "%s%s",
		    i > 0 ? ", " : "", type->values[i].name);
	assert(used < CHOICES_BYTES);
	for (; *out != '\0'; out++)
		*out = (char)tolower((unsigned char)*out);
}

static enum status
check_enum(struct call *c, const struct subject *s)
{
	const ProtobufCEnumDescriptor *type = s->field->descriptor;
	char choices[CHOICES_BYTES];

	if (protobuf_c_enum_descriptor_get_value(type, *(const int *)s->value) != NULL)
		return STATUS_OK;
	write_choices(choices, type);
	return call_fail(
	    c, STATUS_VALIDATION_ERROR, "%s must be one of %s.", s->rule->field, choices);
}

static enum status
too_long(struct call *c, const struct rule *rule)
{
	return call_fail(c, STATUS_VALIDATION_ERROR, "%s must be at most %" PRId64 " bytes.",
	    rule->field, rule->max);
}

/* Put the compact form of VALUE into JSON. */
static enum status
compact(struct call *c, const struct rule *rule, PB(Json) *json, const json_t *value)
{
	char *text;

	if (json_is_null(value))
		return call_fail(c, STATUS_VALIDATION_ERROR, "%s must not be null.", rule->field);
	text = json_compact(c->arena, value);
	/* A text within the rule fits into any arena, so only the process can lack the memory. */
	if (text == NULL && (int64_t)strlen(json->text) <= rule->max)
		return call_fail(c, STATUS_UNAVAILABLE, "The server has no memory to spare.");
	if (text == NULL || (int64_t)strlen(text) > rule->max)
		return too_long(c, rule);
	json->text = text;
	return STATUS_OK;
}

static enum status
check_json(struct call *c, const struct subject *s)
{
	const struct rule *rule = s->rule;
	PB(Json) *json = *(PB(Json) **)s->value;
	const char *error;
	json_t *value;
	enum status st;

	if (json->text == NULL)
		return call_fail(c, STATUS_VALIDATION_ERROR, "%s is required.", rule->field);
	/* The body around it is one level. */
	value = json_read(c->arena, json->text, strlen(json->text), JSON_DEPTH_MAX - 1, &error);
	if (value == NULL)
		return call_fail(c,
		    error == json_no_memory ? STATUS_UNAVAILABLE : STATUS_VALIDATION_ERROR,
		    "%s %s.", rule->field, error);
	st = compact(c, rule, json, value);
	json_done(value);
	return st;
}

static enum status
wrong_count(struct call *c, const struct rule *rule)
{
	if (rule->min == 0)
		return call_fail(c, STATUS_VALIDATION_ERROR,
		    "%s must have at most %" PRId64 " items.", rule->field, rule->max);
	return call_fail(c, STATUS_VALIDATION_ERROR,
	    "%s must have %" PRId64 " to %" PRId64 " items.", rule->field, rule->min, rule->max);
}

static enum status
check_texts(struct call *c, const struct subject *s)
{
	const struct rule *rule = s->rule;
	size_t count = *(const size_t *)s->quantifier;
	char **texts = *(char ***)s->value;
	char buffer[FAULT_BYTES];
	const char *fault;

	if ((int64_t)count < rule->min || (int64_t)count > rule->max)
		return wrong_count(c, rule);
	for (size_t i = 0; i < count; i++) {
		fault = text_fault(texts[i], rule->text_max, buffer);
		if (fault != NULL)
			return call_fail(
			    c, STATUS_VALIDATION_ERROR, "%s[%zu] %s.", rule->field, i, fault);
	}
	return STATUS_OK;
}

static enum status
check_bytes(struct call *c, const struct subject *s)
{
	const ProtobufCBinaryData *bytes = s->value;

	return (int64_t)bytes->len <= s->rule->max ? STATUS_OK : too_long(c, s->rule);
}

static const struct {
	enum status (*check)(struct call *c, const struct subject *s); /* a field that is there */
	ProtobufCType type;
	bool repeated;
} kinds[] = {
	[RULE_TEXT] = { check_text, PROTOBUF_C_TYPE_STRING, false },
	[RULE_ID] = { check_id, PROTOBUF_C_TYPE_STRING, false },
	[RULE_INT] = { check_int, PROTOBUF_C_TYPE_INT64, false },
	[RULE_ENUM] = { check_enum, PROTOBUF_C_TYPE_ENUM, false },
	[RULE_JSON] = { check_json, PROTOBUF_C_TYPE_MESSAGE, false },
	[RULE_TEXTS] = { check_texts, PROTOBUF_C_TYPE_STRING, true },
	[RULE_BYTES] = { check_bytes, PROTOBUF_C_TYPE_BYTES, false },
};

enum status
rules_check(struct call *c)
{
	enum status st = STATUS_OK;

	for (const struct rule *r = c->method->rules; r->kind != RULE_END; r++) {
		struct subject s = subject_find(r, c->request);

		if (is_present(&s))
			st = kinds[r->kind].check(c, &s);
		else if (!r->optional)
			st = call_fail(c, STATUS_VALIDATION_ERROR, "%s is required.", r->field);
		if (st != STATUS_OK)
			return st;
	}
	return STATUS_OK;
}

static bool
rule_fits(const struct rule *rule, const ProtobufCFieldDescriptor *field)
{
	if (field->type != kinds[rule->kind].type)
		return false;
	if (rule->kind == RULE_JSON && field->descriptor != &titen__v1__json__descriptor)
		return false;
	return (field->label == PROTOBUF_C_LABEL_REPEATED) == kinds[rule->kind].repeated;
}

static int
rules_of(const struct rule *rules, const char *field)
{
	int count = 0;

	for (; rules->kind != RULE_END; rules++)
		count += strcmp(rules->field, field) == 0;
	return count;
}

bool
rules_fit(const struct rule *rules, const ProtobufCMessageDescriptor *request, const char **error_r)
{
	const ProtobufCFieldDescriptor *field;

	for (const struct rule *r = rules; r->kind != RULE_END; r++) {
		field = protobuf_c_message_descriptor_get_field_by_name(request, r->field);
		*error_r = "A rule names a field that its request does not have.";
		if (field == NULL)
			return false;
		*error_r = "A rule does not fit the type of its field.";
		if (!rule_fits(r, field))
			return false;
	}
	*error_r = "A field of a request does not have exactly one rule.";
	for (unsigned i = 0; i < request->n_fields; i++)
		if (rules_of(rules, request->fields[i].name) != 1)
			return false;
	*error_r = NULL;
	return true;
}

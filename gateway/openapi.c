/* SPDX-License-Identifier: MIT */
/*
 * Everything here is derived: routes and calls from the two tables, schemas from descriptors and
 * rules, words from the comments of the .proto files. Read it from the end: document_build(), then
 * operation_build().
 */
#include "gateway/openapi.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/log.h"
#include "descriptors.h"
#include "gateway/route.h"
#include "gateway/schema.h"
#include "gateway/tags.h"

#define DOCUMENTS_TAG "Document"

struct document {
	struct schema_book book;
	json_t *responses; /* of failures, by name, as they come to be needed */
};

/* --- names */

/* "Lease": the service without package and suffix. */
static const char *
service_word(struct arena *arena, const struct method *m)
{
	const char *word = strrchr(m->service, '.') + 1;

	return arena_text_n(arena, word, strlen(word) - strlen("Service"));
}

static const char *
route_tag(struct arena *arena, const struct route *r)
{
	return r->method == NULL ? DOCUMENTS_TAG : service_word(arena, r->method);
}

/* "lease_acquire"; a further route to a call adds its path: "health_check_livez". */
static const char *
operation_id(struct arena *arena, const struct route *r)
{
	const struct method *m = r->method;
	char *id;

	if (m == NULL)
		id = arena_text(arena, r->path + 1);
	else if (strcmp(r->path, m->path) == 0)
		id = arena_printf(arena, "%s_%s", service_word(arena, m), m->rpc);
	else
		id = arena_printf(arena, "%s_%s%s", service_word(arena, m), m->rpc, r->path);
	for (char *p = id; *p != '\0'; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
	return id;
}

/* "NotFound" for NOT_FOUND, and with a gap "Not found". */
static const char *
reason_words(struct arena *arena, enum status st, bool gap)
{
	char *words = arena_text(arena, status_reason(st));
	bool capital = true;
	size_t n = 0;

	for (const char *p = words; *p != '\0'; p++) {
		if (*p == '_') {
			capital = !gap;
			if (gap)
				words[n++] = ' ';
			continue;
		}
		words[n] = *p;
		if (!capital)
			words[n] = (char)tolower((unsigned char)*p);
		n++;
		capital = false;
	}
	words[n] = '\0';
	return words;
}

/* --- failures */

static bool
method_names_things(const struct method *m)
{
	for (const struct rule *rule = m->rules; rule->kind != RULE_END; rule++)
		if (rule->kind == RULE_TEXT || (rule->kind == RULE_ID && !rule->optional))
			return true;
	return false;
}

/* Whether a call may fail so, as far as its row can tell. */
static bool
method_fails_with(const struct method *m, enum status st)
{
	const char *field;

	switch (st) {
	case STATUS_VALIDATION_ERROR:
	case STATUS_INTERNAL:
	case STATUS_UNAVAILABLE:
	case STATUS_DEADLINE_EXCEEDED:
		return true;
	case STATUS_UNAUTHENTICATED:
		return m->right != RIGHT_PUBLIC;
	case STATUS_FORBIDDEN:
		return m->right < RIGHT_SCOPES;
	case STATUS_NOT_FOUND:
		return method_names_things(m);
	case STATUS_CONFLICT:
	case STATUS_RATE_LIMITED:
		return m->access == ACCESS_WRITE;
	case STATUS_PRECONDITION_FAILED:
		return tags_header(m, &field) != NULL;
	case STATUS_PAYLOAD_TOO_LARGE:
		return m->verb == VERB_POST;
	default:
		return false;
	}
}

static json_t *
response_headers(enum status st)
{
	json_t *headers = json_pack("{s:o}", "X-Request-Id", schema_ref("headers", "X-Request-Id"));

	if (st == STATUS_UNAVAILABLE || st == STATUS_RATE_LIMITED)
		json_object_set_new(headers, "Retry-After", schema_ref("headers", "Retry-After"));
	if (st == STATUS_UNAUTHENTICATED)
		json_object_set_new(
		    headers, "WWW-Authenticate", schema_ref("headers", "WWW-Authenticate"));
	return headers;
}

static json_t *
json_content(json_t *schema)
{
	return json_pack("{s:{s:o}}", "application/json", "schema", schema);
}

static json_t *
failure_ref(struct document *d, enum status st)
{
	const char *name = reason_words(d->book.arena, st, false);

	if (json_object_get(d->responses, name) == NULL)
		json_object_set_new(d->responses, name,
		    json_pack("{s:s, s:o, s:o}", "description",
			reason_words(d->book.arena, st, true), "headers", response_headers(st),
			"content", json_content(schema_ref("schemas", "Error"))));
	return schema_ref("responses", name);
}

/* In the order of the numbers that clients see. */
static void
failures_add(struct document *d, json_t *responses, const struct method *m)
{
	for (int http = 400; http < 600; http++)
		for (enum status st = STATUS_OK + 1; st < STATUS_COUNT; st++)
			if (status_http(st) == http && method_fails_with(m, st))
				json_object_set_new(responses,
				    arena_printf(d->book.arena, "%d", http), failure_ref(d, st));
}

/* --- successes */

static json_t *
envelope(json_t *data)
{
	return json_pack("{s:s, s:{s:o, s:o}, s:[s, s]}", "type", "object", "properties", "data",
	    data, "meta", schema_ref("schemas", "Meta"), "required", "data", "meta");
}

static void
success_add(struct document *d, json_t *responses, const struct method *m, int status)
{
	json_t *headers = response_headers(STATUS_OK);
	json_t *schema = envelope(schema_answer(&d->book, m->response));

	if (tags_given(m))
		json_object_set_new(headers, "ETag", schema_ref("headers", "ETag"));
	json_object_set_new(responses, arena_printf(d->book.arena, "%d", status),
	    json_pack("{s:s, s:o, s:o}", "description", status == 201 ? "Created" : "Done",
		"headers", headers, "content", json_content(schema)));
}

static json_t *
responses_build(struct document *d, const struct route *r)
{
	json_t *responses = json_object();
	const struct method *m = r->method;

	if (m == NULL) {
		json_object_set_new(responses, "200",
		    json_pack("{s:s, s:o, s:o}", "description", "Done", "headers",
			response_headers(STATUS_OK), "content",
			json_content(json_pack("{s:s}", "type", "object"))));
		json_object_set_new(responses, "400", failure_ref(d, STATUS_VALIDATION_ERROR));
		return responses;
	}
	if (m->result != RESULT_CREATED)
		success_add(d, responses, m, 200);
	if (m->result != RESULT_OK)
		success_add(d, responses, m, 201);
	failures_add(d, responses, m);
	return responses;
}

/* --- requests */

/* A field of the request that the path or the query gives. */
static void
parameter_add(
    struct document *d, json_t *list, const struct method *m, const char *field, bool in_path)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(m->request, field);
	const struct rule *rule = schema_rule(m, field);
	json_t *parameter = json_pack("{s:s, s:s, s:b}", "name", field, "in",
	    in_path ? "path" : "query", "required", in_path || !rule->optional);

	schema_describe(
	    &d->book, parameter, arena_printf(d->book.arena, "%s.%s", m->request->name, field));
	json_object_set_new(parameter, "schema", schema_field(&d->book, f, rule));
	json_array_append_new(list, parameter);
}

static void
path_parameters_add(struct document *d, json_t *list, const struct route *r)
{
	for (const char *s = strchr(r->path, '{'); s != NULL; s = strchr(s + 1, '{'))
		parameter_add(d, list, r->method,
		    arena_text_n(d->book.arena, s + 1, strcspn(s + 1, "}")), true);
}

static void
query_parameters_add(struct document *d, json_t *list, const struct route *r)
{
	const ProtobufCMessageDescriptor *type = r->method->request;

	for (unsigned i = 0; i < type->n_fields; i++) {
		const char *name = type->fields[i].name;
		if (strstr(r->path, arena_printf(d->book.arena, "{%s}", name)) == NULL)
			parameter_add(d, list, r->method, name, false);
	}
}

static void
header_parameters_add(struct document *d, json_t *list, const struct method *m)
{
	const char *field, *header = tags_header(m, &field);
	json_t *parameter;

	if (m->access == ACCESS_WRITE)
		json_array_append_new(list, schema_ref("parameters", "Idempotency-Key"));
	if (header == NULL)
		return;
	parameter = json_pack("{s:s, s:s}", "name", header, "in", "header");
	schema_describe(
	    &d->book, parameter, arena_printf(d->book.arena, "%s.%s", m->request->name, field));
	json_object_set_new(parameter, "schema", json_pack("{s:s}", "type", "string"));
	json_array_append_new(list, parameter);
}

static json_t *
parameters_build(struct document *d, const struct route *r)
{
	json_t *list = json_array();

	path_parameters_add(d, list, r);
	if (r->verb == VERB_GET)
		query_parameters_add(d, list, r);
	header_parameters_add(d, list, r->method);
	return list;
}

/* --- operations */

/* Which key is asked for; the lists are of roles, as 3.1 has them for bearer tokens. */
static json_t *
security_build(const struct route *r)
{
	enum right right = r->method == NULL ? RIGHT_PUBLIC : r->method->right;

	if (right == RIGHT_PUBLIC)
		return json_array();
	if (right == RIGHT_KEY)
		return json_pack("[{s:[]}]", "bearer");
	return json_pack("[{s:[s]}]", "bearer", scope_text(right));
}

static const char *
right_sentence(struct arena *arena, enum right right)
{
	if (right == RIGHT_PUBLIC)
		return "Needs no key.";
	if (right == RIGHT_KEY)
		return "Needs any key.";
	return arena_printf(arena, "Needs a key with the scope `%s`.", scope_text(right));
}

/* The comment of the call, and who may make it. */
static void
operation_describe(struct document *d, json_t *operation, const struct route *r)
{
	struct arena *a = d->book.arena;
	const struct method *m = r->method;
	const char *sentence = right_sentence(a, m == NULL ? RIGHT_PUBLIC : m->right);
	const char *comment;

	if (m != NULL)
		schema_describe(&d->book, operation, arena_printf(a, "%s.%s", m->service, m->rpc));
	comment = json_string_value(json_object_get(operation, "description"));
	if (comment != NULL)
		sentence = arena_printf(a, "%s %s", comment, sentence);
	json_object_set_new(operation, "description", json_string(sentence));
}

static json_t *
operation_build(struct document *d, const struct route *r)
{
	struct arena *a = d->book.arena;
	json_t *operation =
	    json_pack("{s:s, s:[s], s:s}", "operationId", operation_id(a, r), "tags",
		route_tag(a, r), "summary", r->method == NULL ? r->summary : r->method->summary);

	operation_describe(d, operation, r);
	json_object_set_new(operation, "security", security_build(r));
	if (r->method != NULL)
		json_object_set_new(operation, "parameters", parameters_build(d, r));
	if (r->verb == VERB_POST)
		json_object_set_new(operation, "requestBody",
		    json_pack("{s:b, s:o}", "required", true, "content",
			json_content(schema_body(&d->book, r->method))));
	json_object_set_new(operation, "responses", responses_build(d, r));
	return operation;
}

static const char *
verb_member(struct arena *arena, enum verb verb)
{
	char *name = arena_text(arena, route_verb(verb));

	for (char *p = name; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return name;
}

static json_t *
paths_build(struct document *d)
{
	json_t *paths = json_object();
	struct route r;

	for (size_t i = 0; route_at(i, &r); i++) {
		if (r.verb == VERB_NONE)
			continue;
		if (json_object_get(paths, r.path) == NULL)
			json_object_set_new(paths, r.path, json_object());
		json_object_set_new(json_object_get(paths, r.path),
		    verb_member(d->book.arena, r.verb), operation_build(d, &r));
	}
	return paths;
}

/* --- the document */

static bool
tag_is_there(const json_t *tags, const char *name)
{
	size_t i;
	const json_t *tag;

	json_array_foreach (tags, i, tag)
		if (strcmp(json_string_value(json_object_get(tag, "name")), name) == 0)
			return true;
	return false;
}

static json_t *
tags_build(struct document *d)
{
	json_t *tags = json_array();
	struct route r;

	for (size_t i = 0; route_at(i, &r); i++) {
		const char *name = route_tag(d->book.arena, &r);
		json_t *tag;

		if (r.verb == VERB_NONE || tag_is_there(tags, name))
			continue;
		tag = json_pack("{s:s}", "name", name);
		if (r.method != NULL)
			schema_describe(&d->book, tag, r.method->service);
		else
			json_object_set_new(tag, "description", json_string(r.summary));
		json_array_append_new(tags, tag);
	}
	return tags;
}

/* Schemas that no message has. */
static void
envelope_schemas_add(json_t *schemas)
{
	json_t *reasons = json_array();
	json_t *id = json_pack("{s:s, s:s}", "type", "string", "description",
	    "Names this answer in the log of the server.");

	for (enum status st = STATUS_OK + 1; st < STATUS_COUNT; st++)
		json_array_append_new(reasons, json_string(status_reason(st)));
	json_object_set_new(schemas, "Meta",
	    json_pack("{s:s, s:{s:O, s:{s:s, s:s}}, s:[s]}", "type", "object", "properties",
		"request_id", id, "replayed", "type", "boolean", "description",
		"This is the answer of an earlier call with the same Idempotency-Key.", "required",
		"request_id"));
	json_object_set_new(schemas, "Error",
	    json_pack("{s:s, s:{s:{s:s, s:{s:{s:s, s:o}, s:{s:s}}, s:[s, s]},"
		      " s:{s:s, s:{s:o}, s:[s]}}, s:[s, s]}",
		"type", "object", "properties", "error", "type", "object", "properties", "code",
		"type", "string", "enum", reasons, "message", "type", "string", "required", "code",
		"message", "meta", "type", "object", "properties", "request_id", id, "required",
		"request_id", "required", "error", "meta"));
}

static json_t *
header_schema(const char *description, const char *type)
{
	return json_pack("{s:s, s:{s:s}}", "description", description, "schema", "type", type);
}

static json_t *
headers_build(void)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "X-Request-Id",
	    header_schema("The request_id of the answer.", "string"), "ETag",
	    header_schema("The state_hash in quotes, for an If-Match to come.", "string"),
	    "Retry-After", header_schema("Seconds.", "integer"), "WWW-Authenticate",
	    header_schema("Bearer", "string"));
}

static json_t *
components_build(struct document *d)
{
	json_t *key = json_pack("{s:s, s:s, s:s, s:{s:s, s:i, s:i}}", "name", "Idempotency-Key",
	    "in", "header", "description",
	    "A retry with the same key and the same message gets the first answer.", "schema",
	    "type", "string", "minLength", 1, "maxLength", IDEMPOTENCY_KEY_BYTES);

	return json_pack("{s:O, s:O, s:{s:o}, s:o, s:{s:{s:s, s:s, s:s}}}", "schemas",
	    d->book.schemas, "responses", d->responses, "parameters", "Idempotency-Key", key,
	    "headers", headers_build(), "securitySchemes", "bearer", "type", "http", "scheme",
	    "bearer", "description", "An API key, titen_sk_...");
}

/* The schemas of messages are collected while the paths are built. */
static json_t *
document_build(struct document *d)
{
	json_t *tags = tags_build(d);
	json_t *paths = paths_build(d);

	envelope_schemas_add(d->book.schemas);
	return json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:[{s:s}], s:o, s:o, s:o}",
	    "openapi", "3.1.0", "info", "title", "Titen", "version", TITEN_VERSION, "description",
	    "Leases, handoffs, checkpoints and events for fleets of agents.", "license", "name",
	    "MIT", "identifier", "MIT", "servers", "url", "http://127.0.0.1:8787", "tags", tags,
	    "paths", paths, "components", components_build(d));
}

static char *text;

static void
text_make(void)
{
	struct arena arena;
	struct document d = { { &arena, NULL, json_object() }, json_object() };
	Google__Protobuf__FileDescriptorSet *set = google__protobuf__file_descriptor_set__unpack(
	    NULL, titen_descriptors_bytes, titen_descriptors);
	json_t *document;
	char *dump;

	assert(set != NULL);
	arena_init(&arena);
	d.book.descriptors = set;
	document = document_build(&d);
	assert(document != NULL);
	dump = json_dumps(document, JSON_INDENT(2));
	if (dump == NULL || asprintf(&text, "%s\n", dump) < 0)
		log_die("There is no memory for the document.");
	free(dump);
	json_decref(document);
	json_decref(d.book.schemas);
	json_decref(d.responses);
	google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
	arena_free(&arena);
}

const char *
openapi_text(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, text_make);
	return text;
}

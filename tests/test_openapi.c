/* SPDX-License-Identifier: MIT */
/*
 * The document against its golden copy, against the table of routes, and against what the server
 * really answers. GOLDEN is the path of the copy.
 */
#include "tests/support/scenes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/openapi.h"
#include "gateway/route.h"

#define SITUATION_MS 61000 /* leases of the situation before are over */

static struct house home;
static json_t *document;

/* --- looking things up --- */

static json_t *
get(json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	if (value == NULL)
		fail_msg("there is no %s", name);
	return value;
}

/* What a {"$ref": "#/components/KIND/NAME"} stands for, or the schema itself. */
static json_t *
resolve(json_t *schema)
{
	const char *ref = json_string_value(json_object_get(schema, "$ref"));
	char kind[40], name[80];

	if (ref == NULL)
		return schema;
	if (sscanf(ref, "#/components/%39[^/]/%79s", kind, name) != 2)
		fail_msg("%s is no reference", ref);
	return get(get(get(document, "components"), kind), name);
}

static json_t *
operation_of(const struct route *r)
{
	static const char *const verbs[] = { "", "get", "post", "delete" };

	return get(get(get(document, "paths"), r->path), verbs[r->verb]);
}

static json_t *
schema_of(json_t *operation, int status)
{
	char text[16];

	snprintf(text, sizeof text, "%d", status);
	return get(get(get(resolve(get(get(operation, "responses"), text)), "content"),
		       "application/json"),
	    "schema");
}

/* --- a value and its schema --- */

static void value_holds(const char *where, json_t *schema, json_t *value);

static bool
type_holds(const char *type, const json_t *value)
{
	return strcmp(type, "object") == 0    ? json_is_object(value)
	       : strcmp(type, "array") == 0   ? json_is_array(value)
	       : strcmp(type, "string") == 0  ? json_is_string(value)
	       : strcmp(type, "integer") == 0 ? json_is_integer(value)
	       : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
					      : json_is_null(value);
}

static bool
types_hold(json_t *types, const json_t *value)
{
	size_t i;
	json_t *type;

	if (!json_is_array(types))
		return types == NULL || type_holds(json_string_value(types), value);
	json_array_foreach (types, i, type)
		if (type_holds(json_string_value(type), value))
			return true;
	return false;
}

static bool
is_among(json_t *list, json_t *value)
{
	size_t i;
	json_t *item;

	json_array_foreach (list, i, item)
		if (json_equal(item, value))
			return true;
	return list == NULL;
}

static void
members_hold(const char *where, json_t *schema, json_t *object)
{
	json_t *properties = json_object_get(schema, "properties");
	json_t *required = json_object_get(schema, "required"), *value, *name;
	const char *member;
	size_t i;

	json_object_foreach (object, member, value) {
		if (properties != NULL && json_object_get(properties, member) == NULL)
			fail_msg("%s: the schema has no member %s", where, member);
		if (properties != NULL)
			value_holds(member, json_object_get(properties, member), value);
	}
	json_array_foreach (required, i, name)
		if (json_object_get(object, json_string_value(name)) == NULL)
			fail_msg("%s: the answer has no member %s", where, json_string_value(name));
}

static void
value_holds(const char *where, json_t *schema, json_t *value)
{
	json_t *either = json_object_get(schema, "anyOf"), *item;
	size_t i;

	if (either != NULL && json_is_null(value))
		return;
	schema = resolve(either == NULL ? schema : json_array_get(either, 0));
	if (!types_hold(json_object_get(schema, "type"), value) ||
	    !is_among(json_object_get(schema, "enum"), value))
		fail_msg("%s: the value does not fit its schema", where);
	if (json_is_object(value))
		members_hold(where, schema, value);
	json_array_foreach (value, i, item)
		value_holds(where, get(schema, "items"), item);
}

/* --- the tests --- */

static char *
file_text(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (file == NULL)
		return NULL;
	if (getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	fclose(file);
	return text;
}

static void
the_document_is_the_golden_copy(void **state)
{
	const char *text = openapi_text();
	char *golden = file_text(GOLDEN);
	int line = 1;

	(void)state;
	for (size_t i = 0; golden != NULL && golden[i] != '\0' && golden[i] == text[i]; i++)
		line += text[i] == '\n';
	if (golden == NULL || strcmp(golden, text) != 0)
		fail_msg("the REST interface has changed at line %d of its document; look at the "
			 "difference after: titen serve --openapi > %s",
		    line, GOLDEN);
	free(golden);
}

static void
every_route_is_in_the_document_once(void **state)
{
	json_t *ids = json_object();
	struct route r;

	(void)state;
	for (size_t i = 0; route_at(i, &r); i++) {
		if (r.verb == VERB_NONE)
			continue;
		json_t *id = get(operation_of(&r), "operationId");
		if (json_object_get(ids, json_string_value(id)) != NULL)
			fail_msg("row %zu: %s is not the only one", i, json_string_value(id));
		json_object_set(ids, json_string_value(id), id);
	}
	json_decref(ids);
}

/* Each field of a request is named in the path, the query, a header or the body. */
static void
every_field_of_a_request_can_be_given(void **state)
{
	struct route r;

	(void)state;
	for (size_t i = 0; route_at(i, &r); i++) {
		if (r.verb == VERB_NONE || r.method == NULL)
			continue;
		json_t *operation = operation_of(&r);
		json_t *body = json_object_get(operation, "requestBody");
		size_t n = 0, j;
		json_t *parameter;
		json_array_foreach (get(operation, "parameters"), j, parameter)
			n += json_object_get(parameter, "$ref") == NULL;
		if (body != NULL)
			n += json_object_size(get(
			    resolve(get(get(get(body, "content"), "application/json"), "schema")),
			    "properties"));
		if (n != r.method->request->n_fields)
			fail_msg("row %zu: %s: %zu of %u fields", i, r.path, n,
			    r.method->request->n_fields);
	}
}

/* The answer of a row to WHO is as the document says. */
static void
answer_holds(struct doors *d, const struct route *r, struct caller *who)
{
	const struct scene *scene = scenes_find(r->method);
	char id[SCENE_ID_BYTES] = "", request[SCENE_REQUEST_BYTES];
	struct answer a;

	doors_advance(d, SITUATION_MS);
	if (scene->make != NULL)
		scene->make(&home, false, id);
	scenes_request(scene, id, request);
	a = caller_ask(who, REST, scene->method, request, NULL);
	if (strcmp(a.code, BROKEN) == 0)
		fail_msg("%s: %s", r->path, a.message);
	json_t *schema = schema_of(operation_of(r), a.http);
	if (a.data != NULL)
		value_holds(r->path, get(get(schema, "properties"), "data"), a.data);
	caller_forget(&a);
}

static void
every_answer_is_as_the_document_says(void **state)
{
	struct caller nobody;
	struct route r;

	caller_meet(*state, &nobody, "");
	for (size_t i = 0; route_at(i, &r); i++) {
		if (r.verb == VERB_NONE || r.method == NULL)
			continue;
		answer_holds(*state, &r, &home.coder);
		answer_holds(*state, &r, &home.poor);
		answer_holds(*state, &r, &nobody);
	}
	caller_leave(&nobody);
}

static void
the_document_is_for_everybody(void **state)
{
	struct caller nobody;
	struct answer a;

	caller_meet(*state, &nobody, "");
	a = caller_http(&nobody, "GET", "/openapi.json", NULL, NULL, 0);
	assert_int_equal(a.http, 200);
	assert_int_equal(a.body_bytes, strlen(openapi_text()));
	caller_forget(&a);
	a = caller_http(&nobody, "HEAD", "/openapi.json", NULL, NULL, 0);
	assert_int_equal(a.http, 200);
	assert_int_equal(a.body_bytes, 0);
	caller_forget(&a);
	a = caller_http(&nobody, "DELETE", "/openapi.json", NULL, NULL, 0);
	assert_string_equal(a.code, "METHOD_NOT_ALLOWED");
	assert_string_equal(a.allow, "GET, HEAD, OPTIONS");
	caller_forget(&a);
	a = caller_http(&nobody, "OPTIONS", "/openapi.json", NULL, NULL, 0);
	assert_int_equal(a.http, 204);
	caller_forget(&a);
	caller_leave(&nobody);
}

static int
open_house(void **state)
{
	if (doors_open(state) != 0)
		return -1;
	scenes_found(*state, &home);
	document = json_loads(openapi_text(), JSON_REJECT_DUPLICATES, NULL);
	return document == NULL ? -1 : 0;
}

static int
close_house(void **state)
{
	json_decref(document);
	scenes_leave(&home);
	return doors_close(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_is_the_golden_copy),
		cmocka_unit_test(every_route_is_in_the_document_once),
		cmocka_unit_test(every_field_of_a_request_can_be_given),
		cmocka_unit_test(every_answer_is_as_the_document_says),
		cmocka_unit_test(the_document_is_for_everybody),
	};

	return cmocka_run_group_tests(tests, open_house, close_house);
}

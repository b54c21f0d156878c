/* SPDX-License-Identifier: MIT */
/* Routes: the rows of both tables, the decoding of paths, the walk, and the check made at start. */
#include "gateway/route.h"

#include <limits.h>
#include <string.h>

#include "core/methods.h"
#include "core/text.h"
#include "gateway/openapi.h"

/* The segments of a path. N counts all of them, also those beyond the array, which no template has.
 */
struct path {
	const char *segments[ROUTE_SEGMENTS_MAX];
	size_t n;
};

static const struct {
	const char *method; /* NULL for a document */
	struct route route;
} doors[] = {
#define ROUTE(service, method_, verb_, path_)                                                      \
	{ "titen.v1." #service "Service/" #method_, { .verb = VERB_##verb_, .path = (path_) } },
#define DOOR(verb_, path_, document_, summary_)                                                    \
	{ NULL, { .verb = VERB_##verb_,                                                            \
		    .path = (path_),                                                               \
		    .document = (document_),                                                       \
		    .summary = (summary_) } },
#include "gateway/doors.def"
};

#define DOORS (sizeof(doors) / sizeof(doors[0]))

static const char *const verbs[] = {
	[VERB_NONE] = "",
	[VERB_GET] = "GET",
	[VERB_POST] = "POST",
	[VERB_DELETE] = "DELETE",
};

bool
route_at(size_t i, struct route *r)
{
	size_t rows = methods_count();

	if (i < rows) {
		const struct method *m = method_at(i);
		*r = (struct route){ .verb = m->verb, .path = m->path, .method = m };
		return true;
	}
	if (i - rows >= DOORS)
		return false;
	*r = doors[i - rows].route;
	if (doors[i - rows].method != NULL)
		r->method = method_find(doors[i - rows].method);
	return true;
}

const char *
route_verb(enum verb verb)
{
	return verbs[verb];
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

char *
route_decode(struct arena *arena, const char *text, size_t bytes, bool plus)
{
	char *out = arena_alloc(arena, bytes + 1);
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '%') {
			int high = i + 2 < bytes ? hex_value(text[i + 1]) : -1;
			int low = high < 0 ? -1 : hex_value(text[i + 2]);
			if (low < 0)
				return NULL;
			out[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			out[n] = text[i];
			if (plus && text[i] == '+')
				out[n] = ' ';
			n++;
		}
	}
	return text_utf8(out, n) ? out : NULL;
}

/* Empty segments do not count. False when a segment cannot be decoded. */
static bool
path_split(struct arena *arena, const char *text, struct path *path)
{
	path->n = 0;
	for (text += strspn(text, "/"); *text != '\0'; text += strspn(text, "/")) {
		size_t bytes = strcspn(text, "/");
		char *segment = route_decode(arena, text, bytes, false);
		if (segment == NULL)
			return false;
		if (path->n < ROUTE_SEGMENTS_MAX)
			path->segments[path->n] = segment;
		path->n++;
		text += bytes;
	}
	return true;
}

/* How many segments of PATH are parameters of TEMPLATE; -1 when it does not fit. */
static int
template_fit(const char *template, const struct path *path)
{
	int params = 0;
	size_t i = 0;

	for (const char *s = template; *s == '/'; i++) {
		size_t bytes = strcspn(++s, "/");
		if (i >= path->n || i >= ROUTE_SEGMENTS_MAX)
			return -1;
		if (*s == '{')
			params++;
		else if (strlen(path->segments[i]) != bytes ||
			 memcmp(path->segments[i], s, bytes) != 0)
			return -1;
		s += bytes;
	}
	return i == path->n ? params : -1;
}

static void
template_bind(
    struct arena *arena, const char *template, const struct path *path, struct route_match *match)
{
	size_t i = 0;

	match->params_n = 0;
	for (const char *s = template; *s == '/'; i++) {
		size_t bytes = strcspn(++s, "/");
		if (*s == '{')
			match->params[match->params_n++] = (struct route_param){
				.field = arena_text_n(arena, s + 1, bytes - 2),
				.value = path->segments[i],
			};
		s += bytes;
	}
}

/* HEAD comes with GET, and OPTIONS with anything. */
static const char *
allow_text(struct arena *arena, unsigned verb_set)
{
	const char *text = "";

	for (size_t v = VERB_GET; v <= VERB_DELETE; v++)
		if ((verb_set & 1u << v) != 0)
			text = arena_printf(
			    arena, "%s%s%s, ", text, verbs[v], v == VERB_GET ? ", HEAD" : "");
	return arena_printf(arena, "%sOPTIONS", text);
}

enum status
route_find(struct call *c, const char *verb, const char *text, struct route_match *match)
{
	struct path path;
	struct route r, best = { .verb = VERB_NONE };
	int fewest = INT_MAX;
	unsigned verb_set = 0;

	*match = (struct route_match){ .params_n = 0 };
	if (!path_split(c->arena, text, &path))
		return call_fail(c, STATUS_VALIDATION_ERROR, "The path is not well-formed.");
	for (size_t i = 0; route_at(i, &r); i++) {
		int params = r.verb == VERB_NONE ? -1 : template_fit(r.path, &path);
		if (params < 0)
			continue;
		verb_set |= 1u << r.verb;
		/* A row that spells the path out comes before one with parameters. */
		if (params < fewest && strcmp(verbs[r.verb], verb) == 0) {
			best = r;
			fewest = params;
		}
	}
	if (verb_set == 0)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such endpoint.");
	if (best.verb == VERB_NONE) {
		match->allow = allow_text(c->arena, verb_set);
		return call_fail(
		    c, STATUS_METHOD_NOT_ALLOWED, "This path takes only %s.", match->allow);
	}
	c->method = best.method;
	match->document = best.document;
	template_bind(c->arena, best.path, &path, match);
	return STATUS_OK;
}

/* Whether {name} between S and its end is a text field of the request. */
static bool
param_fit(const struct method *m, const char *s, size_t bytes)
{
	char name[64];

	if (bytes < 3 || bytes - 2 >= sizeof(name) || s[bytes - 1] != '}')
		return false;
	memcpy(name, s + 1, bytes - 2);
	name[bytes - 2] = '\0';
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(m->request, name);
	return f != NULL && f->type == PROTOBUF_C_TYPE_STRING &&
	       f->label != PROTOBUF_C_LABEL_REPEATED;
}

static const char *
template_fault(const struct route *r)
{
	size_t segments = 0, params = 0;
	const char *s = r->path;

	while (*s == '/') {
		size_t bytes = strcspn(++s, "/");
		if (bytes == 0)
			return "a route has an empty segment";
		if (*s == '{' && (r->method == NULL || !param_fit(r->method, s, bytes)))
			return "a route has a parameter that is no text field of its request";
		params += *s == '{';
		segments++;
		s += bytes;
	}
	if (segments == 0 || *s != '\0')
		return "a route does not begin with a slash";
	if (segments > ROUTE_SEGMENTS_MAX || params > ROUTE_PARAMS_MAX)
		return "a route is too long";
	return NULL;
}

/* Two templates are alike when each would take the other's text as a path. */
static bool
route_taken(struct arena *arena, const struct route *r, size_t before)
{
	struct path path, other_path;
	struct route other;

	for (size_t i = 0; i < before && route_at(i, &other); i++) {
		if (other.verb != r->verb)
			continue;
		if (path_split(arena, r->path, &path) && template_fit(other.path, &path) >= 0 &&
		    path_split(arena, other.path, &other_path) &&
		    template_fit(r->path, &other_path) >= 0)
			return true;
	}
	return false;
}

bool
route_check(const char **error_r)
{
	struct arena arena;
	struct route r;

	*error_r = NULL;
	arena_init(&arena);
	for (size_t i = 0; *error_r == NULL && route_at(i, &r); i++) {
		if (r.method == NULL && r.document == NULL)
			*error_r = "a door leads to a call that is not there";
		else if (r.verb != VERB_NONE && (*error_r = template_fault(&r)) == NULL &&
			 route_taken(&arena, &r, i))
			*error_r = "two routes are alike";
	}
	arena_free(&arena);
	return *error_r == NULL;
}

/* SPDX-License-Identifier: MIT */
/* The rows, then reading lists of tags, then the tag of an answer. */
#include "gateway/tags.h"

#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "gateway/render.h"
#include "gateway/transcode.h"

static const struct {
	const char *method;
	const char *header;
	const char *field;
} headers[] = {
#define ETAGS(service, method, header, field)                                                      \
	{ "titen.v1." #service "Service/" #method, header, #field },
#include "gateway/doors.def"
};

static const struct {
	const char *method;
	const char *field;
} fields[] = {
#define ETAG(service, method, field) { "titen.v1." #service "Service/" #method, #field },
#include "gateway/doors.def"
};

#define HEADERS (sizeof(headers) / sizeof(headers[0]))
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool
field_exists(const ProtobufCMessageDescriptor *type, const char *name, ProtobufCLabel label)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(type, name);

	return f != NULL && f->type == PROTOBUF_C_TYPE_STRING && f->label == label;
}

bool
tags_check(const char **error_r)
{
	const struct method *m;

	*error_r = NULL;
	for (size_t i = 0; i < HEADERS; i++)
		if ((m = method_find(headers[i].method)) == NULL ||
		    !field_exists(m->request, headers[i].field, PROTOBUF_C_LABEL_REPEATED))
			*error_r = "a header is bound to a list that is not there";
	for (size_t i = 0; i < FIELDS; i++)
		if ((m = method_find(fields[i].method)) == NULL ||
		    !field_exists(m->response, fields[i].field, PROTOBUF_C_LABEL_OPTIONAL))
			*error_r = "an entity tag is a field that is not there";
	return *error_r == NULL;
}

const char *
tags_header(const struct method *method, const char **field_r)
{
	for (size_t i = 0; i < HEADERS; i++) {
		*field_r = headers[i].field;
		if (strcmp(headers[i].method, method->name) == 0)
			return headers[i].header;
	}
	*field_r = NULL;
	return NULL;
}

bool
tags_given(const struct method *method)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(fields[i].method, method->name) == 0)
			return true;
	return false;
}

/* Where a list element ends: at a comma outside quotes. */
static size_t
element_bytes(const char *list)
{
	bool quoted = false;
	size_t bytes = 0;

	for (; list[bytes] != '\0' && (quoted || list[bytes] != ','); bytes++)
		quoted ^= list[bytes] == '"';
	return bytes;
}

/* A quoted star keeps its quotes: it is a tag, not the star that matches everything. */
static char *
tag_text(struct arena *arena, const char *tag, size_t bytes)
{
	while (bytes > 0 && (tag[bytes - 1] == ' ' || tag[bytes - 1] == '\t'))
		bytes--;
	if (bytes >= 2 && tag[0] == '"' && tag[bytes - 1] == '"' && !(bytes == 3 && tag[1] == '*'))
		return arena_text_n(arena, tag + 1, bytes - 2);
	return arena_text_n(arena, tag, bytes);
}

/* A header without any tag gives the empty one, which matches nothing: what was meant as a
 * condition must not become none. */
static enum status
list_read(struct call *c, const char *field, const char *list)
{
	enum status st;

	if (!text_utf8(list, strlen(list)))
		return call_fail(c, STATUS_VALIDATION_ERROR, "An entity tag must be UTF-8.");
	do {
		list += strspn(list, " \t,");
		size_t bytes = element_bytes(list);
		st = transcode_text(c, field, tag_text(c->arena, list, bytes));
		list += bytes;
		list += strspn(list, " \t,");
	} while (st == STATUS_OK && *list != '\0');
	return st;
}

enum status
tags_read(struct call *c, const struct mg_request_info *info)
{
	enum status st = STATUS_OK;

	for (size_t t = 0; t < HEADERS; t++) {
		if (strcmp(headers[t].method, c->method->name) != 0)
			continue;
		for (int i = 0; st == STATUS_OK && i < info->num_headers; i++) {
			const struct mg_header *h = &info->http_headers[i];
			if (strcasecmp(h->name, headers[t].header) == 0)
				st = list_read(c, headers[t].field, h->value);
		}
	}
	return st;
}

const char *
tags_answer(const struct call *c)
{
	const char *tag = NULL;

	for (size_t i = 0; tag == NULL && i < FIELDS; i++)
		if (strcmp(fields[i].method, c->method->name) == 0)
			tag = render_text_in(c->response, fields[i].field);
	return tag == NULL ? NULL : arena_printf(c->arena, "\"%s\"", tag);
}

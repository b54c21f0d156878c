/* SPDX-License-Identifier: MIT */
/* Names, then JSON to a request, then a reply to JSON; the mapping itself is the gateway's. */
#include "cmd/json_rpc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "cmd/nearest.h"
#include "core/json_read.h"
#include "core/json_write.h"
#include "gateway/render.h"
#include "gateway/transcode.h"

#define PACKAGE "titen.v1."
#define SERVICE_SUFFIX "Service"

const char *
json_rpc_short_name(struct arena *arena, const struct method *method)
{
	const char *service = method->service + strlen(PACKAGE);
	size_t bytes = strlen(service) - strlen(SERVICE_SUFFIX);
	char *name = arena_printf(arena, "%.*s.%s", (int)bytes, service, method->rpc);

	for (char *c = name; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	return name;
}

static bool
short_name_fits(const struct method *method, const char *name)
{
	const char *service = method->service + strlen(PACKAGE);
	size_t bytes = strlen(service) - strlen(SERVICE_SUFFIX);

	return strncasecmp(name, service, bytes) == 0 && name[bytes] == '.' &&
	       strcasecmp(name + bytes + 1, method->rpc) == 0;
}

const struct method *
json_rpc_method(const char *name)
{
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *method = method_at(i);
		if (strcmp(name, method->name) == 0 ||
		    strcmp(name, method->name + strlen(PACKAGE)) == 0 ||
		    short_name_fits(method, name))
			return method;
	}
	return NULL;
}

const char *
json_rpc_hint(struct arena *arena, const char *name)
{
	struct nearest nearest;

	nearest_begin(&nearest, name);
	for (size_t i = 0; i < methods_count(); i++)
		nearest_offer(&nearest, json_rpc_short_name(arena, method_at(i)));
	return nearest_hint(&nearest, arena);
}

/* No request has messages as fields, so there are no members further in. */
static bool
members_known(
    struct arena *arena, const struct method *method, json_t *object, const char **error_r)
{
	const ProtobufCMessageDescriptor *type = method->request;
	struct nearest nearest;
	const char *name;
	json_t *value;

	json_object_foreach (object, name, value) {
		if (protobuf_c_message_descriptor_get_field_by_name(type, name) != NULL)
			continue;
		nearest_begin(&nearest, name);
		for (unsigned i = 0; i < type->n_fields; i++)
			nearest_offer(&nearest, type->fields[i].name);
		*error_r = arena_printf(arena, "%s is not a field of %s%s", name,
		    json_rpc_short_name(arena, method), nearest_hint(&nearest, arena));
		return false;
	}
	return true;
}

static ProtobufCMessage *
request_from(struct arena *arena, const struct method *method, json_t *object, const char **error_r)
{
	struct call c;
	enum status st;

	if (!json_is_object(object)) {
		*error_r = "is not a JSON object";
		return NULL;
	}
	if (!members_known(arena, method, object, error_r))
		return NULL;
	call_init(&c, arena, NULL, NULL);
	c.method = method;
	st = transcode_begin(&c);
	if (st == STATUS_OK)
		st = transcode_object(&c, object);
	*error_r = c.message == NULL ? status_reason(st) : c.message;
	return st == STATUS_OK ? c.request : NULL;
}

ProtobufCMessage *
json_rpc_request(struct arena *arena, const struct method *method, const char *text, size_t bytes,
    const char **error_r)
{
	json_t *object = json_read(arena, text, bytes, JSON_DEPTH_MAX, error_r);
	ProtobufCMessage *request;

	if (object == NULL)
		return NULL;
	request = request_from(arena, method, object, error_r);
	json_done(object);
	return request;
}

ProtobufCMessage *
json_rpc_response(struct arena *arena, const struct method *method, const PB(Reply) *reply)
{
	return protobuf_c_message_unpack(
	    method->response, &arena->decoder, reply->payload.len, reply->payload.data);
}

const char *
json_rpc_message(struct arena *arena, const ProtobufCMessage *message)
{
	struct json_writer w;

	json_write_begin(&w, arena);
	json_write_open(&w, '{');
	render_members(&w, message, NULL);
	json_write_close(&w, '}');
	return w.text;
}

static void
error_write(struct json_writer *w, const PB(Reply) *reply)
{
	json_write_name(w, "error");
	json_write_open(w, '{');
	json_write_text_member(w, "code", reply->reason);
	json_write_text_member(w, "message", reply->message);
	json_write_close(w, '}');
}

const char *
json_rpc_answer(struct arena *arena, const PB(Reply) *reply, const ProtobufCMessage *response)
{
	struct json_writer w;

	json_write_begin(&w, arena);
	json_write_open(&w, '{');
	if (response == NULL) {
		error_write(&w, reply);
	} else {
		json_write_name(&w, "data");
		json_write_open(&w, '{');
		render_members(&w, response, NULL);
		json_write_close(&w, '}');
	}
	json_write_name(&w, "meta");
	json_write_open(&w, '{');
	json_write_text_member(&w, "request_id", reply->request_id);
	if (reply->has_replayed && reply->replayed) {
		json_write_name(&w, "replayed");
		json_write_bool(&w, true);
	}
	json_write_close(&w, '}');
	json_write_close(&w, '}');
	return w.text;
}

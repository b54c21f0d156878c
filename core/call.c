/* SPDX-License-Identifier: MIT */
/* The life of a call's record; what happens to the call itself is told in rpc.c. */
#include "core/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

#define MESSAGE_BYTES 512 /* of one sentence; the longest quotes a field and a rule */

void
call_init(struct call *c, struct arena *arena, void (*done)(struct call *c), void *owner)
{
	struct id id = id_random(clock_wall_ms());

	memset(c, 0, sizeof(*c));
	c->arena = arena;
	c->done = done;
	c->owner = owner;
	id_write(c->request_id, "req", &id);
}

enum status
call_fail(struct call *c, enum status st, const char *format, ...)
{
	char text[MESSAGE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	c->message = arena_text(c->arena, text);
	return st;
}

void
call_rewind(struct call *c)
{
	const ProtobufCMessageDescriptor *type = c->method->response;

	arena_return(c->arena, c->mark);
	c->ids_used = 0;
	c->key_change = NULL;
	c->message = NULL;
	c->created = false;
	c->replayed = false;
	c->retry_after_ms = 0;
	c->response = arena_alloc(c->arena, type->sizeof_message);
	protobuf_c_message_init(type, c->response);
}

/* What to say where the cause is not the caller's and its details are not the caller's business. */
static const char *
status_sentence(enum status st)
{
	switch (st) {
	case STATUS_UNAVAILABLE:
		return "The server cannot do this now; nothing was changed.";
	case STATUS_DEADLINE_EXCEEDED:
		return "The time for this call was over before its turn came; nothing was changed.";
	default:
		return "The server failed; nothing was changed.";
	}
}

void
call_answer(struct call *c)
{
	if (c->status != STATUS_OK) {
		c->response = NULL;
		if (c->message == NULL)
			c->message = status_sentence(c->status);
		if (c->status == STATUS_UNAVAILABLE && c->retry_after_ms == 0)
			c->retry_after_ms = RETRY_SOON_MS;
	}
	c->done(c);
}

struct id
call_id(struct call *c)
{
	assert(c->ids_used < CALL_IDS_MAX);
	if (c->ids_used == c->ids_made)
		c->ids[c->ids_made++] = id_next(c->id_source, c->now_ms);
	return c->ids[c->ids_used++];
}

Google__Protobuf__Timestamp *
call_time(struct call *c, int64_t time_ms)
{
	Google__Protobuf__Timestamp *time = arena_alloc(c->arena, sizeof(*time));

	google__protobuf__timestamp__init(time);
	time->seconds = time_ms / 1000;
	time->nanos = (int32_t)(time_ms % 1000) * 1000000;
	return time;
}

PB(Json) *
call_json(struct call *c, const char *text)
{
	PB(Json) *json = arena_alloc(c->arena, sizeof(*json));

	titen__v1__json__init(json);
	json->text = arena_text(c->arena, text);
	return json;
}

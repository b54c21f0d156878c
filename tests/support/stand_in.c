/* SPDX-License-Identifier: MIT */
/* The stand-in for the core. */
#include "tests/support/stand_in.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/rpc.h"
#include "health.pb-c.h"
#include "tests/support/peer.h"

#define LARGE_BYTES ((size_t)512 << 10)
#define HUGE_BYTES ((size_t)8 << 20) /* 8 of them are more than a server lets wait */

static const struct method methods[] = {
	{ .name = "echo", .request = &titen__v1__health_echo_request__descriptor },
	{ .name = "late", .request = &titen__v1__health_echo_request__descriptor },
	{ .name = "large", .request = &titen__v1__health_echo_request__descriptor },
	{ .name = "huge", .request = &titen__v1__health_echo_request__descriptor },
	{ .name = "local", .request = &titen__v1__health_echo_request__descriptor },
};

enum status
rpc_find(struct call *c, const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].name, name) == 0)
			c->method = &methods[i];
	return c->method != NULL ? STATUS_OK : STATUS_METHOD_NOT_ALLOWED;
}

enum status
rpc_decode(struct call *c, const uint8_t *payload, size_t bytes)
{
	c->request =
	    protobuf_c_message_unpack(c->method->request, &c->arena->decoder, bytes, payload);
	return c->request != NULL ? STATUS_OK : STATUS_VALIDATION_ERROR;
}

static uint8_t zeros[HUGE_BYTES];

static ProtobufCBinaryData
payload_for(const struct call *c)
{
	if (strcmp(c->method->name, "large") == 0)
		return (ProtobufCBinaryData){ LARGE_BYTES, zeros };
	if (strcmp(c->method->name, "huge") == 0)
		return (ProtobufCBinaryData){ HUGE_BYTES, zeros };
	if (strcmp(c->method->name, "local") == 0)
		return (ProtobufCBinaryData){ 1, (uint8_t *)(c->local ? "y" : "n") };
	return ((const PB(HealthEchoRequest) *)c->request)->payload;
}

static void
answer(struct call *c)
{
	PB(HealthEchoResponse) *response = arena_alloc(c->arena, sizeof(*response));

	titen__v1__health_echo_response__init(response);
	response->has_payload = true;
	response->payload = payload_for(c);
	c->response = &response->base;
	c->done(c);
}

int64_t
rpc_now_ms(struct core *core)
{
	(void)core;
	return 1;
}

void
rpc_submit(struct core *core, struct call *c)
{
	bool hold = strcmp(c->method->name, "late") == 0;

	pthread_mutex_lock(&core->lock);
	core->submitted++;
	if (hold) {
		c->next = core->held;
		core->held = c;
		core->held_n++;
	}
	pthread_cond_broadcast(&core->changed);
	pthread_mutex_unlock(&core->lock);
	if (!hold)
		answer(c);
}

void
rpc_refuse(struct call *c, enum status st)
{
	c->status = st;
	c->done(c);
}

void
stand_in_await(struct core *core, const int *count, int n)
{
	struct timespec deadline;
	int reached;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&core->lock);
	while (*count < n)
		if (pthread_cond_timedwait(&core->changed, &core->lock, &deadline) == ETIMEDOUT)
			break;
	reached = *count;
	pthread_mutex_unlock(&core->lock);
	assert_int_equal(reached, n);
}

void
stand_in_answer_held(struct core *core)
{
	struct call *next, *held;

	pthread_mutex_lock(&core->lock);
	held = core->held;
	core->held = NULL;
	core->held_n = 0;
	pthread_mutex_unlock(&core->lock);
	for (; held != NULL; held = next) {
		next = held->next;
		answer(held);
	}
}

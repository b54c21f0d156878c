/* SPDX-License-Identifier: MIT */
/* The pipeline, in the order a call meets it. READ THIS FIRST. */
#include "core/rpc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/engine.h"
#include "core/idempotency.h"
#include "core/log.h"
#include "core/readers.h"
#include "core/wire.h"

int64_t
rpc_now_ms(struct core *core)
{
	return clock_now_ms(&core->clock);
}

enum status
rpc_find(struct call *c, const char *method_name)
{
	c->method = method_name == NULL ? NULL : method_find(method_name);
	if (c->method == NULL)
		return call_fail(c, STATUS_METHOD_NOT_ALLOWED, "There is no such method.");
	return STATUS_OK;
}

enum status
rpc_decode(struct call *c, const uint8_t *payload, size_t bytes)
{
	const ProtobufCMessageDescriptor *type = c->method->request;
	char fault[160];

	if (bytes > PAYLOAD_BYTES_MAX)
		return call_fail(c, STATUS_PAYLOAD_TOO_LARGE, "A request may have %zu bytes.",
		    PAYLOAD_BYTES_MAX);
	if (!wire_check(type, payload, bytes, fault, sizeof(fault)))
		return call_fail(c, STATUS_VALIDATION_ERROR, "%s", fault);
	c->request = protobuf_c_message_unpack(type, &c->arena->decoder, bytes, payload);
	if (c->request != NULL)
		return STATUS_OK;
	/* The bytes are good, so it was memory: this call's share, or everybody's. */
	if (c->arena->refused && c->arena->bytes > ARENA_BYTES_MAX / 2)
		return call_fail(c, STATUS_PAYLOAD_TOO_LARGE, "The request needs too much memory.");
	return call_fail(c, STATUS_UNAVAILABLE, "The server has no memory to spare.");
}

static enum status
rpc_authorize(struct call *c)
{
	enum right right = c->method->right;

	if (right == RIGHT_KEY || scope_granted(c->who.scopes, right))
		return STATUS_OK;
	return call_fail(c, STATUS_FORBIDDEN, "This key lacks the scope %s.", scope_text(right));
}

enum status
rpc_admit(struct core *core, struct call *c)
{
	enum status st = STATUS_OK;

	if (c->admitted)
		return STATUS_OK;
	c->core = core;
	if (c->method->right == RIGHT_LOCAL) {
		if (!c->local)
			st = call_fail(c, STATUS_FORBIDDEN,
			    "This call is answered only on the owner's local socket.");
	} else if (c->method->right != RIGHT_PUBLIC) {
		st = auth_identify(core->ring, c);
		if (st == STATUS_OK)
			st = rpc_authorize(c);
	}
	c->admitted = st == STATUS_OK;
	return st;
}

/* Without a transaction: where it arrives, at once. */
static void
rpc_run_here(struct call *c)
{
	c->mark = arena_mark(c->arena);
	call_rewind(c);
	c->status = c->method->run(c);
	call_answer(c);
}

static void
rpc_execute(struct core *core, struct call *c)
{
	switch (c->method->access) {
	case ACCESS_WRITE:
		engine_submit(core->engine, c);
		break;
	case ACCESS_READ:
		readers_submit(core->readers, c);
		break;
	case ACCESS_NONE:
		rpc_run_here(c);
	}
}

void
rpc_submit(struct core *core, struct call *c)
{
	enum status st;

	assert(c->method != NULL && c->request != NULL);
	if ((st = rpc_admit(core, c)) != STATUS_OK || (st = rules_check(c)) != STATUS_OK ||
	    (st = idempotency_prepare(c)) != STATUS_OK)
		rpc_refuse(c, st);
	else
		rpc_execute(core, c);
}

void
rpc_refuse(struct call *c, enum status st)
{
	assert(st != STATUS_OK);
	c->status = st;
	call_answer(c);
}

/* Read what the last run left: where time stood, and which keys are good. */
static bool
core_load(struct core *core, const struct clock_source *source)
{
	core->newest_ms = db_number(store_writer(core->store), "SELECT clock_ms FROM titen");
	if (core->newest_ms < 0)
		return false;
	clock_init(&core->clock, source == NULL ? &clock_system : source, core->newest_ms);
	core->ring = key_ring_load(store_writer(core->store));
	return core->ring != NULL;
}

struct core *
core_open(const struct core_options *options, char *error, size_t error_bytes)
{
	struct core *core = calloc(1, sizeof(*core));

	if (core == NULL)
		log_die("There is no memory for the core.");
	core->revision = options->revision;
	core->store = store_open(options->path, options->create, error, error_bytes);
	if (core->store == NULL) {
		core_close(&core);
		return NULL;
	}
	if (!core_load(core, options->clock) || (core->readers = readers_start(core)) == NULL) {
		snprintf(error, error_bytes, "%s cannot be read", options->path);
		core_close(&core);
		return NULL;
	}
	core->engine = engine_start(core);
	return core;
}

void
core_hurry(struct core *core)
{
	atomic_store(&core->hurrying, true);
}

void
core_close(struct core **core)
{
	struct core *c = *core;

	if (c->engine != NULL)
		engine_stop(&c->engine);
	if (c->readers != NULL)
		readers_stop(&c->readers);
	if (c->ring != NULL)
		key_ring_free(&c->ring);
	if (c->store != NULL)
		store_close(&c->store);
	free(c);
	*core = NULL;
}

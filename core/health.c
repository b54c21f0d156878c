/* SPDX-License-Identifier: MIT */
/* Whether the server lives, whether it can work, and the shortest way through it. */
#include "core/core.h"
#include "core/engine.h"
#include "core/handlers.h"
#include "core/rules.h"

#define ECHO_BYTES_MAX 4096 /* a frame as large as any ordinary call's */

#define RUNTIME "titen-c"

const struct rule health_check_rules[] = {
	RULES_END,
};

enum status
health_check(struct call *c, const PB(HealthCheckRequest) *req, PB(HealthCheckResponse) *resp)
{
	(void)req;
	resp->status = arena_text(c->arena, "ok");
	resp->runtime = arena_text(c->arena, RUNTIME);
	resp->revision = arena_text(c->arena, c->core->revision);
	return STATUS_OK;
}

const struct rule health_ready_rules[] = {
	RULES_END,
};

/* Reading the store's own version through a reader proves the store, the reader and its queue. */
enum status
health_ready(struct call *c, const PB(HealthReadyRequest) *req, PB(HealthReadyResponse) *resp)
{
	int64_t applied = db_number(c->db, "PRAGMA user_version");

	(void)req;
	if (applied != STORE_SCHEMA_VERSION || !store_present(c->core->store))
		return call_fail(c, STATUS_UNAVAILABLE, "The store cannot be read.");
	if (engine_failed_lately(c->core->engine))
		return call_fail(c, STATUS_UNAVAILABLE, "The store could not be written just now.");
	resp->has_ready = true;
	resp->ready = true;
	resp->runtime = arena_text(c->arena, RUNTIME);
	resp->revision = arena_text(c->arena, c->core->revision);
	resp->schema = arena_alloc(c->arena, sizeof(*resp->schema));
	titen__v1__health_ready_response__schema__init(resp->schema);
	resp->schema->has_applied = resp->schema->has_expected = true;
	resp->schema->applied = applied;
	resp->schema->expected = STORE_SCHEMA_VERSION;
	return STATUS_OK;
}

const struct rule health_echo_rules[] = {
	BYTES_OPTIONAL("payload", ECHO_BYTES_MAX),
	RULES_END,
};

enum status
health_echo(struct call *c, const PB(HealthEchoRequest) *req, PB(HealthEchoResponse) *resp)
{
	(void)c;
	resp->has_payload = req->has_payload;
	resp->payload = req->payload;
	return STATUS_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * Leases: at most one unreleased row for each resource, and it belongs to whoever acquired last. An
 * expired row stays until the next acquire replaces it; nothing happens in the background.
 */
#include "core/clock.h"
#include "core/db.h"
#include "core/event.h"
#include "core/handlers.h"
#include "core/json_write.h"
#include "core/limits.h"
#include "core/tally.h"

#define TTL_SECONDS_MIN 10
#define TTL_SECONDS_MAX 86400 /* a crashed holder blocks its resource for a day at most */

/* The unreleased row of a resource. holder 0: there is none. */
struct lease {
	struct id id;
	int64_t holder;
	int64_t fence;
	int64_t expires_ms;
};

static enum status
lease_find(struct call *c, const PB(LeaseAcquireRequest) *req, struct lease *lease_r)
{
	struct query *q = query_start(c->db,
	    "SELECT public_id, holder, expires_ms FROM leases WHERE organization = $1"
	    " AND resource_type = $2 AND resource_id = $3 AND released_ms IS NULL",
	    VALUES(as_int(c->who.organization), as_text(req->resource_type),
		as_text(req->resource_id)));

	*lease_r = (struct lease){ .holder = 0 };
	if (query_row(q)) {
		lease_r->id = query_id(q, 0);
		lease_r->holder = query_int(q, 1);
		lease_r->expires_ms = query_int(q, 2);
	}
	return query_finish(q);
}

static enum status
lease_close(struct call *c, const struct id *id)
{
	return db_run(c->db, "UPDATE leases SET released_ms = $2 WHERE public_id = $1",
	    VALUES(as_id(id), as_int(c->now_ms)));
}

static enum status
lease_insert(struct call *c, const PB(LeaseAcquireRequest) *req, const struct lease *lease)
{
	return db_run(c->db,
	    "INSERT INTO leases (public_id, organization, resource_type, resource_id, holder, "
	    "purpose,"
	    " ttl_seconds, fence, expires_ms, created_ms)"
	    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
	    VALUES(as_id(&lease->id), as_int(c->who.organization), as_text(req->resource_type),
		as_text(req->resource_id), as_int(lease->holder), as_text(req->purpose),
		as_int(req->ttl_seconds), as_int(lease->fence), as_int(lease->expires_ms),
		as_int(c->now_ms)));
}

/* For the holder's eyes only: it says what the resource is wanted for. */
static enum status
lease_announce(struct call *c, enum event_kind kind, const struct id *id, const char *payload)
{
	return event_append(c, &(struct event){ .kind = kind,
				   .resource = *id,
				   .payload = payload,
				   .viewers = { c->who.principal } });
}

static const char *
acquired_payload(struct call *c, const PB(LeaseAcquireRequest) *req, const struct lease *lease)
{
	struct json_writer w;

	json_write_begin(&w, c->arena);
	json_write_open(&w, '{');
	json_write_text_member(&w, "resource_type", req->resource_type);
	json_write_text_member(&w, "resource_id", req->resource_id);
	json_write_text_member(&w, "purpose", req->purpose);
	json_write_time_member(&w, "expires_at", lease->expires_ms);
	json_write_int_member(&w, "fence", lease->fence);
	json_write_close(&w, '}');
	return w.text;
}

/* Says until when, and neither who nor what for: asking must teach nothing else. */
static enum status
lease_refuse(struct call *c, const struct lease *live)
{
	char until[TIMESTAMP_BYTES];

	timestamp_write(until, live->expires_ms);
	c->retry_after_ms = live->expires_ms - c->now_ms;
	return call_fail(
	    c, STATUS_CONFLICT, "Resource is leased by another principal until %s.", until);
}

const struct rule lease_acquire_rules[] = {
	TEXT("resource_type", LABEL_MAX),
	TEXT("resource_id", IDENTIFIER_MAX),
	TEXT("purpose", LABEL_MAX),
	INT("ttl_seconds", TTL_SECONDS_MIN, TTL_SECONDS_MAX),
	RULES_END,
};

enum status
lease_acquire(struct call *c, const PB(LeaseAcquireRequest) *req, PB(LeaseAcquireResponse) *resp)
{
	struct lease live, mine = {
		.id = call_id(c),
		.holder = c->who.principal,
		.expires_ms = c->now_ms + req->ttl_seconds * 1000,
	};
	enum status st = lease_find(c, req, &live);

	if (st != STATUS_OK)
		return st;
	/* At its expiry a lease is expired: only a later expiry keeps others out. */
	if (live.holder != 0 && live.holder != mine.holder && live.expires_ms > c->now_ms)
		return lease_refuse(c, &live);
	if (live.holder != 0 && (st = lease_close(c, &live.id)) != STATUS_OK)
		return st;
	if ((st = tally_fence(c->tally, c->now_ms, &mine.fence)) != STATUS_OK ||
	    (st = lease_insert(c, req, &mine)) != STATUS_OK)
		return st;
	resp->lease_id = id_text(c->arena, "lease", &mine.id);
	resp->expires_at = call_time(c, mine.expires_ms);
	resp->has_fence = true;
	resp->fence = mine.fence;
	return lease_announce(c, EVENT_LEASE_ACQUIRED, &mine.id, acquired_payload(c, req, &mine));
}

static const char *
released_payload(struct call *c, const char *resource_type, const char *resource_id)
{
	struct json_writer w;

	json_write_begin(&w, c->arena);
	json_write_open(&w, '{');
	json_write_text_member(&w, "resource_type", resource_type);
	json_write_text_member(&w, "resource_id", resource_id);
	json_write_time_member(&w, "released_at", c->now_ms);
	json_write_close(&w, '}');
	return w.text;
}

const struct rule lease_release_rules[] = {
	ID("lease_id"),
	RULES_END,
};

enum status
lease_release(struct call *c, const PB(LeaseReleaseRequest) *req, PB(LeaseReleaseResponse) *resp)
{
	const char *type = NULL, *name = NULL;
	struct query *q;
	struct id id;
	enum status st;

	if (!id_parse(&id, "lease", req->lease_id))
		return call_fail(c, STATUS_NOT_FOUND, "There is no such lease.");
	q = query_start(c->db,
	    "SELECT resource_type, resource_id FROM leases WHERE public_id = $1 AND holder = $2"
	    " AND released_ms IS NULL",
	    VALUES(as_id(&id), as_int(c->who.principal)));
	if (query_row(q)) {
		type = query_text(q, 0, c->arena);
		name = query_text(q, 1, c->arena);
	}
	if ((st = query_finish(q)) != STATUS_OK)
		return st;
	if (type == NULL)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such lease.");
	if ((st = lease_close(c, &id)) != STATUS_OK)
		return st;
	resp->lease_id = id_text(c->arena, "lease", &id);
	resp->released_at = call_time(c, c->now_ms);
	return lease_announce(c, EVENT_LEASE_RELEASED, &id, released_payload(c, type, name));
}

/* SPDX-License-Identifier: MIT */
/*
 * Handoffs: an offer to one named principal, which that principal settles once.
 *
 *	PENDING -> ACCEPTED | REJECTED; nothing leaves those two.
 */
#include "core/audit.h"
#include "core/db.h"
#include "core/event.h"
#include "core/handlers.h"
#include "core/json_write.h"
#include "core/limits.h"
#include "core/page.h"

#define INBOX_LIMIT 200

#define PENDING TITEN__V1__HANDOFF__STATUS__PENDING
#define ACCEPTED TITEN__V1__HANDOFF__STATUS__ACCEPTED

/* --- create */

/* The row of a principal of this organization that somebody can still act for; 0: there is none. */
static enum status
recipient_find(struct call *c, const char *name, int64_t *principal_r)
{
	struct query *q = query_start(c->db,
	    "SELECT p.id FROM principals p WHERE p.organization = $1 AND p.name = $2 AND EXISTS"
	    " (SELECT 1 FROM keys k WHERE k.principal = p.id AND k.revoked_ms IS NULL)",
	    VALUES(as_int(c->who.organization), as_text(name)));

	*principal_r = query_row(q) ? query_int(q, 0) : 0;
	return query_finish(q);
}

/* The row of the sender's own live checkpoint of that subject; 0: there is none. */
static enum status
attachment_find(struct call *c, const char *checkpoint_id, const char *subject_id, int64_t *row_r)
{
	struct query *q;
	struct id id;

	*row_r = 0;
	if (!id_parse(&id, "ckpt", checkpoint_id))
		return STATUS_OK;
	q = query_start(c->db,
	    "SELECT id FROM checkpoints WHERE public_id = $1 AND agent = $2 AND subject_id = $3"
	    " AND expires_ms > $4",
	    VALUES(as_id(&id), as_int(c->who.principal), as_text(subject_id), as_int(c->now_ms)));
	if (query_row(q))
		*row_r = query_int(q, 0);
	return query_finish(q);
}

static enum status
handoff_insert(struct call *c, const PB(HandoffCreateRequest) *req, const struct id *id,
    int64_t target, int64_t checkpoint)
{
	return db_run(c->db,
	    "INSERT INTO handoffs (public_id, organization, sender, target, subject_id, checkpoint,"
	    " message, status, created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
	    VALUES(as_id(id), as_int(c->who.organization), as_int(c->who.principal), as_int(target),
		as_text(req->subject_id), checkpoint == 0 ? as_null() : as_int(checkpoint),
		as_text(req->message), as_int(PENDING), as_int(c->now_ms)));
}

static const char *
created_payload(struct call *c, const PB(HandoffCreateRequest) *req)
{
	struct json_writer w;

	json_write_begin(&w, c->arena);
	json_write_open(&w, '{');
	json_write_text_member(&w, "to_principal", req->to_principal);
	json_write_text_member(&w, "subject_id", req->subject_id);
	json_write_close(&w, '}');
	return w.text;
}

const struct rule handoff_create_rules[] = {
	TEXT("to_principal", IDENTIFIER_MAX),
	TEXT("subject_id", IDENTIFIER_MAX),
	TEXT_OPTIONAL("context_id", IDENTIFIER_MAX),
	TEXT_OPTIONAL("checkpoint_id", IDENTIFIER_MAX),
	TEXT_OPTIONAL("message", STATEMENT_MAX),
	RULES_END,
};

enum status
handoff_create(struct call *c, const PB(HandoffCreateRequest) *req, PB(HandoffCreateResponse) *resp)
{
	struct id id = call_id(c);
	int64_t target, checkpoint = 0;
	enum status st = recipient_find(c, req->to_principal, &target);

	if (st != STATUS_OK)
		return st;
	if (target == 0)
		return call_fail(
		    c, STATUS_NOT_FOUND, "The recipient is not known in this organization.");
	if (req->context_id != NULL)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such context to hand over.");
	if (req->checkpoint_id != NULL) {
		st = attachment_find(c, req->checkpoint_id, req->subject_id, &checkpoint);
		if (st != STATUS_OK)
			return st;
		if (checkpoint == 0)
			return call_fail(
			    c, STATUS_NOT_FOUND, "There is no such checkpoint to hand over.");
	}
	if ((st = handoff_insert(c, req, &id, target, checkpoint)) != STATUS_OK)
		return st;
	resp->handoff_id = id_text(c->arena, "hoff", &id);
	resp->has_status = true;
	resp->status = PENDING;
	if ((st = audit_append(c, "handoff.create", resp->handoff_id, NULL)) != STATUS_OK)
		return st;
	return event_append(c, &(struct event){ .kind = EVENT_HANDOFF_CREATED,
				   .resource = id,
				   .payload = created_payload(c, req),
				   .viewers = { c->who.principal, target } });
}

/* --- inbox */

/* The place in the caller's inbox, past or present; 0: there is none. */
static enum status
inbox_place(struct call *c, const char *handoff_id, int64_t *row_r)
{
	struct query *q;
	struct id id;

	*row_r = 0;
	if (!id_parse(&id, "hoff", handoff_id))
		return STATUS_OK;
	q = query_start(c->db, "SELECT id FROM handoffs WHERE public_id = $1 AND target = $2",
	    VALUES(as_id(&id), as_int(c->who.principal)));
	if (query_row(q))
		*row_r = query_int(q, 0);
	return query_finish(q);
}

/* Columns: public_id, sender's name, subject_id, checkpoint's public_id, message, created_ms. */
static size_t
inbox_fill(struct call *c, struct query *q, PB(Handoff) *row)
{
	struct id id = query_id(q, 0), checkpoint = query_id(q, 3);

	titen__v1__handoff__init(row);
	row->handoff_id = id_text(c->arena, "hoff", &id);
	row->from_principal = query_text(q, 1, c->arena);
	row->to_principal = arena_text(c->arena, c->who.principal_id);
	row->subject_id = query_text(q, 2, c->arena);
	if (!query_null(q, 3))
		row->checkpoint_id = id_text(c->arena, "ckpt", &checkpoint);
	row->message = query_text(q, 4, c->arena);
	row->has_status = true;
	row->status = PENDING;
	row->created_at = call_time(c, query_int(q, 5));
	return PAGE_ROW_BYTES + (row->message == NULL ? 0 : strlen(row->message));
}

const struct rule handoff_list_rules[] = {
	ID_OPTIONAL("after"),
	RULES_END,
};

enum status
handoff_list(struct call *c, const PB(HandoffListRequest) *req, PB(HandoffListResponse) *resp)
{
	int64_t after = 0;
	struct page page;
	struct query *q;
	enum status st;

	if (req->after != NULL) {
		if ((st = inbox_place(c, req->after, &after)) != STATUS_OK)
			return st;
		if (after == 0)
			return call_fail(c, STATUS_VALIDATION_ERROR,
			    "after must be the id of a handoff addressed to you.");
	}
	page_begin(&page, c->arena, INBOX_LIMIT);
	q = query_start(c->db,
	    "SELECT h.public_id, s.name, h.subject_id, k.public_id, h.message, h.created_ms"
	    " FROM handoffs h JOIN principals s ON s.id = h.sender"
	    " LEFT JOIN checkpoints k ON k.id = h.checkpoint"
	    " WHERE h.target = $1 AND h.status = 1 AND h.id > $2 ORDER BY h.id",
	    VALUES(as_int(c->who.principal), as_int(after)));
	while (page_more(&page, q)) {
		PB(Handoff) *row = arena_alloc(c->arena, sizeof(*row));

		page_add(&page, row, inbox_fill(c, q, row));
	}
	resp->handoffs = (PB(Handoff) **)page.rows;
	resp->n_handoffs = page.rows_n;
	if (page.more)
		resp->cursor = resp->handoffs[page.rows_n - 1]->handoff_id;
	return query_finish(q);
}

/* --- resolve */

/* The row and target of a pending handoff of this organization; row 0: there is none. */
static enum status
pending_find(
    struct call *c, const struct id *id, int64_t *row_r, int64_t *target_r, int64_t *sender_r)
{
	struct query *q = query_start(c->db,
	    "SELECT id, target, sender FROM handoffs"
	    " WHERE public_id = $1 AND organization = $2 AND status = $3",
	    VALUES(as_id(id), as_int(c->who.organization), as_int(PENDING)));

	*row_r = *target_r = *sender_r = 0;
	if (query_row(q)) {
		*row_r = query_int(q, 0);
		*target_r = query_int(q, 1);
		*sender_r = query_int(q, 2);
	}
	return query_finish(q);
}

const struct rule handoff_resolve_rules[] = {
	ID("handoff_id"),
	ENUM("status"),
	RULES_END,
};

enum status
handoff_resolve(
    struct call *c, const PB(HandoffResolveRequest) *req, PB(HandoffResolveResponse) *resp)
{
	int64_t row = 0, target = 0, sender = 0;
	bool accepted = (int)req->status == (int)ACCEPTED;
	enum status st = STATUS_OK;
	struct id id;

	if (id_parse(&id, "hoff", req->handoff_id))
		st = pending_find(c, &id, &row, &target, &sender);
	if (st != STATUS_OK)
		return st;
	if (row == 0)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such pending handoff.");
	if (target != c->who.principal)
		return call_fail(
		    c, STATUS_VALIDATION_ERROR, "Only the target principal can resolve a handoff.");
	st = db_run(c->db,
	    "UPDATE handoffs SET status = $2, resolved_ms = $3 WHERE id = $1 AND status = 1",
	    VALUES(as_int(row), as_int((int64_t)req->status), as_int(c->now_ms)));
	if (st != STATUS_OK)
		return st;
	resp->handoff_id = id_text(c->arena, "hoff", &id);
	resp->has_status = true;
	resp->status = (PB(Handoff__Status))req->status;
	resp->resolved_at = call_time(c, c->now_ms);
	st =
	    audit_append(c, accepted ? "handoff.accept" : "handoff.reject", resp->handoff_id, NULL);
	if (st != STATUS_OK)
		return st;
	return event_append(
	    c, &(struct event){ .kind = accepted ? EVENT_HANDOFF_ACCEPTED : EVENT_HANDOFF_REJECTED,
		   .resource = id,
		   .payload = accepted ? "{\"status\":\"accepted\"}" : "{\"status\":\"rejected\"}",
		   .viewers = { target, sender } });
}

/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: one head for each agent, subject and kind. The last write wins, unless the caller
 * says what it expects to replace. The state arrives here in its compact form (rules.c), which is
 * what is stored, hashed and returned.
 */
#include <string.h>
#include <sodium.h>

#include "core/db.h"
#include "core/handlers.h"
#include "core/limits.h"

#define STATE_BYTES_MAX 64000
#define TTL_SECONDS_MIN 60
#define TTL_SECONDS_MAX 2592000               /* 30 days */
#define VERSION_MAX INT64_C(9007199254740991) /* 2^53 - 1: exact in every client's JSON */
#define ENTITY_TAGS_MAX 20
#define ENTITY_TAG_MAX 200

#define HASH_TEXT_BYTES (2 * crypto_hash_sha256_BYTES + 1)

/* What there is of a checkpoint before a save. row 0: nothing. */
struct head {
	int64_t row;
	struct id id;
	int64_t version;
	const char *state_hash;
	bool live; /* not expired, so somebody may have read it */
};

static void
state_digest(const char *state, char text[HASH_TEXT_BYTES])
{
	uint8_t digest[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(digest, (const unsigned char *)state, strlen(state));
	sodium_bin2hex(text, HASH_TEXT_BYTES, digest, sizeof(digest));
}

/* --- save */

static enum status
head_find(struct call *c, const PB(CheckpointSaveRequest) *req, struct head *head_r)
{
	struct query *q = query_start(c->db,
	    "SELECT id, public_id, version, state_hash, expires_ms FROM checkpoints"
	    " WHERE agent = $1 AND subject_id = $2 AND kind = $3",
	    VALUES(as_int(c->who.principal), as_text(req->subject_id), as_int((int64_t)req->kind)));

	*head_r = (struct head){ 0 };
	if (query_row(q)) {
		head_r->row = query_int(q, 0);
		head_r->id = query_id(q, 1);
		head_r->version = query_int(q, 2);
		head_r->state_hash = query_text(q, 3, c->arena);
		head_r->live = query_int(q, 4) > c->now_ms;
	}
	return query_finish(q);
}

static bool
tag_matches(const PB(CheckpointSaveRequest) *req, const struct head *head)
{
	for (size_t i = 0; i < req->n_if_match && head->live; i++)
		if (strcmp(req->if_match[i], "*") == 0 ||
		    strcmp(req->if_match[i], head->state_hash) == 0)
			return true;
	return false;
}

/* Whether the head is what the caller expects to replace. */
static enum status
head_expected(struct call *c, const PB(CheckpointSaveRequest) *req, const struct head *head)
{
	if (req->n_if_match > 0 && !tag_matches(req, head))
		return call_fail(c, STATUS_PRECONDITION_FAILED,
		    "The checkpoint is not what If-Match names; it was left as it is.");
	if (req->has_expected_version && !(head->live && head->version == req->expected_version))
		return call_fail(c, STATUS_CONFLICT,
		    "The checkpoint is not at expected_version; it was left as it is.");
	if (req->expected_state_hash != NULL &&
	    !(head->live && strcmp(head->state_hash, req->expected_state_hash) == 0))
		return call_fail(c, STATUS_CONFLICT,
		    "The checkpoint does not have expected_state_hash; it was left as it is.");
	return STATUS_OK;
}

static enum status
head_write(struct call *c, const PB(CheckpointSaveRequest) *req, const struct head *head,
    const char *state_hash)
{
	int64_t expires_ms = c->now_ms + req->ttl_seconds * 1000;

	if (head->row != 0)
		return db_run(c->db,
		    "UPDATE checkpoints SET run_id = $2, state = $3, state_hash = $4, version = "
		    "version + 1,"
		    " ttl_seconds = $5, expires_ms = $6, updated_ms = $7 WHERE id = $1",
		    VALUES(as_int(head->row), as_text(req->run_id), as_text(req->state->text),
			as_text(state_hash), as_int(req->ttl_seconds), as_int(expires_ms),
			as_int(c->now_ms)));
	return db_run(c->db,
	    "INSERT INTO checkpoints (public_id, organization, agent, subject_id, kind, run_id, "
	    "state,"
	    " state_hash, version, ttl_seconds, expires_ms, created_ms, updated_ms)"
	    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $10, $11, $11)",
	    VALUES(as_id(&head->id), as_int(c->who.organization), as_int(c->who.principal),
		as_text(req->subject_id), as_int((int64_t)req->kind), as_text(req->run_id),
		as_text(req->state->text), as_text(state_hash), as_int(req->ttl_seconds),
		as_int(expires_ms), as_int(c->now_ms)));
}

const struct rule checkpoint_save_rules[] = {
	TEXT("subject_id", IDENTIFIER_MAX),
	TEXT_OPTIONAL("agent_id", IDENTIFIER_MAX),
	TEXT_OPTIONAL("run_id", IDENTIFIER_MAX),
	ENUM("kind"),
	JSON("state", STATE_BYTES_MAX),
	INT("ttl_seconds", TTL_SECONDS_MIN, TTL_SECONDS_MAX),
	INT_OPTIONAL("expected_version", 1, VERSION_MAX),
	TEXT_OPTIONAL("expected_state_hash", IDENTIFIER_MAX),
	TEXTS("if_match", 0, ENTITY_TAGS_MAX, ENTITY_TAG_MAX),
	RULES_END,
};

enum status
checkpoint_save(
    struct call *c, const PB(CheckpointSaveRequest) *req, PB(CheckpointSaveResponse) *resp)
{
	char hash[HASH_TEXT_BYTES];
	struct head head;
	enum status st;

	if (req->agent_id != NULL && strcmp(req->agent_id, c->who.principal_id) != 0)
		return call_fail(c, STATUS_NOT_FOUND, "agent_id is not the caller's.");
	if ((st = head_find(c, req, &head)) != STATUS_OK ||
	    (st = head_expected(c, req, &head)) != STATUS_OK)
		return st;
	if (head.row == 0)
		head.id = call_id(c);
	state_digest(req->state->text, hash);
	c->created = head.row == 0;
	resp->checkpoint_id = id_text(c->arena, "ckpt", &head.id);
	resp->subject_id = req->subject_id;
	resp->agent_id = arena_text(c->arena, c->who.principal_id);
	resp->has_kind = true;
	resp->kind = req->kind;
	resp->state_hash = arena_text(c->arena, hash);
	resp->has_version = true;
	resp->version = head.version + 1;
	resp->expires_at = call_time(c, c->now_ms + req->ttl_seconds * 1000);
	resp->has_updated = true;
	resp->updated = head.row != 0;
	return head_write(c, req, &head, hash);
}

/* --- read */

#define CHECKPOINT_COLUMNS                                                                         \
	" k.public_id, k.subject_id, p.name, k.run_id, k.kind, k.state, k.state_hash, k.version,"  \
	" k.ttl_seconds, k.expires_ms, k.created_ms, k.updated_ms"

/* The one row of a query over CHECKPOINT_COLUMNS, or NOT_FOUND. */
static enum status
checkpoint_answer(struct call *c, struct query *q, PB(Checkpoint) *resp)
{
	struct id id;
	enum status st;

	if (!query_row(q)) {
		st = query_finish(q);
		return st != STATUS_OK
			   ? st
			   : call_fail(c, STATUS_NOT_FOUND, "There is no such checkpoint.");
	}
	id = query_id(q, 0);
	resp->checkpoint_id = id_text(c->arena, "ckpt", &id);
	resp->subject_id = query_text(q, 1, c->arena);
	resp->agent_id = query_text(q, 2, c->arena);
	resp->run_id = query_text(q, 3, c->arena);
	resp->has_kind = true;
	resp->kind = (PB(Checkpoint__Kind))query_int(q, 4);
	resp->state = call_json(c, query_text(q, 5, c->arena));
	resp->state_hash = query_text(q, 6, c->arena);
	resp->has_version = resp->has_ttl_seconds = true;
	resp->version = query_int(q, 7);
	resp->ttl_seconds = query_int(q, 8);
	resp->expires_at = call_time(c, query_int(q, 9));
	resp->created_at = call_time(c, query_int(q, 10));
	resp->updated_at = call_time(c, query_int(q, 11));
	return query_finish(q);
}

const struct rule checkpoint_get_rules[] = {
	ID("checkpoint_id"),
	RULES_END,
};

/* For its agent, and for whoever was handed it and has not said no. */
enum status
checkpoint_get(struct call *c, const PB(CheckpointGetRequest) *req, PB(Checkpoint) *resp)
{
	struct id id;

	if (!id_parse(&id, "ckpt", req->checkpoint_id))
		return call_fail(c, STATUS_NOT_FOUND, "There is no such checkpoint.");
	return checkpoint_answer(c,
	    query_start(c->db,
		"SELECT" CHECKPOINT_COLUMNS
		" FROM checkpoints k JOIN principals p ON p.id = k.agent"
		" WHERE k.public_id = $1 AND k.expires_ms > $2 AND (k.agent = $3 OR EXISTS"
		" (SELECT 1 FROM handoffs h WHERE h.checkpoint = k.id AND h.target = $3"
		" AND h.status IN (1, 2)))",
		VALUES(as_id(&id), as_int(c->now_ms), as_int(c->who.principal))),
	    resp);
}

const struct rule checkpoint_find_rules[] = {
	TEXT("subject_id", IDENTIFIER_MAX),
	ENUM("kind"),
	TEXT_OPTIONAL("agent_id", IDENTIFIER_MAX),
	RULES_END,
};

enum status
checkpoint_find(struct call *c, const PB(CheckpointFindRequest) *req, PB(Checkpoint) *resp)
{
	if (req->agent_id != NULL && strcmp(req->agent_id, c->who.principal_id) != 0)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such checkpoint.");
	return checkpoint_answer(c,
	    query_start(c->db,
		"SELECT" CHECKPOINT_COLUMNS
		" FROM checkpoints k JOIN principals p ON p.id = k.agent"
		" WHERE k.agent = $1 AND k.subject_id = $2 AND k.kind = $3 AND k.expires_ms > $4",
		VALUES(as_int(c->who.principal), as_text(req->subject_id),
		    as_int((int64_t)req->kind), as_int(c->now_ms))),
	    resp);
}

/* --- delete */

const struct rule checkpoint_delete_rules[] = {
	ID("checkpoint_id"),
	RULES_END,
};

/* A handoff that names it stays, with null in its place (the foreign key sees to that). */
enum status
checkpoint_delete(
    struct call *c, const PB(CheckpointDeleteRequest) *req, PB(CheckpointDeleteResponse) *resp)
{
	struct query *q;
	bool found;
	struct id id;
	enum status st;

	if (!id_parse(&id, "ckpt", req->checkpoint_id))
		return call_fail(c, STATUS_NOT_FOUND, "There is no such checkpoint.");
	q = query_start(c->db,
	    "DELETE FROM checkpoints WHERE public_id = $1 AND agent = $2 RETURNING id",
	    VALUES(as_id(&id), as_int(c->who.principal)));
	found = query_row(q);
	if ((st = query_finish(q)) != STATUS_OK)
		return st;
	if (!found)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such checkpoint.");
	resp->checkpoint_id = id_text(c->arena, "ckpt", &id);
	resp->has_deleted = true;
	resp->deleted = true;
	return STATUS_OK;
}

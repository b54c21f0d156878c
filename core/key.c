/* SPDX-License-Identifier: MIT */
/*
 * Keys: making, listing and revoking them, and the first one of an organization. What a key manager
 * cannot do itself, no key it makes can do; and only one that may do everything names others.
 */
#include <sodium.h>

#include "core/audit.h"
#include "core/auth.h"
#include "core/core.h"
#include "core/db.h"
#include "core/handlers.h"
#include "core/json_write.h"
#include "core/limits.h"
#include "core/page.h"

#define KEYS_LIMIT_DEFAULT 50
#define KEYS_LIMIT_MAX 200
#define OWNER "owner"
#define WARNING "Store api_key now: it is shown only once."

/* --- principals and rows */

static const char *
kind_prefix(int kind)
{
	switch (kind) {
	case TITEN__V1__PRINCIPAL__KIND__HUMAN:
		return "human";
	case TITEN__V1__PRINCIPAL__KIND__SERVICE:
		return "service";
	default:
		return "agent";
	}
}

/* The row and kind of a principal of this organization; row 0: there is none. */
static enum status
principal_find(struct call *c, const char *name, int64_t *row_r, int *kind_r)
{
	struct query *q = query_start(c->db,
	    "SELECT id, kind FROM principals WHERE organization = $1 AND name = $2",
	    VALUES(as_int(c->who.organization), as_text(name)));

	*row_r = 0;
	if (query_row(q)) {
		*row_r = query_int(q, 0);
		*kind_r = (int)query_int(q, 1);
	}
	return query_finish(q);
}

static enum status
principal_insert(struct call *c, struct identity *who)
{
	struct query *q = query_start(c->db,
	    "INSERT INTO principals (organization, name, kind, created_ms) VALUES ($1, $2, $3, $4)"
	    " RETURNING id",
	    VALUES(as_int(who->organization), as_text(who->principal_id),
		as_int(who->principal_kind), as_int(c->now_ms)));

	if (query_row(q))
		who->principal = query_int(q, 0);
	return query_finish(q);
}

/* Make the key that WHO describes, all but its row and id, and have the ring learn of it. */
static enum status
key_insert(struct call *c, struct identity *who, char text[KEY_TEXT_BYTES])
{
	struct key_change *change = arena_alloc(c->arena, sizeof(*change));
	struct id id = call_id(c);
	struct query *q;

	auth_key_make(text, change->digest);
	q = query_start(c->db,
	    "INSERT INTO keys (public_id, organization, principal, digest, label, scopes, "
	    "max_trust,"
	    " created_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
	    VALUES(as_id(&id), as_int(who->organization), as_int(who->principal),
		as_blob(change->digest, sizeof(change->digest)), as_text(who->label),
		as_int((int64_t)who->scopes), as_int(who->max_trust), as_int(c->now_ms)));
	if (query_row(q))
		who->key = query_int(q, 0);
	who->key_id = id_text(c->arena, "key", &id);
	change->key = who->key;
	change->who = *who;
	c->key_change = change;
	return query_finish(q);
}

/* --- create */

const struct rule key_create_rules[] = {
	TEXT("label", LABEL_MAX),
	TEXTS("scopes", 1, RIGHT_SCOPES, LABEL_MAX),
	ENUM_OPTIONAL("max_trust"),
	ENUM_OPTIONAL("principal_kind"),
	TEXT_OPTIONAL("principal_id", IDENTIFIER_MAX),
	RULES_END,
};

static enum status
scopes_parse(struct call *c, const PB(KeyCreateRequest) *req, scope_set *set_r)
{
	*set_r = 0;
	for (size_t i = 0; i < req->n_scopes; i++) {
		enum right scope = scope_find(req->scopes[i]);

		if (scope == RIGHT_SCOPES)
			return call_fail(
			    c, STATUS_VALIDATION_ERROR, "scopes[%zu] is not a scope.", i);
		*set_r |= (scope_set)1 << scope;
	}
	return STATUS_OK;
}

/* Whether the caller may make this key at all. */
static enum status
create_allowed(struct call *c, const PB(KeyCreateRequest) *req, const struct identity *who)
{
	bool names_other =
	    req->principal_id != NULL && strcmp(req->principal_id, c->who.principal_id) != 0;

	if (!scope_within(who->scopes, c->who.scopes))
		return call_fail(
		    c, STATUS_FORBIDDEN, "A key cannot grant scopes that its maker lacks.");
	if (who->max_trust > c->who.max_trust)
		return call_fail(
		    c, STATUS_FORBIDDEN, "A key cannot be trusted more than its maker.");
	if (names_other && !scope_granted(c->who.scopes, RIGHT_ALL))
		return call_fail(
		    c, STATUS_FORBIDDEN, "Only a key with the scope * can name another principal.");
	if (key_ring_count(c->core->ring) >= KEYS_ACTIVE_MAX)
		return call_fail(c, STATUS_RATE_LIMITED,
		    "The server holds %d keys, which is the most it can; revoke some.",
		    KEYS_ACTIVE_MAX);
	return STATUS_OK;
}

/* The principal the key is for: the one that is named, made when it is new. */
static enum status
create_principal(struct call *c, const PB(KeyCreateRequest) *req, struct identity *who)
{
	int kind = who->principal_kind;
	struct id id;
	enum status st;

	if (req->principal_id == NULL) {
		id = call_id(c);
		who->principal_id = id_text(c->arena, kind_prefix(kind), &id);
		return principal_insert(c, who);
	}
	who->principal_id = req->principal_id;
	if ((st = principal_find(c, req->principal_id, &who->principal, &kind)) != STATUS_OK)
		return st;
	if (who->principal == 0)
		return principal_insert(c, who);
	if (req->has_principal_kind && kind != who->principal_kind)
		return call_fail(
		    c, STATUS_CONFLICT, "The principal exists and is of another kind.");
	who->principal_kind = kind;
	return STATUS_OK;
}

static enum status
create_audit(struct call *c, const struct identity *who)
{
	size_t n;
	char **scopes = scope_list(c->arena, who->scopes, &n);
	struct json_writer w;

	json_write_begin(&w, c->arena);
	json_write_open(&w, '{');
	json_write_text_member(&w, "principal_id", who->principal_id);
	json_write_name(&w, "scopes");
	json_write_open(&w, '[');
	for (size_t i = 0; i < n; i++)
		json_write_text(&w, scopes[i]);
	json_write_close(&w, ']');
	json_write_close(&w, '}');
	return audit_append(c, "key.create", who->key_id, w.text);
}

enum status
key_create(struct call *c, const PB(KeyCreateRequest) *req, PB(KeyCreateResponse) *resp)
{
	struct identity who = {
		.organization = c->who.organization,
		.organization_id = c->who.organization_id,
		.label = req->label,
		.principal_kind = req->has_principal_kind ? (int)req->principal_kind
							  : TITEN__V1__PRINCIPAL__KIND__AGENT,
		.max_trust = req->has_max_trust ? (int)req->max_trust : TITEN__V1__TRUST__ASSERTED,
	};
	char text[KEY_TEXT_BYTES];
	enum status st;

	if ((st = scopes_parse(c, req, &who.scopes)) != STATUS_OK ||
	    (st = create_allowed(c, req, &who)) != STATUS_OK ||
	    (st = create_principal(c, req, &who)) != STATUS_OK ||
	    (st = key_insert(c, &who, text)) != STATUS_OK)
		return st;
	resp->key_id = arena_text(c->arena, who.key_id);
	resp->api_key = arena_text(c->arena, text);
	resp->label = req->label;
	resp->scopes = scope_list(c->arena, who.scopes, &resp->n_scopes);
	resp->has_max_trust = resp->has_principal_kind = true;
	resp->max_trust = (PB(Trust))who.max_trust;
	resp->principal_id = arena_text(c->arena, who.principal_id);
	resp->principal_kind = (PB(Principal__Kind))who.principal_kind;
	resp->warning = arena_text(c->arena, WARNING);
	sodium_memzero(text, sizeof(text));
	return create_audit(c, &who);
}

/* --- list */

/* A key of this organization. row 0: there is none. */
struct found {
	int64_t row;
	int64_t revoked_ms; /* 0: it is good */
	scope_set scopes;
	int max_trust;
};

static enum status
key_find(struct call *c, const char *key_id, struct found *found_r)
{
	struct query *q;
	struct id id;

	*found_r = (struct found){ .row = 0 };
	if (!id_parse(&id, "key", key_id))
		return STATUS_OK;
	q = query_start(c->db,
	    "SELECT id, revoked_ms, scopes, max_trust FROM keys WHERE public_id = $1 AND organization = $2",
	    VALUES(as_id(&id), as_int(c->who.organization)));
	if (query_row(q)) {
		*found_r = (struct found){ query_int(q, 0), query_int(q, 1),
			(scope_set)query_int(q, 2), (int)query_int(q, 3) };
	}
	return query_finish(q);
}

/* Columns: public_id, principal's name and kind, label, scopes, max_trust, created_ms, revoked_ms.
 */
static void
key_fill(struct call *c, struct query *q, PB(Key) *row)
{
	struct id id = query_id(q, 0);
	bool revoked = !query_null(q, 7);

	titen__v1__key__init(row);
	row->key_id = id_text(c->arena, "key", &id);
	row->principal_id = query_text(q, 1, c->arena);
	row->has_principal_kind = row->has_max_trust = row->has_status = true;
	row->principal_kind = (PB(Principal__Kind))query_int(q, 2);
	row->label = query_text(q, 3, c->arena);
	row->scopes = scope_list(c->arena, (scope_set)query_int(q, 4), &row->n_scopes);
	row->max_trust = (PB(Trust))query_int(q, 5);
	row->status = revoked ? TITEN__V1__KEY__STATUS__REVOKED : TITEN__V1__KEY__STATUS__ACTIVE;
	row->created_at = call_time(c, query_int(q, 6));
	if (revoked)
		row->revoked_at = call_time(c, query_int(q, 7));
}

const struct rule key_list_rules[] = {
	ID_OPTIONAL("after"),
	INT_OPTIONAL("limit", 1, INT64_MAX),
	RULES_END,
};

enum status
key_list(struct call *c, const PB(KeyListRequest) *req, PB(KeyListResponse) *resp)
{
	struct found after = { .row = 0 };
	struct page page;
	struct query *q;
	enum status st;

	if (req->after != NULL) {
		if ((st = key_find(c, req->after, &after)) != STATUS_OK)
			return st;
		if (after.row == 0)
			return call_fail(c, STATUS_VALIDATION_ERROR,
			    "after must be the id of a key of this organization.");
	}
	page_begin(&page, c->arena,
	    page_limit(req->has_limit, req->limit, KEYS_LIMIT_DEFAULT, KEYS_LIMIT_MAX));
	q = query_start(c->db,
	    "SELECT k.public_id, p.name, p.kind, k.label, k.scopes, k.max_trust, k.created_ms,"
	    " k.revoked_ms FROM keys k JOIN principals p ON p.id = k.principal"
	    " WHERE k.organization = $1 AND k.id > $2 ORDER BY k.id",
	    VALUES(as_int(c->who.organization), as_int(after.row)));
	while (page_more(&page, q)) {
		PB(Key) *row = arena_alloc(c->arena, sizeof(*row));

		key_fill(c, q, row);
		page_add(&page, row, PAGE_ROW_BYTES);
	}
	resp->keys = (PB(Key) **)page.rows;
	resp->n_keys = page.rows_n;
	if (page.more)
		resp->cursor = resp->keys[page.rows_n - 1]->key_id;
	return query_finish(q);
}

/* --- revoke */

const struct rule key_revoke_rules[] = {
	ID("key_id"),
	RULES_END,
};

static enum status
revoke_now(struct call *c, int64_t key, const char *key_id)
{
	struct key_change *change = arena_alloc(c->arena, sizeof(*change));
	enum status st = db_run(c->db, "UPDATE keys SET revoked_ms = $2 WHERE id = $1",
	    VALUES(as_int(key), as_int(c->now_ms)));

	if (st != STATUS_OK)
		return st;
	change->revoked = true;
	change->key = key;
	c->key_change = change;
	return audit_append(c, "key.revoke", key_id, NULL);
}

/* How many other keys of this organization can do everything. */
static enum status
masters_count(struct call *c, int64_t but_row, int64_t *count_r)
{
	struct query *q = query_start(c->db,
	    "SELECT count(*) FROM keys WHERE organization = $1 AND id <> $2 AND revoked_ms IS NULL"
	    " AND scopes & $3 <> 0",
	    VALUES(as_int(c->who.organization), as_int(but_row), as_int(1 << RIGHT_ALL)));

	*count_r = query_row(q) ? query_int(q, 0) : 0;
	return query_finish(q);
}

/* A manager revokes only what it could have made, and never the last key that can do everything:
 * nobody could make another. */
static enum status
revoke_allowed(struct call *c, const struct found *key)
{
	int64_t others = 0;
	enum status st;

	if (!scope_within(key->scopes, c->who.scopes) || key->max_trust > c->who.max_trust)
		return call_fail(
		    c, STATUS_FORBIDDEN, "A key cannot revoke one that may do more than itself.");
	if (!scope_granted(key->scopes, RIGHT_ALL))
		return STATUS_OK;
	if ((st = masters_count(c, key->row, &others)) != STATUS_OK)
		return st;
	if (others == 0)
		return call_fail(c, STATUS_CONFLICT,
		    "This is the last key with the scope *; make another first.");
	return STATUS_OK;
}

enum status
key_revoke(struct call *c, const PB(KeyRevokeRequest) *req, PB(KeyRevokeResponse) *resp)
{
	struct found key;
	enum status st = key_find(c, req->key_id, &key);

	if (st != STATUS_OK)
		return st;
	if (key.row == 0)
		return call_fail(c, STATUS_NOT_FOUND, "There is no such key.");
	if (key.revoked_ms == 0) {
		key.revoked_ms = c->now_ms;
		if ((st = revoke_allowed(c, &key)) != STATUS_OK ||
		    (st = revoke_now(c, key.row, req->key_id)) != STATUS_OK)
			return st;
	}
	resp->key_id = req->key_id;
	resp->revoked_at = call_time(c, key.revoked_ms);
	resp->has_revoked = true;
	resp->revoked = true;
	return STATUS_OK;
}

/* --- bootstrap */

static enum status
organization_insert(struct call *c, const char *name, struct identity *who)
{
	struct id id = call_id(c);
	struct query *q = query_start(c->db,
	    "INSERT INTO organizations (public_id, name, created_ms) VALUES ($1, $2, $3)"
	    " ON CONFLICT (name) DO NOTHING RETURNING id",
	    VALUES(as_id(&id), as_text(name), as_int(c->now_ms)));
	enum status st;

	if (query_row(q))
		who->organization = query_int(q, 0);
	who->organization_id = id_text(c->arena, "org", &id);
	if ((st = query_finish(q)) == STATUS_OK && who->organization == 0)
		return call_fail(c, STATUS_CONFLICT, "An organization of that name exists.");
	return st;
}

/* The new owner makes the first entry about itself. */
static enum status
bootstrap_audit(struct call *c, const struct identity *owner)
{
	struct identity nobody = c->who;
	enum status st;

	c->who = *owner;
	st = create_audit(c, owner);
	c->who = nobody;
	return st;
}

const struct rule key_bootstrap_rules[] = {
	TEXT("name", LABEL_MAX),
	RULES_END,
};

enum status
key_bootstrap(struct call *c, const PB(KeyBootstrapRequest) *req, PB(KeyBootstrapResponse) *resp)
{
	struct identity owner = {
		.principal_id = OWNER,
		.principal_kind = TITEN__V1__PRINCIPAL__KIND__HUMAN,
		.label = "bootstrap",
		.scopes = (scope_set)1 << RIGHT_ALL,
		.max_trust = TITEN__V1__TRUST__POLICY_APPROVED,
	};
	char text[KEY_TEXT_BYTES];
	enum status st;

	if ((st = organization_insert(c, req->name, &owner)) != STATUS_OK ||
	    (st = principal_insert(c, &owner)) != STATUS_OK ||
	    (st = key_insert(c, &owner, text)) != STATUS_OK)
		return st;
	resp->organization_id = arena_text(c->arena, owner.organization_id);
	resp->principal_id = arena_text(c->arena, owner.principal_id);
	resp->key_id = arena_text(c->arena, owner.key_id);
	resp->api_key = arena_text(c->arena, text);
	sodium_memzero(text, sizeof(text));
	return bootstrap_audit(c, &owner);
}

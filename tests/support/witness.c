/* SPDX-License-Identifier: MIT */
/* What is done, then what is looked for: first each fact, then what must be true of any database.
 */
#include "tests/support/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>

#include "core/event.h"
#include "tests/support/image.h"

#define TEXT_BYTES 32
#define BURST 4
#define SUBJECTS 10             /* so that most saves replace a state */
#define STATE_BYTES_SMALL 200   /* most states */
#define STATE_BYTES_LARGE 60000 /* some, so that the log is folded now and then */
#define LARGE_ONE_IN 4

void
witness_init(struct witness *w, struct fixture *f, uint64_t seed)
{
	w->f = f;
	w->seed = seed;
	w->number = 0;
	atomic_store(&w->facts_n, 0);
}

int
witness_facts(struct witness *w)
{
	return atomic_load(&w->facts_n);
}

static uint64_t
draw(struct witness *w, uint64_t n)
{
	return image_random(&w->seed) % n;
}

/* --- what is done */

static const char *
numbered(char text[TEXT_BYTES], const char *prefix, int number)
{
	snprintf(text, TEXT_BYTES, "%s%d", prefix, number);
	return text;
}

static enum status
remember(struct witness *w, enum status st, enum fact_kind kind, int number, const char *id)
{
	int n = atomic_load(&w->facts_n);

	assert_true(n < WITNESS_FACTS_MAX);
	if (st != STATUS_OK)
		return st;
	w->facts[n] = (struct fact){ .kind = kind, .id = id, .number = number };
	atomic_store(&w->facts_n, n + 1);
	return st;
}

/* The idempotency key of the next call, kept as long as the call. */
static void
sign(struct witness *w, int number)
{
	static char text[TEXT_BYTES];

	retry_as(w->f, numbered(text, "k", number));
}

/* A fact of that kind whose thing nobody has touched since; NULL: there is none. */
static struct fact *
untouched(struct witness *w, enum fact_kind kind)
{
	int n = atomic_load(&w->facts_n);

	for (int tries = 0; n > 0 && tries < 20; tries++) {
		struct fact *fact = &w->facts[draw(w, (uint64_t)n)];

		if (fact->kind == kind && !fact->used)
			return fact;
	}
	return NULL;
}

static enum status
act_acquire(struct witness *w, int number)
{
	char name[TEXT_BYTES];
	enum status st;

	sign(w, number);
	st = acquire(w->f, w->f->alice, "deploy", numbered(name, "r", number), 86400);
	return remember(w, st, FACT_LEASE, number,
	    st == STATUS_OK ? GOT(w->f, LeaseAcquireResponse)->lease_id : NULL);
}

static struct answer *
acquire_draft(struct witness *w, int number)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	char name[TEXT_BYTES], key[TEXT_BYTES], type[] = "deploy", purpose[] = "p";
	struct answer *a;

	numbered(name, "r", number);
	req.resource_type = type;
	req.resource_id = name;
	req.purpose = purpose;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 86400;
	a = draft(w->f, w->f->alice, "LeaseService/Acquire", &req);
	a->call.idempotency_key = arena_text(&a->arena, numbered(key, "k", number));
	return a;
}

/* Four at once, which may share a commit. */
static enum status
act_burst(struct witness *w)
{
	struct answer *answers[BURST];
	enum status st = STATUS_OK;
	int first = w->number;

	w->number += BURST;
	for (int i = 0; i < BURST; i++)
		answers[i] = acquire_draft(w, first + i);
	for (int i = 0; i < BURST; i++)
		submit(w->f, answers[i]);
	for (int i = 0; i < BURST; i++) {
		enum status one = await(answers[i]);

		w->f->last = answers[i];
		remember(w, one, FACT_LEASE, first + i,
		    one == STATUS_OK ? GOT(w->f, LeaseAcquireResponse)->lease_id : NULL);
		st = one == STATUS_OK ? st : one;
	}
	return st;
}

static enum status
act_save(struct witness *w, int number)
{
	size_t bytes = draw(w, LARGE_ONE_IN) == 0 ? STATE_BYTES_LARGE : STATE_BYTES_SMALL;
	char subject[TEXT_BYTES];
	char *state = malloc(bytes + 3);
	enum status st;

	assert_non_null(state);
	memset(state, 'a' + number % 26, bytes + 2);
	state[0] = state[bytes + 1] = '"';
	state[bytes + 2] = '\0';
	numbered(subject, "s", (int)draw(w, SUBJECTS));
	sign(w, number);
	st = save(w->f, w->f->alice, subject, state);
	free(state);
	if (st != STATUS_OK)
		return st;
	remember(w, st, FACT_SAVE, number, GOT(w->f, CheckpointSaveResponse)->checkpoint_id);
	w->facts[w->facts_n - 1].version = GOT(w->f, CheckpointSaveResponse)->version;
	return st;
}

static enum status
act_make(struct witness *w, int number, bool handoff)
{
	static const char *const scopes[] = { "leases:write", NULL };
	char subject[TEXT_BYTES];
	enum status st;

	sign(w, number);
	if (!handoff) {
		st = make_key(w->f, w->f->owner, NULL, scopes);
		return remember(w, st, FACT_KEY, number,
		    st == STATUS_OK ? GOT(w->f, KeyCreateResponse)->key_id : NULL);
	}
	st = hand_off(w->f, w->f->alice, "bob", numbered(subject, "h", number));
	return remember(w, st, FACT_HANDOFF, number,
	    st == STATUS_OK ? GOT(w->f, HandoffCreateResponse)->handoff_id : NULL);
}

/* Give back, settle or revoke what FACT says. */
static enum status
act_end(struct witness *w, int number, struct fact *fact)
{
	enum fact_kind kind = fact->kind == FACT_LEASE ? FACT_RELEASE : FACT_REVOKE;
	enum status st;

	sign(w, number);
	if (fact->kind == FACT_LEASE) {
		st = release(w->f, w->f->alice, fact->id);
	} else if (fact->kind == FACT_KEY) {
		st = revoke_key(w->f, w->f->owner, fact->id);
	} else {
		kind = FACT_RESOLVE;
		st = resolve(w->f, w->f->bob, fact->id, number % 2 == 0 ? ACCEPTED : REJECTED);
	}
	fact->used = st == STATUS_OK;
	return remember(w, st, kind, number, fact->id);
}

enum status
witness_act(struct witness *w)
{
	static const enum fact_kind made[] = { FACT_LEASE, FACT_HANDOFF, FACT_KEY };
	uint64_t what = draw(w, 12);
	struct fact *fact = what < 5 ? untouched(w, made[draw(w, 3)]) : NULL;
	int number;

	if (what == 5)
		return act_burst(w);
	number = w->number++;
	if (fact != NULL)
		return act_end(w, number, fact);
	if (what < 8)
		return act_acquire(w, number);
	return what < 10 ? act_save(w, number) : act_make(w, number, what == 10);
}

/* The last acknowledged lease is given again as it was, and nothing is done twice. */
static void
retry_known(struct witness *w)
{
	char name[TEXT_BYTES];

	for (int i = witness_facts(w) - 1; i >= 0; i--) {
		const struct fact *fact = &w->facts[i];

		if (fact->kind != FACT_LEASE)
			continue;
		sign(w, fact->number);
		expect(w->f, OK,
		    acquire(w->f, w->f->alice, "deploy", numbered(name, "r", fact->number), 86400));
		assert_true(w->f->last->call.replayed);
		assert_string_equal(GOT(w->f, LeaseAcquireResponse)->lease_id, fact->id);
		return;
	}
}

void
witness_resume(struct witness *w, int n)
{
	int known = witness_facts(w);

	atomic_store(&w->facts_n, n);
	retry_known(w);
	for (int i = n; i < known; i++)
		if (w->facts[i].kind == FACT_LEASE)
			expect(w->f, OK, act_acquire(w, w->facts[i].number));
}

/* --- what is looked for */

/* The file finds events and answers by other things than a fact knows; beside it, in memory, they
 * are found at once. */
static const char notes[] =
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE told AS SELECT resource, kind, actor, public_id FROM events;"
    "CREATE INDEX temp.told_resource ON told (resource);"
    "CREATE TEMP TABLE kept AS SELECT key FROM idempotency;"
    "CREATE INDEX temp.kept_key ON kept (key);";

/* $1 is the id, $2 the idempotency key, $3 the version. */
static const struct {
	const char *prefix;
	const char *sql;
	const char *fault;
} looks[FACT_KINDS] = {
	[FACT_LEASE] = { "lease",
	    "SELECT (SELECT count(*) FROM leases l JOIN temp.told e ON e.resource = l.public_id "
	    "AND e.kind = 1 JOIN audience a ON a.viewer = e.actor AND a.event = e.public_id WHERE "
	    "l.public_id = $1) = 1 AND EXISTS (SELECT 1 FROM temp.kept WHERE key = $2) AND $3 = 0",
	    "an acknowledged lease is lost" },
	[FACT_RELEASE] = { "lease",
	    "SELECT (SELECT count(*) FROM leases l JOIN temp.told e ON e.resource = l.public_id "
	    "AND e.kind = 2 WHERE l.public_id = $1 AND l.released_ms IS NOT NULL) = 1 AND EXISTS "
	    "(SELECT 1 FROM temp.kept WHERE key = $2) AND $3 = 0",
	    "an acknowledged release is lost" },
	[FACT_HANDOFF] = { "hoff",
	    "SELECT (SELECT count(*) FROM handoffs h JOIN temp.told e ON e.resource = h.public_id "
	    "AND e.kind = 3 JOIN audience a ON a.viewer IN (h.sender, h.target) AND a.event = "
	    "e.public_id "
	    "WHERE h.public_id = $1) = 2 AND EXISTS (SELECT 1 FROM temp.kept WHERE key = $2) AND "
	    "$3 = 0",
	    "an acknowledged handoff is lost" },
	[FACT_RESOLVE] = { "hoff",
	    "SELECT (SELECT count(*) FROM handoffs h JOIN temp.told e ON e.resource = h.public_id "
	    "AND e.kind = h.status + 2 WHERE h.public_id = $1 AND h.status > 1) = 1 AND EXISTS "
	    "(SELECT 1 FROM temp.kept WHERE key = $2) AND $3 = 0",
	    "an acknowledged resolution is lost" },
	[FACT_SAVE] = { "ckpt",
	    "SELECT (SELECT version FROM checkpoints WHERE public_id = $1) >= $3 AND EXISTS "
	    "(SELECT 1 FROM temp.kept WHERE key = $2)",
	    "an acknowledged state is lost" },
	[FACT_KEY] = { "key",
	    "SELECT EXISTS (SELECT 1 FROM keys WHERE public_id = $1) AND EXISTS (SELECT 1 FROM "
	    "idempotency WHERE key = $2) AND $3 = 0",
	    "an acknowledged key is lost" },
	[FACT_REVOKE] = { "key",
	    "SELECT EXISTS (SELECT 1 FROM keys WHERE public_id = $1 AND revoked_ms IS NOT NULL) "
	    "AND EXISTS (SELECT 1 FROM temp.kept WHERE key = $2) AND $3 = 0",
	    "an acknowledged revocation is lost" },
};

/* Each gives 1. A lease's event is seen by one, a handoff's by two. Whatever changed something kept
 * an answer too, but for the six keys that the fixture makes. */
static const struct {
	const char *sql;
	const char *fault;
} truths[] = {
	{ "SELECT (SELECT group_concat(integrity_check) FROM pragma_integrity_check) = 'ok'",
	    "the file is damaged" },
	{ "SELECT NOT EXISTS (SELECT 1 FROM pragma_foreign_key_check)", "a row points nowhere" },
	{ "SELECT min(seq = (SELECT count(*) FROM events e WHERE e.organization = o.id) AND seq = "
	  "(SELECT ifnull(max(e.seq), 0) FROM events e WHERE e.organization = o.id)) FROM "
	  "organizations o",
	    "the numbers of the events have gaps" },
	{ "SELECT (SELECT count(*) FROM leases) = (SELECT count(*) FROM events WHERE kind = 1) AND "
	  "NOT EXISTS (SELECT 1 FROM leases WHERE public_id NOT IN (SELECT resource FROM events "
	  "WHERE kind = 1))",
	    "leases and their events do not match" },
	{ "SELECT (SELECT count(*) FROM leases WHERE released_ms IS NOT NULL) = (SELECT count(*) "
	  "FROM events e JOIN leases l ON l.public_id = e.resource WHERE e.kind = 2 AND "
	  "l.released_ms IS NOT NULL)",
	    "releases and their events do not match" },
	{ "SELECT (SELECT count(*) FROM handoffs) = (SELECT count(*) FROM events WHERE kind = 3) "
	  "AND (SELECT count(*) FROM handoffs WHERE status > 1) = (SELECT count(*) FROM events e "
	  "JOIN handoffs h ON h.public_id = e.resource AND e.kind = h.status + 2 WHERE e.kind > 3)",
	    "handoffs and their events do not match" },
	{ "SELECT (SELECT count(*) FROM audience) = (SELECT ifnull(sum(CASE WHEN kind < 3 THEN 1 "
	  "ELSE 2 "
	  "END), 0) FROM events) AND NOT EXISTS (SELECT 1 FROM audience a JOIN principals p ON "
	  "p.id = "
	  "a.viewer WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.organization = p.organization "
	  "AND e.public_id = a.event AND e.kind = a.kind))",
	    "events and their audience do not match" },
	{ "SELECT (SELECT count(*) FROM idempotency) = (SELECT count(*) + count(released_ms) FROM "
	  "leases) + (SELECT count(*) + count(resolved_ms) FROM handoffs) + (SELECT "
	  "ifnull(sum(version), 0) FROM checkpoints) + (SELECT count(*) + count(revoked_ms) - 6 "
	  "FROM keys)",
	    "changes and kept answers do not match" },
	{ "SELECT (SELECT clock_ms FROM titen) >= (SELECT ifnull(max(created_ms), 0) FROM events)",
	    "time may run backwards" },
};

static bool
is_true(sqlite3_stmt *stmt)
{
	bool yes = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0) == 1;

	sqlite3_reset(stmt);
	return yes;
}

static sqlite3_stmt *
prepare(sqlite3 *handle, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	return stmt;
}

static bool
fact_there(sqlite3_stmt *stmt, const struct fact *fact)
{
	char key[TEXT_BYTES];
	struct id id;

	assert_true(id_parse(&id, looks[fact->kind].prefix, fact->id));
	numbered(key, "k", fact->number);
	sqlite3_bind_blob(stmt, sqlite3_bind_parameter_index(stmt, "$1"), id.bytes, sizeof id.bytes,
	    SQLITE_TRANSIENT);
	sqlite3_bind_text(
	    stmt, sqlite3_bind_parameter_index(stmt, "$2"), key, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, "$3"), fact->version);
	return is_true(stmt);
}

static const char *
facts_fault(struct witness *w, sqlite3 *handle, int n)
{
	sqlite3_stmt *stmts[FACT_KINDS];
	const char *fault = NULL;

	assert_int_equal(sqlite3_exec(handle, notes, NULL, NULL, NULL), SQLITE_OK);
	for (size_t kind = 0; kind < FACT_KINDS; kind++)
		stmts[kind] = prepare(handle, looks[kind].sql);
	for (int i = 0; i < n && fault == NULL; i++)
		if (!fact_there(stmts[w->facts[i].kind], &w->facts[i]))
			fault = looks[w->facts[i].kind].fault;
	for (size_t kind = 0; kind < FACT_KINDS; kind++)
		sqlite3_finalize(stmts[kind]);
	return fault;
}

static const char *
truths_fault(sqlite3 *handle)
{
	const char *fault = NULL;

	for (size_t i = 0; i < sizeof truths / sizeof truths[0] && fault == NULL; i++) {
		sqlite3_stmt *stmt = prepare(handle, truths[i].sql);

		if (!is_true(stmt))
			fault = truths[i].fault;
		sqlite3_finalize(stmt);
	}
	return fault;
}

const char *
witness_fault(struct witness *w, int n)
{
	sqlite3 *handle = NULL;
	const char *fault;

	assert_int_equal(
	    sqlite3_open_v2(w->f->path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	fault = truths_fault(handle);
	if (fault == NULL)
		fault = facts_fault(w, handle, n);
	sqlite3_close(handle);
	return fault;
}

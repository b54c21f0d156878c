/* SPDX-License-Identifier: MIT */
/*
 * The sentences about the store alone come first. Those about what was acknowledged compare it with
 * a temporary table of the acts; names in SQL are those of core/schema.sql.
 */
#include "tests/support/proof.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sodium.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS 5000 /* the server may be recovering the database */

struct sentence {
	const char *text;
	const char *exceptions; /* a query that counts them */
};

static const struct sentence of_store[] = {
	{ "every lease has one event, of its holder and time",
	    "SELECT count(*) FROM leases l LEFT JOIN heard h ON h.resource = l.public_id AND "
	    "h.kind = 1"
	    " WHERE h.n IS NOT 1 OR h.actor <> l.holder OR h.organization <> l.organization"
	    " OR h.created_ms <> l.created_ms" },
	{ "every event of a lease has its lease",
	    "SELECT count(*) FROM events e LEFT JOIN leases l ON l.public_id = e.resource"
	    " WHERE e.kind IN (1, 2) AND (l.fence IS NULL OR l.holder <> e.actor"
	    " OR e.kind = 2 AND l.released_ms IS NOT e.created_ms)" },
	{ "a lease ended by one release or by the next lease on its resource",
	    "SELECT count(*) FROM leases l LEFT JOIN heard h ON h.resource = l.public_id AND "
	    "h.kind = 2"
	    " WHERE (l.released_ms IS NULL) <> (h.n IS NULL) AND (l.released_ms IS NULL OR NOT "
	    "EXISTS"
	    " (SELECT 1 FROM leases m WHERE m.organization = l.organization"
	    " AND m.resource_type = l.resource_type AND m.resource_id = l.resource_id"
	    " AND m.fence > l.fence AND m.created_ms = l.released_ms)) OR h.n > 1" },
	{ "a resource has at most one unreleased lease",
	    "SELECT count(*) FROM (SELECT 1 FROM leases WHERE released_ms IS NULL"
	    " GROUP BY organization, resource_type, resource_id HAVING count(*) > 1)" },
	{ "leases last as long as was asked",
	    "SELECT count(*) FROM leases WHERE expires_ms <> created_ms + ttl_seconds * 1000" },
	{ "fences and ids of leases rise together",
	    "SELECT count(*) FROM (SELECT public_id > lag(public_id) OVER (ORDER BY fence) AS "
	    "rises"
	    " FROM leases) WHERE rises = 0" },
	{ "no fence can come again",
	    "SELECT count(*) FROM leases WHERE fence > (SELECT fence FROM titen)" },
	{ "no fence stands twice", "SELECT count(*) - count(DISTINCT fence) FROM leases" },
	{ "no number of an event stands twice", "SELECT count(*) FROM (SELECT 1 FROM events GROUP "
						"BY organization, seq HAVING count(*) > 1)" },
	{ "every handoff has one event of its sender and time",
	    "SELECT count(*) FROM handoffs o LEFT JOIN heard h ON h.resource = o.public_id"
	    " AND h.kind = 3 WHERE h.n IS NOT 1 OR h.actor <> o.sender OR h.created_ms <> "
	    "o.created_ms" },
	{ "a handoff is decided by one event of its target and time, or open without",
	    "SELECT count(*) FROM handoffs o LEFT JOIN heard h ON h.resource = o.public_id"
	    " AND h.kind IN (4, 5) WHERE (o.status = 1) <> (h.n IS NULL) OR h.n > 1"
	    " OR h.kind <> o.status + 2 OR h.actor <> o.target OR h.created_ms <> o.resolved_ms"
	    " OR (o.status = 1) <> (o.resolved_ms IS NULL)" },
	{ "every event of a handoff has its handoff",
	    "SELECT count(*) FROM events e LEFT JOIN handoffs o ON o.public_id = e.resource"
	    " WHERE e.kind IN (3, 4, 5) AND o.id IS NULL" },
	{ "there are no other kinds of event",
	    "SELECT count(*) FROM events WHERE kind NOT BETWEEN 1 AND 5" },
	{ "seq counts the events of an organization without a gap",
	    "SELECT count(*) FROM organizations o WHERE"
	    " o.seq <> (SELECT count(*) FROM events e WHERE e.organization = o.id) OR"
	    " o.seq <> (SELECT coalesce(max(seq), 0) FROM events e WHERE e.organization = o.id)" },
	{ "ids and times of events rise with seq",
	    "SELECT count(*) FROM (SELECT public_id > lag(public_id) OVER w AND"
	    " created_ms >= lag(created_ms) OVER w AS rises FROM events"
	    " WINDOW w AS (PARTITION BY organization ORDER BY seq)) WHERE rises = 0" },
	{ "whom an event concerns can see it",
	    "SELECT count(*) FROM (SELECT * FROM concerned EXCEPT SELECT viewer, event, kind FROM "
	    "audience)" },
	{ "and nobody else",
	    "SELECT count(*) FROM (SELECT viewer, event, kind FROM audience EXCEPT SELECT * FROM "
	    "concerned)" },
	{ "who offered and who decided is in the audit",
	    "SELECT count(*) FROM handoffs o WHERE (SELECT count(*) FROM audited u"
	    " WHERE u.resource = 'hoff_' || lower(hex(o.public_id))) <> 1 + (o.status > 1)" },
	{ "who made a key is in the audit",
	    "SELECT count(*) FROM keys k WHERE NOT EXISTS (SELECT 1 FROM audited u"
	    " WHERE u.resource = 'key_' || lower(hex(k.public_id))) AND k.id <>"
	    " (SELECT min(m.id) FROM keys m WHERE m.organization = k.organization)" },
	{ "the clock has been kept",
	    "SELECT count(*) FROM events WHERE created_ms > (SELECT clock_ms FROM titen)" },
	{ "every reference leads somewhere", "SELECT count(*) FROM pragma_foreign_key_check" },
	{ "the file is whole",
	    "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'" },
};

/* Events by resource, who they concern, and the audit by resource: with indexes that the store does
 * without. */
static const char views[] =
    "CREATE TEMP TABLE heard AS SELECT resource, kind, count(*) AS n, min(actor) AS actor,"
    " min(organization) AS organization, min(created_ms) AS created_ms FROM events"
    " GROUP BY resource, kind;"
    "CREATE INDEX temp.heard_resource ON heard (resource, kind);"
    "CREATE TEMP TABLE audited AS SELECT resource FROM audit;"
    "CREATE INDEX temp.audited_resource ON audited (resource);"
    "CREATE TEMP VIEW concerned AS"
    " SELECT actor AS viewer, public_id AS event, kind FROM events WHERE kind IN (1, 2)"
    " UNION SELECT o.sender, e.public_id, e.kind FROM events e"
    " JOIN handoffs o ON o.public_id = e.resource WHERE e.kind IN (3, 4, 5)"
    " UNION SELECT o.target, e.public_id, e.kind FROM events e"
    " JOIN handoffs o ON o.public_id = e.resource WHERE e.kind IN (3, 4, 5);";

static const struct sentence of_acts[] = {
	{ "an acknowledged lease is there as it was answered",
	    "SELECT count(*) FROM acts a WHERE a.kind = 0 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "leases l"
	    " JOIN people p ON p.id = l.holder WHERE l.public_id = a.id AND l.resource_id = a.name"
	    " AND p.name = a.principal AND l.expires_ms = a.time_ms AND l.fence = a.number)" },
	{ "no fence was given out twice",
	    "SELECT count(*) - count(DISTINCT number) FROM acts WHERE kind = 0 AND done" },
	{ "an acknowledged release is there with its time",
	    "SELECT count(*) FROM acts a WHERE a.kind = 1 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "leases l"
	    " WHERE l.public_id = a.target AND l.released_ms = a.time_ms)" },
	{ "a lease that nobody else wanted and nobody gave back still stands",
	    "SELECT count(*) FROM acts a JOIN leases l ON l.public_id = a.id WHERE a.kind = 0 AND "
	    "a.done"
	    " AND a.name LIKE 'own-%' AND l.released_ms IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
	    "acts b"
	    " WHERE b.name = a.name AND b.kind = 0 AND b.n > a.n) AND NOT EXISTS"
	    " (SELECT 1 FROM acts b WHERE b.target = a.id AND b.kind = 1)" },
	{ "an acknowledged handoff is there as it was made",
	    "SELECT count(*) FROM acts a WHERE a.kind = 2 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "handoffs o"
	    " JOIN people s ON s.id = o.sender JOIN people t ON t.id = o.target"
	    " LEFT JOIN checkpoints k ON k.id = o.checkpoint"
	    " WHERE o.public_id = a.id AND o.subject_id = a.name AND s.name = a.principal"
	    " AND t.name = a.peer AND k.public_id IS a.target)" },
	{ "an acknowledged decision is there with its time",
	    "SELECT count(*) FROM acts a WHERE a.kind = 3 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "handoffs o"
	    " WHERE o.public_id = a.target AND o.resolved_ms = a.time_ms"
	    " AND o.status = CASE a.accept WHEN 1 THEN 2 ELSE 3 END)" },
	{ "a state hash is the hash of the state",
	    "SELECT count(*) FROM acts WHERE kind = 4 AND done AND text <> digest" },
	{ "the last acknowledged state is there, or the one that was being saved over it",
	    "SELECT count(*) FROM acts a WHERE a.kind = 4 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "acts b"
	    " WHERE b.name = a.name AND b.kind = 4 AND b.done AND b.n > a.n) AND NOT EXISTS"
	    " (SELECT 1 FROM checkpoints k JOIN people p ON p.id = k.agent"
	    " WHERE k.public_id = a.id AND k.subject_id = a.name AND p.name = a.principal"
	    " AND (k.version = a.number AND k.state = a.state AND k.state_hash = a.text"
	    " AND k.expires_ms = a.time_ms OR k.version = a.number + 1 AND EXISTS (SELECT 1 FROM "
	    "acts b"
	    " WHERE b.name = a.name AND b.kind = 4 AND NOT b.done AND b.state = k.state)))" },
	{ "an acknowledged key is there for its principal",
	    "SELECT count(*) FROM acts a WHERE a.kind = 5 AND a.done AND NOT EXISTS (SELECT 1 FROM "
	    "keys k"
	    " JOIN people p ON p.id = k.principal WHERE k.public_id = a.id AND"
	    " lower(hex(k.digest)) = a.digest AND p.name = a.peer AND k.label = a.name)" },
	{ "there are no leases that nobody took",
	    "SELECT max(0, (SELECT count(*) FROM leases) - (SELECT count(*) FROM acts WHERE kind = "
	    "0))" },
	{ "there are no handoffs that nobody made",
	    "SELECT max(0, (SELECT count(*) FROM handoffs) -"
	    " (SELECT count(*) FROM acts WHERE kind = 2))" },
	{ "there are no decisions that nobody took",
	    "SELECT max(0, (SELECT count(*) FROM handoffs WHERE status > 1) -"
	    " (SELECT count(*) FROM acts WHERE kind = 3))" },
};

static const char acts_table[] =
    "CREATE TEMP TABLE people (name TEXT PRIMARY KEY, id INTEGER);"
    "INSERT INTO people SELECT name, id FROM principals;"
    "CREATE INDEX temp.people_id ON people (id);"
    "CREATE TEMP TABLE acts (n INTEGER PRIMARY KEY, kind, done, principal, peer, name, target, "
    "accept,"
    " key, id, text, time_ms, number, state, digest);"
    "CREATE INDEX temp.acts_name ON acts (name, kind, n);"
    "CREATE INDEX temp.acts_target ON acts (target, kind);";

/* --- SQLite */

static void
require(sqlite3 *db, int code, int wanted)
{
	if (code != wanted)
		fail_msg("SQLite says: %s", sqlite3_errmsg(db));
}

static sqlite3 *
store_view(const char *file)
{
	sqlite3 *db;

	require(NULL, sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, BUSY_MS);
	require(db, sqlite3_exec(db, "PRAGMA temp_store = memory", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static int64_t
number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t n;

	require(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	require(db, sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

static void
hold(sqlite3 *db, const struct sentence *sentences, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t exceptions = number(db, sentences[i].exceptions);

		if (exceptions != 0)
			fail_msg(
			    "not so, %lld times: %s", (long long)exceptions, sentences[i].text);
	}
}

int64_t
proof_number(const char *file, const char *sql)
{
	sqlite3 *db = store_view(file);
	int64_t n = number(db, sql);

	sqlite3_close(db);
	return n;
}

/* One transaction for all sentences: a server that works on meanwhile is seen at one instant. */
void
proof_of_store(const char *file)
{
	sqlite3 *db = store_view(file);

	require(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	require(db, sqlite3_exec(db, views, NULL, NULL, NULL), SQLITE_OK);
	hold(db, of_store, sizeof of_store / sizeof of_store[0]);
	sqlite3_close(db);
}

/* --- the acts as a table */

/* The 16 bytes of a public id; null when ID is empty. */
static void
bind_id(sqlite3_stmt *stmt, int place, const char *id)
{
	const char *hex = strrchr(id, '_');
	unsigned char bytes[16];
	size_t n = 0;

	if (hex == NULL || sodium_hex2bin(bytes, sizeof bytes, hex + 1, 32, NULL, &n, NULL) != 0)
		return;
	sqlite3_bind_blob(stmt, place, bytes, (int)n, SQLITE_TRANSIENT);
}

static void
bind_text(sqlite3_stmt *stmt, int place, const char *text)
{
	sqlite3_bind_text(stmt, place, text, -1, SQLITE_TRANSIENT);
}

/* SHA-256 of the saved state or of the new key. */
static void
bind_digest(sqlite3_stmt *stmt, int place, const struct act *act, const char *state)
{
	const char *text = act->kind == ACT_SAVE ? state : act->answer.text;
	unsigned char digest[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof digest + 1];

	crypto_hash_sha256(digest, (const unsigned char *)text, strlen(text));
	bind_text(stmt, place, sodium_bin2hex(hex, sizeof hex, digest, sizeof digest));
}

static void
act_bind(sqlite3_stmt *stmt, const struct act *act)
{
	const char *peer = act->peer == NULL ? act->answer.principal : act->peer->principal;
	char state[STATE_BYTES];

	act_state(act, state);
	sqlite3_bind_int(stmt, 2, (int)act->kind);
	sqlite3_bind_int(stmt, 3, act_done(act));
	bind_text(stmt, 4, act->agent->principal);
	bind_text(stmt, 5, peer);
	bind_text(stmt, 6, act->name);
	bind_id(stmt, 7, act->target);
	sqlite3_bind_int(stmt, 8, act->accept);
	bind_text(stmt, 9, act->key);
	bind_id(stmt, 10, act->answer.id);
	bind_text(stmt, 11, act->answer.text);
	sqlite3_bind_int64(stmt, 12, act->answer.time_ms);
	sqlite3_bind_int64(stmt, 13, act->answer.number);
	bind_text(stmt, 14, state);
	bind_digest(stmt, 15, act, state);
}

static void
acts_insert(sqlite3 *db, const struct load_result *result)
{
	static const char sql[] =
	    "INSERT INTO acts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
	sqlite3_stmt *stmt;

	require(db, sqlite3_exec(db, acts_table, NULL, NULL, NULL), SQLITE_OK);
	require(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	for (size_t i = 0; i < result->acts_n; i++) {
		sqlite3_bind_int64(stmt, 1, (sqlite3_int64)i);
		act_bind(stmt, &result->acts[i]);
		require(db, sqlite3_step(stmt), SQLITE_DONE);
		sqlite3_reset(stmt);
		sqlite3_clear_bindings(stmt);
	}
	sqlite3_finalize(stmt);
}

/* A stored answer is the first one, without its secret. */
static bool
answer_kept(const struct act *act, const void *reply, size_t bytes)
{
	struct answer kept;

	return act_unpack(act, reply, bytes, &kept) && strcmp(kept.id, act->answer.id) == 0 &&
	       kept.time_ms == act->answer.time_ms && kept.number == act->answer.number &&
	       strcmp(kept.text, act->kind == ACT_MAKE_KEY ? "" : act->answer.text) == 0;
}

static void
answers_kept(sqlite3 *db, const struct load_result *result)
{
	static const char sql[] =
	    "SELECT a.n, i.reply FROM acts a JOIN people p ON p.name = a.principal"
	    " LEFT JOIN idempotency i ON i.principal = p.id AND i.key = a.key"
	    " WHERE a.done AND a.key <> ''";
	sqlite3_stmt *stmt;
	int code;

	require(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct act *act = &result->acts[sqlite3_column_int64(stmt, 0)];

		if (!answer_kept(
			act, sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1)))
			fail_msg("the answer for key %s was not kept", act->key);
	}
	require(db, code, SQLITE_DONE);
	sqlite3_finalize(stmt);
}

void
proof_of_acts(const char *file, const struct load_result *result)
{
	sqlite3 *db = store_view(file);

	require(db, sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	acts_insert(db, result);
	hold(db, of_acts, sizeof of_acts / sizeof of_acts[0]);
	answers_kept(db, result);
	sqlite3_close(db);
}

/* SPDX-License-Identifier: MIT */
/* Failures first, because every statement meets them; then statements, transactions, connections.
 */
#include "core/db.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>

#include "core/clock.h"
#include "core/log.h"

#define WRITER_CACHE_KIB 65536    /* keeps the hot pages of a large lease index in memory */
#define READER_CACHE_KIB 8192     /* a page of events and the path to it */
#define WAL_KEEP_BYTES (64 << 20) /* what an emptied log may keep on disk */
#define PAGE_BYTES 4096           /* SQLite's default, and ours */
#define SAID_AGAIN_MS 1000        /* a full disk refuses thousands of steps a second */
#define PARAMETERS_MAX 16         /* our widest row takes eleven */
#define BUSY_MS 5000              /* readers meet only the closing checkpoint */

struct query {
	sqlite3_stmt *stmt;
	const char *sql;
	struct db *db;
	bool failed;
	int parameters_n;
	uint8_t parameters[PARAMETERS_MAX]; /* of the i-th parameter, the number in its name */
};

struct db {
	sqlite3 *handle;
	bool writes;
	bool failed;
	int error;       /* SQLite's code of the first failure in this transaction */
	int64_t said_ms; /* when the log last heard of a failure */
	int wal_frames;
	int fail_step;
	bool fail_lasting;
	struct query statements[DB_STATEMENTS_MAX]; /* open addressing by the address of the SQL */
};

/* Whether this step is one that a test wants to fail. */
static bool
fault_due(struct db *db)
{
	if (db->fail_step == 0 || --db->fail_step > 0)
		return false;
	db->fail_step = db->fail_lasting ? 1 : 0;
	return true;
}

/* Note a failure; end the process when the file cannot be trusted any more. */
static void
db_note_failure(struct db *db, int code)
{
	int primary = code & 0xff;

	if (code == SQLITE_IOERR_FSYNC || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB)
		log_die("The store can no longer be trusted: %s.", sqlite3_errstr(code));
	if (db->failed)
		return;
	db->failed = true;
	db->error = code;
	if (clock_monotonic_ms() - db->said_ms < SAID_AGAIN_MS)
		return;
	db->said_ms = clock_monotonic_ms();
	log_line(LOG_LEVEL_ERROR, "The store refused a step: %s (%d).", sqlite3_errstr(code), code);
}

/* Worth a retry, or a fault of ours. */
enum status
db_failure(const struct db *db)
{
	switch (db->error & 0xff) {
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_NOMEM:
		return STATUS_UNAVAILABLE;
	default:
		return STATUS_INTERNAL;
	}
}

_Static_assert(DB_STATEMENTS_MAX == 256, "statement_slot() takes eight bits of the hash");

static struct query *
statement_slot(struct db *db, const char *sql)
{
	size_t i = ((uintptr_t)sql * 0x9e3779b97f4a7c15u) >> 56;

	for (int tried = 0; db->statements[i].sql != NULL && db->statements[i].sql != sql;
	     tried++) {
		assert(tried < DB_STATEMENTS_MAX);
		i = (i + 1) % DB_STATEMENTS_MAX;
	}
	return &db->statements[i];
}

/* To SQLite "$2" is a name, numbered by where it first stands; note which value each one means. */
static void
statement_map(struct query *q)
{
	q->parameters_n = sqlite3_bind_parameter_count(q->stmt);
	assert(q->parameters_n <= PARAMETERS_MAX);
	for (int i = 0; i < q->parameters_n; i++) {
		const char *name = sqlite3_bind_parameter_name(q->stmt, i + 1);

		q->parameters[i] = (uint8_t)strtol(name + 1, NULL, 10);
		assert(name[0] == '$' && q->parameters[i] > 0);
	}
}

static bool
statement_prepare(struct query *q, struct db *db, const char *sql)
{
	int code =
	    sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->stmt, NULL);

	q->sql = sql;
	q->db = db;
	if (code != SQLITE_OK)
		db_note_failure(db, code);
	else
		statement_map(q);
	return code == SQLITE_OK;
}

static int
value_bind(sqlite3_stmt *stmt, int place, const struct value *v)
{
	switch (v->kind) {
	case VALUE_INT:
		return sqlite3_bind_int64(stmt, place, v->integer);
	case VALUE_TEXT:
		return sqlite3_bind_text64(
		    stmt, place, v->bytes, v->length, SQLITE_STATIC, SQLITE_UTF8);
	case VALUE_BLOB:
		return sqlite3_bind_blob64(stmt, place, v->bytes, v->length, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(stmt, place);
	}
}

/* How many values stand before the end. */
static int
values_count(const struct value *values)
{
	int n = 0;

	while (values[n].kind != VALUE_END)
		n++;
	return n;
}

static void
statement_bind(struct query *q, const struct value *values)
{
	int values_n = values_count(values);

	for (int i = 0; i < q->parameters_n; i++) {
		int code;

		assert(q->parameters[i] <= values_n);
		code = value_bind(q->stmt, i + 1, &values[q->parameters[i] - 1]);
		if (code != SQLITE_OK) {
			q->failed = true;
			db_note_failure(q->db, code);
			return;
		}
	}
}

struct query *
query_start(struct db *db, const char *sql, const struct value *values)
{
	struct query *q = statement_slot(db, sql);

	q->failed = false;
	if (q->stmt == NULL && !statement_prepare(q, db, sql)) {
		q->failed = true;
		return q;
	}
	assert(!sqlite3_stmt_busy(q->stmt));
	statement_bind(q, values);
	return q;
}

bool
query_row(struct query *q)
{
	int code;

	if (q->failed)
		return false;
	code = fault_due(q->db) ? SQLITE_FULL : sqlite3_step(q->stmt);
	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE) {
		q->failed = true;
		db_note_failure(q->db, code);
	}
	return false;
}

enum status
query_finish(struct query *q)
{
	if (q->stmt != NULL) {
		sqlite3_reset(q->stmt);
		sqlite3_clear_bindings(q->stmt);
	}
	return q->failed ? db_failure(q->db) : STATUS_OK;
}

int64_t
query_int(struct query *q, int column)
{
	return sqlite3_column_int64(q->stmt, column);
}

bool
query_null(struct query *q, int column)
{
	return sqlite3_column_type(q->stmt, column) == SQLITE_NULL;
}

char *
query_text(struct query *q, int column, struct arena *arena)
{
	const char *text = (const char *)sqlite3_column_text(q->stmt, column);
	int bytes = sqlite3_column_bytes(q->stmt, column);

	return text == NULL ? NULL : arena_text_n(arena, text, (size_t)bytes);
}

struct id
query_id(struct query *q, int column)
{
	struct id id = { { 0 } };
	const void *bytes = sqlite3_column_blob(q->stmt, column);

	if (bytes != NULL && sqlite3_column_bytes(q->stmt, column) == (int)sizeof(id.bytes))
		memcpy(id.bytes, bytes, sizeof(id.bytes));
	return id;
}

const void *
query_blob(struct query *q, int column, size_t *length_r)
{
	const void *bytes = sqlite3_column_blob(q->stmt, column);

	*length_r = (size_t)sqlite3_column_bytes(q->stmt, column);
	return bytes;
}

enum status
db_run(struct db *db, const char *sql, const struct value *values)
{
	struct query *q = query_start(db, sql, values);

	while (query_row(q))
		;
	return query_finish(q);
}

static enum status
db_begin(struct db *db, const char *sql)
{
	db->failed = false;
	db->error = SQLITE_OK;
	return db_run(db, sql, NO_VALUES);
}

enum status
db_begin_read(struct db *db)
{
	return db_begin(db, "BEGIN");
}

enum status
db_begin_write(struct db *db)
{
	return db_begin(db, "BEGIN IMMEDIATE");
}

enum status
db_commit(struct db *db)
{
	enum status st = STATUS_OK;

	/* A full disk may have rolled everything back already; a COMMIT would then say it is fine.
	 */
	if (db->failed || sqlite3_get_autocommit(db->handle))
		st = db_failure(db);
	else
		st = db_run(db, "COMMIT", NO_VALUES);
	if (st != STATUS_OK)
		db_rollback(db);
	return st;
}

void
db_rollback(struct db *db)
{
	if (!sqlite3_get_autocommit(db->handle)) {
		struct query *q = query_start(db, "ROLLBACK", NO_VALUES);

		if (q->stmt != NULL)
			sqlite3_step(q->stmt);
		query_finish(q);
	}
	if (!sqlite3_get_autocommit(db->handle))
		log_die("A transaction cannot be rolled back.");
}

bool
db_failed(const struct db *db)
{
	return db->failed;
}

int64_t
db_changes(const struct db *db)
{
	return sqlite3_total_changes64(db->handle);
}

int64_t
db_wal_bytes(const struct db *db)
{
	return (int64_t)db->wal_frames * PAGE_BYTES;
}

void
db_checkpoint(struct db *db)
{
	int code =
	    sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);

	if (code != SQLITE_OK && code != SQLITE_BUSY)
		db_note_failure(db, code);
}

void
db_fail_step(struct db *db, int n, bool lasting)
{
	db->fail_step = n;
	db->fail_lasting = lasting;
}

int64_t
db_number(struct db *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t number = -1;

	if (sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return number;
}

bool
db_script(struct db *db, const char *sql)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

const char *
db_error_text(const struct db *db)
{
	return sqlite3_errmsg(db->handle);
}

static int
on_wal_commit(void *arg, sqlite3 *handle, const char *name, int frames)
{
	struct db *db = arg;

	(void)handle;
	(void)name;
	db->wal_frames = frames;
	return SQLITE_OK;
}

/* No mmap (a torn file would be a SIGBUS), pages checked when they are read, nothing in the schema
 * trusted to call functions. */
static bool
db_configure(struct db *db)
{
	char sql[512];

	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	snprintf(sql, sizeof(sql),
	    "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;"
	    "PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA cache_size = -%d;"
	    "PRAGMA busy_timeout = %d; PRAGMA %s",
	    db->writes ? WRITER_CACHE_KIB : READER_CACHE_KIB, BUSY_MS,
	    db->writes ? "synchronous = FULL" : "query_only = ON");
	return db_script(db, sql);
}

bool
db_use_wal(struct db *db)
{
	char sql[160];

	snprintf(sql, sizeof(sql),
	    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
	    "PRAGMA secure_delete = OFF; PRAGMA journal_size_limit = %d",
	    WAL_KEEP_BYTES);
	if (!db_script(db, sql))
		return false;
	/* Behind the script: wal_autocheckpoint takes the place of any hook before it. */
	sqlite3_wal_hook(db->handle, on_wal_commit, db);
	return true;
}

/* Counting its memory would take one lock for every allocation, in all threads. Too late, which a
 * test's own use of SQLite may make it, it only stays slower. */
static void
library_configure(void)
{
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

struct db *
db_open(const char *path, bool writes, char *error, size_t error_bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct db *db = calloc(1, sizeof(*db));
	int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;

	pthread_once(&once, library_configure);
	if (db == NULL)
		log_die("There is no memory for a connection.");
	db->writes = writes;
	if (sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    !db_configure(db)) {
		snprintf(error, error_bytes, "%s: %s", path, sqlite3_errmsg(db->handle));
		db_close(&db);
	}
	return db;
}

void
db_close(struct db **db)
{
	if (*db == NULL)
		return;
	for (size_t i = 0; i < DB_STATEMENTS_MAX; i++)
		sqlite3_finalize((*db)->statements[i].stmt);
	sqlite3_close((*db)->handle);
	free(*db);
	*db = NULL;
}

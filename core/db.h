/* SPDX-License-Identifier: MIT */
/*
 * One connection to the database, its statements and transactions: the only file that knows SQLite.
 * SQL text stands beside the code that uses it and keeps to what PostgreSQL understands too.
 *
 *	struct query *q = query_start(c->db, "SELECT name FROM principals WHERE id = $1",
 *	    VALUES(as_int(row)));
 *	if (query_row(q))
 *		name = query_text(q, 0, c->arena);
 *	if ((st = query_finish(q)) != STATUS_OK)
 *		return st;
 *
 * A step that fails makes query_row() false and query_finish() say UNAVAILABLE (no space, busy) or
 * INTERNAL, and db_failed() true until the transaction ends. What means that the file can no longer
 * be trusted (a failed fsync, corruption) ends the process: going on would break promises.
 *
 * A connection belongs to one thread at a time.
 */
#ifndef TITEN_CORE_DB_H
#define TITEN_CORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/arena.h"
#include "core/ident.h"
#include "core/status.h"

/* SQL texts in this program; a connection prepares each of them once. */
#define DB_STATEMENTS_MAX 256

struct db;
struct query;

/* Open the database at PATH. NULL when that is not possible (no database, no permission): ERROR is
 * one line for people. */
struct db *db_open(const char *path, bool writes, char *error, size_t error_bytes);
void db_close(struct db **db);

/* One value of a statement, by position. */
struct value {
	enum { VALUE_END, VALUE_NULL, VALUE_INT, VALUE_TEXT, VALUE_BLOB } kind;
	int64_t integer;
	const void *bytes; /* borrowed until query_finish() */
	size_t length;
};

/* clang-format off */
#define VALUES_LAST { VALUE_END, 0, NULL, 0 }
#define VALUES(...) (const struct value[]) { __VA_ARGS__, VALUES_LAST }
#define NO_VALUES (const struct value[]) { VALUES_LAST }
/* clang-format on */

static inline struct value
as_int(int64_t integer)
{
	return (struct value){ VALUE_INT, integer, NULL, 0 };
}

/* NULL is null. */
static inline struct value
as_text(const char *text)
{
	return (struct value){ text == NULL ? VALUE_NULL : VALUE_TEXT, 0, text,
		text == NULL ? 0 : strlen(text) };
}

static inline struct value
as_blob(const void *bytes, size_t length)
{
	return (struct value){ VALUE_BLOB, 0, bytes, length };
}

static inline struct value
as_id(const struct id *id)
{
	return as_blob(id->bytes, sizeof(id->bytes));
}

static inline struct value
as_null(void)
{
	return (struct value){ VALUE_NULL, 0, NULL, 0 };
}

/* Begin SQL with VALUES for $1, $2, ... SQL is a literal: its address names the prepared statement.
 * Never NULL. At most one query of the same SQL at a time. */
struct query *query_start(struct db *db, const char *sql, const struct value *values);
/* Step to the next row. False: no more, or a failure that query_finish() reports. */
bool query_row(struct query *q);
enum status query_finish(struct query *q);

/* Columns of the current row, counted from 0. Texts are copied into ARENA; null text is NULL. */
int64_t query_int(struct query *q, int column);
bool query_null(struct query *q, int column);
char *query_text(struct query *q, int column, struct arena *arena);
struct id query_id(struct query *q, int column);
/* Borrowed until the next step. */
const void *query_blob(struct query *q, int column, size_t *length_r);

/* A statement without rows. */
enum status db_run(struct db *db, const char *sql, const struct value *values);

enum status db_begin_read(struct db *db);
enum status db_begin_write(struct db *db);
/* STATUS_OK: durable on disk, for a writer. Otherwise the transaction has been rolled back. */
enum status db_commit(struct db *db);
void db_rollback(struct db *db);
/* Whether a step has failed in this transaction. */
bool db_failed(const struct db *db);
/* What that failure means for the caller: UNAVAILABLE or INTERNAL. */
enum status db_failure(const struct db *db);
/* Rows changed by this connection since it was opened. */
int64_t db_changes(const struct db *db);

/* Keep a write-ahead log from now on: readers and the writer then do not wait for each other. The
 * log is folded into the file only by db_checkpoint() and when the last connection closes. */
bool db_use_wal(struct db *db);
/* Bytes in the write-ahead log after the last commit. */
int64_t db_wal_bytes(const struct db *db);
/* Fold what can be folded without waiting for readers into the file. */
void db_checkpoint(struct db *db);

/* Make the N-th step or commit from now fail as if the disk were full, and, when LASTING, every one
 * after it; 0 ends that. For tests of what happens then. */
void db_fail_step(struct db *db, int n, bool lasting);

/* For opening and migrating: run a whole script; read one number, -1 when there is none. */
bool db_script(struct db *db, const char *sql);
int64_t db_number(struct db *db, const char *sql);
/* What went wrong last, for people. Borrowed until the next call. */
const char *db_error_text(const struct db *db);

#endif

/* SPDX-License-Identifier: MIT */
/* Looking into the file through a connection of our own, past everything that is being tested. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>

static sqlite3 *
look_open(const struct fixture *f)
{
	sqlite3 *handle;

	assert_int_equal(sqlite3_open_v2(f->path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	return handle;
}

static sqlite3_stmt *
look_start(sqlite3 *handle, const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	return stmt;
}

int64_t
count(const struct fixture *f, const char *sql)
{
	sqlite3 *handle = look_open(f);
	sqlite3_stmt *stmt = look_start(handle, sql);
	int64_t n;

	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return n;
}

/* Column COLUMN of every row, a line each. */
static void
print_lines(FILE *out, sqlite3 *handle, const char *sql, int column)
{
	sqlite3_stmt *stmt = look_start(handle, sql);

	while (sqlite3_step(stmt) == SQLITE_ROW)
		fprintf(out, "%s\n", (const char *)sqlite3_column_text(stmt, column));
	sqlite3_finalize(stmt);
}

char *
plan(const struct fixture *f, const char *sql)
{
	sqlite3 *handle = look_open(f);
	char *text, *question = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	print_lines(out, handle, question, 3);
	fclose(out);
	sqlite3_free(question);
	sqlite3_close(handle);
	return text;
}

/* A row as one line of literals. */
static void
print_row(FILE *out, sqlite3_stmt *stmt)
{
	for (int i = 0; i < sqlite3_column_count(stmt); i++) {
		const unsigned char *bytes = sqlite3_column_blob(stmt, i);
		int n = sqlite3_column_bytes(stmt, i);

		fprintf(out, "|%d:", sqlite3_column_type(stmt, i));
		for (int b = 0; b < n; b++)
			fprintf(out, "%02x", bytes[b]);
	}
	fprintf(out, "\n");
}

static void
print_table(FILE *out, sqlite3 *handle, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
	sqlite3_stmt *stmt = look_start(handle, sql);

	fprintf(out, "%s\n", table);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		print_row(out, stmt);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
}

char *
dump(const struct fixture *f)
{
	sqlite3 *handle = look_open(f);
	sqlite3_stmt *tables = look_start(handle,
	    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'titen' ORDER BY 1");
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	while (sqlite3_step(tables) == SQLITE_ROW)
		print_table(out, handle, (const char *)sqlite3_column_text(tables, 0));
	fclose(out);
	sqlite3_finalize(tables);
	sqlite3_close(handle);
	return text;
}

/* SPDX-License-Identifier: MIT */
/* Connections: values in and out, transactions, and how failures are told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/db.h"

struct place {
	char directory[64];
	char path[96];
	struct db *db;
	struct arena arena;
};

static char trouble[256]; /* what opening says when it fails */

static int
place_open(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	const char *scratch = secure_getenv("TMPDIR");

	assert_non_null(p);
	snprintf(p->directory, sizeof p->directory, "%.40s/titen-XXXXXX",
	    scratch == NULL ? "/tmp" : scratch);
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->path, sizeof p->path, "%s/db", p->directory);
	p->db = db_open(p->path, true, trouble, sizeof(trouble));
	assert_non_null(p->db);
	assert_true(db_use_wal(p->db));
	assert_true(db_script(p->db, "CREATE TABLE t (n INTEGER UNIQUE, a TEXT, b BLOB) STRICT"));
	arena_init(&p->arena);
	*state = p;
	return 0;
}

static int
place_close(void **state)
{
	struct place *p = *state;

	arena_free(&p->arena);
	db_close(&p->db);
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(rmdir(p->directory), 0);
	free(p);
	return 0;
}

static enum status
insert(struct db *db, int64_t n)
{
	return db_run(db, "INSERT INTO t (n) VALUES ($1)", VALUES(as_int(n)));
}

static int64_t
rows(struct place *p)
{
	return db_number(p->db, "SELECT count(*) FROM t");
}

/* --- values */

static void
values_come_back_as_they_went_in(void **state)
{
	struct place *p = *state;
	const struct id id = { { 1, 0, 255 } };
	struct query *q;
	struct id back;

	assert_int_equal(db_run(p->db, "INSERT INTO t (n, a, b) VALUES ($1, $2, $3)",
			     VALUES(as_int(INT64_MIN), as_text("\u20ac '"), as_id(&id))),
	    STATUS_OK);
	q = query_start(p->db, "SELECT n, a, b FROM t", NO_VALUES);
	assert_true(query_row(q));
	assert_true(query_int(q, 0) == INT64_MIN);
	assert_string_equal(query_text(q, 1, &p->arena), "\u20ac '");
	back = query_id(q, 2);
	assert_memory_equal(&back, &id, sizeof id);
	assert_false(query_row(q));
	assert_int_equal(query_finish(q), STATUS_OK);
}

static void
null_is_null(void **state)
{
	struct place *p = *state;
	struct query *q;

	assert_int_equal(db_run(p->db, "INSERT INTO t (n, a, b) VALUES ($1, $2, $3)",
			     VALUES(as_int(1), as_text(NULL), as_null())),
	    STATUS_OK);
	q = query_start(p->db, "SELECT a, b, n FROM t", NO_VALUES);
	assert_true(query_row(q));
	assert_true(query_null(q, 0));
	assert_true(query_null(q, 1));
	assert_false(query_null(q, 2));
	assert_null(query_text(q, 0, &p->arena));
	assert_int_equal(query_finish(q), STATUS_OK);
}

static void
a_value_belongs_to_the_number_in_its_name(void **state)
{
	struct place *p = *state;
	struct query *q;

	for (int i = 0; i < 2; i++) {
		q = query_start(
		    p->db, "SELECT $3, $1, $2, $1, $3", VALUES(as_int(10), as_int(20), as_int(30)));
		assert_true(query_row(q));
		assert_int_equal(query_int(q, 0), 30);
		assert_int_equal(query_int(q, 1), 10);
		assert_int_equal(query_int(q, 2), 20);
		assert_int_equal(query_int(q, 3), 10);
		assert_int_equal(query_int(q, 4), 30);
		assert_int_equal(query_finish(q), STATUS_OK);
	}
}

static void
a_statement_may_be_left_in_the_middle_and_used_again(void **state)
{
	static const char sql[] = "SELECT n FROM t ORDER BY n";
	struct place *p = *state;
	struct query *q;

	for (int n = 1; n <= 3; n++)
		assert_int_equal(insert(p->db, n), STATUS_OK);
	for (int i = 0; i < 3; i++) {
		q = query_start(p->db, sql, NO_VALUES);
		assert_true(query_row(q));
		assert_int_equal(query_int(q, 0), 1);
		assert_int_equal(query_finish(q), STATUS_OK);
	}
}

/* --- transactions */

static void
a_commit_is_seen_by_other_connections_and_a_rollback_is_not(void **state)
{
	struct place *p = *state;
	struct db *other = db_open(p->path, false, trouble, sizeof(trouble));

	assert_non_null(other);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(db_number(other, "SELECT count(*) FROM t"), 0);
	assert_int_equal(db_commit(p->db), STATUS_OK);
	assert_int_equal(db_number(other, "SELECT count(*) FROM t"), 1);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 2), STATUS_OK);
	db_rollback(p->db);
	assert_int_equal(db_number(other, "SELECT count(*) FROM t"), 1);
	db_close(&other);
}

static void
a_reader_sees_one_moment_until_it_ends(void **state)
{
	struct place *p = *state;
	struct db *reader = db_open(p->path, false, trouble, sizeof(trouble));
	const char *sql = "SELECT count(*) FROM t";

	assert_int_equal(db_begin_read(reader), STATUS_OK);
	assert_int_equal(db_number(reader, sql), 0);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(db_number(reader, sql), 0);
	assert_int_equal(db_commit(reader), STATUS_OK);
	assert_int_equal(db_number(reader, sql), 1);
	db_close(&reader);
}

static void
a_reader_cannot_write(void **state)
{
	struct place *p = *state;
	struct db *reader = db_open(p->path, false, trouble, sizeof(trouble));

	assert_int_equal(insert(reader, 1), STATUS_INTERNAL);
	assert_true(db_failed(reader));
	assert_int_equal(rows(p), 0);
	db_close(&reader);
}

static void
changes_are_counted(void **state)
{
	struct place *p = *state;
	int64_t before = db_changes(p->db);

	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(insert(p->db, 2), STATUS_OK);
	assert_int_equal(db_run(p->db, "UPDATE t SET n = 9 WHERE n = 7", NO_VALUES), STATUS_OK);
	assert_int_equal(db_changes(p->db), before + 2);
}

/* --- failures */

static void
a_broken_constraint_is_a_fault_of_ours(void **state)
{
	struct place *p = *state;

	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_INTERNAL);
	assert_true(db_failed(p->db));
	assert_int_equal(db_failure(p->db), STATUS_INTERNAL);
	assert_int_equal(db_commit(p->db), STATUS_INTERNAL);
	assert_int_equal(rows(p), 0);
}

static void
a_statement_that_cannot_be_prepared_fails_like_any_other(void **state)
{
	struct place *p = *state;
	struct query *q = query_start(p->db, "SELECT nothing FROM nowhere", VALUES(as_int(1)));

	assert_non_null(q);
	assert_false(query_row(q));
	assert_int_equal(query_finish(q), STATUS_INTERNAL);
}

static void
the_step_that_a_test_names_fails_and_the_transaction_with_it(void **state)
{
	struct place *p = *state;

	db_fail_step(p->db, 3, false);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(insert(p->db, 2), STATUS_UNAVAILABLE);
	assert_true(db_failed(p->db));
	assert_int_equal(db_commit(p->db), STATUS_UNAVAILABLE);
	assert_int_equal(rows(p), 0);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_false(db_failed(p->db));
	assert_int_equal(insert(p->db, 3), STATUS_OK);
	assert_int_equal(db_commit(p->db), STATUS_OK);
	assert_int_equal(rows(p), 1);
}

static void
a_lasting_fault_lasts_until_it_is_taken_away(void **state)
{
	struct place *p = *state;

	db_fail_step(p->db, 1, true);
	for (int i = 0; i < 3; i++)
		assert_int_equal(db_begin_write(p->db), STATUS_UNAVAILABLE);
	db_fail_step(p->db, 0, false);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(db_commit(p->db), STATUS_OK);
}

static void
a_commit_that_fails_rolls_back(void **state)
{
	struct place *p = *state;

	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	db_fail_step(p->db, 1, false);
	assert_int_equal(db_commit(p->db), STATUS_UNAVAILABLE);
	assert_int_equal(rows(p), 0);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	db_rollback(p->db);
}

static void
a_full_disk_takes_the_whole_transaction_with_it(void **state)
{
	static const char fill[] = "INSERT INTO t (b) VALUES (zeroblob(100000))";
	struct place *p = *state;
	char sql[64];

	snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld",
	    (long long)db_number(p->db, "PRAGMA page_count") + 2);
	assert_true(db_script(p->db, sql));
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(db_run(p->db, fill, NO_VALUES), STATUS_UNAVAILABLE);
	assert_int_equal(db_commit(p->db), STATUS_UNAVAILABLE);
	assert_int_equal(rows(p), 0);
	assert_int_equal(db_begin_write(p->db), STATUS_OK);
	assert_int_equal(insert(p->db, 1), STATUS_OK);
	assert_int_equal(db_commit(p->db), STATUS_OK);
}

/* --- files */

static void
the_log_is_measured_and_folded(void **state)
{
	struct place *p = *state;
	int64_t before;

	assert_int_equal(insert(p->db, 1), STATUS_OK);
	before = db_wal_bytes(p->db);
	assert_true(before > 0);
	assert_int_equal(insert(p->db, 2), STATUS_OK);
	assert_true(db_wal_bytes(p->db) > before);
	db_checkpoint(p->db);
	assert_int_equal(insert(p->db, 3), STATUS_OK);
	assert_true(db_wal_bytes(p->db) <= before);
}

static void
what_is_no_database_gives_no_numbers(void **state)
{
	struct place *p = *state;
	char path[128];
	FILE *file;

	snprintf(path, sizeof path, "%s/other", p->directory);
	assert_null(db_open(path, false, trouble, sizeof(trouble)));
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 200; i++)
		fputs("this is no database\n", file);
	fclose(file);
	db_close(&p->db);
	p->db = db_open(path, true, trouble, sizeof(trouble));
	assert_true(p->db == NULL || db_number(p->db, "PRAGMA application_id") == -1);
	assert_int_equal(unlink(path), 0);
}

static void
the_connection_is_configured_as_we_promise(void **state)
{
	struct place *p = *state;

	assert_int_equal(db_number(p->db, "PRAGMA synchronous"), 2);
	assert_int_equal(db_number(p->db, "PRAGMA foreign_keys"), 1);
	assert_int_equal(db_number(p->db, "PRAGMA wal_autocheckpoint"), 0);
	assert_int_equal(db_number(p->db, "PRAGMA trusted_schema"), 0);
	assert_int_equal(db_number(p->db, "PRAGMA mmap_size"), 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(values_come_back_as_they_went_in),
		STORY(null_is_null),
		STORY(a_value_belongs_to_the_number_in_its_name),
		STORY(a_statement_may_be_left_in_the_middle_and_used_again),
		STORY(a_commit_is_seen_by_other_connections_and_a_rollback_is_not),
		STORY(a_reader_sees_one_moment_until_it_ends),
		STORY(a_reader_cannot_write),
		STORY(changes_are_counted),
		STORY(a_broken_constraint_is_a_fault_of_ours),
		STORY(a_statement_that_cannot_be_prepared_fails_like_any_other),
		STORY(the_step_that_a_test_names_fails_and_the_transaction_with_it),
		STORY(a_lasting_fault_lasts_until_it_is_taken_away),
		STORY(a_commit_that_fails_rolls_back),
		STORY(a_full_disk_takes_the_whole_transaction_with_it),
		STORY(the_log_is_measured_and_folded),
		STORY(what_is_no_database_gives_no_numbers),
		STORY(the_connection_is_configured_as_we_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

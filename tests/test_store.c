/* SPDX-License-Identifier: MIT */
/* The store: which files open, and which way the queries that matter go through the tables. */
#include "tests/support/fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sqlite3.h>

#include "core/core.h"

/* --- opening */

/* Try to open the fixture's database a second time; what is said then, in the fixture's memory. */
static const char *
second_opening(struct fixture *f, const char *path, bool create)
{
	char error[256] = "";
	struct store *store = store_open(path, create, error, sizeof error);

	if (store != NULL) {
		store_close(&store);
		return NULL;
	}
	return arena_text(&f->last->arena, error);
}

/* What is said about the fixture's database after SQL was done to it. */
static const char *
opening_after(struct fixture *f, const char *sql)
{
	sqlite3 *handle;
	const char *said;

	stop(f);
	assert_int_equal(sqlite3_open(f->path, &handle), SQLITE_OK);
	assert_int_equal(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(handle);
	said = second_opening(f, f->path, true);
	assert_int_equal(sqlite3_open(f->path, &handle), SQLITE_OK);
	sqlite3_exec(handle, "PRAGMA application_id = 0x5454454e; PRAGMA user_version = 1", NULL,
	    NULL, NULL);
	sqlite3_close(handle);
	start(f);
	return said;
}

static void
one_process_has_a_database_for_itself(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(second_opening(f, f->path, true), "in use"));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

static void
a_database_is_made_only_on_request(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct stat file;

	snprintf(path, sizeof path, "%s/other.db", f->directory);
	assert_non_null(strstr(second_opening(f, path, false), "No such file"));
	assert_int_equal(stat(path, &file), -1);
	assert_null(second_opening(f, path, true));
	assert_null(second_opening(f, path, false));
	assert_int_equal(stat(path, &file), 0);
}

static void
another_programs_database_is_left_alone(void **state)
{
	struct fixture *f = *state;

	assert_non_null(
	    strstr(opening_after(f, "PRAGMA application_id = 1"), "is not a Titen database"));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

static void
a_newer_schema_is_left_alone(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(opening_after(f, "PRAGMA user_version = 2"), "schema version 2"));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

static void
what_is_no_database_is_not_opened(void **state)
{
	struct fixture *f = *state;
	char path[128];
	FILE *file;

	snprintf(path, sizeof path, "%s/text", f->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 100; i++)
		fputs("Some text that is not a database.\n", file);
	fclose(file);
	assert_non_null(strstr(second_opening(f, path, true), "not a database"));
}

static void
a_clean_end_leaves_one_file_with_everything_in_it(void **state)
{
	struct fixture *f = *state;
	char log_path[128];
	struct stat log;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	snprintf(log_path, sizeof log_path, "%s-wal", f->path);
	assert_int_equal(stat(log_path, &log), 0);
	stop(f);
	assert_true(stat(log_path, &log) != 0 || log.st_size == 0);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 1);
	start(f);
}

/* --- what the schema itself refuses */

static void
two_unreleased_leases_of_a_resource_cannot_be(void **state)
{
	struct fixture *f = *state;
	struct db *writer = store_writer(f->core->store);

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	assert_false(db_script(writer,
	    "INSERT INTO leases (public_id, organization, resource_type, resource_id, holder,"
	    " purpose, ttl_seconds, fence, expires_ms, created_ms) SELECT randomblob(16), organization,"
	    " resource_type, resource_id, holder, purpose, ttl_seconds, fence, expires_ms, created_ms"
	    " FROM leases"));
	assert_non_null(strstr(db_error_text(writer), "UNIQUE"));
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), 1);
}

static void
nobody_can_be_removed_while_rows_name_them(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	assert_false(
	    db_script(store_writer(f->core->store), "DELETE FROM principals WHERE name = 'alice'"));
	assert_int_equal(count(f, "SELECT count(*) FROM principals WHERE name = 'alice'"), 1);
}

/* --- plans: of the very statements that run */

#define HEARD_MAX 64

static struct {
	pthread_mutex_t lock;
	char *sql[HEARD_MAX];
	int n;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int
on_statement(unsigned event, void *arg, void *stmt, void *sql)
{
	(void)event;
	(void)arg;
	(void)stmt;
	pthread_mutex_lock(&heard.lock);
	if (heard.n < HEARD_MAX && strncmp(sql, "--", 2) != 0)
		heard.sql[heard.n++] = strdup(sql);
	pthread_mutex_unlock(&heard.lock);
	return 0;
}

/* SQLite calls it for each connection that opens. */
static int
listen(sqlite3 *handle)
{
	return sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, on_statement, NULL);
}

static void
forget_what_was_heard(void)
{
	pthread_mutex_lock(&heard.lock);
	while (heard.n > 0)
		free(heard.sql[--heard.n]);
	pthread_mutex_unlock(&heard.lock);
}

/* Fail unless the one statement heard with PART in it goes by WAY. */
static void
expect_plan(struct fixture *f, const char *part, const char *way)
{
	char *sql = NULL, *text;

	pthread_mutex_lock(&heard.lock);
	for (int i = 0; i < heard.n; i++)
		if (strstr(heard.sql[i], part) != NULL)
			sql = arena_text(&f->last->arena, heard.sql[i]);
	pthread_mutex_unlock(&heard.lock);
	if (sql == NULL)
		fail_msg("nothing was heard with %s", part);
	text = plan(f, sql);
	if (strstr(text, way) == NULL || strstr(text, "SCAN") != NULL ||
	    strstr(text, "TEMP B-TREE") != NULL)
		fail_msg("%s\ngoes by\n%s", sql, text);
	free(text);
}

/* Open the fixture's core again with an ear on its connections. */
static void
listen_to(struct fixture *f)
{
	sqlite3_auto_extension((void (*)(void))listen);
	restart(f);
	sqlite3_reset_auto_extension();
	forget_what_was_heard();
}

static void
the_lookup_of_a_lease_goes_by_its_partial_index(void **state)
{
	struct fixture *f = *state;

	listen_to(f);
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect_plan(f, "FROM leases", "leases_unreleased");
	expect(f, OK, release(f, f->alice, GOT(f, LeaseAcquireResponse)->lease_id));
	expect_plan(f, "UPDATE leases SET released_ms", "USING PRIMARY KEY");
	forget_what_was_heard();
}

static void
the_inbox_goes_by_its_partial_index(void **state)
{
	struct fixture *f = *state;

	listen_to(f);
	expect(f, OK, inbox(f, f->bob, NULL));
	expect_plan(f, "FROM handoffs", "handoffs_pending");
	forget_what_was_heard();
}

static void
events_of_a_principal_go_by_its_audience(void **state)
{
	struct fixture *f = *state;

	listen_to(f);
	expect(f, OK, events_of(f, f->alice, NULL));
	expect_plan(f, "FROM audience", "USING PRIMARY KEY (viewer=? AND event>?)");
	forget_what_was_heard();
	expect(f, OK, events_of(f, f->owner, NULL));
	expect_plan(f, "FROM events", "USING PRIMARY KEY (organization=? AND public_id>?)");
	forget_what_was_heard();
}

static void
a_handoff_and_its_checkpoint_are_found_by_index(void **state)
{
	struct fixture *f = *state;
	const char *id;

	listen_to(f);
	expect(f, OK, save(f, f->alice, "task", "1"));
	expect_plan(f, "SELECT id, public_id, version", "INDEX");
	id = GOT(f, CheckpointSaveResponse)->checkpoint_id;
	expect(f, OK, hand_over(f, f->alice, "bob", "task", id, NULL));
	expect_plan(f, "SELECT p.id FROM principals p", "keys_principal");
	expect(f, OK, load(f, f->bob, id));
	expect_plan(f, "k.state_hash", "handoffs_checkpoint");
	forget_what_was_heard();
}

static void
retries_are_found_by_index(void **state)
{
	struct fixture *f = *state;

	listen_to(f);
	retry_as(f, "k");
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect_plan(f, "SELECT digest, reply", "INDEX");
	forget_what_was_heard();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(one_process_has_a_database_for_itself),
		STORY(a_database_is_made_only_on_request),
		STORY(another_programs_database_is_left_alone),
		STORY(a_newer_schema_is_left_alone),
		STORY(what_is_no_database_is_not_opened),
		STORY(a_clean_end_leaves_one_file_with_everything_in_it),
		STORY(two_unreleased_leases_of_a_resource_cannot_be),
		STORY(nobody_can_be_removed_while_rows_name_them),
		STORY(the_lookup_of_a_lease_goes_by_its_partial_index),
		STORY(the_inbox_goes_by_its_partial_index),
		STORY(events_of_a_principal_go_by_its_audience),
		STORY(a_handoff_and_its_checkpoint_are_found_by_index),
		STORY(retries_are_found_by_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Checkpoints: one head for each agent, subject and kind, and what its writers may rely on. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const char *
saved_id(struct fixture *f)
{
	return GOT(f, CheckpointSaveResponse)->checkpoint_id;
}

static const char *
saved_hash(struct fixture *f)
{
	return GOT(f, CheckpointSaveResponse)->state_hash;
}

/* A request to save STATE for "task", for a test to change. */
static PB(CheckpointSaveRequest)
request(PB(Json) *state, const char *text)
{
	static char subject[] = "task";
	PB(CheckpointSaveRequest) req = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;

	titen__v1__json__init(state);
	state->text = (char *)(uintptr_t)text;
	req.subject_id = subject;
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	req.state = state;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 600;
	return req;
}

static enum status
save_expecting(
    struct fixture *f, const char *state, int64_t version, const char *hash, const char *tag)
{
	PB(Json) json;
	PB(CheckpointSaveRequest) req = request(&json, state);
	char *tags[] = { (char *)(uintptr_t)tag };

	req.has_expected_version = version != 0;
	req.expected_version = version;
	req.expected_state_hash = (char *)(uintptr_t)hash;
	req.if_match = tags;
	req.n_if_match = tag != NULL;
	return ask(f, f->alice, "CheckpointService/Save", &req);
}

/* The version that "task" of alice is at; nothing else than the test has saved. */
static int64_t
version(struct fixture *f)
{
	expect(f, OK, find(f, f->alice, "task"));
	return GOT(f, Checkpoint)->version;
}

/* --- save and read */

static void
the_last_write_wins(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "{\"a\": 1}"));
	id = saved_id(f);
	assert_true(f->last->call.created);
	assert_false(GOT(f, CheckpointSaveResponse)->updated);
	advance_ms(f, 7);
	expect(f, OK, save(f, f->alice, "task", "[2 , 3]"));
	assert_false(f->last->call.created);
	assert_true(GOT(f, CheckpointSaveResponse)->updated);
	assert_string_equal(saved_id(f), id);
	expect(f, OK, load(f, f->alice, id));
	assert_string_equal(GOT(f, Checkpoint)->state->text, "[2,3]");
	assert_int_equal(GOT(f, Checkpoint)->version, 2);
	assert_int_equal(time_of(GOT(f, Checkpoint)->created_at), START_MS);
	assert_int_equal(time_of(GOT(f, Checkpoint)->updated_at), START_MS + 7);
	assert_int_equal(time_of(GOT(f, Checkpoint)->expires_at), START_MS + 7 + 600000);
}

static void
a_checkpoint_is_read_by_id_and_by_what_it_is(void **state)
{
	struct fixture *f = *state;
	const PB(Checkpoint) *read;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "\"s\""));
	id = saved_id(f);
	expect(f, OK, find(f, f->alice, "task"));
	read = GOT(f, Checkpoint);
	assert_string_equal(read->checkpoint_id, id);
	assert_string_equal(read->subject_id, "task");
	assert_string_equal(read->agent_id, "alice");
	assert_null(read->run_id);
	assert_int_equal(read->kind, TITEN__V1__CHECKPOINT__KIND__TASK_STATE);
	assert_int_equal(read->ttl_seconds, 600);
	assert_string_equal(read->state->text, "\"s\"");
	expect(f, NOT_FOUND, find(f, f->alice, "Task"));
	expect(f, NOT_FOUND, find(f, f->bob, "task"));
	expect(f, NOT_FOUND, load(f, f->bob, id));
	expect(f, NOT_FOUND, load(f, f->owner, id));
	expect(f, NOT_FOUND, load(f, f->zed, id));
	expect(f, NOT_FOUND, load(f, f->alice, "ckpt_1"));
}

static void
heads_differ_by_agent_subject_and_kind(void **state)
{
	struct fixture *f = *state;
	PB(Json) json;
	PB(CheckpointSaveRequest) req = request(&json, "4");

	expect(f, OK, save(f, f->alice, "task", "1"));
	expect(f, OK, save(f, f->bob, "task", "2"));
	expect(f, OK, save(f, f->alice, "other", "3"));
	expect(f, OK, save(f, f->dora, "task", "5"));
	req.kind = TITEN__V1__CHECKPOINT__KIND__CURSOR;
	expect(f, OK, ask(f, f->alice, "CheckpointService/Save", &req));
	assert_int_equal(count(f, "SELECT count(*) FROM checkpoints"), 5);
	expect(f, OK, find(f, f->alice, "task"));
	assert_string_equal(GOT(f, Checkpoint)->state->text, "1");
}

static void
an_agent_speaks_only_for_itself(void **state)
{
	struct fixture *f = *state;
	PB(Json) json;
	PB(CheckpointSaveRequest) req = request(&json, "1");
	PB(CheckpointFindRequest) look = TITEN__V1__CHECKPOINT_FIND_REQUEST__INIT;
	char alice[] = "alice", bob[] = "bob";

	req.agent_id = alice;
	expect(f, OK, ask(f, f->alice, "CheckpointService/Save", &req));
	req.agent_id = bob;
	expect(f, NOT_FOUND, ask(f, f->alice, "CheckpointService/Save", &req));
	look.subject_id = req.subject_id;
	look.has_kind = true;
	look.kind = req.kind;
	look.agent_id = alice;
	expect(f, OK, ask(f, f->alice, "CheckpointService/Find", &look));
	expect(f, NOT_FOUND, ask(f, f->bob, "CheckpointService/Find", &look));
	assert_int_equal(count(f, "SELECT count(*) FROM checkpoints"), 1);
}

static void
a_run_is_kept_until_a_save_without_one(void **state)
{
	struct fixture *f = *state;
	PB(Json) json;
	PB(CheckpointSaveRequest) req = request(&json, "1");
	char run[] = "run-1";

	req.run_id = run;
	expect(f, OK, ask(f, f->alice, "CheckpointService/Save", &req));
	expect(f, OK, find(f, f->alice, "task"));
	assert_string_equal(GOT(f, Checkpoint)->run_id, "run-1");
	expect(f, OK, save(f, f->alice, "task", "2"));
	expect(f, OK, find(f, f->alice, "task"));
	assert_null(GOT(f, Checkpoint)->run_id);
}

static void
the_hash_is_that_of_the_compact_form(void **state)
{
	struct fixture *f = *state;
	const char *hash;

	expect(f, OK, save(f, f->alice, "a", "{\"step\":3,\"context\":\"deploying\"}"));
	hash = saved_hash(f);
	assert_string_equal(
	    hash, "3ec9b9cb32ca542bd6c754289c9f72d880d033094da3019a52c6e326d3467581");
	expect(f, OK, save(f, f->alice, "b", " { \"step\" : 3.0, \"context\":\"deploying\" } "));
	assert_string_equal(saved_hash(f), hash);
	expect(f, OK, save(f, f->alice, "c", "{\"context\":\"deploying\",\"step\":3}"));
	assert_string_not_equal(saved_hash(f), hash);
	expect(f, OK, find(f, f->alice, "b"));
	assert_string_equal(GOT(f, Checkpoint)->state_hash, hash);
}

static void
what_is_no_state_is_refused(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *state;
		enum status wanted;
	} rows[] = { { "false", STATUS_OK }, { "0", STATUS_OK }, { "\"\"", STATUS_OK },
		{ "null", STATUS_VALIDATION_ERROR }, { "", STATUS_VALIDATION_ERROR },
		{ "{", STATUS_VALIDATION_ERROR }, { "1e400", STATUS_VALIDATION_ERROR },
		{ "1 2", STATUS_VALIDATION_ERROR } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum status st = save(f, f->alice, "task", rows[i].state);

		if (st != rows[i].wanted)
			fail_msg("row %zu: %s", i, status_reason(st));
	}
	assert_int_equal(version(f), 3);
}

static void
a_state_has_64000_bytes_at_most(void **state)
{
	struct fixture *f = *state;
	char *text = malloc(64002);

	memset(text, 'x', 64001);
	text[0] = text[63999] = '"';
	text[64000] = '\0';
	expect(f, OK, save(f, f->alice, "task", text));
	text[63999] = 'x';
	text[64000] = '"';
	text[64001] = '\0';
	expect(f, VALIDATION_ERROR, save(f, f->alice, "task", text));
	free(text);
	assert_int_equal(version(f), 1);
}

static void
the_time_a_checkpoint_lives_has_limits(void **state)
{
	struct fixture *f = *state;
	static const struct {
		int64_t ttl_seconds;
		enum status wanted;
	} rows[] = { { 60, STATUS_OK }, { 2592000, STATUS_OK }, { 59, STATUS_VALIDATION_ERROR },
		{ 2592001, STATUS_VALIDATION_ERROR }, { 0, STATUS_VALIDATION_ERROR } };
	PB(Json) json;
	PB(CheckpointSaveRequest) req = request(&json, "1");

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum status st;

		req.ttl_seconds = rows[i].ttl_seconds;
		st = ask(f, f->alice, "CheckpointService/Save", &req);
		if (st != rows[i].wanted)
			fail_msg("row %zu: %s", i, status_reason(st));
	}
}

static void
an_expired_checkpoint_is_not_found_but_keeps_its_head(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "1"));
	id = saved_id(f);
	advance_ms(f, 599999);
	expect(f, OK, load(f, f->alice, id));
	advance_ms(f, 1);
	expect(f, NOT_FOUND, load(f, f->alice, id));
	expect(f, NOT_FOUND, find(f, f->alice, "task"));
	expect(f, OK, save(f, f->alice, "task", "2"));
	assert_string_equal(saved_id(f), id);
	assert_true(GOT(f, CheckpointSaveResponse)->updated);
	assert_int_equal(version(f), 2);
}

/* --- expectations */

static void
a_stale_expected_version_changes_nothing(void **state)
{
	struct fixture *f = *state;

	expect(f, CONFLICT, save_expecting(f, "0", 1, NULL, NULL));
	expect(f, OK, save(f, f->alice, "task", "1"));
	expect(f, OK, save_expecting(f, "2", 1, NULL, NULL));
	assert_int_equal(GOT(f, CheckpointSaveResponse)->version, 2);
	expect(f, CONFLICT, save_expecting(f, "3", 1, NULL, NULL));
	expect(f, CONFLICT, save_expecting(f, "3", 3, NULL, NULL));
	expect(f, VALIDATION_ERROR, save_expecting(f, "3", -1, NULL, NULL));
	expect(f, OK, find(f, f->alice, "task"));
	assert_string_equal(GOT(f, Checkpoint)->state->text, "2");
}

static void
a_stale_expected_hash_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const char *one;

	expect(f, OK, save(f, f->alice, "task", "1"));
	one = saved_hash(f);
	expect(f, OK, save_expecting(f, "2", 0, one, NULL));
	expect(f, CONFLICT, save_expecting(f, "3", 0, one, NULL));
	expect(f, CONFLICT, save_expecting(f, "3", 2, one, NULL));
	assert_int_equal(version(f), 2);
}

static void
a_stale_entity_tag_is_a_failed_precondition(void **state)
{
	struct fixture *f = *state;
	const char *one;

	expect(f, PRECONDITION_FAILED, save_expecting(f, "1", 0, NULL, "*"));
	expect(f, OK, save(f, f->alice, "task", "1"));
	one = saved_hash(f);
	expect(f, OK, save_expecting(f, "2", 0, NULL, one));
	expect(f, PRECONDITION_FAILED, save_expecting(f, "3", 0, NULL, one));
	expect(f, OK, save_expecting(f, "3", 0, NULL, "*"));
	advance_seconds(f, 600);
	expect(f, PRECONDITION_FAILED, save_expecting(f, "4", 0, NULL, "*"));
	expect(f, CONFLICT, save_expecting(f, "4", 3, NULL, NULL));
}

/* --- delete */

static void
a_checkpoint_is_deleted_by_its_agent_once(void **state)
{
	struct fixture *f = *state;
	const char *id;

	expect(f, OK, save(f, f->alice, "task", "1"));
	id = saved_id(f);
	expect(f, NOT_FOUND, discard(f, f->bob, id));
	expect(f, NOT_FOUND, discard(f, f->owner, id));
	expect(f, NOT_FOUND, discard(f, f->zed, id));
	expect(f, OK, discard(f, f->alice, id));
	assert_string_equal(GOT(f, CheckpointDeleteResponse)->checkpoint_id, id);
	assert_true(GOT(f, CheckpointDeleteResponse)->deleted);
	expect(f, NOT_FOUND, discard(f, f->alice, id));
	expect(f, NOT_FOUND, load(f, f->alice, id));
	expect(f, OK, save(f, f->alice, "task", "1"));
	assert_string_not_equal(saved_id(f), id);
	assert_int_equal(version(f), 1);
}

static void
checkpoints_make_no_events(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, save(f, f->alice, "task", "1"));
	expect(f, OK, discard(f, f->alice, saved_id(f)));
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 0);
}

/* --- many at once */

static enum status
save_number(struct fixture *f, int racer)
{
	char text[8];
	enum status st;

	snprintf(text, sizeof text, "[%d,%d]", racer, racer);
	st = save(f, f->alice, "task", text);
	if (st == STATUS_OK && GOT(f, CheckpointSaveResponse)->updated)
		return STATUS_COUNT;
	return st;
}

static void
of_parallel_first_saves_one_creates_and_the_rest_update(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];
	const char *text;

	race(f, save_number, results);
	assert_int_equal(how_many(results, STATUS_OK), 1);
	assert_int_equal(how_many(results, STATUS_COUNT), RACERS - 1);
	assert_int_equal(count(f, "SELECT count(*) FROM checkpoints"), 1);
	assert_int_equal(version(f), RACERS);
	text = GOT(f, Checkpoint)->state->text;
	assert_int_equal(strlen(text), 5);
	assert_int_equal(text[1], text[3]);
}

static enum status
save_after_one(struct fixture *f, int racer)
{
	(void)racer;
	return save_expecting(f, "2", 1, NULL, NULL);
}

static void
of_parallel_saves_that_expect_the_same_version_one_succeeds(void **state)
{
	struct fixture *f = *state;
	enum status results[RACERS];

	expect(f, OK, save(f, f->alice, "task", "1"));
	race(f, save_after_one, results);
	assert_int_equal(how_many(results, STATUS_OK), 1);
	assert_int_equal(how_many(results, STATUS_CONFLICT), RACERS - 1);
	assert_int_equal(version(f), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_last_write_wins),
		STORY(a_checkpoint_is_read_by_id_and_by_what_it_is),
		STORY(heads_differ_by_agent_subject_and_kind),
		STORY(an_agent_speaks_only_for_itself),
		STORY(a_run_is_kept_until_a_save_without_one),
		STORY(the_hash_is_that_of_the_compact_form),
		STORY(what_is_no_state_is_refused),
		STORY(a_state_has_64000_bytes_at_most),
		STORY(the_time_a_checkpoint_lives_has_limits),
		STORY(an_expired_checkpoint_is_not_found_but_keeps_its_head),
		STORY(a_stale_expected_version_changes_nothing),
		STORY(a_stale_expected_hash_changes_nothing),
		STORY(a_stale_entity_tag_is_a_failed_precondition),
		STORY(a_checkpoint_is_deleted_by_its_agent_once),
		STORY(checkpoints_make_no_events),
		STORY(of_parallel_first_saves_one_creates_and_the_rest_update),
		STORY(of_parallel_saves_that_expect_the_same_version_one_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

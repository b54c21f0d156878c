/* SPDX-License-Identifier: MIT */
/*
 * When the store fails. For every writing call, the n-th step of the store fails, for n = 1, 2, ...
 * until the call succeeds: before that nothing may have changed. Then whole batches, and a disk
 * that is really full.
 */
#include "tests/support/fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/auth.h"
#include "core/core.h"

#define STEPS_MAX 60 /* more than any call needs; a call that never succeeds ends here */

/* --- one deed for each row of the table, and more where a row has several ways to write */

/* Each gets what it needs first, then drafts a call that would succeed; I is never the same. */
struct deed {
	const char *method;
	const char *what;
	struct answer *(*draft)(struct fixture *f, int i);
};

static char *
name(struct fixture *f, const char *prefix, int i)
{
	return arena_printf(&f->last->arena, "%s-%d", prefix, i);
}

static struct answer *
draft_acquire(struct fixture *f, char *resource)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	char type[] = "deploy", purpose[] = "p";

	req.resource_type = type;
	req.resource_id = resource;
	req.purpose = purpose;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 30;
	return draft(f, f->alice, "LeaseService/Acquire", &req);
}

static struct answer *
take_a_free_resource(struct fixture *f, int i)
{
	return draft_acquire(f, name(f, "free", i));
}

static struct answer *
take_an_expired_lease(struct fixture *f, int i)
{
	char *resource = name(f, "expired", i);

	expect(f, OK, acquire(f, f->bob, "deploy", resource, 10));
	advance_seconds(f, 10);
	return draft_acquire(f, resource);
}

static struct answer *
give_a_lease_back(struct fixture *f, int i)
{
	PB(LeaseReleaseRequest) req = TITEN__V1__LEASE_RELEASE_REQUEST__INIT;

	expect(f, OK, acquire(f, f->alice, "deploy", name(f, "held", i), 30));
	req.lease_id = GOT(f, LeaseAcquireResponse)->lease_id;
	return draft(f, f->alice, "LeaseService/Release", &req);
}

static struct answer *
offer_a_handoff(struct fixture *f, int i)
{
	PB(HandoffCreateRequest) req = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;
	char to[] = "bob";

	req.subject_id = name(f, "task", i);
	expect(f, OK, save(f, f->alice, req.subject_id, "1"));
	req.checkpoint_id = GOT(f, CheckpointSaveResponse)->checkpoint_id;
	req.to_principal = to;
	return draft(f, f->alice, "HandoffService/Create", &req);
}

static struct answer *
accept_a_handoff(struct fixture *f, int i)
{
	PB(HandoffResolveRequest) req = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;

	expect(f, OK, hand_off(f, f->alice, "bob", name(f, "task", i)));
	req.handoff_id = GOT(f, HandoffCreateResponse)->handoff_id;
	req.has_status = true;
	req.status = ACCEPTED;
	return draft(f, f->bob, "HandoffService/Resolve", &req);
}

static struct answer *
draft_save(struct fixture *f, char *subject)
{
	PB(CheckpointSaveRequest) req = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;
	PB(Json) json = TITEN__V1__JSON__INIT;
	char state[] = "{\"step\":2}";

	json.text = state;
	req.subject_id = subject;
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	req.state = &json;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 600;
	return draft(f, f->alice, "CheckpointService/Save", &req);
}

static struct answer *
save_a_first_checkpoint(struct fixture *f, int i)
{
	return draft_save(f, name(f, "first", i));
}

static struct answer *
replace_a_checkpoint(struct fixture *f, int i)
{
	char *subject = name(f, "again", i);

	expect(f, OK, save(f, f->alice, subject, "1"));
	return draft_save(f, subject);
}

static struct answer *
delete_a_checkpoint_that_a_handoff_names(struct fixture *f, int i)
{
	PB(CheckpointDeleteRequest) req = TITEN__V1__CHECKPOINT_DELETE_REQUEST__INIT;
	char *subject = name(f, "gone", i);

	expect(f, OK, save(f, f->alice, subject, "1"));
	req.checkpoint_id = GOT(f, CheckpointSaveResponse)->checkpoint_id;
	expect(f, OK, hand_over(f, f->alice, "bob", subject, req.checkpoint_id, NULL));
	return draft(f, f->alice, "CheckpointService/Delete", &req);
}

static struct answer *
make_a_key_for_somebody_new(struct fixture *f, int i)
{
	PB(KeyCreateRequest) req = TITEN__V1__KEY_CREATE_REQUEST__INIT;
	char label[] = "a key", scope[] = "leases:write";
	char *scopes[] = { scope };

	req.label = label;
	req.scopes = scopes;
	req.n_scopes = 1;
	req.principal_id = name(f, "carol", i);
	return draft(f, f->owner, "KeyService/Create", &req);
}

static struct answer *
revoke_a_key(struct fixture *f, int i)
{
	static const char *const scopes[] = { "leases:write", NULL };
	PB(KeyRevokeRequest) req = TITEN__V1__KEY_REVOKE_REQUEST__INIT;

	expect(f, OK, make_key(f, f->owner, name(f, "dave", i), scopes));
	req.key_id = GOT(f, KeyCreateResponse)->key_id;
	return draft(f, f->owner, "KeyService/Revoke", &req);
}

static struct answer *
make_an_organization(struct fixture *f, int i)
{
	PB(KeyBootstrapRequest) req = TITEN__V1__KEY_BOOTSTRAP_REQUEST__INIT;

	req.name = name(f, "organization", i);
	return draft(f, NULL, "KeyService/Bootstrap", &req);
}

static const struct deed deeds[] = {
	{ "Lease/Acquire", "a free resource", take_a_free_resource },
	{ "Lease/Acquire", "an expired lease", take_an_expired_lease },
	{ "Lease/Release", "a held lease", give_a_lease_back },
	{ "Handoff/Create", "with a checkpoint", offer_a_handoff },
	{ "Handoff/Resolve", "accept", accept_a_handoff },
	{ "Checkpoint/Save", "first", save_a_first_checkpoint },
	{ "Checkpoint/Save", "again", replace_a_checkpoint },
	{ "Checkpoint/Delete", "named by a handoff", delete_a_checkpoint_that_a_handoff_names },
	{ "Key/Create", "somebody new", make_a_key_for_somebody_new },
	{ "Key/Revoke", "a good key", revoke_a_key },
	{ "Key/Bootstrap", "an organization", make_an_organization },
};

#define DEEDS (sizeof deeds / sizeof deeds[0])

/* Whether DEED is about M: "Lease/Acquire" is titen.v1.LeaseService/Acquire. */
static bool
deed_calls(const struct deed *deed, const struct method *m)
{
	char full[96];
	const char *slash = strchr(deed->method, '/');

	snprintf(full, sizeof full, "titen.v1.%.*sService%s", (int)(slash - deed->method),
	    deed->method, slash);
	return strcmp(full, m->name) == 0;
}

static void
every_writing_row_has_a_deed(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		int n = 0;

		for (size_t d = 0; d < DEEDS; d++)
			n += deed_calls(&deeds[d], method_at(i));
		if ((n > 0) != (method_at(i)->access == ACCESS_WRITE))
			fail_msg("%s has %d deeds", method_at(i)->name, n);
	}
}

/* --- the countdown */

static int serial; /* makes the names of the deeds differ */

static struct answer *
draft_deed(struct fixture *f, const struct deed *deed, bool with_key)
{
	struct answer *a = deed->draft(f, ++serial);

	if (with_key)
		a->call.idempotency_key = arena_printf(&a->arena, "retry-%d", serial);
	return a;
}

static enum status
run_with_fault(struct fixture *f, struct answer *a, int n, bool lasting)
{
	fail_step(f, n, lasting);
	submit(f, a);
	await(a);
	fail_step(f, 0, false);
	return a->call.status;
}

/* One try with every step from the n-th on failing. False: the call came through. */
static bool
refused_at(struct fixture *f, const struct deed *deed, bool with_key, int n)
{
	struct answer *a = draft_deed(f, deed, with_key);
	char *before = dump(f), *after;
	int64_t keys = key_ring_count(f->core->ring);
	enum status st = run_with_fault(f, a, n, true);

	after = dump(f);
	if (st == STATUS_OK) {
		assert_string_not_equal(before, after);
	} else {
		if (st != STATUS_UNAVAILABLE || strcmp(before, after) != 0)
			fail_msg(
			    "%s, %s, step %d: %s", deed->method, deed->what, n, status_reason(st));
		assert_null(a->call.response);
		assert_non_null(a->call.message);
		assert_true(a->call.retry_after_ms > 0);
		assert_int_equal(key_ring_count(f->core->ring), keys);
	}
	free(before);
	free(after);
	return st != STATUS_OK;
}

/* How many steps the deed takes. */
static int
count_down(struct fixture *f, const struct deed *deed, bool with_key)
{
	int n = 1;

	while (refused_at(f, deed, with_key, n))
		if (++n > STEPS_MAX)
			fail_msg("%s, %s: never succeeds", deed->method, deed->what);
	return n - 1;
}

static void
whatever_step_fails_for_good_nothing_has_changed(void **state)
{
	struct fixture *f = *state;

	for (size_t d = 0; d < DEEDS; d++) {
		int plain = count_down(f, &deeds[d], false);
		int with_key = count_down(f, &deeds[d], true);

		/* BEGIN, the call, the clock, pruning, COMMIT; and looking up and keeping an
		 * answer. */
		assert_true(plain >= 5);
		assert_true(with_key >= plain + 3);
	}
}

static int64_t
rows_in_all(const struct fixture *f)
{
	return count(f, "SELECT (SELECT count(*) FROM organizations) + (SELECT count(*) FROM "
			"principals) + (SELECT count(*) FROM keys) + (SELECT count(*) FROM "
			"leases) + (SELECT count(*) FROM checkpoints) + (SELECT count(*) FROM "
			"handoffs) + (SELECT count(*) FROM events) + (SELECT count(*) FROM "
			"audience) + (SELECT count(*) FROM idempotency) + (SELECT count(*) FROM "
			"audit)");
}

/* How many rows the deed adds when its n-th step fails once; 0: none fails. */
static int64_t
rows_added(struct fixture *f, const struct deed *deed, int n)
{
	struct answer *a = draft_deed(f, deed, true);
	int64_t before = rows_in_all(f);

	if (run_with_fault(f, a, n, false) != STATUS_OK)
		fail_msg("%s, %s, step %d: %s", deed->method, deed->what, n, a->call.message);
	assert_null(a->call.message);
	return rows_in_all(f) - before;
}

static void
whatever_step_fails_once_the_call_succeeds_exactly_once(void **state)
{
	struct fixture *f = *state;

	for (size_t d = 0; d < DEEDS; d++) {
		int steps = count_down(f, &deeds[d], true);
		int64_t rows = rows_added(f, &deeds[d], 0);

		for (int n = 1; n <= steps; n++)
			assert_int_equal(rows_added(f, &deeds[d], n), rows);
	}
	assert_int_equal(count(f, "SELECT count(*) FROM organizations o WHERE seq <> (SELECT "
				  "count(*) FROM events e WHERE e.organization = o.id)"),
	    0);
}

/* --- batches */

#define BATCH 6

/* What stands in the store for the call that wanted resource I of ROUND. */
static int64_t
leases_of(const struct fixture *f, int round, int i)
{
	char sql[160];

	snprintf(sql, sizeof sql, "SELECT count(*) FROM leases WHERE resource_id = 'r-%d'",
	    round * BATCH + i);
	return count(f, sql);
}

/* Six acquires in one batch whose N-th step fails; how many are acknowledged. */
static int
batch_with_fault(struct fixture *f, int n, bool lasting)
{
	struct answer *answers[BATCH];
	struct hold hold;
	int acknowledged = 0;

	hold_writer(f, &hold);
	for (int i = 0; i < BATCH; i++) {
		answers[i] = draft_acquire(f, name(f, "r", n * BATCH + i));
		submit(f, answers[i]);
	}
	fail_step(f, n, lasting);
	let_go(&hold);
	for (int i = 0; i < BATCH; i++)
		acknowledged += await(answers[i]) == STATUS_OK;
	fail_step(f, 0, false);
	for (int i = 0; i < BATCH; i++)
		assert_int_equal(leases_of(f, n, i), answers[i]->call.status == STATUS_OK ? 1 : 0);
	return acknowledged;
}

static void
of_a_batch_whose_store_fails_once_every_call_succeeds(void **state)
{
	struct fixture *f = *state;

	for (int n = 1; n <= 60; n++)
		assert_int_equal(batch_with_fault(f, n, false), BATCH);
	assert_int_equal(
	    count(f, "SELECT count(*) FROM leases"), count(f, "SELECT count(*) FROM events"));
	assert_int_equal(count(f, "SELECT max(seq) FROM events"), 60 * BATCH);
}

static void
of_a_batch_whose_store_fails_for_good_no_call_is_acknowledged_or_there(void **state)
{
	struct fixture *f = *state;
	int acknowledged = 0, n;

	for (n = 1; acknowledged == 0 && n <= 100; n++)
		acknowledged = batch_with_fault(f, n, true);
	assert_int_equal(acknowledged, BATCH);
	assert_true(n > 20);
}

/* A handler that fails the writer's next step, once for each time it runs. */
static enum status
fail_the_next_step(struct call *c)
{
	db_fail_step(c->db, 1, false);
	return STATUS_OK;
}

static void
of_a_torn_batch_what_is_acknowledged_is_there_and_what_is_refused_is_not(void **state)
{
	struct fixture *f = *state;
	struct answer *before, *tear, *after;
	struct hold hold;

	hold_writer(f, &hold);
	submit(f, before = draft_acquire(f, name(f, "r", 0)));
	submit(f, tear = draft_own(f, ACCESS_WRITE, fail_the_next_step, NULL));
	submit(f, after = draft_acquire(f, name(f, "r", 1)));
	let_go(&hold);
	assert_int_equal(await(before), STATUS_OK);
	assert_int_equal(await(tear), STATUS_UNAVAILABLE);
	assert_int_equal(await(after), STATUS_UNAVAILABLE);
	assert_int_equal(leases_of(f, 0, 0), 1);
	assert_int_equal(leases_of(f, 0, 1), 0);
	assert_int_equal(count(f, "SELECT count(*) FROM events"), 1);
	expect(f, OK, acquire(f, f->bob, "deploy", "r-1", 30));
}

static void
fences_and_ids_rise_also_after_a_batch_that_was_rolled_back(void **state)
{
	struct fixture *f = *state;

	for (int n = 1; n <= 12; n++)
		batch_with_fault(f, 2 * n, n % 2 == 0);
	assert_int_equal(
	    count(f, "SELECT count(*) FROM leases a JOIN leases b ON b.fence > a.fence "
		     "WHERE b.public_id <= a.public_id"),
	    0);
	assert_int_equal(count(f, "SELECT count(*) FROM events a JOIN events b ON b.seq > a.seq "
				  "WHERE b.public_id <= a.public_id"),
	    0);
}

/* --- a disk that is full */

static void
limit_pages(struct fixture *f, int64_t pages)
{
	char sql[64];

	snprintf(sql, sizeof sql, "PRAGMA max_page_count = %lld", (long long)pages);
	assert_true(db_script(store_writer(f->core->store), sql));
}

static void
a_full_disk_refuses_writes_answers_reads_and_heals(void **state)
{
	struct fixture *f = *state;
	char *before, *after, state_text[8192];

	memset(state_text, '7', sizeof state_text);
	state_text[0] = state_text[sizeof state_text - 2] = '"';
	state_text[sizeof state_text - 1] = '\0';
	expect(f, OK, save(f, f->alice, "task", "1"));
	limit_pages(f, count(f, "PRAGMA page_count"));
	before = dump(f);
	for (int i = 0; i < 3; i++)
		expect(f, UNAVAILABLE, save(f, f->alice, "task", state_text));
	after = dump(f);
	assert_string_equal(before, after);
	expect(f, OK, find(f, f->alice, "task"));
	limit_pages(f, 1000000);
	expect(f, OK, save(f, f->alice, "task", state_text));
	assert_int_equal(GOT(f, CheckpointSaveResponse)->version, 2);
	free(before);
	free(after);
}

static void
what_was_acknowledged_between_faults_is_there_after_a_restart(void **state)
{
	struct fixture *f = *state;
	int64_t acknowledged = 0;

	for (int n = 1; n <= 40; n++) {
		struct answer *a = draft_acquire(f, name(f, "r", n));

		acknowledged += run_with_fault(f, a, n, true) == STATUS_OK;
	}
	restart(f);
	assert_true(acknowledged > 0 && acknowledged < 40);
	assert_int_equal(count(f, "SELECT count(*) FROM leases"), acknowledged);
	assert_int_equal(event_count(f, f->alice, "lease.acquired"), acknowledged);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(every_writing_row_has_a_deed),
		STORY(whatever_step_fails_for_good_nothing_has_changed),
		STORY(whatever_step_fails_once_the_call_succeeds_exactly_once),
		STORY(of_a_batch_whose_store_fails_once_every_call_succeeds),
		STORY(of_a_batch_whose_store_fails_for_good_no_call_is_acknowledged_or_there),
		STORY(of_a_torn_batch_what_is_acknowledged_is_there_and_what_is_refused_is_not),
		STORY(fences_and_ids_rise_also_after_a_batch_that_was_rolled_back),
		STORY(a_full_disk_refuses_writes_answers_reads_and_heals),
		STORY(what_was_acknowledged_between_faults_is_there_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

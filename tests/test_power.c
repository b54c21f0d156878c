/* SPDX-License-Identifier: MIT */
/*
 * Power cuts: whatever was acknowledged before one is there after it, and nothing is there by
 * halves. A run is a chain: the machine goes on from what the cut has left, until the next one.
 *
 * With an argument, as many cuts as that; with a second one, from that seed on. A failure names the
 * seed of its chain.
 */
#include "tests/support/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"
#include "tests/support/image.h"
#include "tests/support/power.h"
#include "tests/support/witness.h"

#define CUTS 100
#define CHAIN_CUTS 25 /* then a fresh database: a long history only makes looking slow */
/* Between two cuts: the log is folded after about a hundred, or at the end. */
#define ACTS_MAX 130
#define STEPS_MAX_LOG2 11
#define FOLD_STEPS_MAX 64 /* pages that are changed by so many acts */
#define SEED UINT64_C(20260730)

static int cuts = CUTS;
static uint64_t first_seed = SEED;
static struct witness witness;

/* --- the shim alone */

#define PATTERN_BYTES 4096
#define SEEDS 50

struct remains {
	int old, new;
};

/* Write A's and sync, write B's, cut: how many sectors of each there are then. */
static struct remains
overwrite_and_cut(const struct fixture *f, uint64_t seed)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find("power");
	sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
	int flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	char path[128], copy[128], data[PATTERN_BYTES];
	struct remains r = { 0, 0 };
	FILE *found;

	snprintf(path, sizeof path, "%s/pattern", f->directory);
	snprintf(copy, sizeof copy, "%s/copy", f->directory);
	assert_int_equal(vfs->xOpen(vfs, path, file, flags, &flags), SQLITE_OK);
	memset(data, 'A', sizeof data);
	file->pMethods->xWrite(file, data, sizeof data, 0);
	file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	memset(data, 'B', sizeof data);
	file->pMethods->xWrite(file, data, sizeof data, 0);
	power_cut_plan(&(struct power_cut){
	    .database = path, .copy = copy, .seed = seed, .step = POWER_SYNC, .n = 1 });
	file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	file->pMethods->xClose(file);
	free(file);
	found = fopen(copy, "rb");
	assert_non_null(found);
	assert_int_equal(fread(data, 1, sizeof data, found), sizeof data);
	fclose(found);
	for (size_t i = 0; i < sizeof data; i += 512) {
		char sector[512];

		memset(sector, data[i], sizeof sector);
		assert_memory_equal(data + i, sector, sizeof sector);
		r.old += data[i] == 'A';
		r.new += data[i] == 'B';
	}
	return r;
}

static void
what_was_not_synced_is_kept_lost_or_torn(void **state)
{
	const struct fixture *f = *state;
	int kept = 0, lost = 0, torn = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct remains r = overwrite_and_cut(f, seed);

		assert_int_equal(r.old + r.new, PATTERN_BYTES / 512);
		kept += r.old == 0;
		lost += r.new == 0;
		torn += r.old > 0 && r.new > 0;
	}
	assert_true(kept > 0 && lost > 0 && torn > 0);
}

/* --- chains */

/* How much was acknowledged when the power went. */
static void
on_cut(void *arg)
{
	atomic_store((atomic_int *)arg, witness_facts(&witness));
}

/* A moment: a sync, where everything is decided; any step, as often soon as late; while the log is
 * folded, at the latest when the core closes. */
static void
cut_draw(struct power_cut *cut, uint64_t *seed)
{
	static const enum power_step steps[] = { POWER_SYNC, POWER_ANY, POWER_FOLD };
	uint64_t most = UINT64_C(1) << image_random(seed) % (STEPS_MAX_LOG2 + 1);

	cut->seed = image_random(seed);
	cut->step = steps[image_random(seed) % 3];
	if (cut->step == POWER_SYNC)
		most = ACTS_MAX / 2;
	else if (cut->step == POWER_FOLD)
		most = FOLD_STEPS_MAX;
	cut->n = 1 + (int)(image_random(seed) % most);
}

static void
remove_database(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm", "-journal", ".lock" };
	char name[128];

	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, tails[i]);
		unlink(name);
	}
}

/* Work until the power goes, and move to what is left then, opened by the system's VFS. Returns how
 * many facts must be in it. */
static int
live_through_cut(struct fixture *f, struct power_cut *cut)
{
	static char before[96], after[96];
	uint64_t seed = cut->seed;
	int acts = 1 + (int)(image_random(&seed) % ACTS_MAX);
	atomic_int facts_n;

	strcpy(before, f->path);
	snprintf(after, sizeof after, "%.60s/%" PRIx64 ".db", f->directory, cut->seed);
	cut->database = before;
	cut->copy = after;
	cut->noticed = on_cut;
	cut->arg = &facts_n;
	power_cut_plan(cut);
	for (int i = 0; i < acts && !power_was_cut(); i++)
		expect(f, OK, witness_act(&witness));
	power_off();
	strcpy(f->path, after);
	restart(f);
	assert_true(power_was_cut());
	remove_database(before);
	return atomic_load(&facts_n);
}

static void
nothing_acknowledged_is_lost_and_nothing_is_there_by_halves(void **unused)
{
	struct fixture *f = NULL;
	void *state = NULL;
	uint64_t seed = first_seed, chain = seed;
	int facts_n = 0;

	(void)unused;
	print_message("%d cuts, seed %" PRIu64 "\n", cuts, seed);
	for (int i = 0; i < cuts; i++) {
		struct power_cut cut = { .n = 0 };
		const char *fault;

		power_on();
		if (i % CHAIN_CUTS == 0) {
			fixture_open(&state);
			f = state;
			chain = seed;
			witness_init(&witness, f, chain);
		} else {
			restart(f);
		}
		cut_draw(&cut, &seed);
		facts_n = live_through_cut(f, &cut);
		fault = witness_fault(&witness, facts_n);
		if (fault != NULL)
			fail_msg("seed %" PRIu64 ", cut %d: %s", chain, 1 + i % CHAIN_CUTS, fault);
		witness_resume(&witness, facts_n);
		if (i % CHAIN_CUTS == CHAIN_CUTS - 1 || i == cuts - 1)
			fixture_close(&state);
	}
}

/* The proof that the test above can fail. */
static void
without_syncs_acknowledged_changes_are_lost(void **unused)
{
	uint64_t seed = SEED;
	int losses = 0;

	(void)unused;
	for (int i = 0; i < 10; i++) {
		struct power_cut cut = { .seed = image_random(&seed), .step = POWER_ANY, .n = 200 };
		void *state = NULL;
		struct fixture *f;
		int facts_n;

		power_on();
		fixture_open(&state);
		f = state;
		witness_init(&witness, f, seed);
		assert_true(db_script(store_writer(f->core->store), "PRAGMA synchronous = OFF"));
		facts_n = live_through_cut(f, &cut);
		losses += witness_fault(&witness, facts_n) != NULL;
		fixture_close(&state);
	}
	assert_true(losses > 0);
}

/* --- the birth of a database */

static struct core *
core_at(const char *path)
{
	struct core_options options = { path, NULL, true, "test" };
	char error[256];
	struct core *core = core_open(&options, error, sizeof error);

	if (core == NULL)
		fail_msg("%s", error);
	return core;
}

static void
a_cut_while_a_database_is_made_leaves_one_that_opens(void **state)
{
	const struct fixture *f = *state;
	char path[128], copy[128];
	struct core *core;
	int steps = 1;

	snprintf(path, sizeof path, "%s/new", f->directory);
	snprintf(copy, sizeof copy, "%s/left", f->directory);
	for (int n = 1; n <= steps; n++) {
		power_on();
		power_cut_plan(&(struct power_cut){ .database = path,
		    .copy = copy,
		    .seed = (uint64_t)n,
		    .step = POWER_ANY,
		    .n = n });
		steps = power_count(POWER_ANY);
		core = core_at(path);
		core_close(&core);
		steps = power_count(POWER_ANY) - steps;
		assert_true(power_was_cut());
		power_off();
		core = core_at(copy);
		core_close(&core);
		remove_database(path);
		remove_database(copy);
	}
	assert_true(steps > 20);
}

/* The fixture's own database stays with the system's VFS: the shim follows one at a time. */
static int
directory_open(void **state)
{
	int failed = fixture_open(state);

	power_on();
	power_off();
	return failed;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    what_was_not_synced_is_kept_lost_or_torn, directory_open, fixture_close),
		cmocka_unit_test(without_syncs_acknowledged_changes_are_lost),
		cmocka_unit_test_setup_teardown(
		    a_cut_while_a_database_is_made_leaves_one_that_opens, directory_open,
		    fixture_close),
		cmocka_unit_test(nothing_acknowledged_is_lost_and_nothing_is_there_by_halves),
	};

	if (argc > 1)
		cuts = atoi(argv[1]);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

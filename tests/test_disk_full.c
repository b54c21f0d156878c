/* SPDX-License-Identifier: MIT */
/*
 * A disk that is full or broken: calls are refused as UNAVAILABLE, nothing acknowledged is lost,
 * reading goes on, and so does writing when the disk is well again. Only a sync that failed ends
 * the process: nobody can know what such a disk holds.
 *
 * With the argument "die", the process that is ended so.
 */
#include "tests/support/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/power.h"
#include "tests/support/witness.h"

#define SEED UINT64_C(20260730)
#define REFUSALS 5    /* as many as show that it stays so */
#define ACTS_MAX 2000 /* that fill any disk meant here */
#define FAULTS 30     /* the first steps that are made to fail, one after the other */
#define SMALL_DISK "size=2m"
#define LARGER_DISK "size=16m"

static const char *program;
static struct witness witness;

static int
open_on_power(void **state)
{
	int failed;

	power_on();
	failed = fixture_open(state);
	witness_init(&witness, *state, SEED);
	return failed;
}

static int
close_on_power(void **state)
{
	int failed = fixture_close(state);

	power_space(-1);
	power_off();
	return failed;
}

/* Everything that was acknowledged is there, before the core opens the file again and after. */
static void
nothing_is_lost(struct fixture *f)
{
	for (int i = 0; i < 2; i++) {
		const char *fault = witness_fault(&witness, witness_facts(&witness));

		if (fault != NULL)
			fail_msg("%s", fault);
		restart(f);
	}
}

static bool
act_refused(struct fixture *f)
{
	enum status st = witness_act(&witness);

	if (st == STATUS_OK)
		return false;
	expect(f, UNAVAILABLE, st);
	return true;
}

static void
act_until_refused(struct fixture *f)
{
	int refused = 0;

	for (int i = 0; i < ACTS_MAX && refused < REFUSALS; i++)
		refused += act_refused(f);
	assert_int_equal(refused, REFUSALS);
}

static void
act_freely(struct fixture *f)
{
	for (int i = 0; i < 10; i++)
		expect(f, OK, witness_act(&witness));
}

static void
a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing(void **state)
{
	static const int64_t spaces[] = { 0, 1, 4095, 4096, 30000, 100000, 500000, 5000000 };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
		act_freely(f);
		/* An emptied log is written over first; a new one has to grow. */
		restart(f);
		power_space(spaces[i]);
		act_until_refused(f);
		expect(f, OK, events_after(f, f->alice, NULL, 10, "*"));
		assert_true(GOT(f, EventListResponse)->n_events > 0);
		power_space(-1);
		act_freely(f);
		nothing_is_lost(f);
	}
}

/* For n = 1, 2, ...: the n-th such step fails with CODE. */
static void
each_step_fails(struct fixture *f, enum power_step step, int code)
{
	for (int n = 1; n <= FAULTS; n++) {
		int before = power_count(step);

		power_fail(step, n, code);
		for (int i = 0; i < ACTS_MAX && power_count(step) < before + n; i++)
			act_refused(f);
		assert_true(power_count(step) >= before + n);
		power_fail(step, 0, SQLITE_OK);
		act_freely(f);
		if (n % 10 == 0)
			nothing_is_lost(f);
	}
}

static void
any_write_may_fail(void **state)
{
	each_step_fails(*state, POWER_WRITE, SQLITE_IOERR_WRITE);
}

static void
any_write_may_find_the_disk_full(void **state)
{
	each_step_fails(*state, POWER_WRITE, SQLITE_FULL);
}

static void
any_sync_may_find_the_disk_full(void **state)
{
	each_step_fails(*state, POWER_SYNC, SQLITE_FULL);
}

static void
a_log_that_cannot_be_folded_is_kept(void **state)
{
	struct fixture *f = *state;

	for (int n = 1; n <= 3; n++) {
		int before = power_count(POWER_FOLD);

		power_fail(POWER_FOLD, n, SQLITE_IOERR_WRITE);
		for (int i = 0; i < ACTS_MAX && power_count(POWER_FOLD) < before + n; i++)
			act_refused(f);
		assert_true(power_count(POWER_FOLD) >= before + n);
		act_freely(f);
		nothing_is_lost(f);
	}
}

/* --- a sync that fails */

/* The other process: say where the database is, then each lease, until a sync fails. */
static int
die(int n)
{
	struct fixture *f;
	void *state = NULL;
	char name[24];

	setvbuf(stdout, NULL, _IOLBF, 0);
	power_on();
	fixture_open(&state);
	f = state;
	printf("path %s\n", f->path);
	power_fail(POWER_SYNC, n, SQLITE_IOERR_FSYNC);
	for (int i = 0; i < 2 * FAULTS; i++) {
		snprintf(name, sizeof name, "r%d", i);
		if (acquire(f, f->alice, "deploy", name, 600) == STATUS_OK)
			printf("lease %d\n", i);
	}
	return 0;
}

/* What it left: the database at PATH holds the LEASES that were acknowledged. The answers' memory
 * is the other process's, so this one only looks. */
static void
left_in_order(const char *path, int leases)
{
	struct core_options options = { path, NULL, false, "test" };
	struct fixture f = { .core = NULL };
	char error[256], command[160];

	snprintf(f.path, sizeof f.path, "%s", path);
	f.core = core_open(&options, error, sizeof error);
	if (f.core == NULL)
		fail_msg("%s", error);
	assert_in_range(count(&f, "SELECT count(*) FROM leases"), leases, leases + 1);
	assert_int_equal(count(&f, "SELECT count(*) FROM leases"),
	    count(&f, "SELECT count(*) FROM events WHERE kind = 1"));
	core_close(&f.core);
	*strrchr(f.path, '/') = '\0';
	snprintf(command, sizeof command, "rm -r '%s'", f.path);
	assert_int_equal(system(command), 0);
}

static void
a_failed_sync_ends_the_process(void **unused)
{
	char command[512], line[512], path[96] = "";

	(void)unused;
	power_off();
	for (int n = 1; n <= 5; n++) {
		bool said = false;
		int status, leases = 0;
		FILE *other;

		snprintf(command, sizeof command, "'%s' die %d 2>&1", program, n);
		other = popen(command, "r");
		assert_non_null(other);
		while (fgets(line, sizeof line, other) != NULL) {
			sscanf(line, "path %95s", path);
			leases += strncmp(line, "lease ", 6) == 0;
			said = said || strstr(line, "can no longer be trusted") != NULL;
		}
		status = pclose(other);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
		assert_true(said);
		assert_int_equal(leases, n - 1);
		left_in_order(path, leases);
	}
}

/* --- a real one */

static char place[32];
static char scratch[64]; /* TMPDIR before; "": there was none */

static int
mount_small_disk(void **state)
{
	const char *before = getenv("TMPDIR");

	(void)state;
	power_off();
	snprintf(scratch, sizeof scratch, "%.60s", before == NULL ? "" : before);
	strcpy(place, "/tmp/titen-disk-XXXXXX");
	if (mkdtemp(place) == NULL)
		return -1;
	if (mount("titen", place, "tmpfs", 0, SMALL_DISK) == 0)
		return setenv("TMPDIR", place, 1);
	print_message("no small disk can be mounted: %s\n", strerror(errno));
	rmdir(place);
	*place = '\0';
	return 0;
}

/* Also after a failure, when the database is still open. */
static int
unmount_small_disk(void **state)
{
	(void)state;
	if (*place == '\0')
		return 0;
	if (*scratch == '\0')
		unsetenv("TMPDIR");
	else
		setenv("TMPDIR", scratch, 1);
	return umount2(place, MNT_DETACH) != 0 || rmdir(place) != 0;
}

static void
a_real_disk_that_is_full_does_the_same(void **unused)
{
	struct fixture *f;
	void *state = NULL;

	(void)unused;
	if (*place == '\0')
		skip();
	fixture_open(&state);
	f = state;
	witness_init(&witness, f, SEED);
	act_until_refused(f);
	expect(f, OK, events_after(f, f->alice, NULL, 10, "*"));
	assert_true(GOT(f, EventListResponse)->n_events > 0);
	assert_int_equal(mount("titen", place, "tmpfs", MS_REMOUNT, LARGER_DISK), 0);
	act_freely(f);
	nothing_is_lost(f);
	fixture_close(&state);
}

#define ON_POWER(name) cmocka_unit_test_setup_teardown(name, open_on_power, close_on_power)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_sync_ends_the_process),
		ON_POWER(a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing),
		ON_POWER(any_write_may_fail),
		ON_POWER(any_write_may_find_the_disk_full),
		ON_POWER(any_sync_may_find_the_disk_full),
		ON_POWER(a_log_that_cannot_be_folded_is_kept),
		cmocka_unit_test_setup_teardown(
		    a_real_disk_that_is_full_does_the_same, mount_small_disk, unmount_small_disk),
	};

	program = argv[0];
	if (argc == 3 && strcmp(argv[1], "die") == 0)
		return die(atoi(argv[2]));
	power_on();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

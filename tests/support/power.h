/* SPDX-License-Identifier: MIT */
/*
 * A disk that fails: a VFS for SQLite (sqlite.org/vfs.html) over the one of the system. It knows of
 * every database, log and journal opened through it what a machine holds for sure (what was there
 * when it was opened, and what was synced since) and what it may lose (writes and truncations since
 * the last sync). Two kinds of failure come from it:
 *
 *	A power cut leaves beside the database what a machine could find after it: all that was
 *	synced, and of the rest a random part, in another order, some of it torn at sectors
 *	(sqlite.org/testing.html, "Crash Testing"). The program itself goes on and knows nothing.
 *
 *	A fault makes a step fail as a disk does that is full or broken.
 *
 * Syncs are not passed on: here the shim decides what is durable. Any thread, one database at a
 * time.
 */
#ifndef TITEN_TESTS_POWER_H
#define TITEN_TESTS_POWER_H

#include <stdbool.h>
#include <stdint.h>

enum power_step {
	POWER_WRITE,
	POWER_TRUNCATE,
	POWER_SYNC,
	POWER_ANY,  /* each of them */
	POWER_FOLD, /* each on the database itself, which beside a log means that the log is folded
		     */
	POWER_STEPS
};

struct power_cut {
	const char *database; /* borrowed until the cut, as all of this */
	const char *copy;     /* what the machine would hold: this path, "-wal", "-journal" */
	uint64_t seed;        /* of what is lost */
	enum power_step step;
	int n;                      /* before the N-th such step from now, or at last when the
				       database is closed */
	void (*noticed)(void *arg); /* called at that moment, on the thread of the step */
	void *arg;
};

/* Have SQLite open databases through the shim, or through the system's VFS again. What is open
 * stays as it is. */
void power_on(void);
void power_off(void);

void power_cut_plan(const struct power_cut *cut);
/* Whether the planned cut has been. */
bool power_was_cut(void);

/* From now on files may grow by BYTES in all, then writes say SQLITE_FULL; negative: by any. */
void power_space(int64_t bytes);
/* Let the N-th step from now fail with CODE, one of SQLite's; n 0: none. */
void power_fail(enum power_step step, int n, int code);
/* How many such steps there have been. */
int power_count(enum power_step step);

#endif

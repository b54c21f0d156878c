/* SPDX-License-Identifier: MIT */
/*
 * What a transaction counts: fences, and the numbers of events in their organizations. Each counter
 * is read once in a transaction, counted in memory, and written once before COMMIT, so a rollback
 * takes the numbers back, and a thousand events cost one write of their counter.
 */
#ifndef TITEN_CORE_TALLY_H
#define TITEN_CORE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/db.h"

#define TALLY_ORGANIZATIONS_MAX                                                                    \
	64 /* in one transaction; with more, counters are written in between */

struct tally_seq {
	int64_t organization;
	int64_t seq;
};

struct tally {
	struct db *db;
	int64_t fence; /* 0: not read yet */
	struct tally_seq seqs[TALLY_ORGANIZATIONS_MAX];
	int seqs_n;
};

/* At the begin of a transaction on DB. */
void tally_begin(struct tally *t, struct db *db);

/* The next fence: microseconds since 1970 at NOW_MS, or a few more than the last one. Fences rise over
 * all organizations, and so that none of them can count the others' leases they rise with the time
 * and not with the leases. Below 2^53 until the year 2255. The store's failure otherwise. */
enum status tally_fence(struct tally *t, int64_t now_ms, int64_t *fence_r);
/* The next number of an event of ORGANIZATION. The store's failure otherwise. */
enum status tally_seq(struct tally *t, int64_t organization, int64_t *seq_r);

/* Write what was counted, and NEWEST_MS, the latest time given out. Before COMMIT. */
enum status tally_write(struct tally *t, int64_t newest_ms);

#endif

/* SPDX-License-Identifier: MIT */
/* The fence stands in the row that there is one of, a seq in the row of its organization. */
#include "core/tally.h"

#define US_PER_MS 1000
#define STEP_MAX 8 /* within a millisecond */

void
tally_begin(struct tally *t, struct db *db)
{
	t->db = db;
	t->fence = 0;
	t->seqs_n = 0;
}

enum status
tally_fence(struct tally *t, int64_t now_ms, int64_t *fence_r)
{
	int64_t fence = now_ms * US_PER_MS + (int64_t)(id_bits() % (US_PER_MS / 2));
	struct query *q;
	enum status st = STATUS_OK;

	if (t->fence == 0) {
		q = query_start(t->db, "SELECT fence FROM titen WHERE id = 1", NO_VALUES);
		if (query_row(q))
			t->fence = query_int(q, 0);
		st = query_finish(q);
	}
	if (fence <= t->fence)
		fence = t->fence + 1 + (int64_t)(id_bits() % STEP_MAX);
	*fence_r = t->fence = fence;
	return st;
}

static enum status
seqs_write(struct tally *t)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < t->seqs_n && st == STATUS_OK; i++)
		st = db_run(t->db, "UPDATE organizations SET seq = $2 WHERE id = $1",
		    VALUES(as_int(t->seqs[i].organization), as_int(t->seqs[i].seq)));
	t->seqs_n = 0;
	return st;
}

static enum status
seq_read(struct tally *t, int64_t organization)
{
	struct tally_seq *row;
	struct query *q;
	enum status st = STATUS_OK;

	if (t->seqs_n == TALLY_ORGANIZATIONS_MAX && (st = seqs_write(t)) != STATUS_OK)
		return st;
	row = &t->seqs[t->seqs_n++];
	*row = (struct tally_seq){ organization, 0 };
	q = query_start(
	    t->db, "SELECT seq FROM organizations WHERE id = $1", VALUES(as_int(organization)));
	if (query_row(q))
		row->seq = query_int(q, 0);
	return query_finish(q);
}

enum status
tally_seq(struct tally *t, int64_t organization, int64_t *seq_r)
{
	enum status st = STATUS_OK;
	int i = 0;

	while (i < t->seqs_n && t->seqs[i].organization != organization)
		i++;
	if (i == t->seqs_n) {
		st = seq_read(t, organization);
		i = t->seqs_n - 1;
	}
	if (st == STATUS_OK)
		*seq_r = ++t->seqs[i].seq;
	return st;
}

enum status
tally_write(struct tally *t, int64_t newest_ms)
{
	enum status st =
	    t->fence == 0 ? db_run(t->db, "UPDATE titen SET clock_ms = $1 WHERE id = 1",
				VALUES(as_int(newest_ms)))
			  : db_run(t->db, "UPDATE titen SET clock_ms = $1, fence = $2 WHERE id = 1",
				VALUES(as_int(newest_ms), as_int(t->fence)));

	return st == STATUS_OK ? seqs_write(t) : st;
}

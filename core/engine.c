/* SPDX-License-Identifier: MIT */
/*
 * The life of a batch, top to bottom:
 *
 *	take -> attempt all -> COMMIT -> settle (key ring) -> hand to the completer
 *	           |              |
 *	           +--- failure --+--> ROLLBACK -> each call alone, in a transaction of its own
 *
 * A full disk rolls back the whole transaction, not the statement, so after a failure every call of
 * the batch is run again, with the ids and the time it was given at first.
 */
#include "core/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/auth.h"
#include "core/core.h"
#include "core/idempotency.h"
#include "core/log.h"
#include "core/queue.h"
#include "core/tally.h"

#define WAL_IDLE_BYTES (4 << 20)  /* fold the log into the file when nobody waits */
#define WAL_BUSY_BYTES (16 << 20) /* and from here on even when somebody does */

struct engine {
	struct core *core;
	struct db *db;
	struct id_source ids;
	struct tally tally; /* of the transaction under way */
	struct queue waiting;
	struct queue finished;
	/* CLOCK_MONOTONIC of a refused change; 0: the last one was taken. */
	atomic_int_fast64_t failed_ms;
	pthread_t writer;
	pthread_t completer;
	int64_t revoked[BATCH_CALLS_MAX]; /* keys that this transaction revokes */
	int revoked_n;
};

/* Fix what a call keeps even when it is repeated, and turn away the late. */
static void
call_take(struct engine *e, struct call *c, int64_t now_ms)
{
	c->db = e->db;
	c->now_ms = now_ms;
	c->id_source = &e->ids;
	c->tally = &e->tally;
	c->mark = arena_mark(c->arena);
	c->status = call_timely(c, e->core);
	c->due = c->status == STATUS_OK;
}

/* The key was good when the call arrived; it counts what it is now, in the order of the commits. */
static bool
key_still_good(struct engine *e, const struct call *c)
{
	if (c->who.key == 0)
		return true;
	for (int i = 0; i < e->revoked_n; i++)
		if (e->revoked[i] == c->who.key)
			return false;
	return key_ring_holds(e->core->ring, c->who.key);
}

static void
call_attempt(struct engine *e, struct call *c)
{
	int64_t changes = db_changes(c->db);

	call_rewind(c);
	if (key_still_good(e, c))
		c->status = idempotency_run(c);
	else
		c->status = auth_refuse(c);
	assert(c->status == STATUS_OK || db_failed(c->db) || db_changes(c->db) == changes);
	if (c->key_change != NULL && c->key_change->revoked)
		e->revoked[e->revoked_n++] = c->key_change->key;
}

/* What a transaction that changed something leaves behind besides the changes. */
static enum status
batch_close(struct engine *e, int64_t now_ms, int n)
{
	enum status st = tally_write(&e->tally, e->ids.ms > now_ms ? e->ids.ms : now_ms);

	if (st != STATUS_OK)
		return st;
	/* More than the batch can add, so that the table does not grow under any load. */
	return idempotency_prune(e->db, now_ms, 2 * n + 16);
}

/* Run CALLS in one transaction. False: nothing of it has happened. */
static bool
batch_commit(struct engine *e, struct call *const *calls, int n)
{
	int64_t changes = db_changes(e->db);

	e->revoked_n = 0;
	tally_begin(&e->tally, e->db);
	if (db_begin_write(e->db) != STATUS_OK)
		return false;
	for (int i = 0; i < n && !db_failed(e->db); i++)
		if (calls[i]->due)
			call_attempt(e, calls[i]);
	if (!db_failed(e->db) && db_changes(e->db) != changes)
		(void)batch_close(e, calls[0]->now_ms, n); /* a failure shows in db_commit() */
	return db_commit(e->db) == STATUS_OK;
}

/* Effects outside the store, now that the store has them. */
static void
batch_settle(struct engine *e, struct call *const *calls, int n)
{
	atomic_store(&e->failed_ms, 0);
	for (int i = 0; i < n; i++)
		if (calls[i]->due && calls[i]->status == STATUS_OK && calls[i]->key_change != NULL)
			key_ring_apply(e->core->ring, calls[i]->key_change);
}

static void
call_spoil(struct call *c, enum status st)
{
	call_rewind(c);
	c->status = st;
}

/* Each call alone. The first that finds the store unavailable again speaks for those behind it. */
static void
batch_repeat(struct engine *e, struct call *const *calls, int n)
{
	bool available = true;

	for (int i = 0; i < n; i++) {
		if (!calls[i]->due)
			continue;
		if (available && batch_commit(e, &calls[i], 1)) {
			batch_settle(e, &calls[i], 1);
			continue;
		}
		call_spoil(calls[i], available ? db_failure(e->db) : STATUS_UNAVAILABLE);
		atomic_store(&e->failed_ms, clock_monotonic_ms());
		available = calls[i]->status != STATUS_UNAVAILABLE;
	}
}

/* Only this thread folds the write-ahead log, and only between batches (SQLite before 3.51.3 can corrupt a
 * database when a checkpoint on one connection meets a write on another:
 * sqlite.org/wal.html#walresetbug). */
static void
wal_fold(struct engine *e)
{
	int64_t bytes = db_wal_bytes(e->db);

	if (bytes > WAL_BUSY_BYTES || (bytes > WAL_IDLE_BYTES && queue_empty(&e->waiting)))
		db_checkpoint(e->db);
}

static void *
writer_main(void *arg)
{
	struct engine *e = arg;
	struct call *calls[BATCH_CALLS_MAX];
	int n;

	while ((n = queue_take(&e->waiting, calls, BATCH_CALLS_MAX)) > 0) {
		int64_t now_ms = clock_now_ms(&e->core->clock);

		for (int i = 0; i < n; i++)
			call_take(e, calls[i], now_ms);
		if (batch_commit(e, calls, n))
			batch_settle(e, calls, n);
		else
			batch_repeat(e, calls, n);
		queue_put_all(&e->finished, calls, n);
		wal_fold(e);
	}
	return NULL;
}

static void *
completer_main(void *arg)
{
	struct engine *e = arg;
	struct call *calls[BATCH_CALLS_MAX];
	int n;

	while ((n = queue_take(&e->finished, calls, BATCH_CALLS_MAX)) > 0)
		for (int i = 0; i < n; i++)
			call_answer(calls[i]);
	return NULL;
}

struct engine *
engine_start(struct core *core)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e == NULL)
		log_die("There is no memory for the writer.");
	e->core = core;
	e->db = store_writer(core->store);
	id_source_init(&e->ids, core->newest_ms);
	queue_init(&e->waiting, WRITES_WAITING_MAX);
	queue_init(&e->finished, WRITES_WAITING_MAX);
	if (pthread_create(&e->writer, NULL, writer_main, e) != 0 ||
	    pthread_create(&e->completer, NULL, completer_main, e) != 0)
		log_die("The threads of the writer cannot be started.");
	pthread_setname_np(e->writer, "titen:writer");
	pthread_setname_np(e->completer, "titen:answers");
	return e;
}

void
engine_submit(struct engine *engine, struct call *c)
{
	if (queue_put(&engine->waiting, c))
		return;
	c->status = call_fail(c, STATUS_UNAVAILABLE, "Too many calls are waiting; try again.");
	call_answer(c);
}

bool
engine_failed_lately(struct engine *engine)
{
	int64_t failed_ms = atomic_load(&engine->failed_ms);

	return failed_ms != 0 && clock_monotonic_ms() - failed_ms < FAILURE_SHOWN_MS;
}

void
engine_stop(struct engine **engine)
{
	struct engine *e = *engine;

	queue_close(&e->waiting);
	pthread_join(e->writer, NULL);
	queue_close(&e->finished);
	pthread_join(e->completer, NULL);
	queue_destroy(&e->waiting);
	queue_destroy(&e->finished);
	free(e);
	*engine = NULL;
}

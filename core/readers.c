/* SPDX-License-Identifier: MIT */
/* One queue, a few threads. */
#include "core/readers.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/core.h"
#include "core/log.h"
#include "core/queue.h"

struct reader {
	struct readers *pool;
	struct db *db;
	pthread_t thread;
};

struct readers {
	struct core *core;
	struct queue waiting;
	struct reader readers[READERS];
	int started;
};

static void
reader_run(struct reader *r, struct call *c)
{
	if ((c->status = call_timely(c, r->pool->core)) != STATUS_OK)
		return;
	c->db = r->db;
	c->now_ms = clock_now_ms(&r->pool->core->clock);
	c->mark = arena_mark(c->arena);
	call_rewind(c);
	c->status = db_begin_read(r->db);
	if (c->status == STATUS_OK) {
		c->status = c->method->run(c);
		(void)db_commit(r->db); /* a read has nothing to lose */
	}
}

static void *
reader_main(void *arg)
{
	struct reader *r = arg;
	struct call *c;

	while (queue_take(&r->pool->waiting, &c, 1) > 0) {
		reader_run(r, c);
		call_answer(c);
	}
	return NULL;
}

struct readers *
readers_start(struct core *core)
{
	struct readers *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		log_die("There is no memory for the readers.");
	pool->core = core;
	queue_init(&pool->waiting, READS_WAITING_MAX);
	for (int i = 0; i < READERS; i++) {
		struct reader *r = &pool->readers[i];

		r->pool = pool;
		r->db = store_open_reader(core->store);
		if (r->db == NULL) {
			readers_stop(&pool);
			return NULL;
		}
		if (pthread_create(&r->thread, NULL, reader_main, r) != 0)
			log_die("The threads of the readers cannot be started.");
		pthread_setname_np(r->thread, "titen:reader");
		pool->started++;
	}
	return pool;
}

void
readers_submit(struct readers *readers, struct call *c)
{
	if (queue_put(&readers->waiting, c))
		return;
	c->status = call_fail(c, STATUS_UNAVAILABLE, "Too many calls are waiting; try again.");
	call_answer(c);
}

void
readers_stop(struct readers **readers)
{
	struct readers *pool = *readers;

	queue_close(&pool->waiting);
	for (int i = 0; i < pool->started; i++) {
		pthread_join(pool->readers[i].thread, NULL);
		db_close(&pool->readers[i].db);
	}
	queue_destroy(&pool->waiting);
	free(pool);
	*readers = NULL;
}

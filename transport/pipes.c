/* SPDX-License-Identifier: MIT */
/*
 * A hash of connections by the id that nng gives them. The ids are counted up by nng from a random
 * start, so no peer can choose them to collide and the plain hash function of uthash will do.
 */
#include "transport/pipes.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <uthash.h>

#include "core/log.h"

struct pipe {
	int id;
	int outstanding;
	bool local;
	UT_hash_handle hh;
};

#define DESCRIPTORS_FOR_OTHERS 640 /* the web door's connections and the store's files */
#define PIPES_LEAST 64

struct pipes {
	unsigned max;
	pthread_mutex_t lock;
	struct pipe *by_id;
};

/* Whoever opens connections without end must not keep the other door shut. */
static unsigned
connections_max(void)
{
	struct rlimit descriptors;

	if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 ||
	    descriptors.rlim_cur >= PIPES_MAX + DESCRIPTORS_FOR_OTHERS)
		return PIPES_MAX;
	if (descriptors.rlim_cur < PIPES_LEAST + DESCRIPTORS_FOR_OTHERS)
		return PIPES_LEAST;
	return (unsigned)descriptors.rlim_cur - DESCRIPTORS_FOR_OTHERS;
}

struct pipes *
pipes_open(void)
{
	struct pipes *pipes = calloc(1, sizeof(*pipes));

	if (pipes == NULL)
		log_die("There is no memory left.");
	pthread_mutex_init(&pipes->lock, NULL);
	pipes->max = connections_max();
	return pipes;
}

void
pipes_close(struct pipes **pipes)
{
	struct pipe *pipe = (*pipes)->by_id, *next;

	HASH_CLEAR(hh, (*pipes)->by_id); /* the pipes stay linked to each other */
	for (; pipe != NULL; pipe = next) {
		next = pipe->hh.next;
		free(pipe);
	}
	pthread_mutex_destroy(&(*pipes)->lock);
	free(*pipes);
	*pipes = NULL;
}

static struct pipe *
find(struct pipes *pipes, int id)
{
	struct pipe *pipe;

	HASH_FIND_INT(pipes->by_id, &id, pipe);
	return pipe;
}

/* Most of its statements are the expansion of HASH_ADD_INT. */
static bool
/* NOLINTNEXTLINE(readability-function-size) */
insert(struct pipes *pipes, int id, bool local)
{
	struct pipe *pipe;

	if (HASH_COUNT(pipes->by_id) >= pipes->max)
		return false;
	pipe = calloc(1, sizeof(*pipe));
	if (pipe == NULL)
		return false;
	pipe->id = id;
	pipe->local = local;
	HASH_ADD_INT(pipes->by_id, id, pipe);
	return true;
}

bool
pipes_add(struct pipes *pipes, int id, bool local)
{
	bool added;

	pthread_mutex_lock(&pipes->lock);
	assert(find(pipes, id) == NULL);
	added = insert(pipes, id, local);
	pthread_mutex_unlock(&pipes->lock);
	return added;
}

void
pipes_remove(struct pipes *pipes, int id)
{
	struct pipe *pipe;

	pthread_mutex_lock(&pipes->lock);
	pipe = find(pipes, id);
	if (pipe != NULL)
		HASH_DEL(pipes->by_id, pipe);
	pthread_mutex_unlock(&pipes->lock);
	free(pipe);
}

bool
pipes_begin(struct pipes *pipes, int id, bool *local)
{
	struct pipe *pipe;
	bool below = true;

	*local = false;
	pthread_mutex_lock(&pipes->lock);
	pipe = find(pipes, id);
	if (pipe != NULL) {
		*local = pipe->local;
		below = ++pipe->outstanding <= PIPE_OUTSTANDING_MAX;
	}
	pthread_mutex_unlock(&pipes->lock);
	return below;
}

void
pipes_end(struct pipes *pipes, int id)
{
	struct pipe *pipe;

	pthread_mutex_lock(&pipes->lock);
	pipe = find(pipes, id);
	if (pipe != NULL) {
		assert(pipe->outstanding > 0);
		pipe->outstanding--;
	}
	pthread_mutex_unlock(&pipes->lock);
}

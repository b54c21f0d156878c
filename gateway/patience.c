/* SPDX-License-Identifier: MIT */
/* A list of transfers, the one that ends first in front, and a thread that looks at it. */
#include "gateway/patience.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "gateway/sockets.h"

#define LOOK_SECONDS 1 /* between two looks: to wake the thread for each transfer costs more */

struct patience {
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t closed;
	bool closing;
	TAILQ_HEAD(, patience_wait) waits; /* all may take equally long, so they come in order */
};

/* The lock is held, so the transfer goes on and its connection is still the peer's. */
static void
wait_cut(const struct patience_wait *wait)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)wait->peer->remote_port) };

	if (inet_pton(AF_INET, wait->peer->remote_addr, &peer.sin_addr) == 1)
		sockets_shut(wait->peer->server_port, &peer, wait->how);
}

/* Who was cut and has not noticed is cut again: no harm. */
static void
look(struct patience *p)
{
	int64_t now_ms = clock_monotonic_ms();
	struct patience_wait *wait;

	TAILQ_FOREACH(wait, &p->waits, link)
	{
		if (wait->end_ms > now_ms)
			break;
		wait_cut(wait);
	}
}

static void *
patience_main(void *arg)
{
	struct patience *p = arg;
	struct timespec next;

	pthread_mutex_lock(&p->lock);
	while (!p->closing) {
		look(p);
		clock_gettime(CLOCK_MONOTONIC, &next);
		next.tv_sec += LOOK_SECONDS;
		pthread_cond_timedwait(&p->closed, &p->lock, &next);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void
patience_free(struct patience *p)
{
	pthread_cond_destroy(&p->closed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct patience *
patience_open(void)
{
	struct patience *p = calloc(1, sizeof(*p));
	pthread_condattr_t monotonic;

	if (p == NULL)
		return NULL;
	TAILQ_INIT(&p->waits);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->closed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&p->thread, NULL, patience_main, p) == 0)
		return p;
	patience_free(p);
	return NULL;
}

void
patience_close(struct patience **patience)
{
	struct patience *p = *patience;

	*patience = NULL;
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->closing = true;
	pthread_cond_signal(&p->closed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	patience_free(p);
}

void
patience_begin(struct patience *patience, struct patience_wait *wait,
    const struct mg_request_info *peer, int how)
{
	wait->peer = peer;
	wait->how = how;
	pthread_mutex_lock(&patience->lock);
	wait->end_ms = clock_monotonic_ms() + TRANSFER_MS_MAX;
	TAILQ_INSERT_TAIL(&patience->waits, wait, link);
	pthread_mutex_unlock(&patience->lock);
}

void
patience_end(struct patience *patience, struct patience_wait *wait)
{
	pthread_mutex_lock(&patience->lock);
	TAILQ_REMOVE(&patience->waits, wait, link);
	pthread_mutex_unlock(&patience->lock);
}

/* SPDX-License-Identifier: MIT */
/* A lock and a condition: at the rates SQLite commits, cleverer queues gain nothing. */
#include "core/queue.h"

#include <assert.h>

void
queue_init(struct queue *q, int length_max)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	q->first = NULL;
	q->end = &q->first;
	q->length = 0;
	q->length_max = length_max;
	q->closed = false;
}

void
queue_destroy(struct queue *q)
{
	assert(q->first == NULL);
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
}

static void
queue_append(struct queue *q, struct call *c)
{
	c->next = NULL;
	*q->end = c;
	q->end = &c->next;
	q->length++;
}

bool
queue_put(struct queue *q, struct call *c)
{
	bool room;

	pthread_mutex_lock(&q->lock);
	assert(!q->closed);
	room = q->length < q->length_max;
	if (room)
		queue_append(q, c);
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	return room;
}

void
queue_put_all(struct queue *q, struct call *const *calls, int n)
{
	pthread_mutex_lock(&q->lock);
	for (int i = 0; i < n; i++)
		queue_append(q, calls[i]);
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

int
queue_take(struct queue *q, struct call **calls, int n)
{
	int taken = 0;

	pthread_mutex_lock(&q->lock);
	while (q->first == NULL && !q->closed)
		pthread_cond_wait(&q->filled, &q->lock);
	for (; taken < n && q->first != NULL; taken++) {
		calls[taken] = q->first;
		q->first = calls[taken]->next;
	}
	if (q->first == NULL)
		q->end = &q->first;
	q->length -= taken;
	pthread_mutex_unlock(&q->lock);
	return taken;
}

bool
queue_empty(struct queue *q)
{
	bool empty;

	pthread_mutex_lock(&q->lock);
	empty = q->first == NULL;
	pthread_mutex_unlock(&q->lock);
	return empty;
}

void
queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

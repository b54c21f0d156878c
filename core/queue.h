/* SPDX-License-Identifier: MIT */
/* Calls that wait for a thread: a bounded list under one lock, first come, first served. */
#ifndef TITEN_CORE_QUEUE_H
#define TITEN_CORE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "core/call.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct call *first;
	struct call **end;
	int length;
	int length_max;
	bool closed;
};

void queue_init(struct queue *q, int length_max);
void queue_destroy(struct queue *q);

/* False: full. */
bool queue_put(struct queue *q, struct call *c);
/* Put N calls at once, whatever the limit. */
void queue_put_all(struct queue *q, struct call *const *calls, int n);
/* Wait for calls and take up to N of them. 0: closed and empty. */
int queue_take(struct queue *q, struct call **calls, int n);
bool queue_empty(struct queue *q);
/* What is in the queue is still taken; then queue_take() gives 0. */
void queue_close(struct queue *q);

#endif

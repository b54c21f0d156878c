/* SPDX-License-Identifier: MIT */
/*
 * What a benchmark counts, and when its calls begin and end. A door (bench_nng.c, bench_http.c)
 * keeps a number of calls outstanding, each in a slot that begins its next call when the last is
 * answered; for each answer it asks here whether to go on.
 *
 *	bench_load_take -> call -> bench_load_count -> call -> bench_load_count -> ... -> false
 *
 * Time goes by in slices: measured calls, baseline, measured calls, ..., so that whatever else the
 * machine does hits both alike. A slice is over when its last call is answered, so no call of one
 * side burdens the other.
 */
#ifndef TITEN_CMD_BENCH_LOAD_H
#define TITEN_CMD_BENCH_LOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/client.h"
#include "cmd/histogram.h"
#include "core/status.h"

#define BENCH_OUTCOMES (TITEN_TOO_LARGE + 1)

/* What was seen of the measured calls, or of the baseline. */
struct bench_side {
	uint64_t calls; /* begun, and ended in one of the ways below */
	uint64_t answered;
	uint64_t refused[STATUS_COUNT];  /* by reason; [STATUS_OK] stays 0 */
	uint64_t failed[BENCH_OUTCOMES]; /* without any answer; [TITEN_ANSWERED] stays 0 */
	struct histogram latency;        /* of answered calls, in ns */
	int64_t elapsed_ns;              /* from the first call of a slice to its last answer */
	int64_t stall_ns;                /* the longest time without any answer */
	int64_t client_cpu_ns;
	int64_t server_cpu_ns; /* 0 when it is not known */
	size_t request_bytes;  /* of the last message in a frame, or of the HTTP message */
	size_t reply_bytes;    /* likewise */
};

/* One call that has ended. */
struct bench_end {
	int64_t began_ns;
	enum titen_outcome outcome;
	enum status st; /* of the answer */
	size_t request_bytes;
	size_t reply_bytes;
};

/* The slice that is running. Doors use it only through the functions below. */
struct bench_load {
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t quiet; /* under_way is 0 */
	struct bench_side *side;
	int64_t end_ns;  /* no call begins after it */
	int64_t budget;  /* calls that may still begin */
	int64_t last_ns; /* when the last answer came */
	int under_way;
};

struct bench_door {
	void *door;
	/* Keep calls of one kind outstanding while LOAD allows; come back when all have ended. */
	void (*calls)(void *door, bool baseline, struct bench_load *load);
};

/* The two sides of a run. */
struct bench_result {
	struct bench_side measured;
	struct bench_side baseline;
	double ratio_min; /* of calls per second, measured by baseline, of two slices that are */
	double ratio_max; /* neighbours: how far the machine's noise goes */
};

/* Make CALLS calls of the measured kind, however long it takes. */
void bench_load_fill(const struct bench_door *door, int64_t calls, struct bench_side *side);
/* Alternate for SECONDS in all, after one slice of each that is not counted. SERVER_PID 0: not
 * known. */
void bench_load_run(
    const struct bench_door *door, int seconds, pid_t server_pid, struct bench_result *result_r);

double bench_load_rate(const struct bench_side *side); /* answered calls per second */
/* Whether everything was answered, or refused as a server with too much to do refuses. */
bool bench_load_sound(const struct bench_side *side);

/* --- for doors, on any thread */

/* Whether a slot may begin to make calls. */
bool bench_load_take(struct bench_load *load);
/* Count a call. True: the slot makes its next call; false: it may not, but it still must when it is
 * in the middle of something, as far as END was an answer. */
bool bench_load_count(struct bench_load *load, const struct bench_end *end);
/* The slot makes no more calls. */
void bench_load_leave(struct bench_load *load);
/* Wait until no slot makes calls. */
void bench_load_await(struct bench_load *load);

int64_t bench_load_now_ns(void);

#endif

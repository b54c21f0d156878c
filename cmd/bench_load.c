/* SPDX-License-Identifier: MIT */
/* Slices and their counting. Read bench_load_run() first. */
#include "cmd/bench_load.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define SLICE_NS (NS_PER_SECOND / 4) /* many answers even at an fsync each, and many slices */

/* --- clocks */

static int64_t
clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t
bench_load_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What a whole process has used; 0 when there is no such process. */
static int64_t
process_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return pid != 0 && clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

/* --- for doors */

/* With the lock. */
static bool
may_begin(struct bench_load *load, int64_t now_ns)
{
	if (now_ns >= load->end_ns || load->budget == 0)
		return false;
	load->budget--;
	return true;
}

bool
bench_load_take(struct bench_load *load)
{
	bool taken;

	pthread_mutex_lock(&load->lock);
	taken = may_begin(load, bench_load_now_ns());
	if (taken)
		load->under_way++;
	pthread_mutex_unlock(&load->lock);
	return taken;
}

static void
side_count(struct bench_side *side, const struct bench_end *end, int64_t now_ns)
{
	side->calls++;
	if (end->outcome != TITEN_ANSWERED) {
		side->failed[end->outcome]++;
	} else if (end->st != STATUS_OK) {
		side->refused[end->st]++;
	} else {
		side->answered++;
		side->request_bytes = end->request_bytes;
		side->reply_bytes = end->reply_bytes;
		histogram_add(&side->latency, now_ns - end->began_ns);
	}
}

bool
bench_load_count(struct bench_load *load, const struct bench_end *end)
{
	int64_t now_ns = bench_load_now_ns();
	bool more;

	pthread_mutex_lock(&load->lock);
	side_count(load->side, end, now_ns);
	if (now_ns - load->last_ns > load->side->stall_ns)
		load->side->stall_ns = now_ns - load->last_ns;
	if (now_ns > load->last_ns)
		load->last_ns = now_ns;
	/* A slot whose connection broke would only find it broken again, and again. */
	more = end->outcome == TITEN_ANSWERED && may_begin(load, now_ns);
	pthread_mutex_unlock(&load->lock);
	return more;
}

void
bench_load_leave(struct bench_load *load)
{
	pthread_mutex_lock(&load->lock);
	assert(load->under_way > 0);
	if (--load->under_way == 0)
		pthread_cond_signal(&load->quiet);
	pthread_mutex_unlock(&load->lock);
}

void
bench_load_await(struct bench_load *load)
{
	pthread_mutex_lock(&load->lock);
	while (load->under_way > 0)
		pthread_cond_wait(&load->quiet, &load->lock);
	pthread_mutex_unlock(&load->lock);
}

/* --- slices */

/* Gives the rate of this slice. */
static double
slice(const struct bench_door *door, bool baseline, struct bench_load *load)
{
	int64_t began_ns = bench_load_now_ns();
	uint64_t before = load->side->answered;

	load->last_ns = began_ns;
	door->calls(door->door, baseline, load);
	load->side->elapsed_ns += load->last_ns - began_ns;
	return load->last_ns == began_ns ? 0
					 : (double)(load->side->answered - before) * 1e9 /
					       (double)(load->last_ns - began_ns);
}

static void
load_init(struct bench_load *load)
{
	*load = (struct bench_load){ .budget = INT64_MAX };
	pthread_mutex_init(&load->lock, NULL);
	pthread_cond_init(&load->quiet, NULL);
}

static void
load_free(struct bench_load *load)
{
	pthread_cond_destroy(&load->quiet);
	pthread_mutex_destroy(&load->lock);
}

void
bench_load_fill(const struct bench_door *door, int64_t calls, struct bench_side *side)
{
	struct bench_load load;

	load_init(&load);
	load.side = side;
	load.end_ns = INT64_MAX;
	load.budget = calls;
	slice(door, false, &load);
	load_free(&load);
}

static double
timed_slice(const struct bench_door *door, bool baseline, struct bench_side *side, pid_t server_pid)
{
	struct bench_load load;
	int64_t client_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int64_t server_ns = process_cpu_ns(server_pid);
	double rate;

	load_init(&load);
	load.side = side;
	load.end_ns = bench_load_now_ns() + SLICE_NS;
	rate = slice(door, baseline, &load);
	side->client_cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - client_ns;
	side->server_cpu_ns += process_cpu_ns(server_pid) - server_ns;
	load_free(&load);
	return rate;
}

static void
pair_of_slices(const struct bench_door *door, pid_t server_pid, struct bench_result *run)
{
	double measured = timed_slice(door, false, &run->measured, server_pid);
	double baseline = timed_slice(door, true, &run->baseline, server_pid);
	double ratio = baseline > 0 ? measured / baseline : 0;

	run->ratio_min = fmin(run->ratio_min, ratio);
	run->ratio_max = fmax(run->ratio_max, ratio);
}

void
bench_load_run(
    const struct bench_door *door, int seconds, pid_t server_pid, struct bench_result *result_r)
{
	int64_t pairs = seconds * NS_PER_SECOND / (2 * SLICE_NS);

	pair_of_slices(door, server_pid, result_r);
	memset(result_r, 0, sizeof(*result_r));
	result_r->ratio_min = INFINITY;
	for (int64_t i = 0; i < pairs; i++)
		pair_of_slices(door, server_pid, result_r);
}

double
bench_load_rate(const struct bench_side *side)
{
	return side->elapsed_ns == 0 ? 0 : (double)side->answered * 1e9 / (double)side->elapsed_ns;
}

bool
bench_load_sound(const struct bench_side *side)
{
	uint64_t shed = side->refused[STATUS_RATE_LIMITED] + side->refused[STATUS_UNAVAILABLE];

	return side->answered > 0 && side->answered + shed == side->calls;
}

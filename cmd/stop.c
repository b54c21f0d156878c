/* SPDX-License-Identifier: MIT */
/* The signals are blocked from the start; the main thread waits for them. */
#include "cmd/stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "core/clock.h"
#include "core/log.h"

#define DRAIN_MS 10000   /* how long calls under way may take to be answered */
#define DRAIN_LOOK_MS 10 /* between two looks whether they are */

static void
stop_now(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_SIGNALLED);
}

static void
stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

void
stop_block(void)
{
	sigset_t signals;

	stop_signals(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void
stop_wait(void)
{
	const struct sigaction second = { .sa_handler = stop_now };
	sigset_t signals;
	int number;

	stop_signals(&signals);
	sigwait(&signals, &number);
	sigaction(SIGTERM, &second, NULL);
	sigaction(SIGINT, &second, NULL);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	log_line(LOG_LEVEL_INFO, "Stopping: signal %d.", number);
}

void
stop_drain(int (*outstanding)(void *arg), void *arg)
{
	const struct timespec pause = { .tv_nsec = DRAIN_LOOK_MS * 1000000L };
	int64_t end_ms = clock_monotonic_ms() + DRAIN_MS;
	int left;

	while ((left = outstanding(arg)) > 0 && clock_monotonic_ms() < end_ms)
		nanosleep(&pause, NULL);
	if (left > 0)
		log_line(LOG_LEVEL_WARNING, "%d calls were not answered in time.", left);
}

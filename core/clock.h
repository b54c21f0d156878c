/* SPDX-License-Identifier: MIT */
/*
 * The time that decides about leases: milliseconds since 1970 that never run backwards. It is the
 * wall clock, or, when somebody has set that back, the last time given out plus what has really
 * passed since (CLOCK_BOOTTIME). So a clock stepped back neither revives nor lengthens a lease, and
 * one stepped forward and back again does not freeze it.
 */
#ifndef TITEN_CORE_CLOCK_H
#define TITEN_CORE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* Where the time comes from; tests bring their own. */
struct clock_source {
	int64_t (*wall_ms)(void *arg);
	int64_t (*boot_ms)(void *arg);
	void *arg;
};

struct clock {
	struct clock_source source;
	pthread_mutex_t lock;
	int64_t last_ms;
	int64_t last_boot_ms;
};

extern const struct clock_source clock_system;

/* Times given out will not be before NEWEST_MS (0 when there is none). SOURCE is copied. */
void clock_init(struct clock *clock, const struct clock_source *source, int64_t newest_ms);
/* Any thread. */
int64_t clock_now_ms(struct clock *clock);
/* The wall clock, for ids and log lines that decide nothing. Any thread. */
int64_t clock_wall_ms(void);
/* CLOCK_MONOTONIC in milliseconds, for deadlines. Any thread. */
int64_t clock_monotonic_ms(void);

#define TIMESTAMP_BYTES 25 /* 2026-07-30T10:58:13.829Z and NUL */

/* UTC with exactly three decimals (RFC 3339). TIME_MS within the years 0000 to 9999. */
void timestamp_write(char out[TIMESTAMP_BYTES], int64_t time_ms);

#endif

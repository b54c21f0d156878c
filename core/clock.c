/* SPDX-License-Identifier: MIT */
/* The clock of the core, and times as text. */
#include "core/clock.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#define WALL_MS_MAX INT64_C(7258118400000) /* 2200-01-01: fences have 53 bits until 2255 */

static int64_t
read_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A wall clock outside of these years is not set; ids and timestamps can hold what is in between. */
static int64_t
within_reason(int64_t wall_ms)
{
	if (wall_ms < 0)
		return 0;
	return wall_ms > WALL_MS_MAX ? WALL_MS_MAX : wall_ms;
}

static int64_t
system_wall_ms(void *arg)
{
	(void)arg;
	return read_ms(CLOCK_REALTIME);
}

static int64_t
system_boot_ms(void *arg)
{
	(void)arg;
	return read_ms(CLOCK_BOOTTIME);
}

const struct clock_source clock_system = { system_wall_ms, system_boot_ms, NULL };

void
clock_init(struct clock *clock, const struct clock_source *source, int64_t newest_ms)
{
	*clock = (struct clock){
		.source = *source,
		.last_ms = newest_ms,
		.last_boot_ms = source->boot_ms(source->arg),
	};
	pthread_mutex_init(&clock->lock, NULL);
}

int64_t
clock_now_ms(struct clock *clock)
{
	const struct clock_source *source = &clock->source;
	int64_t wall_ms, boot_ms, now_ms;

	pthread_mutex_lock(&clock->lock);
	boot_ms = source->boot_ms(source->arg);
	wall_ms = within_reason(source->wall_ms(source->arg));
	assert(boot_ms >= clock->last_boot_ms);
	now_ms = clock->last_ms + (boot_ms - clock->last_boot_ms);
	if (now_ms < wall_ms)
		now_ms = wall_ms;
	clock->last_ms = now_ms;
	clock->last_boot_ms = boot_ms;
	pthread_mutex_unlock(&clock->lock);
	return now_ms;
}

int64_t
clock_wall_ms(void)
{
	return within_reason(read_ms(CLOCK_REALTIME));
}

int64_t
clock_monotonic_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

/* VALUE in COUNT decimal digits at OUT; the end of them. */
static char *
digits(char *out, int64_t value, int count)
{
	for (int i = count - 1; i >= 0; i--) {
		out[i] = (char)('0' + value % 10);
		value /= 10;
	}
	assert(value == 0);
	return out + count;
}

void
timestamp_write(char out[TIMESTAMP_BYTES], int64_t time_ms)
{
	int64_t ms = (time_ms % 1000 + 1000) % 1000;
	time_t seconds = (time_t)((time_ms - ms) / 1000);
	struct tm t;

	gmtime_r(&seconds, &t);
	out = digits(out, (int64_t)t.tm_year + 1900, 4);
	*out++ = '-';
	out = digits(out, (int64_t)t.tm_mon + 1, 2);
	*out++ = '-';
	out = digits(out, t.tm_mday, 2);
	*out++ = 'T';
	out = digits(out, t.tm_hour, 2);
	*out++ = ':';
	out = digits(out, t.tm_min, 2);
	*out++ = ':';
	out = digits(out, t.tm_sec, 2);
	*out++ = '.';
	out = digits(out, ms, 3);
	memcpy(out, "Z", 2);
}

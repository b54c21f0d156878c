/* SPDX-License-Identifier: MIT */
/* What the parts of the core share. Private to this folder: no door includes it. */
#ifndef TITEN_CORE_CORE_H
#define TITEN_CORE_CORE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/auth.h"
#include "core/clock.h"
#include "core/store.h"

struct core {
	struct store *store;
	struct clock clock;
	int64_t newest_ms; /* of the last run: times and ids start behind it */
	struct key_ring *ring;
	struct engine *engine;
	struct readers *readers;
	const char *revision;
	atomic_bool hurrying; /* what waits is not begun any more */
};

/* Whether C may still be begun: its time is not over, and the core is not in a hurry. */
static inline enum status
call_timely(const struct call *c, struct core *core)
{
	if (atomic_load(&core->hurrying))
		return STATUS_UNAVAILABLE;
	if (c->deadline_ms != 0 && clock_monotonic_ms() >= c->deadline_ms)
		return STATUS_DEADLINE_EXCEEDED;
	return STATUS_OK;
}

#endif

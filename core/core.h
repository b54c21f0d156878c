/* SPDX-License-Identifier: MIT */
/* What the parts of the core share. Private to this folder: no door includes it. */
#ifndef TITEN_CORE_CORE_H
#define TITEN_CORE_CORE_H

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
};

#endif

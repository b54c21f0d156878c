/* SPDX-License-Identifier: MIT */
/* The readers: a few threads with a read-only connection each. Every call is a short transaction of
 * its own, so it sees what was answered before it started and pins nothing for long. */
#ifndef TITEN_CORE_READERS_H
#define TITEN_CORE_READERS_H

#include "core/call.h"

#define READERS 2 /* one for each core of the smallest machine we mean */
#define READS_WAITING_MAX 8192

struct readers;

/* NULL: a connection cannot be opened (logged). */
struct readers *readers_start(struct core *core);
/* Run C (its method is a READ) and have it answered. UNAVAILABLE at once when too many wait. */
void readers_submit(struct readers *readers, struct call *c);
/* Finish what was submitted, end the threads, close the connections. Clears *READERS. */
void readers_stop(struct readers **readers);

#endif

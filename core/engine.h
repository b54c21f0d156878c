/* SPDX-License-Identifier: MIT */
/*
 * The writer: one thread that owns every change. It takes all calls that wait, runs them in one
 * transaction, and only when COMMIT has returned are they answered, by a second thread, while the
 * writer runs the next batch. One fsync serves the whole batch; that is where the throughput is.
 */
#ifndef TITEN_CORE_ENGINE_H
#define TITEN_CORE_ENGINE_H

#include <stdbool.h>

#include "core/call.h"

#define WRITES_WAITING_MAX 8192 /* a quarter of a second of work; beyond it shed, not queue */
#define BATCH_CALLS_MAX 512     /* commits of more gain little and make everybody wait longer */

#define FAILURE_SHOWN_MS 10000 /* readiness probes look every few seconds */

struct engine;

/* Start both threads on the core's store. Writer connection and id source are the engine's from
 * now on. Never NULL. */
struct engine *engine_start(struct core *core);
/* Run C (its method is a WRITE) and have it answered. UNAVAILABLE at once when too many wait. */
void engine_submit(struct engine *engine, struct call *c);
/* Whether the store has refused a change in the last FAILURE_SHOWN_MS, and taken none since. Any
 * thread. */
bool engine_failed_lately(struct engine *engine);
/* Finish what was submitted, answer it, end both threads. Clears *ENGINE. */
void engine_stop(struct engine **engine);

#endif

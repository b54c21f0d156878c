/* SPDX-License-Identifier: MIT */
/*
 * Retries that do nothing twice (D13). A caller that sends an idempotency key with a writing call
 * has its answer kept for a day, in the transaction of the change; the same key with the same
 * message gets that answer again, with another message a CONFLICT. Keys are the principal's, not
 * the API key's: a retry may come through a new key. Only successes are kept.
 */
#ifndef TITEN_CORE_IDEMPOTENCY_H
#define TITEN_CORE_IDEMPOTENCY_H

#include "core/call.h"

#define IDEMPOTENCY_KEPT_MS INT64_C(86400000) /* a day: longer than any retry loop we know */
#define IDEMPOTENCY_PRUNE_ROWS 16             /* a batch; more than a busy batch adds on average */

struct db;

/* Check c->idempotency_key and take the digest of what it stands for. Not the writer's work. */
enum status idempotency_prepare(struct call *c);
/* Run the handler, or recall what it answered before. Writer thread, inside the transaction. */
enum status idempotency_run(struct call *c);
/* Forget some of what is older than a day. Writer thread, inside the transaction. */
enum status idempotency_prune(struct db *db, int64_t now_ms);

#endif

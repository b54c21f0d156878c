/* SPDX-License-Identifier: MIT */
/*
 * Retries that do nothing twice. A caller that sends an idempotency key with a writing call
 * has its answer kept for a day, in the transaction of the change; the same key with the same
 * message gets that answer again, with another message a CONFLICT. Keys are the principal's, not
 * the API key's: a retry may come through a new key. Only successes are kept.
 */
#ifndef TITEN_CORE_IDEMPOTENCY_H
#define TITEN_CORE_IDEMPOTENCY_H

#include "core/call.h"

#define IDEMPOTENCY_KEPT_MS INT64_C(86400000) /* a day: longer than any retry loop we know */

struct db;

/* Check c->idempotency_key and take the digest of what it stands for. Not the writer's work. */
enum status idempotency_prepare(struct call *c);
/* Run the handler, or recall what it answered before. Writer thread, inside the transaction. */
enum status idempotency_run(struct call *c);
/* Forget up to ROWS answers that are older than a day. Writer thread, inside the transaction. */
enum status idempotency_prune(struct db *db, int64_t now_ms, int rows);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Who may ask: keys, and the ring of all keys that are not revoked, held in memory so that checking
 * one costs a hash and no query. A key is "titen_sk_" and 43 base64url characters; only its SHA-256
 * is kept.
 *
 * The ring is what the store says: it is loaded from there, and the writer changes it after each
 * commit and before the answers of that commit, so a revoked key is refused from the next request
 * on.
 */
#ifndef TITEN_CORE_AUTH_H
#define TITEN_CORE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/call.h"
#include "core/db.h"

#define KEY_TEXT_BYTES 53      /* of a key, with its NUL */
#define KEY_DIGEST_BYTES 32    /* SHA-256 */
#define KEYS_ACTIVE_MAX 200000 /* 400 bytes each as a rule, with long names 1 700 */

struct key_ring;

/* A change to the ring that waits for its commit. In the call's arena. */
struct key_change {
	bool revoked; /* false: WHO's key is new and has DIGEST */
	int64_t key;
	struct identity who;
	uint8_t digest[KEY_DIGEST_BYTES];
};

/* Load every key that is not revoked. NULL when the store fails. */
struct key_ring *key_ring_load(struct db *db);
void key_ring_free(struct key_ring **ring);

/* Apply a committed change. Writer thread. */
void key_ring_apply(struct key_ring *ring, const struct key_change *change);
/* Whether the key in row KEY may still be used. Any thread. */
bool key_ring_holds(struct key_ring *ring, int64_t key);
/* How many keys may be used. Any thread. */
int64_t key_ring_count(struct key_ring *ring);

/* Set c->who from c->authorization. UNAUTHENTICATED without saying why. Any thread; does not block
 * for longer than a change to the ring takes. */
enum status auth_identify(struct key_ring *ring, struct call *c);

/* The one answer to every credential that is not good. */
enum status auth_refuse(struct call *c);

/* A new random key into TEXT and its digest. */
void auth_key_make(char text[KEY_TEXT_BYTES], uint8_t digest[KEY_DIGEST_BYTES]);

#endif

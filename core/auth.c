/* SPDX-License-Identifier: MIT */
/* The ring: two hashes over the same entries, by digest for the doors, by row for the writer. */
#include "core/auth.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sodium.h>

#include "core/log.h"

/* A table without memory is a process without memory. */
#define uthash_fatal(msg) log_die("There is no memory for the keys: %s.", msg)
#include <uthash.h>

#define KEY_PREFIX "titen_sk_"
#define KEY_RANDOM_BYTES 32
#define SCHEME "bearer"

struct key_entry {
	uint8_t
	    digest[KEY_DIGEST_BYTES]; /* of a random key, so evenly spread whatever clients send */
	struct identity who;          /* texts owned, in one block behind the entry */
	UT_hash_handle by_digest;
	UT_hash_handle by_row;
};

struct key_ring {
	pthread_rwlock_t lock;
	struct key_entry *by_digest;
	struct key_entry *by_row;
	int64_t count;
};

static const char *
text_put(char **end, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = memcpy(*end, text, bytes);

	*end += bytes;
	return copy;
}

static struct key_entry *
entry_make(const uint8_t *digest, const struct identity *who)
{
	size_t texts = strlen(who->organization_id) + strlen(who->principal_id) +
		       strlen(who->key_id) + strlen(who->label) + 4;
	struct key_entry *entry = calloc(1, sizeof(*entry) + texts);
	char *end;

	if (entry == NULL)
		log_die("There is no memory for a key.");
	end = (char *)(entry + 1);
	memcpy(entry->digest, digest, KEY_DIGEST_BYTES);
	entry->who = *who;
	entry->who.organization_id = text_put(&end, who->organization_id);
	entry->who.principal_id = text_put(&end, who->principal_id);
	entry->who.key_id = text_put(&end, who->key_id);
	entry->who.label = text_put(&end, who->label);
	return entry;
}

/* uthash's macros are long, and the analyzer does not follow an entry that is in two tables. */
/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc) */
static void
ring_add(struct key_ring *ring, struct key_entry *entry)
{
	HASH_ADD(by_digest, ring->by_digest, digest, KEY_DIGEST_BYTES, entry);
	HASH_ADD(by_row, ring->by_row, who.key, sizeof(entry->who.key), entry);
	ring->count++;
}

static void
ring_remove(struct key_ring *ring, struct key_entry *entry)
{
	HASH_DELETE(by_digest, ring->by_digest, entry);
	HASH_DELETE(by_row, ring->by_row, entry);
	ring->count--;
	free(entry);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

static struct key_entry *
ring_by_row(struct key_ring *ring, int64_t key)
{
	struct key_entry *entry;

	HASH_FIND(by_row, ring->by_row, &key, sizeof(key), entry);
	return entry;
}

static void
ring_load_row(struct key_ring *ring, struct query *q, struct arena *arena)
{
	struct id organization = query_id(q, 2), key = query_id(q, 6);
	struct identity who = {
		.key = query_int(q, 0),
		.organization = query_int(q, 1),
		.organization_id = id_text(arena, "org", &organization),
		.principal = query_int(q, 3),
		.principal_id = query_text(q, 4, arena),
		.principal_kind = (int)query_int(q, 5),
		.key_id = id_text(arena, "key", &key),
		.label = query_text(q, 7, arena),
		.scopes = (scope_set)query_int(q, 8),
		.max_trust = (int)query_int(q, 9),
	};
	size_t length;
	const void *digest = query_blob(q, 10, &length);

	if (length == KEY_DIGEST_BYTES)
		ring_add(ring, entry_make(digest, &who));
	else
		log_line(LOG_LEVEL_ERROR, "A key in the store has no valid digest.");
}

struct key_ring *
key_ring_load(struct db *db)
{
	static const char sql[] =
	    "SELECT k.id, o.id, o.public_id, p.id, p.name, p.kind, k.public_id, k.label, k.scopes,"
	    " k.max_trust, k.digest FROM keys k JOIN organizations o ON o.id = k.organization"
	    " JOIN principals p ON p.id = k.principal WHERE k.revoked_ms IS NULL";
	struct key_ring *ring = calloc(1, sizeof(*ring));
	struct query *q = query_start(db, sql, NO_VALUES);
	pthread_rwlockattr_t prefer;
	struct arena arena;

	if (ring == NULL)
		log_die("There is no memory for the keys.");
	/* The writer's thread must not wait for as long as callers keep coming. */
	pthread_rwlockattr_init(&prefer);
	pthread_rwlockattr_setkind_np(&prefer, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&ring->lock, &prefer);
	pthread_rwlockattr_destroy(&prefer);
	arena_init(&arena);
	while (query_row(q)) {
		ring_load_row(ring, q, &arena);
		arena_reset(&arena);
	}
	arena_free(&arena);
	if (query_finish(q) != STATUS_OK)
		key_ring_free(&ring);
	return ring;
}

void
key_ring_free(struct key_ring **ring)
{
	struct key_entry *entry, *next;

	HASH_ITER (by_row, (*ring)->by_row, entry, next) {
		ring_remove(*ring, entry);
	}
	pthread_rwlock_destroy(&(*ring)->lock);
	free(*ring);
	*ring = NULL;
}

void
key_ring_apply(struct key_ring *ring, const struct key_change *change)
{
	struct key_entry *entry = change->revoked ? NULL : entry_make(change->digest, &change->who);

	pthread_rwlock_wrlock(&ring->lock);
	if (entry != NULL)
		ring_add(ring, entry);
	else if ((entry = ring_by_row(ring, change->key)) != NULL)
		ring_remove(ring, entry);
	pthread_rwlock_unlock(&ring->lock);
}

bool
key_ring_holds(struct key_ring *ring, int64_t key)
{
	bool held;

	pthread_rwlock_rdlock(&ring->lock);
	held = ring_by_row(ring, key) != NULL;
	pthread_rwlock_unlock(&ring->lock);
	return held;
}

int64_t
key_ring_count(struct key_ring *ring)
{
	int64_t count;

	pthread_rwlock_rdlock(&ring->lock);
	count = ring->count;
	pthread_rwlock_unlock(&ring->lock);
	return count;
}

/* The token of "Bearer TOKEN": the scheme in any case (RFC 9110, 11.1), blanks around the token of
 * no meaning. NULL when it does not look like a key of ours. */
static const char *
bearer_key(const char *authorization, size_t *length_r)
{
	const char *token;

	if (authorization == NULL || strncasecmp(authorization, SCHEME, sizeof(SCHEME) - 1) != 0)
		return NULL;
	token = authorization + sizeof(SCHEME) - 1;
	if (*token != ' ' && *token != '\t')
		return NULL;
	token += strspn(token, " \t");
	*length_r = strcspn(token, " \t");
	if (token[*length_r + strspn(token + *length_r, " \t")] != '\0')
		return NULL;
	if (*length_r != KEY_TEXT_BYTES - 1 ||
	    strncmp(token, KEY_PREFIX, sizeof(KEY_PREFIX) - 1) != 0)
		return NULL;
	return token;
}

static void
identity_copy(struct call *c, const struct identity *who)
{
	c->who = *who;
	c->who.organization_id = arena_text(c->arena, who->organization_id);
	c->who.principal_id = arena_text(c->arena, who->principal_id);
	c->who.key_id = arena_text(c->arena, who->key_id);
	c->who.label = arena_text(c->arena, who->label);
}

enum status
auth_identify(struct key_ring *ring, struct call *c)
{
	uint8_t digest[KEY_DIGEST_BYTES];
	struct key_entry *entry = NULL;
	size_t length = 0;
	const char *key = bearer_key(c->authorization, &length);

	if (key != NULL) {
		crypto_hash_sha256(digest, (const unsigned char *)key, length);
		pthread_rwlock_rdlock(&ring->lock);
		HASH_FIND(by_digest, ring->by_digest, digest, KEY_DIGEST_BYTES, entry);
		if (entry != NULL)
			identity_copy(c, &entry->who);
		pthread_rwlock_unlock(&ring->lock);
	}
	return entry == NULL ? auth_refuse(c) : STATUS_OK;
}

enum status
auth_refuse(struct call *c)
{
	return call_fail(c, STATUS_UNAUTHENTICATED, "A valid API key is required.");
}

void
auth_key_make(char text[KEY_TEXT_BYTES], uint8_t digest[KEY_DIGEST_BYTES])
{
	uint8_t random[KEY_RANDOM_BYTES];

	randombytes_buf(random, sizeof(random));
	memcpy(text, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
	sodium_bin2base64(text + sizeof(KEY_PREFIX) - 1, KEY_TEXT_BYTES - sizeof(KEY_PREFIX) + 1,
	    random, sizeof(random), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	sodium_memzero(random, sizeof(random));
	crypto_hash_sha256(digest, (const unsigned char *)text, KEY_TEXT_BYTES - 1);
}

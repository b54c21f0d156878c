/* SPDX-License-Identifier: MIT */
/* Prepare at the door, then recall or run and keep. */
#include "core/idempotency.h"

#include <string.h>
#include <sodium.h>

#include "core/db.h"
#include "core/text.h"

/* Shown once, so never kept, and with it what is said about it. */
static const char *const secret_fields[] = { "api_key", "warning" };

#define SECRET_FIELDS (sizeof(secret_fields) / sizeof(secret_fields[0]))

enum status
idempotency_prepare(struct call *c)
{
	crypto_hash_sha256_state hash;
	uint8_t *packed;
	size_t bytes;

	if (c->method->access != ACCESS_WRITE || c->idempotency_key == NULL)
		return STATUS_OK;
	bytes = strlen(c->idempotency_key);
	if (bytes == 0 || bytes > IDEMPOTENCY_KEY_BYTES || !text_utf8(c->idempotency_key, bytes))
		return call_fail(c, STATUS_VALIDATION_ERROR,
		    "The idempotency key must be UTF-8 text of 1 to %d bytes.",
		    IDEMPOTENCY_KEY_BYTES);
	bytes = protobuf_c_message_get_packed_size(c->request);
	packed = arena_alloc(c->arena, bytes);
	protobuf_c_message_pack(c->request, packed);
	crypto_hash_sha256_init(&hash);
	crypto_hash_sha256_update(
	    &hash, (const uint8_t *)c->method->name, strlen(c->method->name) + 1);
	crypto_hash_sha256_update(&hash, packed, bytes);
	crypto_hash_sha256_final(&hash, c->digest);
	return STATUS_OK;
}

/* Fill the answer from a row that was found: its digest, its reply, whether it made something. */
static enum status
reply_restore(struct call *c, struct query *q)
{
	size_t bytes;
	const uint8_t *stored = query_blob(q, 0, &bytes);

	if (bytes != sizeof(c->digest) || memcmp(stored, c->digest, bytes) != 0)
		return call_fail(c, STATUS_CONFLICT,
		    "This idempotency key was used for another call or message.");
	stored = query_blob(q, 1, &bytes);
	c->response =
	    protobuf_c_message_unpack(c->method->response, &c->arena->decoder, bytes, stored);
	c->created = query_int(q, 2) != 0;
	c->replayed = true;
	return c->response == NULL ? STATUS_UNAVAILABLE : STATUS_OK;
}

static enum status
reply_recall(struct call *c)
{
	enum status st = STATUS_OK, failed;
	struct query *q = query_start(c->db,
	    "SELECT digest, reply, created FROM idempotency"
	    " WHERE principal = $1 AND key = $2 AND created_ms > $3",
	    VALUES(as_int(c->who.principal), as_text(c->idempotency_key),
		as_int(c->now_ms - IDEMPOTENCY_KEPT_MS)));

	if (query_row(q))
		st = reply_restore(c, q);
	failed = query_finish(q);
	return failed != STATUS_OK ? failed : st;
}

/* Where RESPONSE has the text FIELD; NULL when it has no such field. */
static char **
text_field(ProtobufCMessage *response, const char *field)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(response->descriptor, field);

	return f == NULL ? NULL : (char **)(void *)((char *)response + f->offset);
}

/* The packed answer without its secret. */
static uint8_t *
reply_pack(struct call *c, size_t *bytes_r)
{
	char **places[SECRET_FIELDS], *kept[SECRET_FIELDS];
	uint8_t *packed;

	for (size_t i = 0; i < SECRET_FIELDS; i++) {
		places[i] = text_field(c->response, secret_fields[i]);
		if (places[i] != NULL) {
			kept[i] = *places[i];
			*places[i] = NULL;
		}
	}
	*bytes_r = protobuf_c_message_get_packed_size(c->response);
	packed = arena_alloc(c->arena, *bytes_r);
	protobuf_c_message_pack(c->response, packed);
	for (size_t i = 0; i < SECRET_FIELDS; i++)
		if (places[i] != NULL)
			*places[i] = kept[i];
	return packed;
}

static enum status
reply_keep(struct call *c)
{
	size_t bytes;
	uint8_t *packed = reply_pack(c, &bytes);
	enum status st;

	/* A row that is still there is older than a day, or it would have been recalled. */
	st = db_run(c->db, "DELETE FROM idempotency WHERE principal = $1 AND key = $2",
	    VALUES(as_int(c->who.principal), as_text(c->idempotency_key)));
	if (st != STATUS_OK)
		return st;
	return db_run(c->db,
	    "INSERT INTO idempotency (principal, key, digest, created, reply, created_ms)"
	    " VALUES ($1, $2, $3, $4, $5, $6)",
	    VALUES(as_int(c->who.principal), as_text(c->idempotency_key),
		as_blob(c->digest, sizeof(c->digest)), as_int(c->created), as_blob(packed, bytes),
		as_int(c->now_ms)));
}

enum status
idempotency_run(struct call *c)
{
	enum status st;

	if (c->idempotency_key == NULL)
		return c->method->run(c);
	if ((st = reply_recall(c)) != STATUS_OK || c->replayed)
		return st;
	if ((st = c->method->run(c)) != STATUS_OK)
		return st;
	return reply_keep(c);
}

enum status
idempotency_prune(struct db *db, int64_t now_ms, int rows)
{
	int64_t last = 0;
	struct query *q = query_start(db,
	    "SELECT id, created_ms FROM idempotency ORDER BY id LIMIT $1", VALUES(as_int(rows)));
	enum status st;

	/* Rows come in the order of time, so the first that is young enough ends the search. */
	while (query_row(q) && query_int(q, 1) <= now_ms - IDEMPOTENCY_KEPT_MS)
		last = query_int(q, 0);
	if ((st = query_finish(q)) != STATUS_OK || last == 0)
		return st;
	return db_run(db, "DELETE FROM idempotency WHERE id <= $1", VALUES(as_int(last)));
}

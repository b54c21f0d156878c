/* SPDX-License-Identifier: MIT */
/*
 * Public ids: a prefix, an underscore, and the 32 lower-case hexadecimal digits of a UUID version 7
 * (RFC 9562, section 5.7). The prefix says what the id names and is never authority. Random bytes
 * come from libsodium: sodium_init() comes first.
 */
#ifndef TITEN_CORE_IDENT_H
#define TITEN_CORE_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

struct id {
	uint8_t bytes[16];
};

#define ID_TEXT_BYTES 48 /* the longest prefix we use, "_", 32 digits and NUL fit */

/* Makes ids that rise strictly, with random steps inside a millisecond so that nobody can count
 * others' writes. The three fields are the newest id. */
struct id_source {
	int64_t ms;
	uint16_t rand_a; /* the upper 12 bits of its counter, named as in the RFC */
	uint64_t rand_b; /* the lower 62 bits */
};

/* Ids from SOURCE will be larger than every id made at or before NEWEST_MS. Writer thread. */
void id_source_init(struct id_source *source, int64_t newest_ms);
/* The next id, stamped NOW_MS or, when that is not behind the newest id, a moment later. */
struct id id_next(struct id_source *source, int64_t now_ms);
/* 64 random bits, from a pool of this thread. Any thread. */
uint64_t id_bits(void);
/* An id of its own, for what is never stored (request ids). Any thread. */
struct id id_random(int64_t now_ms);

/* "prefix_0190..." into OUT. */
void id_write(char out[ID_TEXT_BYTES], const char *prefix, const struct id *id);
char *id_text(struct arena *a, const char *prefix, const struct id *id);
/* False when TEXT is not exactly such an id. */
bool id_parse(struct id *id, const char *prefix, const char *text);

#endif

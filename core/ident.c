/* SPDX-License-Identifier: MIT */
/*
 * UUID version 7: 48 bits of milliseconds, the version, rand_a (12 bits), the variant, rand_b (62
 * bits). rand_a and rand_b are one counter here (RFC 9562, section 6.2, method 2).
 */
#include "core/ident.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sodium.h>

#define RAND_A_MAX ((uint16_t)0xfff)
#define RAND_B_MAX (((uint64_t)1 << 62) - 1)
#define MS_MAX (((int64_t)1 << 48) - 1)
#define DIGITS 32 /* two for each byte of an id */
/* Fetched at once: one system call for each id would cost more than it. */
#define RANDOM_BYTES 1024

uint64_t
id_bits(void)
{
	static _Thread_local uint8_t pool[RANDOM_BYTES];
	static _Thread_local size_t left;
	uint64_t bits;

	if (left == 0) {
		randombytes_buf(pool, sizeof(pool));
		left = sizeof(pool);
	}
	left -= sizeof(bits);
	memcpy(&bits, pool + left, sizeof(bits));
	return bits;
}

static struct id
id_make(int64_t ms, uint16_t rand_a, uint64_t rand_b)
{
	struct id id;
	uint64_t high = (uint64_t)ms << 16 | 0x7000 | rand_a;
	uint64_t low = (uint64_t)2 << 62 | rand_b;

	assert(ms >= 0 && ms <= MS_MAX);
	for (int i = 0; i < 8; i++) {
		id.bytes[i] = (uint8_t)(high >> (56 - 8 * i));
		id.bytes[8 + i] = (uint8_t)(low >> (56 - 8 * i));
	}
	return id;
}

/* The counter stands at its end, so the first id goes to the next millisecond. */
void
id_source_init(struct id_source *source, int64_t newest_ms)
{
	*source = (struct id_source){ newest_ms, RAND_A_MAX, RAND_B_MAX };
}

/* Enter the millisecond MS, in the lower half of the counter so that there is room to count. */
static void
start_over(struct id_source *source, int64_t ms)
{
	source->ms = ms;
	source->rand_a = (uint16_t)(id_bits() & (RAND_A_MAX >> 1));
	source->rand_b = id_bits() & RAND_B_MAX;
}

/* A random step of 1 to 2^32; over the end of the counter lies the next millisecond. */
static void
step(struct id_source *source)
{
	source->rand_b += 1 + (id_bits() >> 32);
	if (source->rand_b <= RAND_B_MAX)
		return;
	source->rand_b &= RAND_B_MAX;
	if (source->rand_a < RAND_A_MAX)
		source->rand_a++;
	else
		start_over(source, source->ms + 1);
}

struct id
id_next(struct id_source *source, int64_t now_ms)
{
	if (now_ms > source->ms)
		start_over(source, now_ms);
	else
		step(source);
	return id_make(source->ms, source->rand_a, source->rand_b);
}

struct id
id_random(int64_t now_ms)
{
	return id_make(now_ms, id_bits() & RAND_A_MAX, id_bits() & RAND_B_MAX);
}

void
id_write(char out[ID_TEXT_BYTES], const char *prefix, const struct id *id)
{
	assert(strlen(prefix) + 1 + DIGITS < ID_TEXT_BYTES);
	out = stpcpy(out, prefix);
	*out++ = '_';
	sodium_bin2hex(out, DIGITS + 1, id->bytes, sizeof(id->bytes));
}

char *
id_text(struct arena *a, const char *prefix, const struct id *id)
{
	char text[ID_TEXT_BYTES];

	id_write(text, prefix, id);
	return arena_text(a, text);
}

bool
id_parse(struct id *id, const char *prefix, const char *text)
{
	size_t length = strlen(prefix);
	const char *digits = text + length + 1;

	if (strncmp(text, prefix, length) != 0 || text[length] != '_')
		return false;
	if (strspn(digits, "0123456789abcdef") != DIGITS || digits[DIGITS] != '\0')
		return false;
	return sodium_hex2bin(id->bytes, sizeof(id->bytes), digits, DIGITS, NULL, NULL, NULL) == 0;
}

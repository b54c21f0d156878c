/* SPDX-License-Identifier: MIT */
/*
 * A list of chunks, newest first; only the newest gives out memory. Under AddressSanitizer what is
 * not handed out may not be touched.
 */
#include "core/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

/* Most calls need no more, and every idle arena keeps one. */
#define FIRST_BYTES ((size_t)4 << 10)
#define CHUNK_BYTES_MAX ((size_t)256 << 10) /* doubling further would only waste the last chunk */
#define ALIGNMENT _Alignof(max_align_t)

struct arena_chunk {
	struct arena_chunk *older;
	size_t size; /* of data */
	size_t used;
	max_align_t data[];
};

static atomic_size_t budget_used;

static void *
decoder_alloc(void *arena, size_t bytes)
{
	return arena_try(arena, bytes);
}

static void
decoder_free(void *arena, void *memory)
{
	(void)arena;
	(void)memory;
}

void
arena_init(struct arena *a)
{
	*a = (struct arena){ .decoder = { decoder_alloc, decoder_free, a } };
}

/* Forget what the newest chunk gave out behind USED. */
static void
chunk_return(struct arena_chunk *chunk, size_t used)
{
	assert(used <= chunk->used);
	chunk->used = used;
	ASAN_POISON_MEMORY_REGION((char *)chunk->data + used, chunk->size - used);
}

static void
newest_free(struct arena *a)
{
	struct arena_chunk *chunk = a->chunks;

	a->chunks = chunk->older;
	atomic_fetch_sub(&budget_used, sizeof(*chunk) + chunk->size);
	free(chunk);
}

void
arena_reset(struct arena *a)
{
	while (a->chunks != NULL && a->chunks->older != NULL)
		newest_free(a);
	/* A first chunk made for one large request is not worth keeping in every idle arena. */
	if (a->chunks != NULL && a->chunks->size > FIRST_BYTES)
		newest_free(a);
	if (a->chunks != NULL)
		chunk_return(a->chunks, 0);
	a->bytes = 0;
	a->refused = false;
}

void
arena_free(struct arena *a)
{
	while (a->chunks != NULL)
		newest_free(a);
	a->bytes = 0;
	a->refused = false;
}

static size_t
next_size(const struct arena *a, size_t bytes)
{
	size_t size = a->chunks == NULL ? FIRST_BYTES : 2 * a->chunks->size;

	if (size > CHUNK_BYTES_MAX)
		size = CHUNK_BYTES_MAX;
	return size < bytes ? bytes : size;
}

/* Put a chunk of SIZE in front, whatever the budget says. */
static void
chunk_add(struct arena *a, size_t size)
{
	struct arena_chunk *chunk = malloc(sizeof(*chunk) + size);

	if (chunk == NULL)
		log_die("The system has no memory left.");
	*chunk = (struct arena_chunk){ .older = a->chunks, .size = size };
	a->chunks = chunk;
	chunk_return(chunk, 0);
}

static bool
fits(const struct arena *a, size_t bytes)
{
	return a->chunks != NULL && a->chunks->size - a->chunks->used >= bytes;
}

/* BYTES are aligned and fit into the newest chunk. */
static void *
take(struct arena *a, size_t bytes)
{
	struct arena_chunk *chunk = a->chunks;
	char *memory = (char *)chunk->data + chunk->used;

	ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
	chunk->used += bytes;
	a->bytes += bytes;
	return memset(memory, 0, bytes);
}

static size_t
align(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

void *
arena_alloc(struct arena *a, size_t bytes)
{
	size_t need = align(bytes);

	if (need < bytes || need > SIZE_MAX / 2)
		log_die("A request for memory is out of bounds.");
	if (!fits(a, need)) {
		chunk_add(a, next_size(a, need));
		atomic_fetch_add(&budget_used, sizeof(*a->chunks) + a->chunks->size);
	}
	return take(a, need);
}

bool
arena_budget_take(size_t bytes)
{
	if (atomic_fetch_add(&budget_used, bytes) + bytes <= ARENA_BUDGET_BYTES)
		return true;
	atomic_fetch_sub(&budget_used, bytes);
	return false;
}

void
arena_budget_give(size_t bytes)
{
	atomic_fetch_sub(&budget_used, bytes);
}

static void *
refuse(struct arena *a)
{
	a->refused = true;
	return NULL;
}

void *
arena_try(struct arena *a, size_t bytes)
{
	size_t need, size;

	if (bytes > ARENA_BYTES_MAX)
		return refuse(a);
	need = align(bytes);
	if (a->bytes + need > ARENA_BYTES_MAX)
		return refuse(a);
	if (!fits(a, need)) {
		size = next_size(a, need);
		if (!arena_budget_take(sizeof(*a->chunks) + size))
			return refuse(a);
		chunk_add(a, size);
	}
	return take(a, need);
}

char *
arena_text_n(struct arena *a, const char *text, size_t bytes)
{
	char *copy = arena_alloc(a, bytes + 1);

	memcpy(copy, text, bytes);
	return copy;
}

char *
arena_text(struct arena *a, const char *text)
{
	return arena_text_n(a, text, strlen(text));
}

char *
arena_printf(struct arena *a, const char *format, ...)
{
	va_list args;
	int length;
	char *text;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(length >= 0);
	text = arena_alloc(a, (size_t)length + 1);
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

struct arena_mark
arena_mark(const struct arena *a)
{
	return (struct arena_mark){
		.chunk = a->chunks,
		.used = a->chunks == NULL ? 0 : a->chunks->used,
		.bytes = a->bytes,
	};
}

void
arena_return(struct arena *a, struct arena_mark mark)
{
	while (a->chunks != mark.chunk)
		newest_free(a);
	if (a->chunks != NULL)
		chunk_return(a->chunks, mark.used);
	a->bytes = mark.bytes;
}

size_t
arena_budget_used(void)
{
	return atomic_load(&budget_used);
}

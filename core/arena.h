/* SPDX-License-Identifier: MIT */
/*
 * Memory with one end: everything a call needs is taken from its arena and given back together. An
 * arena belongs to one thread at a time. The chunks of all arenas count against one budget of the
 * process.
 *
 * Two ways to ask, for two kinds of need. What a client can inflate (decoding, reading JSON) is
 * asked with arena_try(), which refuses above the limits; the caller then answers PAYLOAD_TOO_LARGE
 * or UNAVAILABLE. What the server decides itself is bounded by its own limits and asked with
 * arena_alloc(), which does not fail: it ends the process when the system has no memory left.
 */
#ifndef TITEN_CORE_ARENA_H
#define TITEN_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <protobuf-c/protobuf-c.h>

/* What one call may inflate to: 1 MiB of payload fits four times. */
#define ARENA_BYTES_MAX ((size_t)4 << 20)
/* What all calls together may hold before new ones are turned away. */
#define ARENA_BUDGET_BYTES ((size_t)256 << 20)

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t bytes;               /* handed out since the last reset */
	bool refused;               /* arena_try() has said no since the last reset */
	ProtobufCAllocator decoder; /* arena_try() as protobuf-c wants it; frees nothing */
};

/* A place in an arena to return to. */
struct arena_mark {
	struct arena_chunk *chunk;
	size_t used;
	size_t bytes;
};

/* An empty arena: takes nothing yet. The arena must not move afterwards (the decoder points to it).
 */
void arena_init(struct arena *a);
/* Give everything back but the first chunk, which the next call will use. */
void arena_reset(struct arena *a);
/* Give everything back. The arena may be used again. */
void arena_free(struct arena *a);

/* Zeroed memory, aligned for any type. Never NULL. */
void *arena_alloc(struct arena *a, size_t bytes);
/* The same for what a client decides about: NULL above ARENA_BYTES_MAX or the budget, and then
 * a->refused is set. */
void *arena_try(struct arena *a, size_t bytes);

char *arena_text(struct arena *a, const char *text);
char *arena_text_n(struct arena *a, const char *text, size_t bytes);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *a, const char *format, ...);

struct arena_mark arena_mark(const struct arena *a);
/* Forget what was taken since MARK. */
void arena_return(struct arena *a, struct arena_mark mark);

/* Count memory that a client made the server take elsewhere (a body, a parse) against the same budget.
 * False: there is no room. What was taken is given back. Any thread. */
bool arena_budget_take(size_t bytes);
void arena_budget_give(size_t bytes);
/* What all of them hold now. Any thread. */
size_t arena_budget_used(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON (RFC 8259), strictly: valid UTF-8, no NUL, nothing behind the value, no number
 * beyond a double, nesting counted before the parser may recurse, and memory under a budget.
 * Numbers arrive as reals. Of repeated members the last counts.
 */
#ifndef TITEN_CORE_JSON_READ_H
#define TITEN_CORE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "core/arena.h"

#define JSON_DEPTH_MAX 64 /* of a body, the outer object included; parsers recurse once a level */
/* Of one parse: an honest 1 MiB body needs half of it. */
#define JSON_MEMORY_BYTES ((size_t)16 << 20)

/* Before any other use of JSON in the process; main thread. */
void json_init(void);

/* What *ERROR_R is when the process had no memory to spare: not the text's fault. */
extern const char json_no_memory[];

/* The value in TEXT, nested at most DEPTH levels; json_done() it before this thread reads another.
 * NULL: *ERROR_R is a sentence without a full stop that says why ("is not JSON: ..."), in ARENA, or
 * json_no_memory. */
json_t *json_read(
    struct arena *arena, const char *text, size_t bytes, int depth, const char **error_r);

/* Free VALUE and give its memory back to the budget of the process. On the thread that read it. */
void json_done(json_t *value);

/*
 * The compact text of VALUE, in ARENA: no spaces, members in the order they came but integer-like
 * names first and ascending, numbers in their shortest form, only the escapes that must be. This is
 * what JavaScript's JSON.stringify gives (ECMA-262, 25.5.2), so hashes over it agree with clients'.
 * NULL when the arena refuses.
 */
char *json_compact(struct arena *arena, const json_t *value);

#endif

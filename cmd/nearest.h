/* SPDX-License-Identifier: MIT */
/*
 * What somebody may have meant who wrote a name that does not exist: the known name that takes the
 * fewest insertions, deletions and replacements of a letter (Levenshtein), in any case.
 *
 *	nearest_begin -> nearest_offer each known name -> nearest_hint
 */
#ifndef TITEN_CMD_NEAREST_H
#define TITEN_CMD_NEAREST_H

#include <stddef.h>

#include "core/arena.h"

struct nearest {
	const char *wanted;
	const char *name; /* the best so far; NULL: none is close */
	size_t distance;  /* of the next, to be better */
};

/* WANTED is kept. */
void nearest_begin(struct nearest *nearest, const char *wanted);
/* NAME is kept when it is the best so far. */
void nearest_offer(struct nearest *nearest, const char *name);
/* "; did you mean lease.acquire?" in ARENA, or "". */
const char *nearest_hint(const struct nearest *nearest, struct arena *arena);

#endif

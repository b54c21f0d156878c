/* SPDX-License-Identifier: MIT */
/* What a key may do: proto/scopes.def as a set of bits. */
#ifndef TITEN_CORE_SCOPES_H
#define TITEN_CORE_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

/* What a row of methods.def may ask for: a scope, or one of three rights that no scope grants. */
enum right {
#define SCOPE(name, text) RIGHT_##name,
#include "scopes.def"
	RIGHT_SCOPES,             /* how many scopes there are */
	RIGHT_KEY = RIGHT_SCOPES, /* any key that is not revoked */
	RIGHT_PUBLIC,             /* nobody asks */
	RIGHT_LOCAL               /* only through the owner's local socket */
};

typedef uint64_t scope_set; /* bit 1 << RIGHT_... */

/* "leases:write"; NULL for the three that are no scope. */
const char *scope_text(enum right scope);
/* RIGHT_SCOPES when TEXT is no scope. */
enum right scope_find(const char *text);

/* Whether SET grants SCOPE, by name or by "*". */
bool scope_granted(scope_set set, enum right scope);
/* Whether everything in INNER is granted by OUTER. */
bool scope_within(scope_set inner, scope_set outer);

/* The scopes of SET by name, in ARENA; "*" stands for all of them alone. */
char **scope_list(struct arena *arena, scope_set set, size_t *n_r);

#endif

/* SPDX-License-Identifier: MIT */
/* proto/scopes.def, expanded. */
#include "core/scopes.h"

#include <assert.h>
#include <string.h>

static const char *const texts[] = {
#define SCOPE(name, text) [RIGHT_##name] = (text),
#include "scopes.def"
};

_Static_assert(RIGHT_SCOPES < 64, "the scopes fit a scope_set");

static scope_set
bit(enum right scope)
{
	return (scope_set)1 << scope;
}

const char *
scope_text(enum right scope)
{
	return scope < RIGHT_SCOPES ? texts[scope] : NULL;
}

enum right
scope_find(const char *text)
{
	for (size_t i = 0; i < RIGHT_SCOPES; i++)
		if (strcmp(texts[i], text) == 0)
			return (enum right)i;
	return RIGHT_SCOPES;
}

bool
scope_granted(scope_set set, enum right scope)
{
	assert(scope < RIGHT_SCOPES);
	return (set & (bit(RIGHT_ALL) | bit(scope))) != 0;
}

bool
scope_within(scope_set inner, scope_set outer)
{
	return (outer & bit(RIGHT_ALL)) != 0 || (inner & ~outer) == 0;
}

char **
scope_list(struct arena *arena, scope_set set, size_t *n_r)
{
	char **list = arena_alloc(arena, RIGHT_SCOPES * sizeof(*list));

	*n_r = 0;
	if (set & bit(RIGHT_ALL))
		set = bit(RIGHT_ALL);
	for (size_t i = 0; i < RIGHT_SCOPES; i++)
		if (set & bit((enum right)i))
			list[(*n_r)++] = arena_text(arena, texts[i]);
	return list;
}

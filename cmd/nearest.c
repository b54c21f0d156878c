/* SPDX-License-Identifier: MIT */
/* One row of the table of distances at a time (Wagner and Fischer). */
#include "cmd/nearest.h"

#include <ctype.h>
#include <string.h>

#define NAME_BYTES_MAX 64 /* no name of ours is longer, and a longer one is no slip of a finger */

static size_t
smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool
same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* B has at most NAME_BYTES_MAX bytes. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[NAME_BYTES_MAX + 1];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t corner = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t replaced = corner + (same_letter(a[i], b[j]) ? 0 : 1);

			corner = row[j + 1];
			row[j + 1] = smaller(replaced, smaller(corner, row[j]) + 1);
		}
	}
	return row[n];
}

/* A third of the letters may be wrong: beyond that nearly everything is near. */
void
nearest_begin(struct nearest *nearest, const char *wanted)
{
	*nearest = (struct nearest){ .wanted = wanted, .distance = (strlen(wanted) + 5) / 3 };
}

void
nearest_offer(struct nearest *nearest, const char *name)
{
	size_t found;

	if (strlen(nearest->wanted) > NAME_BYTES_MAX || strlen(name) > NAME_BYTES_MAX)
		return;
	found = distance(nearest->wanted, name);
	if (found >= nearest->distance)
		return;
	nearest->distance = found;
	nearest->name = name;
}

const char *
nearest_hint(const struct nearest *nearest, struct arena *arena)
{
	if (nearest->name == NULL)
		return "";
	return arena_printf(arena, "; did you mean %s?", nearest->name);
}

/* SPDX-License-Identifier: MIT */
/* What is durable, then what comes through a cut. */
#include "tests/support/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR_BYTES 512 /* the unit that a disk writes whole or not at all */

/* A write or truncation that is not durable yet. */
struct change {
	struct change *next;
	int64_t offset; /* of a truncation, the new length */
	bool truncates;
	int64_t bytes;
	uint8_t data[];
};

/* Vigna's splitmix64. */
uint64_t
image_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void *
must(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

static void
image_resize(struct image *image, int64_t bytes)
{
	if (bytes > image->room) {
		image->room = 2 * bytes;
		image->data = must(realloc(image->data, (size_t)image->room));
	}
	if (image->data != NULL && bytes > image->bytes)
		memset(image->data + image->bytes, 0, (size_t)(bytes - image->bytes));
	image->bytes = bytes;
}

static void
image_write(struct image *image, int64_t offset, const uint8_t *data, int64_t bytes)
{
	if (offset + bytes > image->bytes)
		image_resize(image, offset + bytes);
	if (image->data != NULL)
		memcpy(image->data + offset, data, (size_t)bytes);
}

static void
change_apply(struct image *image, const struct change *change)
{
	if (change->truncates)
		image_resize(image, change->offset);
	else
		image_write(image, change->offset, change->data, change->bytes);
}

static void
changes_forget(struct image *image)
{
	while (image->first != NULL) {
		struct change *next = image->first->next;

		free(image->first);
		image->first = next;
	}
	image->end = &image->first;
	image->changes_n = 0;
}

void
image_settle(struct image *image)
{
	for (const struct change *change = image->first; change != NULL; change = change->next)
		change_apply(image, change);
	changes_forget(image);
	image->named = true;
}

void
image_change(struct image *image, int64_t offset, bool truncates, const void *data, int64_t bytes)
{
	struct change *change = must(malloc(sizeof *change + (size_t)bytes));

	*change = (struct change){ NULL, offset, truncates, bytes };
	if (bytes > 0)
		memcpy(change->data, data, (size_t)bytes);
	*image->end = change;
	image->end = &change->next;
	image->changes_n++;
}

void
image_free(struct image *image)
{
	changes_forget(image);
	free(image->data);
	free(image->path);
	*image = (struct image){ .path = NULL };
}

void
image_load(struct image *image, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t piece[8192];
	size_t n;

	*image = (struct image){ .path = must(strdup(path)) };
	image->end = &image->first;
	while (file != NULL && (n = fread(piece, 1, sizeof piece, file)) > 0)
		image_write(image, image->bytes, piece, (int64_t)n);
	image->named = image->bytes > 0;
	if (file != NULL)
		fclose(file);
}

/* Once in a hundred KEPT times. */
static bool
luck(uint64_t *seed, uint64_t kept)
{
	return image_random(seed) % 100 < kept;
}

/* Some sectors of a write. */
static void
change_tear(struct image *image, const struct change *change, uint64_t *seed, uint64_t kept)
{
	int64_t at = change->offset, end = change->offset + change->bytes;

	while (at < end) {
		int64_t sector_end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
		int64_t bytes = (sector_end < end ? sector_end : end) - at;

		if (luck(seed, kept))
			image_write(image, at, change->data + (at - change->offset), bytes);
		at += bytes;
	}
}

/* What came of the changes that were under way: KEPT of a hundred, in any order, some torn. */
static void
changes_survive(
    struct image *copy, const struct change *first, int n, uint64_t *seed, uint64_t kept)
{
	const struct change **order =
	    must(calloc((size_t)n + 1, sizeof(order[0]))); /* NOLINT(bugprone-sizeof-expression) */

	for (int i = 0; i < n; i++, first = first->next) {
		int place = (int)(image_random(seed) % (uint64_t)(i + 1));

		order[i] = order[place];
		order[place] = first;
	}
	for (int i = 0; i < n; i++) {
		if (!order[i]->truncates && luck(seed, 25))
			change_tear(copy, order[i], seed, kept);
		else if (luck(seed, kept))
			change_apply(copy, order[i]);
	}
	free(order);
}

static void
image_save(const struct image *image, const char *path)
{
	FILE *file = must(fopen(path, "wb"));

	if (image->bytes > 0)
		fwrite(image->data, 1, (size_t)image->bytes, file);
	if (fclose(file) != 0)
		abort();
}

void
image_survive(const struct image *image, const char *path, uint64_t *seed)
{
	static const uint64_t share[] = { 0, 10, 50, 90, 100 };
	uint64_t kept = share[image_random(seed) % (sizeof share / sizeof share[0])];
	struct image copy = { .room = image->bytes, .bytes = image->bytes };

	if ((!image->named || image->deleted) && luck(seed, 50))
		return;
	if (image->bytes > 0) {
		copy.data = must(malloc((size_t)image->bytes));
		memcpy(copy.data, image->data, (size_t)image->bytes);
	}
	changes_survive(&copy, image->first, image->changes_n, seed, kept);
	image_save(&copy, path);
	free(copy.data);
}

/* SPDX-License-Identifier: MIT */
/* What a machine holds of one file: what is durable, and the changes that are not yet. Whoever uses
 * an image sees to it that one thread at a time does. */
#ifndef TITEN_TESTS_IMAGE_H
#define TITEN_TESTS_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct change;

struct image {
	char *path; /* NULL: the place is free */
	uint8_t *data;
	int64_t bytes;
	int64_t room;
	bool named;   /* its name has reached the disk */
	bool deleted; /* but that may not have */
	int open;
	struct change *first;
	struct change **end;
	int changes_n;
};

/* Of the file at PATH, all of it durable; of an empty one when it is not there. */
void image_load(struct image *image, const char *path);
void image_free(struct image *image);

/* Note a write, or a truncation to OFFSET bytes, that is not durable. DATA is copied. */
void image_change(
    struct image *image, int64_t offset, bool truncates, const void *data, int64_t bytes);
/* A sync: all changes are durable. */
void image_settle(struct image *image);
/* Write to PATH what may be found after a power cut now, or nothing where the file may be gone. */
void image_survive(const struct image *image, const char *path, uint64_t *seed);

/* Numbers that are the same for the same seed. */
uint64_t image_random(uint64_t *seed);

#endif

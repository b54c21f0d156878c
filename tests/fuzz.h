/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzers share. The fuzzer calls LLVMFuzzerInitialize() once and then
 * LLVMFuzzerTestOneInput() for each input (llvm.org/docs/LibFuzzer.html); what does not hold ends
 * the process, which is how it learns of a finding.
 */
#ifndef TITEN_TESTS_FUZZ_H
#define TITEN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>

#include "core/json_read.h"
#include "core/methods.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void
fuzz_hold(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

/* The bytes of one input, taken from the front. What is not there any more is zero. */
struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t
fuzz_byte(struct fuzz_bytes *b)
{
	if (b->left == 0)
		return 0;
	b->left--;
	return *b->at++;
}

/* The next line, without its end; free() it. NULL: nothing is left. */
static inline char *
fuzz_line(struct fuzz_bytes *b)
{
	const uint8_t *end = b->left == 0 ? NULL : memchr(b->at, '\n', b->left);
	size_t bytes = end == NULL ? b->left : (size_t)(end - b->at);
	char *line;

	if (b->left == 0)
		return NULL;
	line = strndup((const char *)b->at, bytes);
	bytes += end != NULL;
	b->at += bytes;
	b->left -= bytes;
	return line;
}

static inline void
fuzz_process_init(void)
{
	const char *error;

	fuzz_hold(sodium_init() >= 0, "random bytes");
	json_init();
	fuzz_hold(methods_init(&error), "the table of methods");
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * JSON text: what is read is never nested too deeply and never takes more memory than its budget,
 * and its compact text is the compact text of itself. An input of 0xff and two bytes more stands
 * for a list of very many of these, so that the budget is reached too.
 */
#include "tests/fuzz.h"

#include <malloc.h>

#define TEXT_BYTES_MAX ((size_t)256 << 10) /* of "{}," that is well above the budget */
#define MANY_BYTES 2                       /* repeating is slow, so few inputs may ask for it */
#define SLACK_BYTES ((size_t)8 << 20)      /* the piece fed last, and a table that doubles in it */

static struct arena arena;
static json_malloc_t product_take;
static json_free_t product_give;
static size_t held, held_most;

static void *
counting_take(size_t bytes)
{
	void *block = product_take(bytes);

	held += malloc_usable_size(block);
	held_most = held > held_most ? held : held_most;
	return block;
}

static void
counting_give(void *block)
{
	held -= block == NULL ? 0 : malloc_usable_size(block);
	product_give(block);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_process_init();
	json_get_alloc_funcs(&product_take, &product_give);
	json_set_alloc_funcs(counting_take, counting_give);
	arena_init(&arena);
	return 0;
}

static int
depth_of(const json_t *value)
{
	int depth, deepest = 0;
	const char *name;
	json_t *member;

	for (size_t i = 0; i < json_array_size(value); i++) {
		depth = depth_of(json_array_get(value, i));
		deepest = depth > deepest ? depth : deepest;
	}
	json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
		depth = depth_of(member);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest + (json_is_array(value) || json_is_object(value));
}

/* The compact text of TEXT in the arena; NULL when one of the two steps refuses. */
static char *
compact(const char *text, size_t bytes)
{
	const char *error = NULL;
	json_t *value = json_read(&arena, text, bytes, JSON_DEPTH_MAX, &error);
	char *result;

	fuzz_hold((value == NULL) == (error != NULL), "a refusal says why");
	if (value == NULL)
		return NULL;
	fuzz_hold(depth_of(value) <= JSON_DEPTH_MAX, "nested within the limit");
	result = json_compact(&arena, value);
	fuzz_hold(result != NULL || arena.refused, "only the arena refuses");
	json_done(value);
	return result;
}

static void
one_text(const char *text, size_t bytes)
{
	char *once, *twice;

	arena_reset(&arena);
	held_most = 0;
	once = compact(text, bytes);
	fuzz_hold(held == 0, "everything is given back");
	fuzz_hold(held_most <= JSON_MEMORY_BYTES + SLACK_BYTES, "within the budget");
	if (once == NULL || arena.bytes > ARENA_BYTES_MAX / 2)
		return;
	twice = compact(once, strlen(once));
	fuzz_hold(twice != NULL && strcmp(once, twice) == 0, "compact text stays as it is");
}

static void
many_of(const uint8_t *data, size_t size)
{
	char *text = malloc(TEXT_BYTES_MAX);
	size_t bytes = 1;

	if (text == NULL)
		abort();
	text[0] = '[';
	while (bytes + size + 1 < TEXT_BYTES_MAX) {
		memcpy(text + bytes, data, size);
		text[bytes + size] = ',';
		bytes += size + 1;
	}
	text[bytes - 1] = ']';
	one_text(text, bytes);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 1 + MANY_BYTES && data[0] == 0xff)
		many_of(data + 1, size - 1);
	else
		one_text((const char *)data, size);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Reading in three steps: count the nesting, feed the parser while it keeps to its memory, say in
 * our words what was wrong. Then the compact text of a value.
 */
#include "core/json_read.h"

#include <assert.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_write.h"
#include "core/log.h"

#define INDEX_MAX (UINT32_MAX - 1) /* the largest array index of ECMA-262 (6.1.7) */
#define ESCAPE_BYTES 6             /* of one character at most: \u001f */
#define NUMBER_BYTES 32            /* no number is longer */
#define TRIM_BYTES ((size_t)1 << 20)
#define FIRST_BYTES 256 /* most values fit */

/* What the value on this thread holds, and how much of that the budget of the process knows. */
static _Thread_local struct {
	bool counting;
	size_t used;
	size_t charged;
} memory;

const char json_no_memory[] = "cannot be read now";

/*
 * Memory for the parser is never refused: the parser does not notice when it could not grow the
 * text of a token, and runs over its end. The budgets work by feeding no more instead.
 */
static void *
memory_take(size_t bytes)
{
	void *block = malloc(bytes);

	if (block == NULL)
		log_die("The system has no memory left.");
	if (memory.counting)
		memory.used += malloc_usable_size(block);
	return block;
}

static void
memory_give(void *block)
{
	if (memory.counting && block != NULL)
		memory.used -= malloc_usable_size(block);
	free(block);
}

/* Tell the budget of the process what has come since the last time. */
static bool
memory_charge(void)
{
	if (memory.used <= memory.charged)
		return true;
	if (!arena_budget_take(memory.used - memory.charged))
		return false;
	memory.charged = memory.used;
	return true;
}

void
json_init(void)
{
	json_set_alloc_funcs(memory_take, memory_give);
	json_object_seed(0);
}

/* The last quote of the string whose first is at AT; the last byte when it has none. */
static const char *
string_end(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\' && at + 1 < end)
			at++;
	return at < end ? at : end - 1;
}

/* How deep the brackets of TEXT nest. What is no JSON only needs a number that is not too small as
 * far as a parser would go. */
static size_t
nesting(const char *text, size_t bytes)
{
	const char *end = text + bytes;
	size_t depth = 0, deepest = 0;

	for (; text < end; text++) {
		if (*text == '"') {
			text = string_end(text, end);
		} else if (*text == '[' || *text == '{') {
			depth++;
			deepest = depth > deepest ? depth : deepest;
		} else if ((*text == ']' || *text == '}') && depth > 0) {
			depth--;
		}
	}
	return deepest;
}

/* What the parser has not seen yet. */
struct feed {
	const char *text;
	size_t bytes;
	const char *refused; /* why no more is fed, or NULL */
};

/* Called for the next kilobyte. Ending the text early is how a parse is stopped. */
static size_t
feed_next(void *buffer, size_t size, void *arg)
{
	struct feed *feed = arg;

	if (memory.used > JSON_MEMORY_BYTES)
		feed->refused = "is too complex";
	else if (!memory_charge())
		feed->refused = json_no_memory;
	if (feed->refused != NULL)
		return 0;
	if (size > feed->bytes)
		size = feed->bytes;
	memcpy(buffer, feed->text, size);
	feed->text += size;
	feed->bytes -= size;
	return size;
}

/* The parser's own words quote the input, which must not come back to the caller or into a log. */
static const char *
reason(const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_invalid_utf8:
		return "invalid UTF-8";
	case json_error_premature_end_of_input:
		return "the text ends too early";
	case json_error_end_of_input_expected:
		return "something follows the value";
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "a string contains NUL";
	case json_error_numeric_overflow:
		return "a number is too large";
	default:
		return "the syntax is wrong";
	}
}

/* The first value in what FEED gives, counted. */
static json_t *
parse(struct feed *feed, json_error_t *error)
{
	json_t *value;

	assert(memory.charged == 0); /* one value at a time */
	memory.used = 0;
	memory.counting = true;
	value =
	    json_load_callback(feed_next, feed, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, error);
	memory.counting = false;
	return value;
}

json_t *
json_read(struct arena *arena, const char *text, size_t bytes, int depth, const char **error_r)
{
	struct feed feed = { text, bytes, NULL };
	json_error_t error;
	json_t *value;

	assert(depth >= 0);
	if (nesting(text, bytes) > (size_t)depth) {
		*error_r = arena_printf(arena, "is nested deeper than %d levels", depth);
		return NULL;
	}
	value = parse(&feed, &error);
	if (value != NULL && feed.refused == NULL)
		return value;
	json_done(value);
	*error_r = feed.refused;
	if (feed.refused == NULL)
		*error_r = arena_printf(arena, "is not JSON: %s at line %d, column %d",
		    reason(&error), error.line, error.column);
	return NULL;
}

void
json_done(json_t *value)
{
	json_decref(value);
	/* Thousands of small blocks went back, which the allocator would keep for this thread. */
	if (memory.charged > TRIM_BYTES)
		malloc_trim(0);
	arena_budget_give(memory.charged);
	memory.charged = 0;
}

/* Room in W for BYTES more. The writer would take it without asking, but here a client decides how
 * much it is. */
static bool
make_room(struct json_writer *w, size_t bytes)
{
	size_t capacity = w->capacity == 0 ? FIRST_BYTES : w->capacity;
	char *text;

	if (w->bytes + bytes < w->capacity)
		return true;
	while (capacity <= w->bytes + bytes)
		capacity *= 2;
	text = arena_try(w->arena, capacity);
	if (text == NULL)
		return false;
	if (w->bytes > 0)
		memcpy(text, w->text, w->bytes);
	w->text = text;
	w->capacity = capacity;
	return true;
}

/* Room for TEXT as a string or a name: quotes, comma and colon included. */
static bool
make_string_room(struct json_writer *w, const char *text)
{
	size_t bytes = 4;

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		bytes += c < 0x20 || c == '"' || c == '\\' ? ESCAPE_BYTES : 1;
	}
	return make_room(w, bytes);
}

/* Whether NAME is the decimal text of an array index. */
static bool
index_read(const char *name, uint32_t *index_r)
{
	uint64_t index = 0;
	size_t length;

	for (length = 0; name[length] >= '0' && name[length] <= '9' && length < 11; length++)
		index = index * 10 + (uint64_t)(name[length] - '0');
	if (length == 0 || name[length] != '\0' || (name[0] == '0' && length > 1))
		return false;
	*index_r = (uint32_t)index;
	return index <= INDEX_MAX;
}

struct indexed {
	uint32_t index;
	const char *name;
	const json_t *value;
};

static int
compare_indexed(const void *a, const void *b)
{
	const struct indexed *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static bool write_value(struct json_writer *w, const json_t *value, int depth);

static bool
write_member(struct json_writer *w, const char *name, const json_t *value, int depth)
{
	if (!make_string_room(w, name))
		return false;
	json_write_name(w, name);
	return write_value(w, value, depth);
}

static size_t
count_indexed(json_t *object)
{
	const char *name;
	json_t *value;
	uint32_t index;
	size_t count = 0;

	json_object_foreach (object, name, value)
		count += index_read(name, &index);
	return count;
}

/* The members that are named like array indices, ascending. */
static bool
write_indexed(struct json_writer *w, json_t *object, int depth)
{
	size_t count = count_indexed(object), n = 0;
	struct indexed *members;
	const char *name;
	json_t *value;
	uint32_t index;

	if (count == 0)
		return true;
	members = arena_try(w->arena, count * sizeof(*members));
	if (members == NULL)
		return false;
	json_object_foreach (object, name, value)
		if (index_read(name, &index))
			members[n++] = (struct indexed){ index, name, value };
	qsort(members, count, sizeof(*members), compare_indexed);
	for (n = 0; n < count; n++)
		if (!write_member(w, members[n].name, members[n].value, depth))
			return false;
	return true;
}

static bool
write_object(struct json_writer *w, json_t *object, int depth)
{
	const char *name;
	json_t *value;
	uint32_t index;

	json_write_open(w, '{');
	if (!write_indexed(w, object, depth))
		return false;
	json_object_foreach (object, name, value)
		if (!index_read(name, &index) && !write_member(w, name, value, depth))
			return false;
	if (!make_room(w, 1))
		return false;
	json_write_close(w, '}');
	return true;
}

static bool
write_array(struct json_writer *w, const json_t *array, int depth)
{
	json_write_open(w, '[');
	for (size_t i = 0; i < json_array_size(array); i++)
		if (!write_value(w, json_array_get(array, i), depth))
			return false;
	if (!make_room(w, 1))
		return false;
	json_write_close(w, ']');
	return true;
}

static bool
write_string(struct json_writer *w, const char *text)
{
	if (!make_string_room(w, text))
		return false;
	json_write_text(w, text);
	return true;
}

/* DEPTH levels are open around VALUE. */
static bool
write_value(struct json_writer *w, const json_t *value, int depth)
{
	assert(depth <= JSON_DEPTH_MAX);
	if (!make_room(w, NUMBER_BYTES))
		return false;
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return write_object(w, (json_t *)value, depth + 1);
	case JSON_ARRAY:
		return write_array(w, value, depth + 1);
	case JSON_STRING:
		return write_string(w, json_string_value(value));
	case JSON_REAL:
	case JSON_INTEGER:
		json_write_real(w, json_number_value(value));
		return true;
	case JSON_TRUE:
	case JSON_FALSE:
		json_write_bool(w, json_is_true(value));
		return true;
	case JSON_NULL:
		json_write_null(w);
		return true;
	}
	return false;
}

char *
json_compact(struct arena *arena, const json_t *value)
{
	struct json_writer w = { .arena = arena };

	return write_value(&w, value, 0) ? w.text : NULL;
}

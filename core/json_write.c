/* SPDX-License-Identifier: MIT */
/*
 * The writer, top to bottom: room, values, strings, numbers, members. Numbers are printed as
 * ECMA-262 does (6.1.6.1.20, Number::toString).
 */
#include "core/json_write.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define FIRST_BYTES 256    /* most answers fit */
#define NUMBER_BYTES 32    /* the longest number has 25 characters: -1.2345678901234567e-308 */
#define INTEGER_MAX 0x1p53 /* below, every integer is a double, and its digits are the shortest */
#define DIGITS_MAX 17      /* this many tell every double from every other */

/* Room for BYTES more and NUL. */
static void
reserve(struct json_writer *w, size_t bytes)
{
	size_t capacity = w->capacity == 0 ? FIRST_BYTES : w->capacity;
	char *text;

	if (w->bytes + bytes < w->capacity)
		return;
	while (capacity <= w->bytes + bytes)
		capacity *= 2;
	text = arena_alloc(w->arena, capacity);
	if (w->bytes > 0)
		memcpy(text, w->text, w->bytes);
	w->text = text;
	w->capacity = capacity;
}

static void
put(struct json_writer *w, const char *bytes, size_t count)
{
	reserve(w, count);
	memcpy(w->text + w->bytes, bytes, count);
	w->bytes += count;
	w->text[w->bytes] = '\0';
}

/* A value or a name begins here. */
static void
separate(struct json_writer *w)
{
	if (w->comma)
		put(w, ",", 1);
	w->comma = true;
}

void
json_write_begin(struct json_writer *w, struct arena *arena)
{
	*w = (struct json_writer){ .arena = arena };
	reserve(w, 0);
}

void
json_write_open(struct json_writer *w, char bracket)
{
	assert(bracket == '{' || bracket == '[');
	separate(w);
	put(w, &bracket, 1);
	w->comma = false;
}

void
json_write_close(struct json_writer *w, char bracket)
{
	assert(bracket == '}' || bracket == ']');
	put(w, &bracket, 1);
	w->comma = true;
}

/* The letter behind the backslash for characters that have one, else 0. */
static char
short_escape(unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		return (char)c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

static void
put_escaped(struct json_writer *w, unsigned char c)
{
	char text[sizeof("\\u0000")];
	char letter = short_escape(c);

	if (letter != 0)
		snprintf(text, sizeof(text), "\\%c", letter);
	else
		snprintf(text, sizeof(text), "\\u%04x", c);
	put(w, text, strlen(text));
}

static void
put_string(struct json_writer *w, const char *text)
{
	const char *plain = text; /* what needs no escape, not yet written */

	put(w, "\"", 1);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put(w, plain, (size_t)(text - plain));
		put_escaped(w, c);
		plain = text + 1;
	}
	put(w, plain, (size_t)(text - plain));
	put(w, "\"", 1);
}

void
json_write_name(struct json_writer *w, const char *name)
{
	separate(w);
	put_string(w, name);
	put(w, ":", 1);
	w->comma = false;
}

void
json_write_text(struct json_writer *w, const char *text)
{
	if (text == NULL) {
		json_write_null(w);
		return;
	}
	separate(w);
	put_string(w, text);
}

void
json_write_raw(struct json_writer *w, const char *json, size_t bytes)
{
	separate(w);
	put(w, json, bytes);
}

void
json_write_bool(struct json_writer *w, bool value)
{
	const char *text = value ? "true" : "false";

	json_write_raw(w, text, strlen(text));
}

void
json_write_null(struct json_writer *w)
{
	json_write_raw(w, "null", 4);
}

void
json_write_int(struct json_writer *w, int64_t value)
{
	char text[NUMBER_BYTES];
	int length = snprintf(text, sizeof(text), "%" PRId64, value);

	json_write_raw(w, text, (size_t)length);
}

/* A positive number: 0.DIGITS times ten to the power of POINT. */
struct decimal {
	char digits[DIGITS_MAX + 1];
	int count;
	int point;
};

/* TEXT is "d.ddde-xx", from printf. */
static struct decimal
decimal_read(const char *text)
{
	struct decimal d = { .count = 0 };
	const char *exponent = strchr(text, 'e');

	for (; text < exponent; text++)
		if (*text >= '0' && *text <= '9')
			d.digits[d.count++] = *text;
	d.point = atoi(exponent + 1) + 1;
	return d;
}

static void
decimal_strip(struct decimal *d)
{
	while (d->count > 1 && d->digits[d->count - 1] == '0')
		d->digits[--d->count] = '\0';
}

static bool
decimal_is(const struct decimal *d, double value)
{
	char text[NUMBER_BYTES];

	snprintf(text, sizeof(text), "%se%d", d->digits, d->point - d->count);
	return strtod(text, NULL) == value;
}

/* One more in the last digit. Where that would carry, the result has fewer digits and was tried
 * before. */
static void
decimal_raise(struct decimal *d)
{
	if (d->digits[d->count - 1] < '9')
		d->digits[d->count - 1]++;
}

/*
 * The fewest digits that read back as VALUE, and of those the nearest. Every decimal of up to 15
 * digits survives the way through a double and back, so counting begins there; subnormal numbers
 * have less precision. Below a power of two the doubles lie twice as dense as above: there the
 * nearest decimal can be another double while the next one above it reads back.
 */
static struct decimal
shortest(double value)
{
	char text[NUMBER_BYTES];
	struct decimal d;
	int exponent;
	bool power = frexp(value, &exponent) == 0.5;

	for (int count = value < DBL_MIN ? 1 : DBL_DIG; count <= DIGITS_MAX; count++) {
		snprintf(text, sizeof(text), "%.*e", count - 1, value);
		d = decimal_read(text);
		if (decimal_is(&d, value))
			break;
		if (power)
			decimal_raise(&d);
		if (power && decimal_is(&d, value))
			break;
	}
	decimal_strip(&d);
	return d;
}

/* The layout of ECMA-262; its n is d->point, its k is d->count. */
static void
put_decimal(struct json_writer *w, const struct decimal *d)
{
	static const char zeros[] = "000000000000000000000";
	char text[NUMBER_BYTES];

	if (d->point > 21 || d->point <= -6) {
		snprintf(text, sizeof(text), "%.1s%s%se%+d", d->digits, d->count > 1 ? "." : "",
		    d->digits + 1, d->point - 1);
		put(w, text, strlen(text));
	} else if (d->point <= 0) {
		put(w, "0.", 2);
		put(w, zeros, (size_t)-d->point);
		put(w, d->digits, (size_t)d->count);
	} else if (d->count <= d->point) {
		put(w, d->digits, (size_t)d->count);
		put(w, zeros, (size_t)(d->point - d->count));
	} else {
		put(w, d->digits, (size_t)d->point);
		put(w, ".", 1);
		put(w, d->digits + d->point, (size_t)(d->count - d->point));
	}
}

void
json_write_real(struct json_writer *w, double value)
{
	struct decimal d;

	assert(isfinite(value));
	if (fabs(value) < INTEGER_MAX && value == trunc(value)) {
		json_write_int(w, (int64_t)value);
		return;
	}
	separate(w);
	if (value < 0)
		put(w, "-", 1);
	d = shortest(fabs(value));
	put_decimal(w, &d);
}

void
json_write_time(struct json_writer *w, int64_t time_ms)
{
	char text[TIMESTAMP_BYTES];

	timestamp_write(text, time_ms);
	json_write_text(w, text);
}

void
json_write_text_member(struct json_writer *w, const char *name, const char *text)
{
	json_write_name(w, name);
	json_write_text(w, text);
}

void
json_write_int_member(struct json_writer *w, const char *name, int64_t value)
{
	json_write_name(w, name);
	json_write_int(w, value);
}

void
json_write_time_member(struct json_writer *w, const char *name, int64_t time_ms)
{
	json_write_name(w, name);
	json_write_time(w, time_ms);
}

/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON: text that grows in an arena. Commas are the writer's business. Values must be
 *well-formed UTF-8.
 *
 *	struct json_writer w;
 *	json_write_begin(&w, arena);
 *	json_write_open(&w, '{');
 *	json_write_name(&w, "expires_at");
 *	json_write_text(&w, "2026-07-30T10:58:13.829Z");
 *	json_write_close(&w, '}');
 *	body = w.text;  (w.bytes long, NUL behind it)
 */
#ifndef TITEN_CORE_JSON_WRITE_H
#define TITEN_CORE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

struct json_writer {
	struct arena *arena;
	char *text;
	size_t bytes;
	size_t capacity;
	bool comma; /* the next value or name needs one before it */
};

void json_write_begin(struct json_writer *w, struct arena *arena);
void json_write_open(struct json_writer *w, char bracket);
void json_write_close(struct json_writer *w, char bracket);
void json_write_name(struct json_writer *w, const char *name);
/* NULL writes null. */
void json_write_text(struct json_writer *w, const char *text);
void json_write_int(struct json_writer *w, int64_t value);
/* The shortest text that reads back as VALUE, as JavaScript prints it. VALUE is finite. */
void json_write_real(struct json_writer *w, double value);
void json_write_bool(struct json_writer *w, bool value);
void json_write_null(struct json_writer *w);
/* TIME_MS as an RFC 3339 string. */
void json_write_time(struct json_writer *w, int64_t time_ms);
/* JSON is a complete value and goes in as it is. */
void json_write_raw(struct json_writer *w, const char *json, size_t bytes);

/* A member and its value in one line. */
void json_write_text_member(struct json_writer *w, const char *name, const char *text);
void json_write_int_member(struct json_writer *w, const char *name, int64_t value);
void json_write_time_member(struct json_writer *w, const char *name, int64_t time_ms);

#endif

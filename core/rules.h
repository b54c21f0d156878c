/* SPDX-License-Identifier: MIT */
/*
 * What a request must look like, as data: a list of rules for each call, checked in order, the
 * first that fails answers VALIDATION_ERROR with the field and the rule in its text. Lengths count
 * Unicode code points.
 */
#ifndef TITEN_CORE_RULES_H
#define TITEN_CORE_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "core/status.h"

struct call;

enum rule_kind {
	RULE_END,
	RULE_TEXT, /* a string that is not blank, well-formed, without control and bidirectional
		      characters */
	RULE_ID, /* a string that names a record; a malformed one names none, which the handler says
		  */
	RULE_INT,   /* min to max */
	RULE_ENUM,  /* a value that the enum knows */
	RULE_JSON,  /* any JSON but null; replaced by its compact form, at most max bytes */
	RULE_TEXTS, /* a list of min to max strings of the RULE_TEXT kind, each at most text_max
		       long */
	RULE_BYTES, /* at most max bytes */
};

struct rule {
	enum rule_kind kind;
	bool optional;
	const char *field;
	int64_t min;
	int64_t max;
	int64_t text_max;
};

/* A row of rules reads as one line. */
/* clang-format off */
#define TEXT(field, max) { RULE_TEXT, false, field, 1, max, 0 }
#define TEXT_OPTIONAL(field, max) { RULE_TEXT, true, field, 1, max, 0 }
#define ID(field) { RULE_ID, false, field, 0, 0, 0 }
#define ID_OPTIONAL(field) { RULE_ID, true, field, 0, 0, 0 }
#define INT(field, min, max) { RULE_INT, false, field, min, max, 0 }
#define INT_OPTIONAL(field, min, max) { RULE_INT, true, field, min, max, 0 }
#define ENUM(field) { RULE_ENUM, false, field, 0, 0, 0 }
#define ENUM_OPTIONAL(field) { RULE_ENUM, true, field, 0, 0, 0 }
#define JSON(field, bytes_max) { RULE_JSON, false, field, 0, bytes_max, 0 }
#define TEXTS(field, min, max, text_max) { RULE_TEXTS, (min) == 0, field, min, max, text_max }
#define BYTES_OPTIONAL(field, bytes_max) { RULE_BYTES, true, field, 0, bytes_max, 0 }
#define RULES_END { RULE_END, true, NULL, 0, 0, 0 }
/* clang-format on */

/* Check c->request against the rules of its method. STATUS_OK, or VALIDATION_ERROR with text;
 * RULE_JSON fields are then in their compact form. Any thread. */
enum status rules_check(struct call *c);

/* Whether every rule names a field of fitting type, and every field of REQUEST has one. *ERROR_R is
 * static text. */
bool rules_fit(
    const struct rule *rules, const ProtobufCMessageDescriptor *request, const char **error_r);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Requests that break a rule: the rows of proto/methods.def and the rules of their handlers say
 * which fields there are, tables of the tests say what may be wrong with a field of each kind.
 * Whatever it is: the answer says so and names the field, nothing is written, and the connection
 * serves the next call.
 *
 *	attack_begin(a, rule);
 *	attack_table(a, flaws, LENGTH(flaws), attempt);
 *	attack_end(a, REST);
 */
#ifndef TITEN_TESTS_ATTACK_H
#define TITEN_TESTS_ATTACK_H

#include "core/rules.h"
#include "tests/support/scenes.h"

enum spelling { NAMED, UNNAMED }; /* whether the answer can say which field it is */

/* One thing that may be wrong with a field. BYTES NULL: it is missing, though required. */
struct flaw {
	enum rule_kind kind;
	const char *bytes;
	size_t length;
	enum spelling spelling;
};

#define RAW(text) text, sizeof(text) - 1
#define MISSING NULL, 0

/* A row under attack. */
struct attack {
	struct doors *doors;
	struct house house;
	struct caller local; /* on the owner's socket */
	const struct method *method;
	const struct scene *scene;
	const struct rule *rule; /* NULL: it is not about a field */
	char id[SCENE_ID_BYTES];
	json_t *request; /* what would be good */
	int64_t version; /* of the database */
	char *dump;
	int tried;
};

typedef void attack_row(struct attack *a);
typedef void attempt(struct attack *a, const struct flaw *flaw);

/* Call ATTACK for every row that is called at DOOR. */
void attack_rows(struct doors *d, enum door door, attack_row *attack);

/* Who calls. */
struct caller *attack_caller(struct attack *a);
/* A new record, and the good request about it; json_decref() that. */
void attack_aim(struct attack *a);

/* Aim, and remember what the database looks like. */
void attack_begin(struct attack *a, const struct rule *rule);
/* ANSWER refuses with CODE. Consumes it. */
void attack_refused(
    struct attack *a, struct answer answer, const char *code, const struct flaw *flaw);
/* Nothing has come of it, and the same connection serves the good request. */
void attack_end(struct attack *a, enum door door);

/* TRY the flaws that are of the rule's kind. */
void attack_table(struct attack *a, const struct flaw *flaws, size_t n, attempt *try);
/* The same with one TEXT, which is freed. */
void attack_text(struct attack *a, char *text, attempt *try);
/* The same with the numbers just below and above the rule's. */
void attack_range(struct attack *a, attempt *try);

/* Texts to free(). */
__attribute__((format(printf, 1, 2))) char *attack_print(const char *format, ...);
/* BEFORE, then N times UNIT with COMMA between, then AFTER. */
char *attack_repeat(
    const char *before, const char *unit, const char *comma, int64_t n, const char *after);
/* LEVELS of lists, each in the one before. */
char *attack_nest(const char *before, int levels, const char *after);

#endif

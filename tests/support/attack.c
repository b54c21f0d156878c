/* SPDX-License-Identifier: MIT */
/* Texts, then an attack from its beginning to its end, then flaws that every door knows. */
#include "tests/support/attack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX (INT64_C(1) << 53) /* JSON has no integers beyond */

/* --- texts --- */

char *
attack_print(const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}

char *
attack_repeat(const char *before, const char *unit, const char *comma, int64_t n, const char *after)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fputs(before, out);
	for (int64_t i = 0; i < n; i++)
		fprintf(out, "%s%s", i == 0 ? "" : comma, unit);
	fputs(after, out);
	fclose(out);
	return text;
}

char *
attack_nest(const char *before, int levels, const char *after)
{
	char *open = attack_repeat(before, "[", "", levels, "");
	char *whole = attack_repeat(open, "]", "", levels, after);

	free(open);
	return whole;
}

/* --- one attack --- */

static void
attack_open(struct attack *a, struct doors *d)
{
	*a = (struct attack){ .doors = d };
	scenes_found(d, &a->house);
	caller_meet(d, &a->local, "");
	a->local.url = d->local;
}

static void
attack_close(struct attack *a)
{
	scenes_leave(&a->house);
	caller_leave(&a->local);
}

struct caller *
attack_caller(struct attack *a)
{
	return a->method->right == RIGHT_LOCAL ? &a->local : &a->house.coder;
}

/* Changes whenever anybody else writes: cheaper than a dump for every flaw. */
static int64_t
database_version(const struct doors *d)
{
	return doors_count(d, "PRAGMA data_version", NULL);
}

void
attack_aim(struct attack *a)
{
	char request[SCENE_REQUEST_BYTES];

	a->id[0] = '\0';
	if (a->scene->make != NULL)
		a->scene->make(&a->house, false, a->id);
	scenes_request(a->scene, a->id, request);
	a->request = json_loads(request, 0, NULL);
}

void
attack_begin(struct attack *a, const struct rule *rule)
{
	attack_aim(a);
	a->rule = rule;
	a->tried = 0;
	a->version = database_version(a->doors);
	a->dump = doors_dump(a->doors);
}

void
attack_end(struct attack *a, enum door door)
{
	char *text = json_dumps(a->request, JSON_COMPACT), *dump = doors_dump(a->doors);
	struct answer good = caller_ask(attack_caller(a), door, a->scene->method, text, NULL);

	assert_string_equal(dump, a->dump);
	if (strcmp(good.code, "OK") != 0 &&
	    !(a->method->right == RIGHT_LOCAL && strcmp(good.code, "CONFLICT") == 0))
		fail_msg("%s afterwards: %s %s", a->method->name, good.code, good.message);
	if (door == REST && a->tried > 0 && !good.kept)
		fail_msg("%s: the connection was cut", a->method->name);
	caller_forget(&good);
	free(dump);
	free(a->dump);
	free(text);
	json_decref(a->request);
}

void
attack_refused(struct attack *a, struct answer answer, const char *code, const struct flaw *flaw)
{
	const char *field = a->rule == NULL ? "" : a->rule->field;

	if (strcmp(answer.code, code) != 0 ||
	    (flaw->spelling == NAMED && strncmp(answer.message, field, strlen(field)) != 0))
		fail_msg("%s %s = %.60s: %s %s", a->method->name, field,
		    flaw->bytes == NULL ? "(missing)" : flaw->bytes, answer.code, answer.message);
	if (database_version(a->doors) != a->version)
		fail_msg("%s %s = %.60s wrote something", a->method->name, field, flaw->bytes);
	caller_forget(&answer);
	a->tried++;
}

void
attack_rows(struct doors *d, enum door door, attack_row *attack)
{
	struct attack a;

	attack_open(&a, d);
	for (size_t i = 0; i < methods_count(); i++) {
		a.method = method_at(i);
		a.scene = scenes_find(a.method);
		if (a.scene == NULL)
			fail_msg("%s has no scene", a.method->name);
		if (door == NNG || a.method->verb != VERB_NONE)
			attack(&a);
	}
	attack_close(&a);
}

/* --- flaws --- */

void
attack_table(struct attack *a, const struct flaw *flaws, size_t n, attempt *try)
{
	for (size_t i = 0; i < n; i++)
		if (flaws[i].kind == a->rule->kind &&
		    (flaws[i].bytes != NULL || !a->rule->optional))
			try(a, &flaws[i]);
}

void
attack_text(struct attack *a, char *text, attempt *try)
{
	try(a, &(struct flaw){ a->rule->kind, text, strlen(text), NAMED });
	free(text);
}

static void
attempt_number(struct attack *a, int64_t number, attempt *try)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)number);
	try(a, &(struct flaw){ a->rule->kind, text, strlen(text), NAMED });
}

void
attack_range(struct attack *a, attempt *try)
{
	if (a->rule->min > INT64_MIN)
		attempt_number(a, a->rule->min - 1, try);
	if (a->rule->max < EXACT_MAX)
		attempt_number(a, a->rule->max + 1, try);
}

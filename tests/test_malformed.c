/* SPDX-License-Identifier: MIT */
/*
 * Malformed requests over REST: fields in a body, in a query, in a path, then whole bodies. What
 * is expected of the answers stands in attack.h.
 */
#include "tests/support/attack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_read.h"
#include "core/rpc.h"

/* --- in a body --- */

static const struct flaw body_flaws[] = {
	{ RULE_TEXT, MISSING, NAMED },
	{ RULE_TEXT, RAW("7"), NAMED },
	{ RULE_TEXT, RAW("true"), NAMED },
	{ RULE_TEXT, RAW("[]"), NAMED },
	{ RULE_TEXT, RAW("{}"), NAMED },
	{ RULE_TEXT, RAW("\"\""), NAMED },
	{ RULE_TEXT, RAW("\" \\t\\u00a0\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u0001\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u001b[0m\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u007f\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u0085\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u202e\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u2066\""), NAMED },
	{ RULE_TEXT, RAW("\"a\\u0000b\""), UNNAMED },
	{ RULE_TEXT, RAW("\"a\\ud800\""), UNNAMED },
	{ RULE_TEXT, RAW("\"a\xff\""), UNNAMED },
	{ RULE_TEXT, RAW("\"a\xed\xa0\x80\""), UNNAMED },
	{ RULE_TEXT, RAW("\"a\0b\""), UNNAMED },
	{ RULE_TEXT, RAW("\"a\nb\""), UNNAMED },
	{ RULE_INT, MISSING, NAMED },
	{ RULE_INT, RAW("\"60\""), NAMED },
	{ RULE_INT, RAW("true"), NAMED },
	{ RULE_INT, RAW("[60]"), NAMED },
	{ RULE_INT, RAW("{}"), NAMED },
	{ RULE_INT, RAW("60.5"), NAMED },
	{ RULE_INT, RAW("-1"), NAMED },
	{ RULE_INT, RAW("1e300"), NAMED },
	{ RULE_INT, RAW("9007199254740994"), NAMED },
	{ RULE_INT, RAW("1e400"), UNNAMED },
	{ RULE_INT, RAW("060"), UNNAMED },
	{ RULE_INT, RAW("NaN"), UNNAMED },
	{ RULE_ENUM, MISSING, NAMED },
	{ RULE_ENUM, RAW("1"), NAMED },
	{ RULE_ENUM, RAW("true"), NAMED },
	{ RULE_ENUM, RAW("[]"), NAMED },
	{ RULE_ENUM, RAW("{}"), NAMED },
	{ RULE_ENUM, RAW("\"\""), NAMED },
	{ RULE_ENUM, RAW("\"nonsense\""), NAMED },
	{ RULE_ENUM, RAW("\"a\\u0001\""), NAMED },
	{ RULE_ENUM, RAW("\"a\xff\""), UNNAMED },
	{ RULE_JSON, MISSING, NAMED },
	{ RULE_JSON, RAW("1e400"), UNNAMED },
	{ RULE_JSON, RAW("\"a\xff\""), UNNAMED },
	{ RULE_JSON, RAW("\"a\\u0000\""), UNNAMED },
	{ RULE_JSON, RAW("[1,]"), UNNAMED },
	{ RULE_TEXTS, RAW("\"x\""), NAMED },
	{ RULE_TEXTS, RAW("1"), NAMED },
	{ RULE_TEXTS, RAW("true"), NAMED },
	{ RULE_TEXTS, RAW("{}"), NAMED },
	{ RULE_TEXTS, RAW("[1]"), NAMED },
	{ RULE_TEXTS, RAW("[null]"), NAMED },
	{ RULE_TEXTS, RAW("[true]"), NAMED },
	{ RULE_TEXTS, RAW("[[\"x\"]]"), NAMED },
	{ RULE_TEXTS, RAW("[{}]"), NAMED },
	{ RULE_TEXTS, RAW("[\"\"]"), NAMED },
	{ RULE_TEXTS, RAW("[\"a\\u0001\"]"), NAMED },
	{ RULE_TEXTS, RAW("[\"a\\u202e\"]"), NAMED },
	{ RULE_TEXTS, RAW("[\"a\\u0000\"]"), UNNAMED },
	{ RULE_TEXTS, RAW("[\"a\xff\"]"), UNNAMED },
};

/* Fields that must be there, once more. */
static const struct flaw null_flaws[] = {
	{ RULE_TEXT, RAW("null"), NAMED },
	{ RULE_INT, RAW("null"), NAMED },
	{ RULE_ENUM, RAW("null"), NAMED },
	{ RULE_JSON, RAW("null"), NAMED },
	{ RULE_TEXTS, RAW("null"), NAMED },
	{ RULE_TEXTS, RAW("[]"), NAMED },
	{ RULE_TEXTS, MISSING, NAMED },
};

static struct answer
post(struct attack *a, const char *body, size_t length)
{
	json_t *fields = json_deep_copy(a->request);
	char *path = caller_path(a->method, fields);
	struct answer answer = caller_http(attack_caller(a), "POST", path, NULL, body, length);

	free(path);
	json_decref(fields);
	return answer;
}

/* The good body, with the flaw for the field. */
static void
attempt_body(struct attack *a, const struct flaw *flaw)
{
	json_t *fields = json_deep_copy(a->request);
	char *body, *rest;
	size_t length;
	FILE *out = open_memstream(&body, &length);

	json_object_del(fields, a->rule->field);
	rest = json_dumps(fields, JSON_COMPACT);
	if (flaw->bytes == NULL) {
		fputs(rest, out);
	} else {
		fprintf(out, "{\"%s\":", a->rule->field);
		fwrite(flaw->bytes, 1, flaw->length, out);
		fprintf(out, "%s%s", strcmp(rest, "{}") == 0 ? "" : ",", rest + 1);
	}
	fclose(out);
	attack_refused(a, post(a, body, length), "VALIDATION_ERROR", flaw);
	free(rest);
	free(body);
	json_decref(fields);
}

static void
attack_body(struct attack *a)
{
	const struct rule *rule = a->rule;

	attack_table(a, body_flaws, LENGTH(body_flaws), attempt_body);
	if (!rule->optional)
		attack_table(a, null_flaws, LENGTH(null_flaws), attempt_body);
	if (rule->kind == RULE_INT)
		attack_range(a, attempt_body);
	if (rule->kind == RULE_TEXT)
		attack_text(
		    a, attack_repeat("\"", "\u00e4", "", rule->max + 1, "\""), attempt_body);
	if (rule->kind == RULE_JSON)
		attack_text(a, attack_repeat("\"", "x", "", rule->max - 1, "\""), attempt_body);
	if (rule->kind != RULE_TEXTS)
		return;
	attack_text(a, attack_repeat("[", "\"x\"", ",", rule->max + 1, "]"), attempt_body);
	attack_text(a, attack_repeat("[\"", "\u00e4", "", rule->text_max + 1, "\"]"), attempt_body);
}

/* --- in a query --- */

static const struct flaw query_flaws[] = {
	{ RULE_TEXT, MISSING, NAMED },
	{ RULE_TEXT, RAW(""), NAMED },
	{ RULE_TEXT, RAW("+%20"), NAMED },
	{ RULE_TEXT, RAW("a%01"), NAMED },
	{ RULE_TEXT, RAW("a%C2%85"), NAMED },
	{ RULE_TEXT, RAW("a%E2%80%AE"), NAMED },
	{ RULE_TEXT, RAW("a%FF"), NAMED },
	{ RULE_TEXT, RAW("a%00"), NAMED },
	{ RULE_TEXT, RAW("a%zz"), NAMED },
	{ RULE_ENUM, MISSING, NAMED },
	{ RULE_ENUM, RAW(""), NAMED },
	{ RULE_ENUM, RAW("nonsense"), NAMED },
	{ RULE_ENUM, RAW("1"), NAMED },
	{ RULE_ENUM, RAW("a%FF"), NAMED },
	{ RULE_INT, RAW(""), NAMED },
	{ RULE_INT, RAW("x"), NAMED },
	{ RULE_INT, RAW("-1"), NAMED },
	{ RULE_INT, RAW("%2B1"), NAMED },
	{ RULE_INT, RAW("1.5"), NAMED },
	{ RULE_INT, RAW("0x10"), NAMED },
	{ RULE_INT, RAW("1e2"), NAMED },
	{ RULE_INT, RAW("9007199254740993"), NAMED },
	{ RULE_INT, RAW("99999999999999999999"), NAMED },
	{ RULE_ID, RAW(""), NAMED },
	{ RULE_ID, RAW("x"), NAMED },
	{ RULE_ID, RAW("a%01"), NAMED },
	{ RULE_ID, RAW("a%FF"), NAMED },
	{ RULE_ID, RAW("a%00"), NAMED },
	{ RULE_TEXTS, RAW(""), NAMED },
	{ RULE_TEXTS, RAW("a%01"), NAMED },
	{ RULE_TEXTS, RAW("a%E2%80%AE"), NAMED },
	{ RULE_TEXTS, RAW("a%FF"), NAMED },
	{ RULE_TEXTS, RAW("a%00"), NAMED },
};

static void
attempt_query(struct attack *a, const struct flaw *flaw)
{
	json_t *fields = json_deep_copy(a->request);
	char *good, *path;

	json_object_del(fields, a->rule->field);
	good = caller_path(a->method, fields);
	path = flaw->bytes == NULL
		   ? strdup(good)
		   : attack_print("%s%c%s=%s", good, strchr(good, '?') == NULL ? '?' : '&',
			 a->rule->field, flaw->bytes);
	attack_refused(
	    a, caller_http(attack_caller(a), "GET", path, NULL, NULL, 0), "VALIDATION_ERROR", flaw);
	free(good);
	free(path);
	json_decref(fields);
}

static void
attack_query(struct attack *a)
{
	const struct rule *rule = a->rule;
	char pair[80];

	attack_table(a, query_flaws, LENGTH(query_flaws), attempt_query);
	if (rule->kind == RULE_INT)
		attack_range(a, attempt_query);
	if (rule->kind == RULE_TEXT)
		attack_text(a, attack_repeat("", "%C3%A4", "", rule->max + 1, ""), attempt_query);
	if (rule->kind != RULE_TEXTS)
		return;
	snprintf(pair, sizeof pair, "&%s=", rule->field);
	attack_text(a, attack_repeat("", "x", pair, rule->max + 1, ""), attempt_query);
	attack_text(a, attack_repeat("", "%C3%A4", "", rule->text_max + 1, ""), attempt_query);
}

/* --- in a path --- */

/* A malformed id names nothing. */
static const char *const path_ids[] = { "x", "%20", "a%01", "%E2%80%AE", "lease_", "lease_1",
	"LEASE_01900000000070008000000000000000", "lease_0190000000007000800000000000000g",
	"key_019000000000700080000000000000000", "evt_0190000000007000800000000000000" };
/* And this is no path. */
static const char *const path_faults[] = { "a%FF", "a%00", "a%zz", "%" };

static void
attempt_path(struct attack *a, const char *id, const char *code)
{
	static const char *const verbs[] = { "", "GET", "POST", "DELETE" };
	static const char place[] = "PLACE";
	const struct flaw flaw = { RULE_ID, id, strlen(id), UNNAMED };
	json_t *fields = json_deep_copy(a->request);
	char *good, *path, *body;

	json_object_set_new(fields, a->rule->field, json_string(place));
	good = caller_path(a->method, fields);
	path = attack_print("%.*s%s%s", (int)(strstr(good, place) - good), good, id,
	    strstr(good, place) + strlen(place));
	body = a->method->verb == VERB_POST ? json_dumps(fields, JSON_COMPACT) : NULL;
	attack_refused(a,
	    caller_http(attack_caller(a), verbs[a->method->verb], path, NULL, body,
		body == NULL ? 0 : strlen(body)),
	    code, &flaw);
	free(body);
	free(path);
	free(good);
	json_decref(fields);
}

static void
attack_path(struct attack *a)
{
	for (size_t i = 0; i < LENGTH(path_ids); i++)
		attempt_path(a, path_ids[i], "NOT_FOUND");
	for (size_t i = 0; i < LENGTH(path_faults); i++)
		attempt_path(a, path_faults[i], "VALIDATION_ERROR");
}

/* --- fields --- */

static bool
path_has(const struct method *m, const char *field)
{
	const char *brace = strchr(m->path, '{');
	size_t bytes = strlen(field);

	return brace != NULL && strncmp(brace + 1, field, bytes) == 0 && brace[1 + bytes] == '}';
}

static void
attack_over_rest(struct attack *a, const struct rule *rule)
{
	attack_begin(a, rule);
	if (path_has(a->method, rule->field))
		attack_path(a);
	else if (a->method->verb == VERB_GET)
		attack_query(a);
	else
		attack_body(a);
	attack_end(a, REST);
}

static void
attack_fields_over_rest(struct attack *a)
{
	for (const struct rule *r = a->method->rules; r->kind != RULE_END; r++) {
		attack_over_rest(a, r);
		assert_true(a->tried > 0);
	}
}

static void
a_malformed_field_is_refused_over_rest(void **state)
{
	attack_rows(*state, REST, attack_fields_over_rest);
}

/* --- whole bodies --- */

static const struct flaw bodies[] = {
	{ RULE_END, RAW(""), UNNAMED },
	{ RULE_END, RAW(" \n"), UNNAMED },
	{ RULE_END, RAW("[]"), UNNAMED },
	{ RULE_END, RAW("\"x\""), UNNAMED },
	{ RULE_END, RAW("7"), UNNAMED },
	{ RULE_END, RAW("null"), UNNAMED },
	{ RULE_END, RAW("{"), UNNAMED },
	{ RULE_END, RAW("{}}"), UNNAMED },
	{ RULE_END, RAW("{\"a\":[1]]}"), UNNAMED },
	{ RULE_END, RAW("{'a':1}"), UNNAMED },
	{ RULE_END, RAW("{\"a\":1,}"), UNNAMED },
	{ RULE_END, RAW("{\"a\":\"\xff\"}"), UNNAMED },
	{ RULE_END, RAW("{\"\xc3\x28\":1}"), UNNAMED },
	{ RULE_END, RAW("{\"a\":\"\\u0000\"}"), UNNAMED },
	{ RULE_END, RAW("{\"a\":1}\0"), UNNAMED },
	{ RULE_END, RAW("\xff\xfe{\0}\0"), UNNAMED },
};

static void
attempt_whole_body(struct attack *a, char *body, const char *code)
{
	const struct flaw flaw = { RULE_END, body, strlen(body), UNNAMED };

	attack_refused(a, post(a, body, flaw.length), code, &flaw);
	free(body);
}

static void
attack_bodies(struct attack *a)
{
	if (a->method->verb != VERB_POST)
		return;
	attack_begin(a, NULL);
	for (size_t i = 0; i < LENGTH(bodies); i++)
		attack_refused(
		    a, post(a, bodies[i].bytes, bodies[i].length), "VALIDATION_ERROR", &bodies[i]);
	attack_end(a, REST);
}

static void
a_malformed_body_is_refused(void **state)
{
	attack_rows(*state, REST, attack_bodies);
}

static void
expect_good(struct attack *a, char *body)
{
	struct answer answer = post(a, body, strlen(body));

	if (strcmp(answer.code, "OK") != 0)
		fail_msg("%s: %s %s", a->method->name, answer.code, answer.message);
	caller_forget(&answer);
	json_decref(a->request);
	free(body);
}

/* The good body, with one member more that nests so deep that there are so many LEVELS. */
static char *
deep_body(struct attack *a, int levels)
{
	char *good = json_dumps(a->request, JSON_COMPACT);
	char *rest = attack_print(",%s", good + 1);
	char *body = attack_nest("{\"deep\":", levels - 1, rest);

	free(rest);
	free(good);
	return body;
}

static void
attack_depth(struct attack *a)
{
	if (a->method->verb != VERB_POST)
		return;
	attack_begin(a, NULL);
	attempt_whole_body(a, deep_body(a, JSON_DEPTH_MAX + 1), "VALIDATION_ERROR");
	attack_end(a, REST);
	attack_aim(a);
	expect_good(a, deep_body(a, JSON_DEPTH_MAX));
}

static void
a_body_deeper_than_64_levels_is_refused(void **state)
{
	attack_rows(*state, REST, attack_depth);
}

/* A good body, and so many spaces that it has BYTES. */
static char *
long_body(struct attack *a, size_t bytes)
{
	char *good = json_dumps(a->request, JSON_COMPACT);
	char *body = attack_repeat(good, " ", "", (int64_t)(bytes - strlen(good)), "");

	free(good);
	return body;
}

static void
attack_size(struct attack *a)
{
	if (a->method->verb != VERB_POST)
		return;
	attack_begin(a, NULL);
	attempt_whole_body(a, long_body(a, PAYLOAD_BYTES_MAX + 1), "PAYLOAD_TOO_LARGE");
	a->tried = 0; /* that one may cut the connection */
	attack_end(a, REST);
	attack_aim(a);
	expect_good(a, long_body(a, PAYLOAD_BYTES_MAX));
}

static void
a_body_above_1_MiB_is_refused(void **state)
{
	attack_rows(*state, REST, attack_size);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_malformed_field_is_refused_over_rest),
		cmocka_unit_test(a_malformed_body_is_refused),
		cmocka_unit_test(a_body_deeper_than_64_levels_is_refused),
		cmocka_unit_test(a_body_above_1_MiB_is_refused),
	};

	return cmocka_run_group_tests(tests, doors_open, doors_close);
}

/* SPDX-License-Identifier: MIT */
/*
 * One meaning, two doors: every row of proto/methods.def is called over nng and over REST in equal
 * situations, and must answer the same. Below that, what the doors do together and alone.
 */
#include "tests/support/scenes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITUATION_MS 61000 /* leases of the situation before are over */
#define OTHER_LEASE                                                                                \
	"{\"resource_type\":\"repo\",\"resource_id\":\"other\",\"purpose\":\"x\","                 \
	"\"ttl_seconds\":60}"

/* --- what must differ --- */

static bool
is_id(const char *text)
{
	const char *digits = strrchr(text, '_');

	return digits != NULL && strlen(digits + 1) == 32 &&
	       strspn(digits + 1, "0123456789abcdef") == 32;
}

/* Ids by the order in which they come, so that equal ones stay equal. */
static json_t *
id_mask(const char *id, json_t *seen)
{
	size_t i;
	json_t *other;

	json_array_foreach (seen, i, other) {
		if (strcmp(json_string_value(other), id) == 0)
			break;
	}
	if (i == json_array_size(seen))
		json_array_append_new(seen, json_string(id));
	return json_sprintf("%.*s#%zu", (int)strcspn(id, "_"), id, i);
}

static json_t *
mask(const char *name, json_t *value, json_t *seen)
{
	json_t *masked, *inner;
	const char *key;
	size_t i;

	if (json_is_string(value) && is_id(json_string_value(value)))
		return id_mask(json_string_value(value), seen);
	if (!json_is_null(value) && (strcmp(name, "fence") == 0 || strcmp(name, "api_key") == 0))
		return json_string("*");
	if (json_is_object(value)) {
		masked = json_object();
		json_object_foreach (value, key, inner)
			json_object_set_new(masked, key, mask(key, inner, seen));
	} else if (json_is_array(value)) {
		masked = json_array();
		json_array_foreach (value, i, inner)
			json_array_append_new(masked, mask("", inner, seen));
	} else {
		masked = json_incref(value);
	}
	return masked;
}

static char *
data_text(const struct answer *a)
{
	json_t *seen = json_array();
	json_t *masked = a->data == NULL ? json_null() : mask("", a->data, seen);
	char *text = json_dumps(masked, JSON_SORT_KEYS | JSON_ENCODE_ANY);

	json_decref(masked);
	json_decref(seen);
	return text;
}

static void
expect_same(const char *what, const struct answer *nng, const struct answer *rest)
{
	char *nng_text = data_text(nng), *rest_text = data_text(rest);

	if (strcmp(nng->code, rest->code) != 0 || strcmp(nng->message, rest->message) != 0 ||
	    strcmp(nng_text, rest_text) != 0 || nng->created != rest->created ||
	    nng->replayed != rest->replayed)
		fail_msg("%s:\nnng  %s %s %s\nREST %s %s %s", what, nng->code, nng->message,
		    nng_text, rest->code, rest->message, rest_text);
	free(nng_text);
	free(rest_text);
}

/* --- every row, every situation --- */

enum situation { FOREIGN, ABSENT, RIVAL, NO_KEY, NO_SCOPE, GOOD, KEY_TAKEN, SITUATIONS };

static const char *const situation_names[] = { "a foreign record", "no such record",
	"another principal's record", "no key", "no scope", "all is well",
	"the idempotency key of another call" };

/* Two organizations, and who has no key at all. */
struct world {
	struct house home;
	struct house abroad;
	struct caller nobody;
};

static void
world_open(struct doors *d, struct world *w)
{
	scenes_found(d, &w->home);
	scenes_found(d, &w->abroad);
	caller_meet(d, &w->nobody, "");
}

static void
world_close(struct world *w)
{
	scenes_leave(&w->home);
	scenes_leave(&w->abroad);
	caller_leave(&w->nobody);
}

static void
record_make(
    struct world *w, const struct scene *scene, enum situation situation, char id[SCENE_ID_BYTES])
{
	bool elsewhere = situation == FOREIGN || situation == ABSENT;

	assert(scene != NULL);
	if (scene->make == NULL)
		return;
	scene->make(elsewhere ? &w->abroad : &w->home, situation == RIVAL, id);
	if (situation == ABSENT)
		memset(strchr(id, '_') + 1, '0', 32);
}

static struct answer
enact(struct world *w, const struct scene *scene, enum situation situation, enum door door)
{
	char id[SCENE_ID_BYTES] = "", request[SCENE_REQUEST_BYTES];
	const char *key = situation == KEY_TAKEN ? "taken" : NULL;
	struct caller *who = &w->home.coder;
	struct answer a;

	record_make(w, scene, situation, id);
	scenes_request(scene, id, request);
	if (situation == NO_KEY)
		who = &w->nobody;
	if (situation == NO_SCOPE)
		who = &w->home.poor;
	if (situation == KEY_TAKEN) {
		a = caller_ask(who, NNG, "LeaseService/Acquire", OTHER_LEASE, key);
		caller_forget(&a);
	}
	return caller_ask(who, door, scene->method, request, key);
}

static const char *
wanted(const struct method *m, const struct scene *scene, enum situation situation)
{
	if (situation == FOREIGN || situation == ABSENT)
		return scene->missing;
	if (situation == RIVAL)
		return scene->rival;
	if (situation == NO_KEY && m->right != RIGHT_PUBLIC)
		return "UNAUTHENTICATED";
	if (situation == NO_SCOPE && m->right != RIGHT_PUBLIC && m->right != RIGHT_KEY)
		return "FORBIDDEN";
	return situation == KEY_TAKEN && m->access == ACCESS_WRITE ? "CONFLICT" : "OK";
}

/* MESSAGE is what a foreign record was answered with, when an absent one follows. */
static void
compare(struct world worlds[DOORS], const struct method *m, const struct scene *scene,
    enum situation situation, char message[256])
{
	struct answer nng = enact(&worlds[NNG], scene, situation, NNG);
	struct answer rest = enact(&worlds[REST], scene, situation, REST);
	char what[200];

	snprintf(what, sizeof what, "%s, %s", m->name, situation_names[situation]);
	expect_same(what, &nng, &rest);
	if (strcmp(nng.code, wanted(m, scene, situation)) != 0)
		fail_msg("%s: %s %s", what, nng.code, nng.message);
	if (situation == ABSENT && strcmp(message, nng.message) != 0)
		fail_msg("%s: \"%s\", but a foreign one: \"%s\"", what, nng.message, message);
	snprintf(message, 256, "%s", nng.message);
	caller_forget(&nng);
	caller_forget(&rest);
}

static void
every_row_answers_the_same_at_both_doors(void **state)
{
	struct doors *d = *state;
	struct world worlds[DOORS];
	char message[256];

	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);
		const struct scene *scene = scenes_find(m);

		if (scene == NULL)
			fail_msg("%s has no scene", m->name);
		if (m->verb == VERB_NONE)
			continue;
		world_open(d, &worlds[NNG]);
		world_open(d, &worlds[REST]);
		for (enum situation s = FOREIGN; s < SITUATIONS; s++) {
			compare(worlds, m, scene, s, message);
			doors_advance(d, SITUATION_MS);
		}
		world_close(&worlds[NNG]);
		world_close(&worlds[REST]);
	}
}

/* Save at version 1, and once more with EXPECTATION at DOOR. Each time it is another subject. */
static struct answer
save_expecting(struct caller *who, enum door door, const char *expectation)
{
	static int subjects;
	char request[300];
	struct answer a;

	snprintf(request, sizeof request,
	    "{\"subject_id\":\"expect-%d\",\"kind\":\"cursor\",\"state\":1,\"ttl_seconds\":60}",
	    ++subjects);
	a = caller_ask(who, NNG, "CheckpointService/Save", request, NULL);
	assert_string_equal(a.code, "OK");
	caller_forget(&a);
	snprintf(strrchr(request, '}'), 200, ",%s}", expectation);
	a = caller_ask(who, door, "CheckpointService/Save", request, NULL);
	json_object_del(a.data, "subject_id");
	return a;
}

static void
a_stale_expectation_is_a_conflict_at_both_doors(void **state)
{
	static const struct {
		const char *expectation;
		const char *code;
	} rows[] = {
		{ "\"expected_version\":1", "OK" },
		{ "\"expected_version\":2", "CONFLICT" },
		{ "\"expected_state_hash\":\"00\"", "CONFLICT" },
		{ "\"expected_version\":1,\"expected_state_hash\":\"00\"", "CONFLICT" },
	};
	struct house h;

	scenes_found(*state, &h);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct answer nng = save_expecting(&h.coder, NNG, rows[i].expectation);
		struct answer rest = save_expecting(&h.coder, REST, rows[i].expectation);

		if (strcmp(nng.code, rows[i].code) != 0)
			fail_msg("row %zu: %s %s", i, nng.code, nng.message);
		expect_same(rows[i].expectation, &nng, &rest);
		caller_forget(&nng);
		caller_forget(&rest);
	}
	scenes_leave(&h);
}

/* --- retries --- */

/* The first answer again, but for the secret and what was said about it. */
static void
expect_replay(const char *what, struct answer *first, struct answer *again)
{
	if (json_object_get(first->data, "api_key") != NULL)
		json_object_set_new(first->data, "api_key", json_null());
	if (json_object_get(first->data, "warning") != NULL)
		json_object_set_new(first->data, "warning", json_null());
	if (first->replayed || !again->replayed || first->created != again->created ||
	    !json_equal(first->data, again->data))
		fail_msg("%s: %s %s is no replay of %s %s", what, again->code, again->message,
		    first->code, first->message);
	caller_forget(first);
	caller_forget(again);
}

static void
retry(struct house *h, const struct scene *scene, enum door first)
{
	char id[SCENE_ID_BYTES] = "", request[SCENE_REQUEST_BYTES], key[100];
	struct answer a, b;
	char *before, *after;

	if (scene->make != NULL)
		scene->make(h, false, id);
	scenes_request(scene, id, request);
	snprintf(key, sizeof key, "%s-%d", scene->method, first);
	a = caller_ask(&h->coder, first, scene->method, request, key);
	before = doors_dump(h->coder.doors);
	b = caller_ask(&h->coder, first == NNG ? REST : NNG, scene->method, request, key);
	after = doors_dump(h->coder.doors);
	assert_string_equal(a.code, "OK");
	assert_string_equal(before, after);
	expect_replay(scene->method, &a, &b);
	free(before);
	free(after);
}

static void
a_retry_at_the_other_door_gets_the_first_answer(void **state)
{
	struct house h;

	scenes_found(*state, &h);
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);

		if (m->access != ACCESS_WRITE || m->verb == VERB_NONE)
			continue;
		retry(&h, scenes_find(m), REST);
		retry(&h, scenes_find(m), NNG);
	}
	scenes_leave(&h);
}

/* --- rows without a verb --- */

static void
expect_code(struct answer a, const char *code)
{
	if (strcmp(a.code, code) != 0)
		fail_msg("%s %s, not %s", a.code, a.message, code);
	caller_forget(&a);
}

static void
rows_without_a_verb_are_answered_over_nng(void **state)
{
	struct house h;

	scenes_found(*state, &h);
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);
		const struct scene *scene = scenes_find(m);

		if (m->verb == VERB_NONE)
			expect_code(caller_ask(&h.coder, NNG, scene->method, scene->request, NULL),
			    scene->missing);
	}
	scenes_leave(&h);
}

static void
an_echo_is_the_payload_again(void **state)
{
	struct caller who;
	struct answer a;

	caller_meet(*state, &who, "");
	a = caller_ask(&who, NNG, "HealthService/Echo", "{\"payload\":\"aGVsbG8=\"}", NULL);
	assert_string_equal(json_string_value(json_object_get(a.data, "payload")), "aGVsbG8=");
	caller_forget(&a);
	caller_leave(&who);
}

static void
organizations_are_made_on_the_owners_socket_only(void **state)
{
	static const char request[] = "{\"name\":\"elsewhere\"}";
	static const char count[] = "SELECT count(*) FROM organizations";
	struct doors *d = *state;
	const char *const urls[] = { d->tcp, d->ipc };
	int64_t before;
	struct caller who;
	struct house h;

	scenes_found(d, &h);
	before = doors_count(d, count, NULL);
	expect_code(caller_ask(&h.owner, NNG, "KeyService/Bootstrap", request, NULL), "FORBIDDEN");
	for (size_t i = 0; i < LENGTH(urls); i++) {
		caller_meet(d, &who, "");
		who.url = urls[i];
		expect_code(
		    caller_ask(&who, NNG, "KeyService/Bootstrap", request, NULL), "FORBIDDEN");
		caller_leave(&who);
	}
	assert_int_equal(doors_count(d, count, NULL), before);
	caller_meet(d, &who, "");
	who.url = d->local;
	expect_code(caller_ask(&who, NNG, "KeyService/Bootstrap", request, NULL), "OK");
	expect_code(caller_ask(&who, NNG, "KeyService/Bootstrap", request, NULL), "CONFLICT");
	caller_leave(&who);
	assert_int_equal(doors_count(d, count, NULL), before + 1);
	scenes_leave(&h);
}

static void
no_route_leads_to_a_row_without_a_verb(void **state)
{
	static const struct {
		const char *path;
		const char *code;
	} rows[] = {
		{ "/", "NOT_FOUND" },
		{ "/v1/bootstrap", "NOT_FOUND" },
		{ "/v1/echo", "NOT_FOUND" },
		{ "/titen.v1.KeyService/Bootstrap", "NOT_FOUND" },
		{ "/titen.v1.HealthService/Echo", "NOT_FOUND" },
		{ "/titen.v1.ReflectionService/Describe", "NOT_FOUND" },
		{ "/v1/keys/bootstrap", "METHOD_NOT_ALLOWED" },
	};
	static const char request[] = "{\"name\":\"elsewhere\"}";
	static const char count[] = "SELECT count(*) FROM organizations";
	int64_t before;
	struct house h;

	scenes_found(*state, &h);
	before = doors_count(*state, count, NULL);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct answer a =
		    caller_http(&h.owner, "POST", rows[i].path, NULL, request, strlen(request));

		if (strcmp(a.code, rows[i].code) != 0)
			fail_msg("row %zu: %s", i, a.code);
		caller_forget(&a);
	}
	assert_int_equal(doors_count(*state, count, NULL), before);
	scenes_leave(&h);
}

/* --- what only REST has --- */

static const char save_body[] =
    "{\"subject_id\":\"s\",\"kind\":\"cursor\",\"state\":[1],\"ttl_seconds\":60}";

static struct answer
save_if(struct caller *who, const char *header)
{
	return caller_http(who, "POST", "/v1/checkpoints", header, save_body, strlen(save_body));
}

static void
a_save_is_let_pass_by_the_tag_it_replaces(void **state)
{
	char header[200];
	struct answer a;
	struct house h;

	scenes_found(*state, &h);
	a = save_if(&h.coder, NULL);
	assert_int_equal(a.http, 201);
	snprintf(header, sizeof header, "\"%s\"",
	    json_string_value(json_object_get(a.data, "state_hash")));
	assert_string_equal(a.etag, header);
	caller_forget(&a);
	snprintf(header, sizeof header, "If-Match: \"00\", %s", a.etag);
	a = save_if(&h.coder, header);
	assert_int_equal(a.http, 200);
	caller_forget(&a);
	a = save_if(&h.coder, "If-Match: *");
	assert_int_equal(a.http, 200);
	caller_forget(&a);
	scenes_leave(&h);
}

static void
expect_precondition_failed(struct caller *who, const char *header)
{
	struct answer a = save_if(who, header);

	if (a.http != 412 || strcmp(a.code, "PRECONDITION_FAILED") != 0)
		fail_msg("%s: %d %s", header, a.http, a.code);
}

static void
a_save_with_another_tag_is_412_and_changes_nothing(void **state)
{
	static const char *const stale[] = { "If-Match: \"00\"", "If-Match: W/\"00\"",
		"If-Match: \"*\"" };
	char *before, *after;
	struct answer a;
	struct house h;

	scenes_found(*state, &h);
	expect_precondition_failed(&h.coder, "If-Match: *");
	a = save_if(&h.coder, NULL);
	caller_forget(&a);
	before = doors_dump(*state);
	for (size_t i = 0; i < LENGTH(stale); i++)
		expect_precondition_failed(&h.coder, stale[i]);
	after = doors_dump(*state);
	assert_string_equal(before, after);
	free(before);
	free(after);
	scenes_leave(&h);
}

static void
head_is_get_without_the_body(void **state)
{
	char path[100], id[SCENE_ID_BYTES];
	struct house h;
	struct answer a;

	scenes_found(*state, &h);
	a = save_if(&h.coder, NULL);
	snprintf(id, sizeof id, "%s", json_string_value(json_object_get(a.data, "checkpoint_id")));
	caller_forget(&a);
	snprintf(path, sizeof path, "/v1/checkpoints/%s", id);
	a = caller_http(&h.coder, "HEAD", path, NULL, NULL, 0);
	assert_int_equal(a.http, 200);
	assert_int_equal(a.body_bytes, 0);
	assert_int_equal(a.etag[0], '"');
	a = caller_http(&h.reviewer, "HEAD", path, NULL, NULL, 0);
	assert_int_equal(a.http, 404);
	a = caller_http(&h.coder, "GET", path, NULL, NULL, 0);
	assert_int_equal(a.http, 200);
	caller_forget(&a);
	scenes_leave(&h);
}

static void
options_names_the_verbs_of_a_path(void **state)
{
	static const struct {
		const char *path;
		const char *allow;
	} rows[] = {
		{ "/v1/leases", "POST, OPTIONS" },
		{ "/v1/leases/x", "DELETE, OPTIONS" },
		{ "/v1/checkpoints", "GET, HEAD, POST, OPTIONS" },
		{ "/v1/checkpoints/x", "GET, HEAD, DELETE, OPTIONS" },
		{ "/healthz", "GET, HEAD, OPTIONS" },
	};
	struct caller who;

	caller_meet(*state, &who, "");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct answer a = caller_http(&who, "OPTIONS", rows[i].path, NULL, NULL, 0);

		if (a.http != 204 || a.body_bytes != 0 || strcmp(a.allow, rows[i].allow) != 0)
			fail_msg("row %zu: %d %s", i, a.http, a.allow);
	}
	caller_leave(&who);
}

/* --- pages --- */

/* More events than there are principals, keys or anything else in the store. */
static void
a_page_holds_as_many_events_as_it_may(void **state)
{
	char id[SCENE_ID_BYTES], request[100];
	struct house h;

	scenes_found(*state, &h);
	for (int i = 0; i < 30; i++)
		scenes_find(caller_method("LeaseService/Acquire"))->make(&h, false, id);
	for (int door = 0; door < DOORS; door++) {
		for (size_t limit = 1; limit <= 200; limit += 24) {
			size_t most = limit < 30 ? limit : 30;
			struct answer a;

			snprintf(request, sizeof request, "{\"limit\":%zu}", limit);
			a = caller_ask(
			    &h.coder, (enum door)door, "EventService/List", request, NULL);
			assert_int_equal(json_array_size(json_object_get(a.data, "events")), most);
			caller_forget(&a);
		}
	}
	scenes_leave(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_holds_as_many_events_as_it_may),
		cmocka_unit_test(every_row_answers_the_same_at_both_doors),
		cmocka_unit_test(a_stale_expectation_is_a_conflict_at_both_doors),
		cmocka_unit_test(a_retry_at_the_other_door_gets_the_first_answer),
		cmocka_unit_test(rows_without_a_verb_are_answered_over_nng),
		cmocka_unit_test(an_echo_is_the_payload_again),
		cmocka_unit_test(organizations_are_made_on_the_owners_socket_only),
		cmocka_unit_test(no_route_leads_to_a_row_without_a_verb),
		cmocka_unit_test(a_save_is_let_pass_by_the_tag_it_replaces),
		cmocka_unit_test(a_save_with_another_tag_is_412_and_changes_nothing),
		cmocka_unit_test(head_is_get_without_the_body),
		cmocka_unit_test(options_names_the_verbs_of_a_path),
	};

	return cmocka_run_group_tests(tests, doors_open, doors_close);
}

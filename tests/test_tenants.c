/* SPDX-License-Identifier: MIT */
/*
 * Two organizations whose people, resources and subjects have the same names. What the one has
 * planted carries a mark, and the other asks every call at both doors for it, with every id that
 * there is: no byte of an answer or of the log may have the mark or an id, and a foreign record is
 * answered as one that never was.
 */
#include "tests/support/scenes.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "envelope.pb-c.h"
#include "core/clock.h"
#include "core/json_read.h"
#include "tests/support/program.h"

#define SECRETS_MAX 64
#define SECRET_BYTES 80
#define LOG_BYTES_MAX ((size_t)1 << 20)
#define TIMED_TRIES 200

#define SCOPES                                                                                     \
	"[\"leases:write\",\"handoffs:read\",\"handoffs:write\",\"checkpoints:read\","             \
	"\"checkpoints:write\",\"events:read\",\"keys:manage\"]"
#define NARROW "[\"events:read\"]"

/* An organization, its mark, and everything that names something of it. */
struct tenant {
	const char *mark;
	struct house house;
	char secrets[SECRETS_MAX][SECRET_BYTES];
	size_t secrets_n;
};

struct world {
	struct program *program;
	struct doors doors; /* only the addresses */
	struct tenant home, abroad;
};

/* --- what a tenant has --- */

static void
secret_add(struct tenant *t, const char *text)
{
	assert_true(t->secrets_n < SECRETS_MAX && strlen(text) < SECRET_BYTES && *text != '\0');
	strcpy(t->secrets[t->secrets_n++], text);
}

/* Every id in DATA, however deep. */
static void
secrets_of(struct tenant *t, const json_t *data)
{
	static const char *const prefixes[] = { "org_", "lease_", "hoff_", "ckpt_", "evt_", "key_",
		"titen_sk_" };
	const char *text = json_string_value(data), *name;
	json_t *value;
	size_t i;

	for (i = 0; text != NULL && i < LENGTH(prefixes); i++)
		if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
			secret_add(t, text);
	json_object_foreach ((json_t *)data, name, value)
		secrets_of(t, value);
	json_array_foreach (data, i, value)
		secrets_of(t, value);
}

/* WHO makes something; "%s" in FORMAT is the mark. The key of idempotency is the same for both
 * tenants. */
static void
plant(struct tenant *t, struct caller *who, const char *method, const char *format)
{
	const char *place = strstr(format, "%s");
	char request[SCENE_REQUEST_BYTES];
	struct answer a;

	snprintf(request, sizeof(request), "%.*s%s%s", (int)(place - format), format, t->mark,
	    place + 2);
	a = caller_ask(who, NNG, method, request, method);
	if (strcmp(a.code, "OK") != 0 || a.replayed)
		fail_msg("%s %s: %s %s", method, request, a.code, a.message);
	secrets_of(t, a.data);
	caller_forget(&a);
}

static void
plant_all(struct tenant *t)
{
	struct house *h = &t->house;
	struct answer a;

	plant(t, &h->coder, "LeaseService/Acquire",
	    "{\"resource_type\":\"repo\",\"resource_id\":\"main\",\"purpose\":\"%s\","
	    "\"ttl_seconds\":3600}");
	plant(t, &h->reviewer, "HandoffService/Create",
	    "{\"to_principal\":\"agent_coder\",\"subject_id\":\"task-2\",\"message\":\"%s\"}");
	plant(t, &h->coder, "CheckpointService/Save",
	    "{\"subject_id\":\"task-1\",\"kind\":\"task_state\",\"run_id\":\"run\","
	    "\"state\":{\"note\":\"%s\"},\"ttl_seconds\":3600}");
	plant(t, &h->owner, "KeyService/Create",
	    "{\"label\":\"%s\",\"principal_id\":\"agent_coder\",\"scopes\":[\"events:read\"]}");
	a = caller_ask(&h->coder, NNG, "EventService/List", "{\"kind\":[\"*\"]}", NULL);
	secrets_of(t, a.data);
	caller_forget(&a);
}

/* Found an organization of that mark, and let its people in. */
static void
tenant_open(struct world *w, struct tenant *t, const char *mark)
{
	struct house *h = &t->house;
	char request[SCENE_REQUEST_BYTES];
	struct caller local;
	struct answer a;

	t->mark = mark;
	secret_add(t, mark);
	caller_meet(&w->doors, &local, "");
	local.url = w->doors.local;
	snprintf(request, sizeof(request), "{\"name\":\"%s\"}", mark);
	a = caller_ask(&local, NNG, "KeyService/Bootstrap", request, NULL);
	assert_string_equal(a.code, "OK");
	secrets_of(t, a.data);
	caller_meet(&w->doors, &h->owner, json_string_value(json_object_get(a.data, "api_key")));
	caller_forget(&a);
	caller_leave(&local);
	scenes_join(h, &h->coder, "agent_coder", SCOPES);
	scenes_join(h, &h->reviewer, "agent_reviewer", SCOPES);
	scenes_join(h, &h->poor, "agent_coder", NARROW);
	plant_all(t);
	secret_add(t, h->coder.key);
	secret_add(t, h->reviewer.key);
	secret_add(t, h->poor.key);
}

/* --- answers as bytes --- */

/* Everything that came back. */
struct bytes {
	char *text;
	size_t n;
};

static size_t
bytes_take(char *piece, size_t size, size_t n, void *arg)
{
	return fwrite(piece, size, n, arg);
}

static struct bytes
ask_nng(struct caller *who, const char *method, const json_t *json)
{
	char name[100];
	struct titen_call call = { .method = name };
	Titen__V1__Reply *reply;
	struct bytes all = { NULL, 0 };
	size_t n;
	uint8_t *packed = caller_pack(method, json, &n);

	snprintf(name, sizeof(name), "titen.v1.%s", method);
	assert_int_equal(titen_call_packed(who->client, &call, packed, n, &reply), TITEN_ANSWERED);
	free(packed);
	if (reply->server_time != NULL)
		reply->server_time->seconds = reply->server_time->nanos = 0;
	all.n = titen__v1__reply__get_packed_size(reply);
	all.text = malloc(all.n + 1);
	titen__v1__reply__pack(reply, (uint8_t *)all.text);
	titen_reply_free(reply);
	return all;
}

/* Status line, headers and body. */
static struct bytes
ask_web(struct caller *who, const char *method, json_t *json)
{
	static const char *const verbs[] = { "", "GET", "POST", "DELETE" };
	const struct method *m = caller_method(method);
	char *path = caller_path(m, json), url[2048], line[100];
	char *body = m->verb == VERB_POST ? json_dumps(json, JSON_COMPACT) : NULL;
	struct curl_slist *headers = NULL;
	struct bytes all;
	FILE *out = open_memstream(&all.text, &all.n);

	snprintf(url, sizeof(url), "%s%s", who->doors->web, path);
	snprintf(line, sizeof(line), "Authorization: Bearer %s", who->key);
	headers = curl_slist_append(headers, line);
	curl_easy_reset(who->curl);
	curl_easy_setopt(who->curl, CURLOPT_URL, url);
	curl_easy_setopt(who->curl, CURLOPT_CUSTOMREQUEST, verbs[m->verb]);
	curl_easy_setopt(who->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(who->curl, CURLOPT_HEADER, 1L);
	curl_easy_setopt(who->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(who->curl, CURLOPT_WRITEFUNCTION, bytes_take);
	curl_easy_setopt(who->curl, CURLOPT_WRITEDATA, out);
	if (body != NULL)
		curl_easy_setopt(who->curl, CURLOPT_POSTFIELDS, body);
	assert_int_equal(curl_easy_perform(who->curl), CURLE_OK);
	fclose(out);
	curl_slist_free_all(headers);
	free(body);
	free(path);
	return all;
}

/* METHOD at DOOR, which has it. WHO has been at both doors before. */
static struct bytes
ask(struct caller *who, enum door door, const char *method, const char *request)
{
	json_t *json = json_loads(request, 0, NULL);
	struct bytes all;

	assert_non_null(json);
	all = door == NNG ? ask_nng(who, method, json) : ask_web(who, method, json);
	json_decref(json);
	return all;
}

static bool
is_at(const struct method *m, enum door door)
{
	return door == NNG || m->verb != VERB_NONE;
}

static void
introduce(struct caller *who)
{
	for (enum door door = NNG; door < DOORS; door++) {
		struct answer a = caller_ask(who, door, "HealthService/Check", "{}", NULL);

		assert_string_equal(a.code, "OK");
		caller_forget(&a);
	}
}

static void
introduce_all(struct house *h)
{
	introduce(&h->owner);
	introduce(&h->coder);
	introduce(&h->reviewer);
	introduce(&h->poor);
}

/* --- the search --- */

static const char *
secret_in(const struct tenant *t, const struct bytes *all)
{
	for (size_t i = 0; i < t->secrets_n; i++) {
		const char *secret = t->secrets[i];

		if (memmem(all->text, all->n, secret, strlen(secret)) != NULL)
			return secret;
	}
	return NULL;
}

static void
expect_nothing(struct world *w, struct caller *who, const char *method, const char *request)
{
	for (enum door door = NNG; door < DOORS; door++) {
		struct bytes all;
		const char *secret;

		if (!is_at(caller_method(method), door))
			continue;
		all = ask(who, door, method, request);
		assert_true(all.n > 0);
		secret = secret_in(&w->abroad, &all);
		if (secret != NULL)
			fail_msg("%s %s tells of %s:\n%.*s", method, request, secret, (int)all.n,
			    all.text);
		free(all.text);
	}
}

/* A row with every id of the other organization, of whatever kind. */
static void
walk_row(struct world *w, struct caller *who, const struct scene *scene)
{
	char request[SCENE_REQUEST_BYTES];
	size_t ids = strstr(scene->request, "%s") == NULL ? 1 : w->abroad.secrets_n;

	for (size_t i = 0; i < ids; i++) {
		scenes_request(scene, w->abroad.secrets[i], request);
		expect_nothing(w, who, scene->method, request);
	}
}

static void
walk(struct world *w, struct caller *who)
{
	for (size_t i = 0; i < methods_count(); i++) {
		const struct scene *scene = scenes_find(method_at(i));

		assert_non_null(scene);
		walk_row(w, who, scene);
	}
	expect_nothing(w, who, "EventService/List", "{\"kind\":[\"*\"],\"limit\":200}");
	expect_nothing(w, who, "HandoffService/List", "{}");
	expect_nothing(w, who, "KeyService/List", "{\"limit\":200}");
}

static void
nothing_of_another_organization_is_seen_by_any_call(void **state)
{
	struct world *w = *state;
	struct house *h = &w->home.house;

	walk(w, &h->owner);
	walk(w, &h->coder);
	walk(w, &h->reviewer);
	walk(w, &h->poor);
}

/* Or else the search would find nothing anywhere. */
static void
what_is_ones_own_is_seen(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *method;
		const char *request;
	} rows[] = {
		{ "EventService/List", "{\"kind\":[\"*\"]}" },
		{ "HandoffService/List", "{}" },
		{ "KeyService/List", "{}" },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		for (enum door door = NNG; door < DOORS; door++) {
			struct bytes all =
			    ask(&w->abroad.house.coder, door, rows[i].method, rows[i].request);

			if (memmem(all.text, all.n, w->abroad.mark, strlen(w->abroad.mark)) == NULL)
				fail_msg("row %zu: %.*s", i, (int)all.n, all.text);
			free(all.text);
		}
}

/* --- foreign and absent --- */

/* Another id that is as well-formed. */
static void
absent_id(const char *id, char absent[static SCENE_ID_BYTES])
{
	size_t n = strlen(id);

	snprintf(absent, SCENE_ID_BYTES, "%s", id);
	for (size_t i = n - 8; i < n; i++)
		absent[i] = id[i] == 'f' ? '0' : 'f';
}

/* What differs between two equal answers. */
static void
mask(struct bytes *all)
{
	char *at = all->text, *end = at + all->n;

	for (; (at = memmem(at, (size_t)(end - at), "req_", 4)) != NULL; at += 4)
		memset(at + 4, '*', end - at < 36 ? (size_t)(end - at) - 4 : 32);
	at = memmem(all->text, all->n, "\r\nDate: ", 8);
	if (at != NULL)
		memset(at + 8, '*', strlen("Mon, 30 Nov 2026 22:00:00 GMT"));
}

static void
expect_alike(struct caller *who, enum door door, const struct scene *scene, const char *foreign)
{
	char request[SCENE_REQUEST_BYTES], absent[SCENE_ID_BYTES];
	struct bytes one, other;

	scenes_request(scene, foreign, request);
	one = ask(who, door, scene->method, request);
	absent_id(foreign, absent);
	scenes_request(scene, absent, request);
	other = ask(who, door, scene->method, request);
	mask(&one);
	mask(&other);
	if (one.n != other.n || memcmp(one.text, other.text, one.n) != 0)
		fail_msg("%s: foreign\n%.*s\nabsent\n%.*s", scene->method, (int)one.n, one.text,
		    (int)other.n, other.text);
	free(one.text);
	free(other.text);
}

static void
foreign_and_absent_records_are_answered_alike(void **state)
{
	struct world *w = *state;
	struct house *h = &w->home.house;
	char foreign[SCENE_ID_BYTES];

	for (size_t i = 0; i < methods_count(); i++) {
		const struct scene *scene = scenes_find(method_at(i));

		if (scene->make == NULL || strstr(scene->request, "%s") == NULL)
			continue;
		scene->make(&w->abroad.house, false, foreign);
		for (enum door door = NNG; door < DOORS; door++) {
			expect_alike(&h->owner, door, scene, foreign);
			expect_alike(&h->coder, door, scene, foreign);
			expect_alike(&h->poor, door, scene, foreign);
		}
	}
}

/* Both planted with it: no answer was the other's, or planting had failed. */
static void
an_idempotency_key_is_ones_own(void **state)
{
	static const char lease[] = "{\"resource_type\":\"repo\",\"resource_id\":\"equal\","
				    "\"purpose\":\"equal\",\"ttl_seconds\":60}";
	struct world *w = *state;
	const char *first, *second;
	struct answer theirs, mine;

	theirs = caller_ask(&w->abroad.house.coder, NNG, "LeaseService/Acquire", lease, "equal");
	mine = caller_ask(&w->home.house.coder, REST, "LeaseService/Acquire", lease, "equal");
	assert_string_equal(theirs.code, "OK");
	assert_string_equal(mine.code, "OK");
	assert_false(mine.replayed);
	first = json_string_value(json_object_get(theirs.data, "lease_id"));
	second = json_string_value(json_object_get(mine.data, "lease_id"));
	assert_string_not_equal(first, second);
	caller_forget(&theirs);
	caller_forget(&mine);
}

/* --- how long it takes: printed, for a timed test would fail on a busy machine --- */

static int64_t
ask_us(struct caller *who, const struct scene *scene, const char *id)
{
	char request[SCENE_REQUEST_BYTES];
	struct timespec began, ended;
	struct bytes all;

	scenes_request(scene, id, request);
	clock_gettime(CLOCK_MONOTONIC, &began);
	all = ask(who, NNG, scene->method, request);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	free(all.text);
	return (int64_t)(ended.tv_sec - began.tv_sec) * 1000000 +
	       (ended.tv_nsec - began.tv_nsec) / 1000;
}

static int
compare(const void *a, const void *b)
{
	const int64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int64_t
median(int64_t us[static TIMED_TRIES])
{
	qsort(us, TIMED_TRIES, sizeof(*us), compare);
	return us[TIMED_TRIES / 2];
}

static void
foreign_and_absent_records_take_about_as_long(void **state)
{
	struct world *w = *state;
	int64_t foreign_us[TIMED_TRIES], absent_us[TIMED_TRIES];
	char foreign[SCENE_ID_BYTES], absent[SCENE_ID_BYTES];

	for (size_t i = 0; i < methods_count(); i++) {
		const struct scene *scene = scenes_find(method_at(i));
		int64_t one, other;

		if (scene->make == NULL || strstr(scene->request, "%s") == NULL)
			continue;
		scene->make(&w->abroad.house, false, foreign);
		absent_id(foreign, absent);
		for (int n = 0; n < TIMED_TRIES; n++) {
			foreign_us[n] = ask_us(&w->home.house.coder, scene, foreign);
			absent_us[n] = ask_us(&w->home.house.coder, scene, absent);
		}
		one = median(foreign_us);
		other = median(absent_us);
		print_message("%-26s foreign %5lld us, absent %5lld us, ratio %.2f\n",
		    scene->method, (long long)one, (long long)other, (double)one / (double)other);
	}
}

/* --- the log, when the server has said all --- */

static void
the_log_tells_of_nobody(void **state)
{
	struct world *w = *state;
	struct bytes log = { calloc(1, LOG_BYTES_MAX), 0 };
	int fd = open(w->program->err, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	program_signal(w->program, SIGTERM);
	assert_int_equal(program_await(w->program, NULL), 0);
	n = read(fd, log.text, LOG_BYTES_MAX);
	close(fd);
	assert_in_range(n, 1, LOG_BYTES_MAX - 1);
	log.n = (size_t)n;
	assert_non_null(strstr(log.text, "Stopping"));
	assert_null(secret_in(&w->abroad, &log));
	assert_null(secret_in(&w->home, &log));
	free(log.text);
}

/* --- the world --- */

static int
world_open(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	void *program;

	program_open(&program);
	w->program = program;
	program_bootstrap(w->program);
	program_serve(w->program);
	strcpy(w->doors.tcp, w->program->rpc);
	strcpy(w->doors.web, w->program->http);
	assert_true(strlen(w->program->local) < sizeof(w->doors.local));
	strcpy(w->doors.local, w->program->local);
	tenant_open(w, &w->home, "plugh-of-home");
	tenant_open(w, &w->abroad, "xyzzy-of-abroad");
	introduce_all(&w->home.house);
	introduce_all(&w->abroad.house);
	*state = w;
	return 0;
}

static int
world_close(void **state)
{
	struct world *w = *state;
	void *program = w->program;

	scenes_leave(&w->home.house);
	scenes_leave(&w->abroad.house);
	program_close(&program);
	free(w);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_another_organization_is_seen_by_any_call),
		cmocka_unit_test(what_is_ones_own_is_seen),
		cmocka_unit_test(foreign_and_absent_records_are_answered_alike),
		cmocka_unit_test(an_idempotency_key_is_ones_own),
		cmocka_unit_test(foreign_and_absent_records_take_about_as_long),
		cmocka_unit_test(the_log_tells_of_nobody),
	};
	const char *error;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0 || !methods_init(&error))
		return EXIT_FAILURE;
	json_init();
	return cmocka_run_group_tests(tests, world_open, world_close);
}

/* SPDX-License-Identifier: MIT */
/*
 * The limits of the server, each at the limit and one above, where both doors and the whole core
 * take part. Those of one part are proved where that part is:
 *
 *	payload 1 MiB             test_server (nng), test_malformed (REST), test_rpc (the core)
 *	JSON depth 64             test_malformed, test_json_read; inside a field: test_rules
 *	memory for JSON           here; what an honest body needs: test_json_read
 *	wire depth 8, 4 096 members   test_wire
 *	arena of a call, budget of all   test_arena; what a client hears of it: here
 *	writes that wait          test_engine
 *	reads that wait           test_readers
 *	1 024 under way on a connection   test_pipes, test_server
 *	4 096 connections         test_pipes
 *	answers that wait to be read   test_server
 *	pages: rows and 512 KiB   test_event, test_handoff, test_both_doors
 *	idempotency keys          test_idempotency
 *	time a call may ask for   test_frame
 *	path of a socket          test_server
 */
#include "tests/support/scenes.h"

#include <endian.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>

#include "envelope.pb-c.h"
#include "lease.pb-c.h"
#include "cmd/json_rpc.h"
#include "core/auth.h"
#include "core/clock.h"
#include "core/core.h"
#include "core/json_read.h"
#include "core/rpc.h"
#include "core/rules.h"
#include "tests/support/peer.h"
#include "transport/server.h"

/* As transport/server.c has them. */
#define FRAME_BYTES_MAX (PAYLOAD_BYTES_MAX + ((size_t)64 << 10))
#define CONTEXTS_MAX 2048

#define EXACT_MAX ((int64_t)1 << 53) /* a number beyond it cannot be said in JSON */
#define LOOK_MS 5                    /* between two looks at what others do */

/* --- every rule --- */

/* N times UNIT between BEFORE and AFTER, with COMMA between; free() it. */
static char *
repeat(const char *before, const char *unit, const char *comma, int64_t n, const char *after)
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

static char *
spell_int(int64_t n)
{
	char text[32];

	if (n > EXACT_MAX || n < -EXACT_MAX)
		return NULL;
	snprintf(text, sizeof text, "%lld", (long long)n);
	return strdup(text);
}

/* N bytes as a string of base64. */
static char *
spell_bytes(int64_t n)
{
	size_t room = sodium_base64_ENCODED_LEN((size_t)n, sodium_base64_VARIANT_ORIGINAL);
	unsigned char *bytes = calloc(1, (size_t)n);
	char *base64 = malloc(room), *text;

	sodium_bin2base64(base64, room, bytes, (size_t)n, sodium_base64_VARIANT_ORIGINAL);
	text = repeat("\"", base64, "", 1, "\"");
	free(base64);
	free(bytes);
	return text;
}

/* The JSON of a field that is STEP above the most that RULE allows, or below its least; NULL:
 * nothing can be. Texts are of two bytes a code point. */
static char *
spell_most(const struct rule *rule, int64_t step)
{
	switch (rule->kind) {
	case RULE_TEXT:
		return repeat("\"", "\u00e4", "", rule->max + step, "\"");
	case RULE_INT:
		return rule->max == INT64_MAX ? NULL : spell_int(rule->max + step);
	case RULE_JSON:
		return repeat("\"", "x", "", rule->max - 2 + step, "\"");
	case RULE_TEXTS:
		return repeat("[", "\"x\"", ",", rule->max + step, "]");
	case RULE_BYTES:
		return spell_bytes(rule->max + step);
	default:
		return NULL;
	}
}

static char *
spell_least(const struct rule *rule, int64_t step)
{
	if (rule->kind == RULE_INT)
		return spell_int(rule->min - step);
	if (rule->kind == RULE_TEXTS && rule->min >= step)
		return repeat("[", "\"x\"", ",", rule->min - step, "]");
	return NULL;
}

static char *
spell_longest(const struct rule *rule, int64_t step)
{
	if (rule->kind != RULE_TEXTS)
		return NULL;
	return repeat("[\"", "\u00e4", "", rule->text_max + step, "\"]");
}

/* What the rules say to the good request of M with VALUE for FIELD. */
static enum status
check_request(const struct method *m, const char *field, const char *value)
{
	char good[SCENE_REQUEST_BYTES], *text;
	struct arena arena;
	struct call c;
	const char *error;
	enum status st;
	json_t *json;

	scenes_request(scenes_find(m), "x", good);
	json = json_loads(good, 0, NULL);
	json_object_set_new(json, field, json_loads(value, JSON_DECODE_ANY, NULL));
	text = json_dumps(json, JSON_COMPACT);
	arena_init(&arena);
	call_init(&c, &arena, NULL, NULL);
	c.method = m;
	c.request = json_rpc_request(&arena, m, text, strlen(text), &error);
	if (c.request == NULL)
		fail_msg("%s.%s: %s", m->name, field, error);
	st = rules_check(&c);
	if (st != STATUS_OK && strncmp(c.message, field, strlen(field)) != 0)
		fail_msg("%s.%s: %s", m->name, field, c.message);
	arena_free(&arena);
	free(text);
	json_decref(json);
	return st;
}

/* Whether RULE has this limit; if so, it is exactly where it says. */
static bool
rule_ends(const struct method *m, const struct rule *rule,
    char *(*spell)(const struct rule *rule, int64_t step))
{
	static const enum status wanted[] = { STATUS_OK, STATUS_VALIDATION_ERROR };

	for (int step = 0; step < 2; step++) {
		char *value = spell(rule, step);

		if (value == NULL)
			return false;
		if (check_request(m, rule->field, value) != wanted[step])
			fail_msg("%s.%s: not so at %s%.40s", m->name, rule->field,
			    step == 0 ? "" : "one beyond ", value);
		free(value);
	}
	return true;
}

static void
every_rule_ends_exactly_where_it_says(void **state)
{
	int limits = 0, rules = 0;

	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);

		for (const struct rule *r = m->rules; r->kind != RULE_END; r++) {
			limits += rule_ends(m, r, spell_most);
			limits += rule_ends(m, r, spell_least);
			limits += rule_ends(m, r, spell_longest);
			rules += r->kind != RULE_ID && r->kind != RULE_ENUM;
		}
	}
	print_message("%d limits of %d rules\n", limits, rules);
	assert_true(limits >= rules);
}

/* --- a frame --- */

/* A frame of so many bytes, its request id included, or only the beginning that says so. */
static void
send_frame(struct peer *peer, size_t bytes)
{
	uint8_t *body = calloc(1, bytes);

	peer_send(peer, body, bytes - 4);
	free(body);
}

static void
announce_frame(struct peer *peer, uint64_t bytes)
{
	uint64_t length = htobe64(bytes);

	if (peer->ipc)
		peer_write(peer, "\1", 1);
	peer_write(peer, &length, sizeof length);
}

static void
a_frame_at_the_limit_is_answered_and_one_above_is_cut(void **state)
{
	struct doors *d = *state;
	struct peer peers[] = { peer_tcp(server_port(d->server)), peer_ipc(d->ipc) };

	for (size_t i = 0; i < LENGTH(peers); i++) {
		send_frame(&peers[i], FRAME_BYTES_MAX);
		peer_expect(&peers[i], status_grpc(STATUS_VALIDATION_ERROR));
		announce_frame(&peers[i], FRAME_BYTES_MAX + 1);
		assert_true(peer_is_cut(&peers[i]));
		peer_close(&peers[i]);
	}
}

/* --- memory for JSON --- */

/* Whether a list of N empty objects, the costliest JSON of its length, is read. */
static bool
json_is_read(int64_t n)
{
	char *text = repeat("[", "{}", ",", n, "]");
	struct arena arena;
	const char *error;
	json_t *value;
	bool read;

	arena_init(&arena);
	value = json_read(&arena, text, strlen(text), JSON_DEPTH_MAX, &error);
	read = value != NULL;
	if (!read)
		assert_string_equal(error, "is too complex");
	json_done(value);
	arena_free(&arena);
	free(text);
	return read;
}

static void
json_is_read_up_to_its_memory_and_not_one_item_more(void **state)
{
	int64_t good = 1, bad = (int64_t)PAYLOAD_BYTES_MAX / 3;

	(void)state;
	assert_false(json_is_read(bad));
	while (bad - good > 1) {
		int64_t middle = (good + bad) / 2;

		*(json_is_read(middle) ? &good : &bad) = middle;
	}
	assert_true(json_is_read(good));
	assert_false(json_is_read(bad));
	assert_in_range(good * (int64_t)sizeof(json_t), 1, JSON_MEMORY_BYTES);
	assert_true(json_is_read(good));
}

/* --- memory of the process --- */

#define LEASE(purpose)                                                                             \
	"{\"resource_type\":\"repo\",\"resource_id\":\"memory\",\"ttl_seconds\":60,\"purpose\":"   \
	"\"" purpose "\"}"
#define LONG_PURPOSE_BYTES 65536 /* fits into no chunk that an idle arena keeps */

/* The answer to a POST of a lease for a long purpose, its head at least. */
static void
post_long_lease(const struct doors *d, const char *key, char head[static 4096])
{
	struct peer web = peer_dial_tcp(atoi(strrchr(d->web, ':') + 1));
	char *body = repeat("", "x", "", LONG_PURPOSE_BYTES, "");
	ssize_t got;
	int n;

	n = snprintf(head, 4096,
	    "POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	    "Connection: close\r\nContent-Length: %zu\r\n\r\n",
	    key, strlen(LEASE("")) + strlen(body));
	peer_write(&web, head, (size_t)n);
	peer_write(&web, LEASE(""), strlen(LEASE("")) - 2);
	peer_write(&web, body, strlen(body));
	peer_write(&web, "\"}", 2);
	for (n = 0; (got = read(web.fd, head + n, (size_t)(4095 - n))) > 0;)
		n += (int)got;
	head[n] = '\0';
	peer_close(&web);
	free(body);
}

/* The same over nng: why it was refused, and when to come again. */
static int64_t
acquire_long_lease(struct caller *who, char reason[static 32])
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	const struct titen_call call = { .method = "titen.v1.LeaseService/Acquire",
		.request = &req.base };
	Titen__V1__Reply *reply;
	int64_t retry_after_ms;

	req.purpose = repeat("", "x", "", LONG_PURPOSE_BYTES, "");
	assert_int_equal(titen_call(who->client, &call, &reply), TITEN_ANSWERED);
	snprintf(reason, 32, "%s", reply->reason);
	retry_after_ms = reply->retry_after_ms;
	titen_reply_free(reply);
	free(req.purpose);
	return retry_after_ms;
}

static void
expect_lease(struct caller *who, enum door door)
{
	struct answer a = caller_ask(who, door, "LeaseService/Acquire", LEASE("x"), NULL);

	assert_string_equal(a.code, "OK");
	caller_forget(&a);
}

static void
without_memory_clients_are_told_when_to_come_again_and_then_served(void **state)
{
	struct doors *d = *state;
	char head[4096], reason[32];
	struct arena arena;
	struct house h;

	scenes_found(d, &h);
	expect_lease(&h.coder, NNG);
	arena_init(&arena);
	arena_alloc(&arena, ARENA_BUDGET_BYTES);
	assert_true(acquire_long_lease(&h.coder, reason) > 0);
	assert_string_equal(reason, "UNAVAILABLE");
	post_long_lease(d, h.coder.key, head);
	arena_free(&arena);
	assert_memory_equal(head, "HTTP/1.1 503 ", 13);
	assert_non_null(strstr(head, "\r\nRetry-After: "));
	assert_non_null(strstr(head, "\"UNAVAILABLE\""));
	acquire_long_lease(&h.coder, reason);
	assert_string_equal(reason, "VALIDATION_ERROR");
	expect_lease(&h.coder, NNG);
	expect_lease(&h.coder, REST);
	scenes_leave(&h);
}

/* --- requests under way --- */

#define CLIENTS 3
#define CALLS_EACH 750 /* below what one connection may have, above the contexts together */

static atomic_int answered_well, answered;

static void
count_answer(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	(void)arg;
	if (outcome == TITEN_ANSWERED && reply->code == 0)
		atomic_fetch_add(&answered_well, 1);
	atomic_fetch_add(&answered, 1);
	titen_reply_free(reply);
}

static void
acquire_many(struct titen_client *client)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	const struct titen_call call = { .method = "titen.v1.LeaseService/Acquire" };
	uint8_t packed[100];
	size_t bytes;

	req.resource_type = "repo";
	req.resource_id = "contexts";
	req.purpose = "x";
	req.has_ttl_seconds = true;
	req.ttl_seconds = 60;
	bytes = protobuf_c_message_pack(&req.base, packed);
	for (int i = 0; i < CALLS_EACH; i++)
		titen_call_start(client, &call, packed, bytes, count_answer, NULL);
}

/* Others work, and nobody tells us when they are there: look again, until PATIENCE_MS. */
static void
await_outstanding(struct server *server, int n)
{
	int64_t deadline_ms = clock_monotonic_ms() + PATIENCE_MS;

	while (server_outstanding(server) < n && clock_monotonic_ms() < deadline_ms)
		poll(NULL, 0, LOOK_MS);
	assert_int_equal(server_outstanding(server), n);
}

static void
await_answers(int n)
{
	int64_t deadline_ms = clock_monotonic_ms() + PATIENCE_MS;

	while (atomic_load(&answered) < n && clock_monotonic_ms() < deadline_ms)
		poll(NULL, 0, LOOK_MS);
	assert_int_equal(atomic_load(&answered), n);
}

/* Another program holds the database for a moment, so the writer waits for it. */
static sqlite3 *
lock_database(const struct doors *d)
{
	sqlite3 *other;

	assert_int_equal(sqlite3_open(d->path, &other), SQLITE_OK);
	sqlite3_busy_timeout(other, PATIENCE_MS);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return other;
}

static void
requests_above_the_contexts_wait_and_are_answered(void **state)
{
	struct doors *d = *state;
	struct titen_client *clients[CLIENTS];
	char error[200];
	struct house h;
	sqlite3 *other;

	scenes_found(d, &h);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = titen_connect(
		    &(struct titen_options){ .url = d->tcp, .key = h.coder.key }, error, 200);
		assert_non_null(clients[i]);
	}
	other = lock_database(d);
	for (int i = 0; i < CLIENTS; i++)
		acquire_many(clients[i]);
	await_outstanding(d->server, CONTEXTS_MAX);
	assert_int_equal(atomic_load(&answered), 0);
	sqlite3_close(other);
	await_answers(CLIENTS * CALLS_EACH);
	assert_int_equal(atomic_load(&answered_well), CLIENTS * CALLS_EACH);
	for (int i = 0; i < CLIENTS; i++)
		titen_close(&clients[i]);
	scenes_leave(&h);
}

/* --- keys --- */

/* Keys of nobody, until the ring holds N. */
static void
fill_ring(struct key_ring *ring, int64_t n)
{
	struct key_change change = { .who = { .organization_id = "org_x",
					 .principal_id = "agent_x",
					 .key_id = "key_x",
					 .label = "x" } };

	while (key_ring_count(ring) < n) {
		change.who.key = (int64_t)1 << 40 | key_ring_count(ring);
		randombytes_buf(change.digest, sizeof change.digest);
		key_ring_apply(ring, &change);
	}
}

static const char *
make_key(struct house *h, enum door door, char key_id[SCENE_ID_BYTES])
{
	static char code[24];
	struct answer a = caller_ask(&h->owner, door, "KeyService/Create",
	    "{\"label\":\"one more\",\"scopes\":[\"events:read\"]}", NULL);
	const char *id = json_string_value(json_object_get(a.data, "key_id"));

	snprintf(key_id, SCENE_ID_BYTES, "%s", id == NULL ? "" : id);
	snprintf(code, sizeof code, "%s", a.code);
	caller_forget(&a);
	return code;
}

static void
revoke_key(struct house *h, const char *key_id)
{
	char request[SCENE_REQUEST_BYTES];
	struct answer a;

	snprintf(request, sizeof request, "{\"key_id\":\"%s\"}", key_id);
	a = caller_ask(&h->owner, NNG, "KeyService/Revoke", request, NULL);
	assert_string_equal(a.code, "OK");
	caller_forget(&a);
}

static void
the_last_key_is_made_and_no_other_until_one_is_revoked(void **state)
{
	struct doors *d = *state;
	char key_id[SCENE_ID_BYTES], none[SCENE_ID_BYTES];
	struct house h;

	scenes_found(d, &h);
	fill_ring(d->core->ring, KEYS_ACTIVE_MAX - 1);
	assert_string_equal(make_key(&h, NNG, key_id), "OK");
	assert_string_equal(make_key(&h, NNG, none), "RATE_LIMITED");
	assert_string_equal(make_key(&h, REST, none), "RATE_LIMITED");
	revoke_key(&h, key_id);
	assert_string_equal(make_key(&h, REST, key_id), "OK");
	assert_string_equal(make_key(&h, REST, none), "RATE_LIMITED");
	scenes_leave(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_ends_exactly_where_it_says),
		cmocka_unit_test(a_frame_at_the_limit_is_answered_and_one_above_is_cut),
		cmocka_unit_test(json_is_read_up_to_its_memory_and_not_one_item_more),
		cmocka_unit_test(
		    without_memory_clients_are_told_when_to_come_again_and_then_served),
		cmocka_unit_test(requests_above_the_contexts_wait_and_are_answered),
		cmocka_unit_test(the_last_key_is_made_and_no_other_until_one_is_revoked),
	};

	return cmocka_run_group_tests(tests, doors_open, doors_close);
}

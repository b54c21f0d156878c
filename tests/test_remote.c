/* SPDX-License-Identifier: MIT */
/* A gateway whose core is behind nng: it answers like the one beside its core, and outlives it. */
#include "tests/support/scenes.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/call.h"
#include "core/clock.h"
#include "core/rpc.h"
#include "gateway/gateway.h"
#include "gateway/remote.h"
#include "health.pb-c.h"
#include "transport/server.h"

#define SITUATION_MS 61000 /* leases of the situation before are over */
#define AWAY_MS 2000       /* the longest that a caller waits for a core that is away */
#define BACK_MS 10000      /* more than it takes to find a core again on a busy machine */
#define READY "HealthService/Ready"
#define LIVES "HealthService/Check"

static struct doors far; /* the doors, but REST is at the other gateway */
static struct house home;

/* --- answers --- */

static void
every_row_is_answered(void **state)
{
	for (size_t i = 0; i < methods_count(); i++) {
		const struct scene *scene = scenes_find(method_at(i));
		char id[SCENE_ID_BYTES] = "", request[SCENE_REQUEST_BYTES];

		if (method_at(i)->verb == VERB_NONE)
			continue;
		doors_advance(*state, SITUATION_MS);
		if (scene->make != NULL)
			scene->make(&home, false, id);
		scenes_request(scene, id, request);
		struct answer a = caller_ask(&home.coder, REST, scene->method, request, NULL);
		if (strcmp(a.code, "OK") != 0)
			fail_msg("row %zu: %s: %s %s", i, scene->method, a.code, a.message);
		caller_forget(&a);
	}
}

static void
a_retry_gets_the_first_answer(void **state)
{
	static const char request[] = "{\"subject_id\":\"s\",\"kind\":\"cursor\",\"state\":1,"
				      "\"ttl_seconds\":3600}";
	struct answer first =
	    caller_ask(&home.coder, REST, "CheckpointService/Save", request, "key-1");
	struct answer again =
	    caller_ask(&home.coder, REST, "CheckpointService/Save", request, "key-1");

	(void)state;
	assert_int_equal(first.http, 201);
	assert_false(first.replayed);
	assert_int_equal(again.http, 201);
	assert_true(again.replayed);
	assert_true(json_equal(first.data, again.data));
	assert_true(first.etag[0] == '"');
	caller_forget(&first);
	caller_forget(&again);
}

/* The key comes before the body, though here the core has only the body's answer to wait for. */
static void
a_bad_key_is_told_before_a_bad_body(void **state)
{
	const size_t large = PAYLOAD_BYTES_MAX + 1;
	char *text = calloc(1, large + 1);
	struct caller nobody;
	const struct {
		struct caller *who;
		size_t bytes;
		const char *code;
	} rows[] = {
		{ &nobody, 1, "UNAUTHENTICATED" },
		{ &nobody, large, "UNAUTHENTICATED" },
		{ &home.poor, 1, "FORBIDDEN" },
		{ &home.poor, large, "FORBIDDEN" },
		{ &home.coder, 1, "VALIDATION_ERROR" },
		{ &home.coder, large, "PAYLOAD_TOO_LARGE" },
	};

	(void)state;
	memset(text, '{', large);
	caller_meet(&far, &nobody, "");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct answer a =
		    caller_http(rows[i].who, "POST", "/v1/leases", NULL, text, rows[i].bytes);
		if (strcmp(a.code, rows[i].code) != 0)
			fail_msg("row %zu: %s %s", i, a.code, a.message);
		caller_forget(&a);
	}
	caller_leave(&nobody);
	free(text);
}

static void
post(struct call *c)
{
	sem_post(c->owner);
}

/* So that the log of the core and the answer of the gateway speak of the same call. */
static void
the_request_id_is_that_of_the_core(void **state)
{
	PB(HealthEchoRequest) request = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;
	char error[200] = "", own_id[ID_TEXT_BYTES];
	struct remote *remote = remote_start(far.tcp, "test", error, sizeof error);
	struct backend backend = remote_backend(remote);
	struct arena arena;
	struct call c;
	sem_t answered;

	(void)state;
	assert_string_equal(error, "");
	sem_init(&answered, 0, 0);
	arena_init(&arena);
	call_init(&c, &arena, post, &answered);
	c.method = caller_method("HealthService/Echo");
	c.request = &request.base;
	snprintf(own_id, sizeof own_id, "%s", c.request_id);
	backend.submit(backend.self, &c);
	sem_wait(&answered);
	assert_int_equal(c.status, STATUS_OK);
	assert_non_null(c.response);
	assert_string_not_equal(c.request_id, own_id);
	assert_int_equal(strncmp(c.request_id, "req_", 4), 0);
	arena_free(&arena);
	sem_destroy(&answered);
	remote_stop(&remote);
}

static void
a_url_that_is_none_is_told(void **state)
{
	char error[200] = "";

	(void)state;
	assert_null(gateway_start(
	    &(struct gateway_options){ .core_url = "nowhere", .listen = "127.0.0.1:0" }, error,
	    sizeof error));
	assert_non_null(strstr(error, "nowhere"));
}

/* --- a core that goes and comes --- */

static void
expect(const char *method, const char *request, int http)
{
	struct answer a = caller_ask(&home.coder, REST, method, request, NULL);

	if (a.http != http)
		fail_msg("%s: %d %s %s", method, a.http, a.code, a.message);
	caller_forget(&a);
}

static void
the_gateway_lives_while_its_core_is_away(void **state)
{
	struct doors *d = *state;
	int64_t began_ms;

	server_stop(&d->server);
	expect(LIVES, "{}", 200);
	began_ms = clock_monotonic_ms();
	expect(READY, "{}", 503);
	assert_in_range(clock_monotonic_ms() - began_ms, 0, AWAY_MS);
	expect("PrincipalService/Get", "{}", 503);
}

/* Runs behind the one above. */
static void
a_core_that_is_back_is_found(void **state)
{
	const struct timespec moment = { 0, 10000000 };
	const int64_t end_ms = clock_monotonic_ms() + BACK_MS;
	struct doors *d = *state;
	char error[200] = "";
	struct answer a = { .http = 0 };

	d->server = server_start(
	    &(struct server_options){
		.core = d->core, .urls = (const char *[]){ d->tcp, NULL }, .local_url = d->local },
	    error, sizeof error);
	assert_string_equal(error, "");
	while (a.http != 200 && clock_monotonic_ms() < end_ms) {
		a = caller_ask(&home.coder, REST, READY, "{}", NULL);
		caller_forget(&a);
		nanosleep(&moment, NULL);
	}
	assert_int_equal(a.http, 200);
	expect("PrincipalService/Get", "{}", 200);
}

static int
open_far(void **state)
{
	char error[200] = "";
	struct doors *d;

	if (doors_open(state) != 0)
		return -1;
	d = *state;
	far = *d;
	far.gateway = gateway_start(
	    &(struct gateway_options){
		.core_url = d->tcp, .revision = "test", .listen = "127.0.0.1:0" },
	    error, sizeof error);
	assert_string_equal(error, "");
	snprintf(far.web, sizeof far.web, "http://127.0.0.1:%d", gateway_port(far.gateway));
	scenes_found(&far, &home);
	return 0;
}

static int
close_far(void **state)
{
	scenes_leave(&home);
	gateway_stop(&far.gateway);
	return doors_close(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_answered),
		cmocka_unit_test(a_retry_gets_the_first_answer),
		cmocka_unit_test(a_bad_key_is_told_before_a_bad_body),
		cmocka_unit_test(the_request_id_is_that_of_the_core),
		cmocka_unit_test(a_url_that_is_none_is_told),
		cmocka_unit_test(the_gateway_lives_while_its_core_is_away),
		cmocka_unit_test(a_core_that_is_back_is_found),
	};

	return cmocka_run_group_tests(tests, open_far, close_far);
}

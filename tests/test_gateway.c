/* SPDX-License-Identifier: MIT */
/* What a listen address may be, draining, and stopping. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/web.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static void
a_listen_address_is_host_and_port(void **state)
{
	char taken[64];
	const char *rows[] = { "", ":", "8787", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:0s", "127.0.0.1:65536", "127.0.0.1:0,127.0.0.1:0", "300.0.0.1:0",
		taken };

	(void)state;
	snprintf(taken, sizeof(taken), "127.0.0.1:%d", gateway_port(web_gateway));
	for (size_t i = 0; i < ROWS(rows); i++) {
		char error[256] = "";
		if (gateway_start(&(struct gateway_options){ .listen = rows[i] }, error,
			sizeof(error)) != NULL ||
		    *error == '\0')
			fail_msg("row %zu: %s: %s", i, rows[i], error);
	}
}

static void
a_draining_gateway_closes_and_is_not_ready(void **state)
{
	(void)state;
	assert_int_equal(web_ask(HEAD("GET /readyz") "\r\n"), 200);
	gateway_drain(web_gateway);
	web_say(HEAD("GET /healthz") "\r\n");
	assert_int_equal(web_hear(true), 200);
	assert_string_equal(web_header("Connection"), "close");
	assert_true(web_ended());
	assert_int_equal(web_ask(HEAD("GET /readyz") "\r\n"), 503);
	assert_true(web_ended());
	assert_int_equal(gateway_outstanding(web_gateway), 0);
}

static void *
stop_gateway(void *arg)
{
	(void)arg;
	gateway_stop(&web_gateway);
	return NULL;
}

static void
a_gateway_that_stops_answers_what_is_under_way(void **state)
{
	pthread_t stopper;

	web_stop(state);
	assert_int_equal(web_start(state), 0);
	web_dial();
	web_hold = true;
	web_say(POST_LEASE "Content-Length: 2\r\n\r\n{}");
	while (gateway_outstanding(web_gateway) == 0)
		sched_yield();
	assert_int_equal(pthread_create(&stopper, NULL, stop_gateway, NULL), 0);
	int held = web_sock;
	web_sock = -1;
	do /* until it has begun to stop */
		web_ask(HEAD("GET /nope") "\r\n");
	while (strcmp(web_header("Connection"), "close") != 0);
	close(web_sock);
	web_sock = held;
	sem_post(&web_go_on);
	assert_int_equal(web_hear(true), 201);
	assert_true(web_ended());
	pthread_join(stopper, NULL);
	assert_null(web_gateway);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listen_address_is_host_and_port),
		cmocka_unit_test(a_draining_gateway_closes_and_is_not_ready),
		cmocka_unit_test(a_gateway_that_stops_answers_what_is_under_way),
	};

	return cmocka_run_group_tests(tests, web_start, web_stop);
}

/* SPDX-License-Identifier: MIT */
/* The C library against a server that answers, or does not, as the method says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>

#include "client/client.h"
#include "envelope.pb-c.h"
#include "health.pb-c.h"

#define PATIENCE_MS 10000 /* more than anything here takes on a busy machine */
#define CALLS_AT_ONCE 500
#define SHORT_MS 100 /* a timeout that is meant to run out */

/* ---- The server ---- */

struct server {
	nng_socket socket;
	char url[60];
	pthread_t thread;
	nng_mtx *lock;
	nng_cv *changed;
	int received;
	int finished; /* calls of the client, see count_finished() */
	enum titen_outcome last;
};

static void
send_message(nng_socket socket, const void *bytes, size_t n)
{
	nng_msg *msg;

	nng_msg_alloc(&msg, 0);
	nng_msg_append(msg, bytes, n);
	if (nng_sendmsg(socket, msg, 0) != 0)
		nng_msg_free(msg);
}

/* The payload again, and as text what the request said besides. */
static void
send_reply(nng_socket socket, const Titen__V1__Request *request)
{
	Titen__V1__Reply reply = TITEN__V1__REPLY__INIT;
	char text[200];
	uint8_t *packed;
	size_t bytes;

	snprintf(text, sizeof(text), "%s, %s, %lld",
	    request->authorization != NULL ? request->authorization : "no key",
	    request->idempotency_key != NULL ? request->idempotency_key : "no idempotency key",
	    (long long)request->timeout_ms);
	reply.message = text;
	reply.has_payload = true;
	reply.payload = request->payload;
	bytes = titen__v1__reply__get_packed_size(&reply);
	packed = malloc(bytes);
	titen__v1__reply__pack(&reply, packed);
	send_message(socket, packed, bytes);
	free(packed);
}

static void
serve_one(struct server *server, nng_msg *msg)
{
	Titen__V1__Request *request =
	    titen__v1__request__unpack(NULL, nng_msg_len(msg), nng_msg_body(msg));

	if (strcmp(request->method, "answer") == 0)
		send_reply(server->socket, request);
	else if (strcmp(request->method, "garble") == 0)
		send_message(server->socket, "\xff\xff\xff\xff", 4);
	else if (strcmp(request->method, "hang up") == 0)
		nng_pipe_close(nng_msg_get_pipe(msg));
	titen__v1__request__free_unpacked(request, NULL);
	nng_msg_free(msg);
	nng_mtx_lock(server->lock);
	server->received++;
	nng_cv_wake(server->changed);
	nng_mtx_unlock(server->lock);
}

static void *
serve(void *arg)
{
	struct server *server = arg;
	nng_msg *msg;

	while (nng_recvmsg(server->socket, &msg, 0) == 0)
		serve_one(server, msg);
	return NULL;
}

static int
open_server(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	nng_listener listener;
	int port;

	assert_int_equal(nng_mtx_alloc(&server->lock), 0);
	assert_int_equal(nng_cv_alloc(&server->changed, server->lock), 0);
	assert_int_equal(nng_rep0_open(&server->socket), 0);
	assert_int_equal(nng_listen(server->socket, "tcp://127.0.0.1:0", &listener, 0), 0);
	assert_int_equal(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), 0);
	snprintf(server->url, sizeof(server->url), "tcp://127.0.0.1:%d", port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	*state = server;
	return 0;
}

static int
close_server(void **state)
{
	struct server *server = *state;

	nng_close(server->socket);
	pthread_join(server->thread, NULL);
	nng_cv_free(server->changed);
	nng_mtx_free(server->lock);
	free(server);
	return 0;
}

/* Until *COUNT, one of the server's, is N. */
static void
await(struct server *server, const int *count, int n)
{
	nng_time deadline = nng_clock() + PATIENCE_MS;
	int reached;

	nng_mtx_lock(server->lock);
	while (*count < n && nng_cv_until(server->changed, deadline) == 0)
		;
	reached = *count;
	nng_mtx_unlock(server->lock);
	assert_int_equal(reached, n);
}

/* ---- The client ---- */

static struct titen_client *
connect_to(const struct server *server, const char *key)
{
	char error[200] = "";
	struct titen_client *client = titen_connect(
	    &(struct titen_options){ .url = server->url, .key = key }, error, sizeof(error));

	assert_string_equal(error, "");
	assert_non_null(client);
	return client;
}

static enum titen_outcome
call_method(struct titen_client *client, const char *method, int32_t timeout_ms)
{
	const struct titen_call call = { .method = method, .timeout_ms = timeout_ms };
	Titen__V1__Reply *reply = NULL;
	enum titen_outcome outcome =
	    titen_call_packed(client, &call, (const uint8_t *)"abc", 3, &reply);

	assert_true((reply != NULL) == (outcome == TITEN_ANSWERED));
	titen_reply_free(reply);
	return outcome;
}

static void
count_finished(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	struct server *server = arg;

	nng_mtx_lock(server->lock);
	server->finished++;
	server->last = outcome;
	nng_cv_wake(server->changed);
	nng_mtx_unlock(server->lock);
	titen_reply_free(reply);
}

static void
start_call(struct server *server, struct titen_client *client, const char *method)
{
	const struct titen_call call = { .method = method, .timeout_ms = PATIENCE_MS };

	titen_call_start(client, &call, (const uint8_t *)"abc", 3, count_finished, server);
}

/* ---- Answers ---- */

static void
a_call_carries_everything_there_and_back(void **state)
{
	struct titen_client *client = connect_to(*state, "titen_sk_1");
	Titen__V1__HealthEchoRequest echo = TITEN__V1__HEALTH_ECHO_REQUEST__INIT, *again;
	Titen__V1__Reply *reply;
	const struct titen_call call = {
		.method = "answer",
		.request = &echo.base,
		.idempotency_key = "once",
		.timeout_ms = 4321,
	};

	echo.has_payload = true;
	echo.payload = (ProtobufCBinaryData){ 5, (uint8_t *)"hello" };
	assert_int_equal(titen_call(client, &call, &reply), TITEN_ANSWERED);
	assert_string_equal(reply->message, "Bearer titen_sk_1, once, 4321");
	again =
	    titen__v1__health_echo_request__unpack(NULL, reply->payload.len, reply->payload.data);
	assert_memory_equal(again->payload.data, "hello", 5);
	titen__v1__health_echo_request__free_unpacked(again, NULL);
	titen_reply_free(reply);
	titen_close(&client);
	assert_null(client);
}

static void
a_client_without_a_key_sends_none(void **state)
{
	struct titen_client *client = connect_to(*state, NULL);
	const struct titen_call call = { .method = "answer" };
	Titen__V1__Reply *reply;

	assert_int_equal(titen_call_packed(client, &call, NULL, 0, &reply), TITEN_ANSWERED);
	assert_string_equal(reply->message, "no key, no idempotency key, 30000");
	titen_reply_free(reply);
	titen_close(&client);
}

static void
hundreds_of_calls_share_a_connection(void **state)
{
	struct server *server = *state;
	struct titen_client *client = connect_to(server, NULL);

	for (int i = 0; i < CALLS_AT_ONCE; i++)
		start_call(server, client, "answer");
	await(server, &server->finished, CALLS_AT_ONCE);
	assert_int_equal(server->last, TITEN_ANSWERED);
	await(server, &server->received, CALLS_AT_ONCE);
	titen_close(&client);
}

/* ---- Everything else ---- */

static void
a_call_without_an_answer_times_out_and_the_next_one_works(void **state)
{
	struct titen_client *client = connect_to(*state, NULL);

	assert_int_equal(call_method(client, "ignore", SHORT_MS), TITEN_TIMED_OUT);
	assert_int_equal(call_method(client, "answer", 0), TITEN_ANSWERED);
	titen_close(&client);
}

static void
an_answer_that_is_no_reply_is_garbled(void **state)
{
	struct titen_client *client = connect_to(*state, NULL);

	assert_int_equal(call_method(client, "garble", 0), TITEN_GARBLED);
	assert_int_equal(call_method(client, "answer", 0), TITEN_ANSWERED);
	titen_close(&client);
}

static void
a_lost_call_is_not_sent_again_and_the_next_one_reconnects(void **state)
{
	struct server *server = *state;
	struct titen_client *client = connect_to(server, NULL);

	assert_int_equal(call_method(client, "hang up", 0), TITEN_LOST);
	assert_int_equal(call_method(client, "answer", 0), TITEN_ANSWERED);
	await(server, &server->received, 2);
	titen_close(&client);
}

static void
a_request_that_no_server_reads_is_not_sent(void **state)
{
	struct server *server = *state;
	struct titen_client *client = connect_to(server, NULL);
	const struct titen_call call = { .method = "answer" };
	size_t bytes = ((size_t)1 << 20) + ((size_t)64 << 10);
	uint8_t *payload = calloc(1, bytes);
	Titen__V1__Reply *reply = NULL;

	assert_int_equal(titen_call_packed(client, &call, payload, bytes, &reply), TITEN_TOO_LARGE);
	assert_null(reply);
	assert_int_equal(
	    titen_call_packed(client, &call, payload, (size_t)1 << 20, &reply), TITEN_ANSWERED);
	assert_int_equal(reply->payload.len, (size_t)1 << 20);
	await(server, &server->received, 1);
	titen_reply_free(reply);
	free(payload);
	titen_close(&client);
}

static void
closing_loses_the_calls_under_way(void **state)
{
	struct server *server = *state;
	struct titen_client *client = connect_to(server, NULL);

	for (int i = 0; i < 50; i++)
		start_call(server, client, "ignore");
	await(server, &server->received, 50);
	titen_close(&client);
	await(server, &server->finished, 50);
	assert_int_equal(server->last, TITEN_LOST);
}

/* nng 1.5 leaks a message that is being sent when its connection closes (#1713). Excused are those
 * of this one test and of the server here, so that no leak of the client can hide behind that. */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:closing_in_the_middle_of_sending_ends_every_call_once\n"
	       "leak:send_message\n";
}

/* Some of these calls are just being sent, some wait for their answer. */
static void
closing_in_the_middle_of_sending_ends_every_call_once(void **state)
{
	struct server *server = *state;

	for (int round = 0; round < 50; round++) {
		struct titen_client *client = connect_to(server, NULL);

		for (int i = 0; i < 20; i++)
			start_call(server, client, "answer");
		titen_close(&client);
		await(server, &server->finished, 20 * (round + 1));
	}
}

/* ---- Connecting ---- */

/* A port of our own where nobody answers; connections to it are accepted by the kernel alone when
 * LISTENING. */
static int
mute_port(int *fd, bool listening)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t bytes = sizeof(address);

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listening ? listen(*fd, 1) : 0, 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&address, &bytes), 0);
	return ntohs(address.sin_port);
}

static void
a_server_that_is_not_there_is_an_error(void **state)
{
	static const struct {
		bool listening;
		const char *why;
	} rows[] = {
		{ false, "Connection refused" },
		{ true, "Timed out" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char error[200] = "", expected[200], url[60];
		int fd, port = mute_port(&fd, rows[i].listening);

		snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", port);
		snprintf(expected, sizeof(expected), "cannot connect to %s: %s", url, rows[i].why);
		assert_null(titen_connect(
		    &(struct titen_options){ .url = url, .connect_timeout_ms = SHORT_MS }, error,
		    sizeof(error)));
		close(fd);
		if (strcmp(error, expected) != 0)
			fail_msg("row %zu: %s", i, error);
	}
}

static void
an_address_that_is_none_is_an_error(void **state)
{
	static const char *const rows[] = { "", "127.0.0.1", "tcp://", "nonsense://x",
		"ipc:///no/such/socket" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char error[200] = "";
		struct titen_client *client = titen_connect(
		    &(struct titen_options){ .url = rows[i], .connect_timeout_ms = SHORT_MS },
		    error, sizeof(error));

		if (client != NULL || strstr(error, rows[i]) == NULL)
			fail_msg("row %zu: %s", i, error);
	}
}

static void
every_outcome_has_a_text(void **state)
{
	(void)state;
	for (int outcome = TITEN_ANSWERED; outcome <= TITEN_TOO_LARGE; outcome++)
		assert_true(strlen(titen_outcome_text((enum titen_outcome)outcome)) > 0);
}

#define SERVER_TEST(test) cmocka_unit_test_setup_teardown(test, open_server, close_server)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST(a_call_carries_everything_there_and_back),
		SERVER_TEST(a_client_without_a_key_sends_none),
		SERVER_TEST(hundreds_of_calls_share_a_connection),
		SERVER_TEST(a_call_without_an_answer_times_out_and_the_next_one_works),
		SERVER_TEST(an_answer_that_is_no_reply_is_garbled),
		SERVER_TEST(a_lost_call_is_not_sent_again_and_the_next_one_reconnects),
		SERVER_TEST(a_request_that_no_server_reads_is_not_sent),
		SERVER_TEST(closing_loses_the_calls_under_way),
		SERVER_TEST(closing_in_the_middle_of_sending_ends_every_call_once),
		cmocka_unit_test(a_server_that_is_not_there_is_an_error),
		cmocka_unit_test(an_address_that_is_none_is_an_error),
		cmocka_unit_test(every_outcome_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The nng door against peers of every kind. The core is a stand-in (stand_in.h), the peers
 * are plain sockets (peer.h).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rpc.h"
#include "envelope.pb-c.h"
#include "tests/support/peer.h"
#include "tests/support/stand_in.h"
#include "transport/pipes.h"
#include "transport/server.h"

#define ROW_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define DEAD_PEERS 40
#define STOP_MS_MAX 2000

/* ---- The stage ---- */

struct stage {
	struct core core;
	struct server *server;
	char directory[40];
	char url[80];   /* ipc */
	char local[80]; /* ipc, the owner's */
};

static struct server *
start(struct stage *stage, const char *url, char error[static 200])
{
	return server_start(
	    &(struct server_options){ .core = &stage->core, .urls = (const char *[]){ url, NULL } },
	    error, 200);
}

static int
open_stage(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	char error[200] = "";

	pthread_mutex_init(&stage->core.lock, NULL);
	pthread_cond_init(&stage->core.changed, NULL);
	strcpy(stage->directory, "/tmp/titen-server-XXXXXX");
	assert_non_null(mkdtemp(stage->directory));
	snprintf(stage->url, sizeof(stage->url), "ipc://%s/all", stage->directory);
	snprintf(stage->local, sizeof(stage->local), "ipc://%s/own", stage->directory);
	stage->server = server_start(
	    &(struct server_options){
		.core = &stage->core,
		.urls = (const char *[]){ "tcp://127.0.0.1:0", stage->url, NULL },
		.local_url = stage->local,
	    },
	    error, sizeof(error));
	assert_string_equal(error, "");
	assert_non_null(stage->server);
	*state = stage;
	return 0;
}

static int
close_stage(void **state)
{
	struct stage *stage = *state;

	stand_in_answer_held(&stage->core);
	server_stop(&stage->server);
	assert_int_equal(rmdir(stage->directory), 0);
	free(stage);
	return 0;
}

static struct peer
meet_tcp(const struct stage *stage)
{
	return peer_tcp(server_port(stage->server));
}

static void
expect_service(struct stage *stage)
{
	struct peer peers[] = { meet_tcp(stage), peer_ipc(stage->url) };

	for (size_t i = 0; i < ROW_COUNT(peers); i++) {
		peer_ask(&peers[i], "echo", 100);
		peer_expect(&peers[i], 0);
		peer_close(&peers[i]);
	}
}

static int
descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(directory) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		n++;
	closedir(directory);
	return n;
}

/* The server learns of a death by itself and nobody tells us when: look again until PATIENCE_MS. */
static void
await_descriptors(int most)
{
	int64_t deadline = clock_monotonic_ms() + PATIENCE_MS;

	while (descriptors() > most && clock_monotonic_ms() < deadline)
		poll(NULL, 0, 5);
	assert_in_range(descriptors(), 1, most);
}

static void
await_outstanding(struct server *server, int n)
{
	int64_t deadline = clock_monotonic_ms() + PATIENCE_MS;

	while (server_outstanding(server) != n && clock_monotonic_ms() < deadline)
		poll(NULL, 0, 5);
	assert_int_equal(server_outstanding(server), n);
}

/* ---- Answers ---- */

static void
a_call_is_answered_on_every_address(void **state)
{
	struct stage *stage = *state;

	assert_true(server_port(stage->server) > 0);
	expect_service(stage);
	await_outstanding(stage->server, 0);
}

static void
an_unknown_method_is_unimplemented(void **state)
{
	struct peer peer = meet_tcp(*state);

	peer_ask(&peer, "no.Such/Method", 0);
	peer_expect(&peer, 12);
	peer_close(&peer);
}

static void
garbage_is_answered_and_the_connection_goes_on(void **state)
{
	struct peer peer = meet_tcp(*state);

	peer_send(&peer, "\xff\xff\xff\xff", 4);
	peer_expect(&peer, 3);
	peer_send(&peer, "", 0);
	peer_expect(&peer, 3);
	peer_ask(&peer, "echo", 10);
	peer_expect(&peer, 0);
	peer_close(&peer);
}

static void
a_payload_above_1_MiB_is_answered(void **state)
{
	struct peer peer = meet_tcp(*state);
	size_t overhead = 4; /* tag and length of the inner field */

	peer_ask(&peer, "late", PAYLOAD_BYTES_MAX - overhead + 1);
	peer_expect(&peer, 8);
	peer_ask(&peer, "echo", PAYLOAD_BYTES_MAX - overhead);
	peer_expect(&peer, 0);
	peer_close(&peer);
}

static void
a_frame_above_the_limit_is_cut(void **state)
{
	struct stage *stage = *state;
	struct peer peer = meet_tcp(stage);
	static const uint8_t length[8] = { 0, 0, 0, 0x7f };

	peer_write(&peer, length, sizeof(length));
	assert_true(peer_is_cut(&peer));
	peer_close(&peer);
	expect_service(stage);
}

static void
only_the_owners_socket_makes_a_call_local(void **state)
{
	struct stage *stage = *state;
	struct peer peers[] = { meet_tcp(stage), peer_ipc(stage->url), peer_ipc(stage->local) };
	static const char *const local[] = { "n", "n", "y" };

	for (size_t i = 0; i < ROW_COUNT(peers); i++) {
		PB(Reply) *reply;

		peer_ask(&peers[i], "local", 0);
		reply = peer_receive(&peers[i]);
		assert_memory_equal(reply->payload.data + 2, local[i], 1);
		titen__v1__reply__free_unpacked(reply, NULL);
		peer_close(&peers[i]);
	}
}

static void
too_many_calls_on_one_connection_are_refused(void **state)
{
	struct stage *stage = *state;
	struct peer greedy = meet_tcp(stage);

	for (int i = 0; i < PIPE_OUTSTANDING_MAX; i++)
		peer_ask(&greedy, "late", 0);
	stand_in_await(&stage->core, &stage->core.held_n, PIPE_OUTSTANDING_MAX);
	peer_ask(&greedy, "late", 0);
	peer_expect_refusal(&greedy, 8, "Too many calls under way on this connection.");
	expect_service(stage);
	stand_in_answer_held(&stage->core);
	for (int i = 0; i < PIPE_OUTSTANDING_MAX; i++)
		peer_expect(&greedy, 0);
	peer_close(&greedy);
}

/* ---- Peers that die or misbehave ---- */

/* Requests of every fate: answered at once, at length, and late; nothing of it is read. */
static void
die_with_requests_under_way(struct peer *peer, int i)
{
	for (int n = 0; n < 20; n++) {
		peer_ask(peer, "echo", 2048);
		peer_ask(peer, n < 10 ? "late" : "echo", 2048);
	}
	if (i % 2 == 0)
		peer_reset(peer);
	else
		peer_close(peer);
}

static void
dead_peers_leave_nothing_behind(void **state)
{
	struct stage *stage = *state;
	int before = descriptors();
	int64_t began;

	for (int i = 0; i < DEAD_PEERS; i++) {
		struct peer tcp = meet_tcp(stage), ipc = peer_ipc(stage->url);

		die_with_requests_under_way(&tcp, i);
		die_with_requests_under_way(&ipc, i);
	}
	await_descriptors(before);
	expect_service(stage);
	stand_in_answer_held(&stage->core);
	await_outstanding(stage->server, 0);
	await_descriptors(before);

	began = clock_monotonic_ms();
	server_stop(&stage->server);
	assert_in_range(clock_monotonic_ms() - began, 0, STOP_MS_MAX);
	stage->server = start(stage, stage->url, (char[200]){ "" });
	assert_non_null(stage->server);
}

static void
hostile_connections_do_not_kill_a_listener(void **state)
{
	struct stage *stage = *state;

	for (int i = 0; i < 100; i++) {
		struct peer peers[] = {
			peer_dial_tcp(server_port(stage->server)),
			peer_dial_ipc(stage->url),
		};

		for (size_t p = 0; p < ROW_COUNT(peers); p++) {
			if (i % 4 == 1)
				shutdown(peers[p].fd, SHUT_WR);
			if (i % 4 == 2)
				peer_write(&peers[p], "GET / HTTP/1.1\r\n\r\n", 18);
			if (i % 4 == 3)
				peer_write(&peers[p], "\0SP", 3);
			if (i % 4 == 0)
				peer_close(&peers[p]);
			else
				peer_reset(&peers[p]);
		}
	}
	expect_service(stage);
	expect_service(stage);
}

static void
a_peer_that_reads_nothing_is_cut_while_others_are_served(void **state)
{
	struct stage *stage = *state;
	int own = descriptors() + 1;
	struct peer deaf = meet_tcp(stage);
	int small = 4096;

	setsockopt(deaf.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 100; i++)
		peer_ask(&deaf, "large", 0);
	expect_service(stage);
	await_outstanding(stage->server, 0);
	await_descriptors(own);
	expect_service(stage);
	peer_close(&deaf);
}

/* The code that PEER is answered with when it asks for something long. */
static int
code_of_huge(struct peer *peer)
{
	PB(Reply) *reply;
	int code;

	peer_ask(peer, "huge", 0);
	reply = peer_receive(peer);
	code = reply->code;
	titen__v1__reply__free_unpacked(reply, NULL);
	return code;
}

/* What another peer gets while one reads nothing of more than the server lets wait. On a slow
 * machine that one may be cut before all of it is there: hence the attempts. */
static void
long_answers_that_nobody_reads_are_bounded(void **state)
{
	struct stage *stage = *state;
	struct peer other = meet_tcp(stage);
	int code = 0;

	for (int attempt = 0; attempt < 5 && code == 0; attempt++) {
		struct peer deaf = meet_tcp(stage);

		for (int i = 0; i < 16; i++)
			peer_ask(&deaf, "huge", 0);
		for (int i = 0; i < 10 && code == 0; i++)
			code = code_of_huge(&other);
		peer_ask(&other, "echo", 0);
		peer_expect(&other, 0);
		peer_close(&deaf);
	}
	assert_int_equal(code, 14);
	peer_close(&other);
}

/* ---- Start and stop ---- */

static void
a_draining_server_finishes_what_it_has(void **state)
{
	struct stage *stage = *state;
	struct peer peer = meet_tcp(stage), late;

	peer_ask(&peer, "late", 0);
	stand_in_await(&stage->core, &stage->core.held_n, 1);
	server_drain(stage->server);
	peer_ask(&peer, "late", 0);
	peer_expect_refusal(&peer, 14, "The server is stopping.");
	assert_int_equal(stage->core.submitted, 1);
	await_outstanding(stage->server, 1);
	stand_in_answer_held(&stage->core);
	peer_expect(&peer, 0);
	await_outstanding(stage->server, 0);
	late = meet_tcp(stage);
	assert_true(peer_is_cut(&late));
	peer_close(&late);
	peer_close(&peer);
}

static void *
answer_when_asked(void *arg)
{
	struct stage *stage = arg;

	stand_in_answer_held(&stage->core);
	return NULL;
}

static void
stopping_waits_for_the_core(void **state)
{
	struct stage *stage = *state;
	struct peer peer = meet_tcp(stage);
	pthread_t thread;

	for (int i = 0; i < 100; i++)
		peer_ask(&peer, "late", 0);
	stand_in_await(&stage->core, &stage->core.held_n, 100);
	assert_int_equal(pthread_create(&thread, NULL, answer_when_asked, stage), 0);
	server_stop(&stage->server);
	assert_null(stage->server);
	assert_int_equal(stage->core.held_n, 0);
	pthread_join(thread, NULL);
	peer_close(&peer);
	stage->server = start(stage, stage->url, (char[200]){ "" });
}

static void
a_busy_address_is_named(void **state)
{
	struct stage *stage = *state;
	char error[200] = "", expected[200], url[100];

	snprintf(url, sizeof(url), "tcp://127.0.0.1:%d", server_port(stage->server));
	snprintf(expected, sizeof(expected), "%s is in use", url);
	assert_null(start(stage, url, error));
	assert_string_equal(error, expected);
	snprintf(expected, sizeof(expected), "%s is in use", stage->url);
	assert_null(start(stage, stage->url, error));
	assert_string_equal(error, expected);
	expect_service(stage);
}

static void
the_socket_file_of_a_dead_server_is_taken_over(void **state)
{
	struct stage *stage = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char error[200] = "", url[120];
	struct server *server;
	struct peer peer;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/left", stage->directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	snprintf(url, sizeof(url), "ipc://%s", address.sun_path);
	server = start(stage, url, error);
	assert_string_equal(error, "");
	peer = peer_ipc(url);
	peer_ask(&peer, "echo", 1);
	peer_expect(&peer, 0);
	peer_close(&peer);
	server_stop(&server);
}

static void
a_socket_file_is_its_owners_alone(void **state)
{
	struct stage *stage = *state;
	struct stat info;

	assert_int_equal(stat(stage->local + strlen("ipc://"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(stat(stage->url + strlen("ipc://"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
}

static void
only_tcp_and_ipc_are_spoken(void **state)
{
	static const char *const rows[] = {
		"",
		"127.0.0.1:8788",
		"http://127.0.0.1:8788",
		"ws://127.0.0.1:0/",
		"tls+tcp://127.0.0.1:0",
		"inproc://titen",
		"ipc://relative",
		"tcp://256.256.256.256:1",
		"tcp://127.0.0.1:99999",
		"ipc:///no/such/directory/socket",
	};

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		char error[200] = "";

		if (start(*state, rows[i], error) != NULL || strstr(error, rows[i]) == NULL)
			fail_msg("row %zu: %s", i, error);
	}
}

static void
a_socket_path_ends_at_107_bytes(void **state)
{
	struct stage *stage = *state;

	for (int bytes = 107; bytes <= 108; bytes++) {
		char error[200] = "", url[130];
		struct server *server;

		memset(url, 'x', sizeof(url));
		memcpy(url, stage->url, strlen(stage->url));
		url[(int)strlen("ipc://") + bytes] = '\0';
		server = start(stage, url, error);
		assert_int_equal(server != NULL, bytes == 107);
		if (server == NULL)
			assert_non_null(strstr(error, "is longer than 107 bytes"));
		else
			server_stop(&server);
	}
}

static void
the_library_has_a_version(void **state)
{
	(void)state;
	assert_memory_equal(server_library(), "nng ", 4);
}

#define STAGE_TEST(test) cmocka_unit_test_setup_teardown(test, open_stage, close_stage)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(a_call_is_answered_on_every_address),
		STAGE_TEST(an_unknown_method_is_unimplemented),
		STAGE_TEST(garbage_is_answered_and_the_connection_goes_on),
		STAGE_TEST(a_payload_above_1_MiB_is_answered),
		STAGE_TEST(a_frame_above_the_limit_is_cut),
		STAGE_TEST(only_the_owners_socket_makes_a_call_local),
		STAGE_TEST(too_many_calls_on_one_connection_are_refused),
		STAGE_TEST(dead_peers_leave_nothing_behind),
		STAGE_TEST(hostile_connections_do_not_kill_a_listener),
		STAGE_TEST(a_peer_that_reads_nothing_is_cut_while_others_are_served),
		STAGE_TEST(long_answers_that_nobody_reads_are_bounded),
		STAGE_TEST(a_draining_server_finishes_what_it_has),
		STAGE_TEST(stopping_waits_for_the_core),
		STAGE_TEST(a_busy_address_is_named),
		STAGE_TEST(the_socket_file_of_a_dead_server_is_taken_over),
		STAGE_TEST(a_socket_file_is_its_owners_alone),
		STAGE_TEST(only_tcp_and_ipc_are_spoken),
		STAGE_TEST(a_socket_path_ends_at_107_bytes),
		STAGE_TEST(the_library_has_a_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

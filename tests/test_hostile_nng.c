/* SPDX-License-Identifier: MIT */
/*
 * Clients at the nng door that die with requests under way, that speak nonsense, or that never
 * read. In every test a client at each address goes on as if nothing were; afterwards the server
 * has no more descriptors than before, and stops cleanly. The argument is the number of hostile
 * connections.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/support/deaf.h"
#include "tests/support/process.h"
#include "tests/support/program.h"
#include "tests/support/steady.h"

#define KILLED 200
#define KILLED_REQUESTS 50 /* of each, under way when it dies */
#define CONNECTS 10000
#define SILENT 20           /* of these stay and say nothing */
#define DEAF 100            /* that never read */
#define DEAF_REQUESTS 50    /* of each */
#define GIVE_BACK_MS 15000  /* nng gives a handshake ten seconds */
#define CUT_MS_MAX 30000    /* a sanitizer and a busy machine included */
#define STOP_MS_MAX 10000   /* of cmd/stop.c: what draining may take */
#define NOISE_SEED 20261130 /* any number; the same noise each time */

static size_t connects = CONNECTS;

/* --- the server under siege, and who is not to notice */

struct siege {
	struct program *program;
	struct steady *tcp;
	struct steady *ipc;
	int descriptors; /* before */
	int64_t rss_kib;
};

static struct siege
siege_begin(struct program *p)
{
	struct siege siege = { .program = p };

	program_bootstrap(p);
	program_serve(p);
	siege.tcp = steady_start(p, p->rpc);
	siege.ipc = steady_start(p, p->local);
	siege.descriptors = process_descriptors(p->pid);
	siege.rss_kib = process_rss_kib(p->pid);
	return siege;
}

static void
siege_end(struct siege *siege)
{
	struct program *p = siege->program;
	int64_t stop_ms;

	if (!process_gives_back(p->pid, siege->descriptors, GIVE_BACK_MS))
		fail_msg("%d descriptors were %d before", process_descriptors(p->pid),
		    siege->descriptors);
	steady_stop(&siege->tcp);
	steady_stop(&siege->ipc);
	print_message("memory: %lld KiB, %lld KiB before\n", (long long)process_rss_kib(p->pid),
	    (long long)siege->rss_kib);
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, &stop_ms), 0);
	print_message("stopped in %lld ms\n", (long long)stop_ms);
	assert_in_range(stop_ms, 0, STOP_MS_MAX);
}

static struct peer
dial(const struct program *p, size_t i)
{
	return i % 2 == 0 ? peer_dial_tcp(p->rpc_port) : peer_dial_ipc(p->local);
}

static struct peer
greet(const struct program *p, size_t i)
{
	return i % 2 == 0 ? peer_tcp(p->rpc_port) : peer_ipc(p->local);
}

/* --- clients that die: the kernel closes their sockets, as it does when they are killed */

static void
clients_killed_with_requests_under_way_leave_nothing_behind(void **state)
{
	struct siege siege = siege_begin(*state);
	struct peer peers[KILLED];

	for (size_t i = 0; i < KILLED; i++)
		peers[i] = greet(siege.program, i);
	for (size_t i = 0; i < KILLED; i++)
		for (int request = 0; request < KILLED_REQUESTS; request++)
			peer_ask(&peers[i], "titen.v1.HealthService/Echo", 1000);
	for (size_t i = 0; i < KILLED; i++)
		peer_close(&peers[i]);
	siege_end(&siege);
}

/* --- clients that speak nonsense */

static const uint8_t hello[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };

/* The server may have hung up already. */
static void
say(const struct peer *peer, const void *bytes, size_t n)
{
	(void)send(peer->fd, bytes, n, MSG_NOSIGNAL);
}

static void
say_length(const struct peer *peer, uint64_t length)
{
	uint64_t wire = htobe64(length);

	say(peer, hello, sizeof(hello));
	if (peer->ipc)
		say(peer, "\1", 1);
	say(peer, &wire, sizeof(wire));
}

static void
say_noise(const struct peer *peer, unsigned *seed)
{
	uint8_t noise[64];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)rand_r(seed);
	say(peer, noise, sizeof(noise));
}

static void
nothing(const struct peer *peer, unsigned *seed)
{
	(void)peer;
	(void)seed;
}

static void
only_an_end(const struct peer *peer, unsigned *seed)
{
	(void)seed;
	shutdown(peer->fd, SHUT_WR);
}

static void
half_a_hello(const struct peer *peer, unsigned *seed)
{
	(void)seed;
	say(peer, hello, sizeof(hello) / 2);
}

static void
half_a_frame(const struct peer *peer, unsigned *seed)
{
	say_length(peer, 100);
	say_noise(peer, seed);
}

static void
a_frame_of_noise(const struct peer *peer, unsigned *seed)
{
	say_length(peer, 64);
	say_noise(peer, seed);
}

static void
a_length_beyond_all_sense(const struct peer *peer, unsigned *seed)
{
	(void)seed;
	say_length(peer, UINT64_C(1) << 63);
}

static void
another_protocol(const struct peer *peer, unsigned *seed)
{
	static const uint8_t publisher[] = { 0, 'S', 'P', 0, 0, 0x20, 0, 0 };

	(void)seed;
	say(peer, publisher, sizeof(publisher));
}

static void
byte_by_byte(const struct peer *peer, unsigned *seed)
{
	uint8_t byte = 0x80;

	for (size_t i = 0; i < sizeof(hello); i++)
		say(peer, &hello[i], 1);
	for (int i = 0; i < 30; i++) {
		say(peer, &byte, 1);
		byte = (uint8_t)rand_r(seed);
	}
}

static void (*const shapes[])(const struct peer *peer, unsigned *seed) = { nothing, only_an_end,
	half_a_hello, half_a_frame, a_frame_of_noise, a_length_beyond_all_sense, another_protocol,
	say_noise, byte_by_byte };

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Each shape comes on tcp and ipc, closed and reset. */
static void
connect_hostile(const struct program *p, size_t i, unsigned *seed)
{
	struct peer peer = dial(p, i);

	shapes[i % SHAPES](&peer, seed);
	if (i / 2 % 2 == 0)
		peer_reset(&peer);
	else
		peer_close(&peer);
}

static void
hostile_connections_leave_nothing_behind(void **state)
{
	struct siege siege = siege_begin(*state);
	struct peer silent[SILENT];
	unsigned seed = NOISE_SEED;

	for (size_t i = 0; i < SILENT; i++)
		silent[i] = dial(siege.program, i);
	for (size_t i = 0; i < connects; i++)
		connect_hostile(siege.program, i, &seed);
	siege_end(&siege);
	for (size_t i = 0; i < SILENT; i++)
		peer_close(&silent[i]);
}

static void
http_at_the_nng_door_is_cut(void **state)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
	struct siege siege = siege_begin(*state);

	for (size_t i = 0; i < 2; i++) {
		struct peer peer = dial(siege.program, i);

		peer_write(&peer, request, strlen(request));
		assert_true(peer_is_cut(&peer));
		peer_close(&peer);
	}
	siege_end(&siege);
}

static void
nng_at_the_web_door_is_cut(void **state)
{
	struct siege siege = siege_begin(*state);
	struct peer peer = peer_dial_tcp(atoi(strrchr(siege.program->http, ':') + 1));

	peer_write(&peer, hello, sizeof(hello));
	assert_true(peer_is_cut(&peer));
	peer_close(&peer);
	siege_end(&siege);
}

/* --- clients that never read */

static struct peer
deaf(const struct program *p, size_t i)
{
	struct peer peer;
	uint8_t answer[sizeof(hello)];

	if (i % 2 != 0)
		return peer_ipc(p->local);
	peer = deaf_dial(p->rpc_port);
	peer_write(&peer, hello, sizeof(hello));
	assert_int_equal(recv(peer.fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	return peer;
}

/* How much had been sent before the connection was cut. */
static size_t
read_to_the_end(const struct peer *peer)
{
	static char bytes[64 << 10];
	size_t sum = 0;
	ssize_t n;

	while ((n = recv(peer->fd, bytes, sizeof(bytes), 0)) > 0)
		sum += (size_t)n;
	assert_true(n == 0 || errno == ECONNRESET);
	return sum;
}

/* The end of a connection comes behind what its client has not read. */
static void
clients_that_never_read_are_cut(void **state)
{
	struct siege siege = siege_begin(*state);
	struct peer peers[DEAF];
	int64_t began_ms;
	size_t sent = 0;

	for (size_t i = 0; i < DEAF; i++)
		peers[i] = deaf(siege.program, i);
	began_ms = clock_monotonic_ms();
	for (size_t i = 0; i < DEAF; i++)
		for (int request = 0; request < DEAF_REQUESTS; request++)
			peer_ask(&peers[i], "titen.v1.ReflectionService/Describe", 0);
	if (!process_gives_back(siege.program->pid, siege.descriptors, CUT_MS_MAX))
		fail_msg("%d descriptors", process_descriptors(siege.program->pid));
	print_message("cut within %lld ms\n", (long long)(clock_monotonic_ms() - began_ms));
	for (size_t i = 0; i < DEAF; i++) {
		sent += read_to_the_end(&peers[i]);
		peer_close(&peers[i]);
	}
	print_message("%zu KiB had been sent\n", sent >> 10);
	siege_end(&siege);
}

#define SIEGE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SIEGE(clients_killed_with_requests_under_way_leave_nothing_behind),
		SIEGE(hostile_connections_leave_nothing_behind),
		SIEGE(http_at_the_nng_door_is_cut),
		SIEGE(nng_at_the_web_door_is_cut),
		SIEGE(clients_that_never_read_are_cut),
	};

	if (argc > 1)
		connects = strtoul(argv[1], NULL, 10);
	if (connects == 0 || sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

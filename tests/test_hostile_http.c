/* SPDX-License-Identifier: MIT */
/*
 * Clients at the web door that stall, that send or read a byte now and then, or that send what is
 * no request. Others are served meanwhile, nobody holds a connection for long, and nothing is
 * stored that was not asked for properly.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "gateway/patience.h"
#include "tests/support/deaf.h"
#include "tests/support/process.h"
#include "tests/support/program.h"
#include "tests/support/proof.h"
#include "tests/support/steady.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))
#define STALLED 150
#define HEALTHY 150
#define ROUNDS 5           /* requests of each healthy connection */
#define STALL_MS_MAX 15000 /* three times what the gateway allows for a head or a read */
#define DRIP_MS 1000       /* between two bytes: no single read is slow */
#define READ_BYTES 1024    /* at once, by a slow reader */
#define MESSAGES 130       /* in its inbox: half a megabyte */
#define MESSAGE_BYTES 4000 /* of each */
#define SLACK_MS 6000      /* the gateway's own second, and a busy machine */
#define GIVE_BACK_MS 15000 /* a connection kept alive ends after ten seconds */
#define STOP_MS_MAX 8000   /* below the drain limit: nobody is waited for */
#define KEPT_ALIVE 50
#define HEAD_BYTES 4096
#define BRACKETS 1600
#define REPEATS 40 /* of every malformed request, first to warm up and then to look for growth */
/* A leak of 10 KiB for each connection would be twice this. A sanitizer keeps freed memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#define GROWTH_KIB_MAX (256 << 10)
#else
#define GROWTH_KIB_MAX (8 << 10)
#endif

#define LEASE                                                                                      \
	"{\"resource_type\":\"repo\",\"resource_id\":\"main\",\"purpose\":\"merge\","              \
	"\"ttl_seconds\":60}"
#define LEASE_BYTES (sizeof(LEASE) - 1)
#define GET_HEALTH "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

/* --- a bare connection --- */

static int
http_port(const struct program *p)
{
	return atoi(strrchr(p->http, ':') + 1);
}

static struct peer
dial(const struct program *p)
{
	return peer_dial_tcp(http_port(p));
}

/* The server may have hung up already. */
static void
say(const struct peer *peer, const char *text)
{
	(void)send(peer->fd, text, strlen(text), MSG_NOSIGNAL);
}

/* The start of a POST of a lease, up to where the headers go on. */
static void
say_post(const struct program *p, const struct peer *peer, const char *more)
{
	char head[HEAD_BYTES];

	snprintf(head, sizeof(head),
	    "POST /v1/leases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s", p->owner_key,
	    more);
	say(peer, head);
}

static bool
head_hear(const struct peer *peer, char head[static HEAD_BYTES])
{
	size_t n = 0;

	while (n < HEAD_BYTES - 1 && recv(peer->fd, head + n, 1, 0) == 1) {
		head[++n] = '\0';
		if (n >= 4 && strcmp(head + n - 4, "\r\n\r\n") == 0)
			return true;
	}
	return false;
}

/* The status of the next answer, which is read to its end; 0: the connection ended instead. */
static int
hear(const struct peer *peer)
{
	char head[HEAD_BYTES] = "", *length, *body;
	size_t n;
	bool whole;

	if (!head_hear(peer, head))
		return 0;
	length = strstr(head, "Content-Length: ");
	n = length == NULL ? 0 : strtoul(length + 16, NULL, 10);
	body = malloc(n + 1);
	whole = n == 0 || recv(peer->fd, body, n, MSG_WAITALL) == (ssize_t)n;
	free(body);
	return whole ? atoi(head + strlen("HTTP/1.1 ")) : 0;
}

/* --- stalled --- */

static void
in_the_line(const struct program *p, const struct peer *peer)
{
	(void)p;
	say(peer, "GET /heal");
}

static void
in_a_header(const struct program *p, const struct peer *peer)
{
	say_post(p, peer, "X-Half: ");
}

static void
in_the_body(const struct program *p, const struct peer *peer)
{
	say_post(p, peer, "Content-Length: 5000\r\n\r\n{\"purpose\":\"");
}

static void
in_a_chunk(const struct program *p, const struct peer *peer)
{
	say_post(p, peer, "Transfer-Encoding: chunked\r\n\r\nfff\r\n{\"purpose\":\"");
}

typedef void stall(const struct program *p, const struct peer *peer);

static stall *const stalls[] = { in_the_line, in_a_header, in_the_body, in_a_chunk };

/* How long the slowest of the requests of all PEERS took. */
static int64_t
serve_round(const struct program *p, const struct peer peers[static HEALTHY], int round)
{
	int64_t worst_ms = 0;

	for (size_t i = 0; i < HEALTHY; i++) {
		int64_t began_ms = clock_monotonic_ms(), took_ms;
		bool writes = ((int)i + round) % 2 == 0;

		if (writes)
			say_post(p, &peers[i], "Content-Length: 80\r\n\r\n" LEASE);
		else
			say(&peers[i], GET_HEALTH);
		assert_int_equal(hear(&peers[i]), writes ? 201 : 200);
		took_ms = clock_monotonic_ms() - began_ms;
		worst_ms = took_ms > worst_ms ? took_ms : worst_ms;
	}
	return worst_ms;
}

static void
close_all(struct peer *peers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		peer_close(&peers[i]);
}

static void
expect_cut(const struct peer *peers, size_t n, int64_t within_ms)
{
	int64_t began_ms = clock_monotonic_ms(), took_ms;

	for (size_t i = 0; i < n; i++)
		if (!peer_is_cut(&peers[i]))
			fail_msg("connection %zu is not cut", i);
	took_ms = clock_monotonic_ms() - began_ms;
	print_message("stalled connections were cut within %lld ms\n", (long long)took_ms);
	assert_in_range(took_ms, 0, within_ms);
}

static void
half_of_the_connections_stall_and_the_others_are_served(void **state)
{
	struct program *p = *state;
	struct peer stalled[STALLED], healthy[HEALTHY];
	int64_t worst_ms = 0, ms;
	int before;

	assert_int_equal(LEASE_BYTES, 80);
	program_bootstrap(p);
	program_serve(p);
	before = process_descriptors(p->pid);
	for (size_t i = 0; i < STALLED; i++) {
		stalled[i] = dial(p);
		stalls[i % ROWS(stalls)](p, &stalled[i]);
		healthy[i] = dial(p);
	}
	for (int round = 0; round < ROUNDS; round++) {
		ms = serve_round(p, healthy, round);
		worst_ms = ms > worst_ms ? ms : worst_ms;
	}
	print_message("the longest request took %lld ms\n", (long long)worst_ms);
	assert_in_range(worst_ms, 0, STEADY_MS_MAX);
	expect_cut(stalled, STALLED, STALL_MS_MAX);
	close_all(stalled, STALLED);
	close_all(healthy, HEALTHY);
	assert_true(process_gives_back(p->pid, before, GIVE_BACK_MS));
}

/* --- a byte now and then --- */

/* Fill the owner's inbox: a page of it is more than the kernels take for a slow reader. */
static void
fill_inbox(const struct program *p)
{
	struct peer peer = dial(p);
	char message[MESSAGE_BYTES + 1], text[2 * HEAD_BYTES];

	memset(message, 'm', MESSAGE_BYTES);
	message[MESSAGE_BYTES] = '\0';
	for (int i = 0; i < MESSAGES; i++) {
		int body = snprintf(text, sizeof(text),
		    "{\"to_principal\":\"owner\",\"subject_id\":\"s\",\"message\":\"%s\"}",
		    message);

		snprintf(text, sizeof(text),
		    "POST /v1/handoffs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
		    "Content-Length: %d\r\n\r\n"
		    "{\"to_principal\":\"owner\",\"subject_id\":\"s\",\"message\":\"%s\"}",
		    p->owner_key, body, message);
		say(&peer, text);
		assert_int_equal(hear(&peer), 201);
	}
	peer_close(&peer);
}

static void
in_the_answer(const struct program *p, const struct peer *peer)
{
	char head[HEAD_BYTES];

	snprintf(head, sizeof(head),
	    "GET /v1/handoffs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
	    p->owner_key);
	say(peer, head);
}

static void
send_a_byte(const struct peer *peer)
{
	say(peer, "x");
}

static void
read_a_little(const struct peer *peer)
{
	char bytes[READ_BYTES];

	(void)recv(peer->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
}

/* How a transfer begins, and what is done for it each DRIP_MS. */
static const struct drip {
	stall *begin;
	void (*go_on)(const struct peer *peer);
	int64_t ms_max;
} drips[] = {
	{ in_the_line, send_a_byte, STALL_MS_MAX },
	{ in_a_header, send_a_byte, STALL_MS_MAX },
	{ in_the_body, send_a_byte, TRANSFER_MS_MAX + SLACK_MS },
	{ in_a_chunk, send_a_byte, TRANSFER_MS_MAX + SLACK_MS },
	{ in_the_answer, read_a_little, TRANSFER_MS_MAX + SLACK_MS },
};

#define DRIPS ROWS(drips)

/* What the server has not given back after MS must not be due. */
static void
expect_not_due(int left, int64_t ms)
{
	int due = 0;

	for (size_t i = 0; i < DRIPS; i++)
		due += ms > drips[i].ms_max;
	if (left > (int)DRIPS - due)
		fail_msg("%d transfers go on after %lld ms", left, (long long)ms);
}

static void
a_byte_now_and_then_does_not_hold_a_connection(void **state)
{
	struct program *p = *state;
	struct peer peers[DRIPS];
	int before, left = DRIPS;
	int64_t began_ms;

	program_bootstrap(p);
	program_serve(p);
	before = process_descriptors(p->pid);
	fill_inbox(p);
	for (size_t i = 0; i < DRIPS; i++) {
		peers[i] = deaf_dial(http_port(p));
		drips[i].begin(p, &peers[i]);
	}
	began_ms = clock_monotonic_ms();
	while (left > 0) {
		int64_t ms = clock_monotonic_ms() - began_ms;

		poll(NULL, 0, DRIP_MS);
		for (size_t i = 0; i < DRIPS; i++)
			drips[i].go_on(&peers[i]);
		if (left != process_descriptors(p->pid) - before)
			print_message("%d transfers went on for %lld ms\n", left, (long long)ms);
		left = process_descriptors(p->pid) - before;
		expect_not_due(left, ms);
	}
	close_all(peers, DRIPS);
	assert_int_equal(proof_number(p->db, "SELECT count(*) FROM leases"), 0);
}

/* --- what is no request --- */

/* Behind the first headers of a POST; "%s" is where a good lease goes. */
static const struct {
	const char *more;
	int status; /* 0: the connection ends without an answer */
} malformed[] = {
	{ "Content-Length: 80\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n" LEASE "\r\n0\r\n\r\n",
	    400 },
	{ "Content-Length: 80\r\nContent-Length: 80\r\n\r\n" LEASE, 400 },
	{ "Content-Length: 80\r\nContent-Length: 81\r\n\r\n" LEASE, 400 },
	{ "Content-Length: +80\r\n\r\n" LEASE, 400 },
	{ "Content-Length: 0x50\r\n\r\n" LEASE, 400 },
	{ "Content-Length: 9223372036854775808\r\n\r\n" LEASE, 413 },
	{ "Content-Length: -1\r\n\r\n" LEASE, 400 },
	{ "Transfer-Encoding: gzip, chunked\r\n\r\n50\r\n" LEASE "\r\n0\r\n\r\n", 400 },
	{ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n" LEASE
	  "\r\n0\r\n\r\n",
	    400 },
	{ "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" LEASE "\r\n0\r\n\r\n", 400 },
	{ "Transfer-Encoding: chunked\r\n\r\n-1\r\n" LEASE "\r\n0\r\n\r\n", 400 },
	{ "Host: y\r\nContent-Length: 80\r\n\r\n" LEASE, 400 },
};

static void
say_folded(const struct program *p, const struct peer *peer)
{
	say_post(p, peer, "X-Long: a\r\n b\r\nContent-Length: 80\r\n\r\n" LEASE);
}

static void
say_headers(const struct program *p, const struct peer *peer, int headers)
{
	char more[HEAD_BYTES / 2];
	size_t n = 0;

	/* Host, Authorization and Content-Length are three. */
	for (int i = 0; i < headers - 3; i++)
		n += (size_t)sprintf(more + n, "X-%d: %d\r\n", i, i);
	sprintf(more + n, "Content-Length: 80\r\n\r\n" LEASE);
	say_post(p, peer, more);
}

static void
say_64_headers(const struct program *p, const struct peer *peer)
{
	say_headers(p, peer, 64);
}

static void
say_65_headers(const struct program *p, const struct peer *peer)
{
	say_headers(p, peer, 65);
}

static void
say_a_nul_in_the_path(const struct program *p, const struct peer *peer)
{
	char head[HEAD_BYTES];

	snprintf(head, sizeof(head),
	    "DELETE /v1/leases/%%00 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
	    p->owner_key);
	say(peer, head);
}

static void
say_nested(const struct program *p, const struct peer *peer, const char *open, size_t n)
{
	char head[64], *body = malloc(n * strlen(open) + 1);

	for (size_t i = 0; i < n; i++)
		strcpy(body + i * strlen(open), open);
	snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n", strlen(body));
	say_post(p, peer, head);
	say(peer, body);
	free(body);
}

static void
say_brackets(const struct program *p, const struct peer *peer)
{
	say_nested(p, peer, "[", BRACKETS);
}

static void
say_braces(const struct program *p, const struct peer *peer)
{
	say_nested(p, peer, "{\"a\":", BRACKETS);
}

static const struct {
	stall *say;
	int status;
} odd[] = {
	{ say_folded, 400 },
	{ say_64_headers, 400 },
	{ say_65_headers, 400 },
	{ say_a_nul_in_the_path, 400 },
	{ say_brackets, 400 },
	{ say_braces, 400 },
};

/* Each on a connection of its own. */
static void
say_all_malformed(const struct program *p)
{
	for (size_t i = 0; i < ROWS(malformed) + ROWS(odd); i++) {
		bool plain = i < ROWS(malformed);
		int wanted = plain ? malformed[i].status : odd[i - ROWS(malformed)].status, status;
		struct peer peer = dial(p);

		if (plain)
			say_post(p, &peer, malformed[i].more);
		else
			odd[i - ROWS(malformed)].say(p, &peer);
		status = hear(&peer);
		if (status != wanted)
			fail_msg("row %zu: %d", i, status);
		peer_close(&peer);
	}
}

static void
what_is_no_request_is_refused_and_leaves_nothing(void **state)
{
	struct program *p = *state;
	struct steady *steady;
	int64_t before_kib, growth_kib;
	int before;

	program_bootstrap(p);
	program_serve(p);
	before = process_descriptors(p->pid);
	for (int i = 0; i < REPEATS; i++)
		say_all_malformed(p);
	before_kib = process_rss_kib(p->pid);
	for (int i = 0; i < REPEATS; i++)
		say_all_malformed(p);
	growth_kib = process_rss_kib(p->pid) - before_kib;
	print_message("grown by %lld KiB\n", (long long)growth_kib);
	assert_true(growth_kib < GROWTH_KIB_MAX);
	assert_true(process_gives_back(p->pid, before, GIVE_BACK_MS));
	assert_int_equal(proof_number(p->db, "SELECT count(*) FROM leases"), 0);
	steady = steady_start(p, p->http);
	steady_stop(&steady);
}

/* --- what is a request, though an odd one --- */

static void
requests_may_be_pipelined_and_chunked(void **state)
{
	struct program *p = *state;
	struct peer peer;

	program_bootstrap(p);
	program_serve(p);
	peer = dial(p);
	for (int i = 0; i < 10; i++) {
		say_post(p, &peer, "Content-Length: 80\r\n\r\n" LEASE);
		say(&peer, GET_HEALTH);
		say_post(
		    p, &peer, "Transfer-Encoding: chunked\r\n\r\n50\r\n" LEASE "\r\n0\r\n\r\n");
	}
	for (int i = 0; i < 10; i++) {
		assert_int_equal(hear(&peer), 201);
		assert_int_equal(hear(&peer), 200);
		assert_int_equal(hear(&peer), 201);
	}
	peer_close(&peer);
	assert_int_equal(proof_number(p->db, "SELECT count(*) FROM leases"), 20);
}

/* Read, or refused with nothing stored. */
static void
chunks_may_have_extensions_and_trailers(void **state)
{
	static const char *const rows[] = {
		"50;name=value\r\n" LEASE "\r\n0\r\n\r\n",
		"50\r\n" LEASE "\r\n0;last\r\n\r\n",
		"50\r\n" LEASE "\r\n0\r\nX-Trailer: x\r\n\r\n",
		"50\r\n" LEASE "\r\n0\r\nContent-Length: 1\r\n\r\n",
		"050\r\n" LEASE "\r\n000\r\n\r\n",
	};
	struct program *p = *state;
	int64_t stored = 0;

	program_bootstrap(p);
	program_serve(p);
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct peer peer = dial(p);
		int status;

		say_post(p, &peer, "Transfer-Encoding: chunked\r\n\r\n");
		say(&peer, rows[i]);
		status = hear(&peer);
		peer_close(&peer);
		stored += status == 201;
		if ((status != 201 && status != 400) ||
		    proof_number(p->db, "SELECT count(*) FROM leases") != stored)
			fail_msg("row %zu: %d", i, status);
	}
}

/* --- stopping --- */

static void
idle_and_stalled_connections_do_not_delay_the_stop(void **state)
{
	struct program *p = *state;
	struct peer idle[KEPT_ALIVE], stalled[ROWS(stalls)];
	int64_t ms;

	program_bootstrap(p);
	program_serve(p);
	for (size_t i = 0; i < KEPT_ALIVE; i++) {
		idle[i] = dial(p);
		say(&idle[i], GET_HEALTH);
		assert_int_equal(hear(&idle[i]), 200);
	}
	for (size_t i = 0; i < ROWS(stalls); i++) {
		stalled[i] = dial(p);
		stalls[i](p, &stalled[i]);
	}
	program_signal(p, SIGTERM);
	assert_int_equal(program_await(p, &ms), 0);
	print_message("stopped in %lld ms\n", (long long)ms);
	assert_in_range(ms, 0, STOP_MS_MAX);
	close_all(idle, KEPT_ALIVE);
	close_all(stalled, ROWS(stalls));
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED(half_of_the_connections_stall_and_the_others_are_served),
		SERVED(a_byte_now_and_then_does_not_hold_a_connection),
		SERVED(what_is_no_request_is_refused_and_leaves_nothing),
		SERVED(requests_may_be_pipelined_and_chunked),
		SERVED(chunks_may_have_extensions_and_trailers),
		SERVED(idle_and_stalled_connections_do_not_delay_the_stop),
	};

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_ALL) != 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

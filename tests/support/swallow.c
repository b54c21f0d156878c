/* SPDX-License-Identifier: MIT */
/* One thread, one connection at a time: a client that tries again comes after it was hung up on. */
#include "tests/support/swallow.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/peer.h"

#define PIECE_BYTES 4096

struct swallow {
	int server_port;
	int port;
	int listener;
	int wake[2]; /* closed to end the thread */
	size_t greeting;
	int lost;
	pthread_t thread;
};

/* Wait for one of the descriptors. False: the end has come. */
static bool
await(struct swallow *s, struct pollfd pollers[static 3], int client, int server)
{
	pollers[0] = (struct pollfd){ .fd = s->wake[0], .events = POLLIN };
	pollers[1] = (struct pollfd){ .fd = client, .events = POLLIN };
	pollers[2] = (struct pollfd){ .fd = server, .events = POLLIN };
	return poll(pollers, 3, -1) > 0 && pollers[0].revents == 0;
}

/* What has come from FROM goes to TO. How much; 0 at its end. */
static size_t
pass(int from, int to)
{
	char piece[PIECE_BYTES];
	ssize_t n = recv(from, piece, sizeof(piece), 0);

	if (n <= 0 || send(to, piece, (size_t)n, MSG_NOSIGNAL) != n)
		return 0;
	return (size_t)n;
}

/* How much the server has to say without taking it. */
static size_t
look(int server)
{
	char piece[PIECE_BYTES];
	ssize_t n = recv(server, piece, sizeof(piece), MSG_PEEK);

	return n > 0 ? (size_t)n : 0;
}

static void
relay(struct swallow *s, int client, int server)
{
	struct pollfd pollers[3];
	size_t said = 0, n;

	while (await(s, pollers, client, server)) {
		if (pollers[1].revents != 0 && pass(client, server) == 0)
			return;
		if (pollers[2].revents == 0)
			continue;
		if (s->lost == 0 && said + look(server) > s->greeting) {
			s->lost++;
			return;
		}
		if ((n = pass(server, client)) == 0)
			return;
		said += n;
	}
}

static void *
swallow_main(void *arg)
{
	struct swallow *s = arg;
	struct pollfd pollers[3];

	while (await(s, pollers, s->listener, -1)) {
		int client = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
		struct peer server = peer_dial_tcp(s->server_port);

		relay(s, client, server.fd);
		close(client);
		peer_close(&server);
	}
	return NULL;
}

struct swallow *
swallow_start(int port, size_t greeting)
{
	struct swallow *s = calloc(1, sizeof(*s));
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);

	s->server_port = port;
	s->greeting = greeting;
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &bytes), 0);
	s->port = ntohs(address.sin_port);
	assert_int_equal(pipe(s->wake), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, swallow_main, s), 0);
	return s;
}

int
swallow_port(const struct swallow *swallow)
{
	return swallow->port;
}

int
swallow_stop(struct swallow **swallow)
{
	struct swallow *s = *swallow;
	int lost;

	*swallow = NULL;
	close(s->wake[1]);
	pthread_join(s->thread, NULL);
	close(s->wake[0]);
	close(s->listener);
	lost = s->lost;
	free(s);
	return lost;
}

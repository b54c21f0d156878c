/* SPDX-License-Identifier: MIT */
/* Finding one connection among others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/sockets.h"

#define CLIENTS 3

/* Connections within this process: both ends of each are among its descriptors. */
struct ends {
	int listener, port;
	int clients[CLIENTS], servers[CLIENTS];
	struct sockaddr_in addresses[CLIENTS]; /* of the clients */
};

static struct ends
ends_open(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(here);
	struct ends e = { .listener = socket(AF_INET, SOCK_STREAM, 0) };

	assert_int_equal(bind(e.listener, (struct sockaddr *)&here, bytes), 0);
	assert_int_equal(listen(e.listener, CLIENTS), 0);
	assert_int_equal(getsockname(e.listener, (struct sockaddr *)&here, &bytes), 0);
	e.port = ntohs(here.sin_port);
	for (int i = 0; i < CLIENTS; i++) {
		e.clients[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(e.clients[i], (struct sockaddr *)&here, bytes), 0);
		bytes = sizeof(e.addresses[i]);
		e.servers[i] = accept(e.listener, (struct sockaddr *)&e.addresses[i], &bytes);
		assert_true(e.servers[i] >= 0);
	}
	return e;
}

static void
ends_close(struct ends *e)
{
	for (int i = 0; i < CLIENTS; i++) {
		close(e->clients[i]);
		close(e->servers[i]);
	}
	close(e->listener);
}

/* Whether nothing will be read from FD any more. */
static bool
has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void
one_connection_is_shut_and_no_other(void **state)
{
	struct ends e = ends_open();

	(void)state;
	sockets_shut(e.port, &e.addresses[1], SHUT_RD);
	for (int i = 0; i < CLIENTS; i++) {
		assert_int_equal(has_ended(e.servers[i]), i == 1);
		assert_false(has_ended(e.clients[i]));
	}
	ends_close(&e);
}

static void
all_connections_of_a_port_are_shut_and_it_still_listens(void **state)
{
	struct ends e = ends_open(), others = ends_open();
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)e.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int late = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	sockets_shut(e.port, NULL, SHUT_RDWR);
	for (int i = 0; i < CLIENTS; i++) {
		assert_true(has_ended(e.servers[i]));
		assert_true(has_ended(e.clients[i]));
		assert_false(has_ended(others.servers[i]));
	}
	assert_int_equal(connect(late, (struct sockaddr *)&here, sizeof(here)), 0);
	close(late);
	ends_close(&e);
	ends_close(&others);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_connection_is_shut_and_no_other),
		cmocka_unit_test(all_connections_of_a_port_are_shut_and_it_still_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

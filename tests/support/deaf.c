/* SPDX-License-Identifier: MIT */
/* What a socket must know before it connects. */
#include "tests/support/deaf.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define WINDOW_BYTES 4096
#define SEGMENT_BYTES 536

struct peer
deaf_dial(int port)
{
	const int window = WINDOW_BYTES, segment = SEGMENT_BYTES;
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct peer peer = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	assert_true(peer.fd >= 0);
	setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
	setsockopt(peer.fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	setsockopt(peer.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(peer.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(peer.fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return peer;
}

/* SPDX-License-Identifier: MIT */
/* Plain sockets that speak SP. */
#include "tests/support/peer.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "health.pb-c.h"

static int
dial(const struct sockaddr *address, socklen_t bytes)
{
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(address->sa_family, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, address, bytes), 0);
	return fd;
}

struct peer
peer_dial_tcp(int port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	return (struct peer){ .fd = dial((const struct sockaddr *)&address, sizeof(address)) };
}

struct peer
peer_dial_ipc(const char *url)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strncpy(address.sun_path, url + strlen("ipc://"), sizeof(address.sun_path) - 1);
	return (struct peer){
		.fd = dial((const struct sockaddr *)&address, sizeof(address)),
		.ipc = true,
	};
}

void
peer_write(const struct peer *peer, const void *bytes, size_t n)
{
	assert_int_equal(send(peer->fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void
read_all(const struct peer *peer, void *bytes, size_t n)
{
	assert_int_equal(recv(peer->fd, bytes, n, MSG_WAITALL), (ssize_t)n);
}

static struct peer
greet(struct peer peer)
{
	static const uint8_t req[] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };
	static const uint8_t rep[] = { 0, 'S', 'P', 0, 0, 0x31, 0, 0 };
	uint8_t hello[sizeof(rep)];

	peer_write(&peer, req, sizeof(req));
	read_all(&peer, hello, sizeof(hello));
	assert_memory_equal(hello, rep, sizeof(hello));
	return peer;
}

struct peer
peer_tcp(int port)
{
	return greet(peer_dial_tcp(port));
}

struct peer
peer_ipc(const char *url)
{
	return greet(peer_dial_ipc(url));
}

void
peer_send(struct peer *peer, const void *body, size_t bytes)
{
	uint64_t length = htobe64(bytes + 4);
	uint32_t id = htobe32(0x80000000u | ++peer->sent);
	uint8_t *frame = malloc(bytes + 13);
	size_t n = 0;

	if (peer->ipc)
		frame[n++] = 1;
	memcpy(frame + n, &length, 8);
	memcpy(frame + n + 8, &id, 4);
	memcpy(frame + n + 12, body, bytes);
	peer_write(peer, frame, n + 12 + bytes);
	free(frame);
}

static ProtobufCBinaryData
echo_pack(size_t payload_bytes)
{
	Titen__V1__HealthEchoRequest echo = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;
	ProtobufCBinaryData packed;

	echo.has_payload = payload_bytes > 0;
	echo.payload = (ProtobufCBinaryData){ payload_bytes, calloc(1, payload_bytes + 1) };
	packed.len = titen__v1__health_echo_request__get_packed_size(&echo);
	packed.data = malloc(packed.len + 1);
	titen__v1__health_echo_request__pack(&echo, packed.data);
	free(echo.payload.data);
	return packed;
}

void
peer_ask(struct peer *peer, const char *method, size_t payload_bytes)
{
	Titen__V1__Request request = TITEN__V1__REQUEST__INIT;
	size_t bytes;
	uint8_t *body;

	request.method = (char *)method;
	request.has_payload = true;
	request.payload = echo_pack(payload_bytes);
	bytes = titen__v1__request__get_packed_size(&request);
	body = malloc(bytes);
	titen__v1__request__pack(&request, body);
	peer_send(peer, body, bytes);
	free(body);
	free(request.payload.data);
}

Titen__V1__Reply *
peer_receive(const struct peer *peer)
{
	Titen__V1__Reply *reply;
	uint8_t type = 1, *body;
	uint64_t length;
	uint32_t id;

	if (peer->ipc)
		read_all(peer, &type, 1);
	assert_int_equal(type, 1);
	read_all(peer, &length, 8);
	read_all(peer, &id, 4);
	length = be64toh(length) - 4;
	body = malloc(length);
	read_all(peer, body, length);
	reply = titen__v1__reply__unpack(NULL, length, body);
	free(body);
	assert_non_null(reply);
	return reply;
}

void
peer_expect(const struct peer *peer, int code)
{
	Titen__V1__Reply *reply = peer_receive(peer);

	assert_int_equal(reply->code, code);
	assert_non_null(reply->request_id);
	assert_true(code == 0 || reply->reason != NULL);
	titen__v1__reply__free_unpacked(reply, NULL);
}

void
peer_expect_refusal(const struct peer *peer, int code, const char *message)
{
	Titen__V1__Reply *reply = peer_receive(peer);

	assert_int_equal(reply->code, code);
	assert_string_equal(reply->message, message);
	assert_true(reply->retry_after_ms > 0);
	titen__v1__reply__free_unpacked(reply, NULL);
}

bool
peer_is_cut(const struct peer *peer)
{
	struct pollfd poller = { .fd = peer->fd, .events = POLLRDHUP };

	return poll(&poller, 1, PATIENCE_MS) == 1;
}

void
peer_close(struct peer *peer)
{
	close(peer->fd);
	peer->fd = -1;
}

void
peer_reset(struct peer *peer)
{
	const struct linger at_once = { .l_onoff = 1 };

	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	peer_close(peer);
}

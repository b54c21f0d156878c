/* SPDX-License-Identifier: MIT */
/*
 * A client made of a plain socket, so that it can die and misbehave. It speaks SP/REQ:
 *
 *	hello 00 'S' 'P' 00 0030 0000, then frames: length (64 bits), request id (32 bits, the
 *	highest one set), body. On ipc a 01 comes before the length. (RFC drafts sp-tcp and sp-ipc.)
 *
 * Whatever takes longer than PATIENCE_MS fails the test.
 */
#ifndef TITEN_TESTS_PEER_H
#define TITEN_TESTS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envelope.pb-c.h"

#define PATIENCE_MS 10000 /* more than anything here takes on a busy machine */

struct peer {
	int fd;
	bool ipc;
	uint32_t sent; /* requests; also their ids */
};

/* Connected, nothing said. */
struct peer peer_dial_tcp(int port);
struct peer peer_dial_ipc(const char *url);
/* Connected, hellos exchanged. */
struct peer peer_tcp(int port);
struct peer peer_ipc(const char *url);

void peer_write(const struct peer *peer, const void *bytes, size_t n);
/* A frame with any body. */
void peer_send(struct peer *peer, const void *body, size_t bytes);
/* A request for METHOD, with a HealthEchoRequest of so many payload bytes. */
void peer_ask(struct peer *peer, const char *method, size_t payload_bytes);

/* The next answer; free it. */
Titen__V1__Reply *peer_receive(const struct peer *peer);
/* The next answer has CODE. */
void peer_expect(const struct peer *peer, int code);
/* The next answer refuses for a while, and says why and when to come again. */
void peer_expect_refusal(const struct peer *peer, int code, const char *message);
/* Whether the server ends the connection. */
bool peer_is_cut(const struct peer *peer);

void peer_close(struct peer *peer);
/* Close with a reset. */
void peer_reset(struct peer *peer);

#endif

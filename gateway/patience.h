/* SPDX-License-Identifier: MIT */
/*
 * How long a client may take to send a body, or to take an answer. civetweb limits each read and
 * each write but not their sum, so a byte now and then would hold one of its threads for hours.
 *
 *	patience_begin(patience, &wait, info, SHUT_RD);
 *	... mg_read() ...
 *	patience_end(patience, &wait);
 */
#ifndef TITEN_GATEWAY_PATIENCE_H
#define TITEN_GATEWAY_PATIENCE_H

#include <stdint.h>
#include <sys/queue.h>
#include <civetweb.h>

/* The largest body, 1 MiB, at 64 KiB/s takes 16 s. */
#define TRANSFER_MS_MAX 20000

struct patience;

/* One transfer under way; the caller's, until patience_end(). */
struct patience_wait {
	TAILQ_ENTRY(patience_wait) link;
	const struct mg_request_info *peer;
	int how;
	int64_t end_ms; /* of CLOCK_MONOTONIC */
};

/* NULL: there is no thread to be had. */
struct patience *patience_open(void);
/* Nothing waits any more. Clears *PATIENCE, which may be NULL. */
void patience_close(struct patience **patience);

/* Unless patience_end() comes within TRANSFER_MS_MAX, the connection of PEER is shut in the
 * direction HOW, up to a second later, and civetweb's read or write fails. Any thread. */
void patience_begin(struct patience *patience, struct patience_wait *wait,
    const struct mg_request_info *peer, int how);
void patience_end(struct patience *patience, struct patience_wait *wait);

#endif

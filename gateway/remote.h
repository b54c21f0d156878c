/* SPDX-License-Identifier: MIT */
/*
 * A core in another process, over nng, as a backend. It may go away and come back: meanwhile calls
 * are answered UNAVAILABLE within WAIT_MS, and Health.Check as ever, since this process lives.
 */
#ifndef TITEN_GATEWAY_REMOTE_H
#define TITEN_GATEWAY_REMOTE_H

#include <stddef.h>

#include "gateway/backend.h"

struct remote;

/* Connect to the core at URL when it is there. REVISION is what Health.Check answers; static. NULL:
 * ERROR is one line for people. */
struct remote *remote_start(const char *url, const char *revision, char *error, size_t error_bytes);

/* Borrows REMOTE. */
struct backend remote_backend(struct remote *remote);

/* When every call is answered and none will come. Clears *REMOTE. */
void remote_stop(struct remote **remote);

#endif

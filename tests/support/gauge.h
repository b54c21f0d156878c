/* SPDX-License-Identifier: MIT */
/* What can be seen of a server from outside beside process.h, and how a client is served by it. */
#ifndef TITEN_TESTS_GAUGE_H
#define TITEN_TESTS_GAUGE_H

#include <stdint.h>
#include <sys/types.h>

#include "cmd/histogram.h"
#include "tests/support/act.h"

/* Threads of PID; 0 when it is not there. */
int gauge_threads(pid_t pid);
/* Bytes of a file; 0 when it is not there. */
int64_t gauge_file(const char *path);

/* Call at a steady pace until UNTIL_MS (CLOCK_MONOTONIC), taking and giving back a lease of
 * AGENT's, and add how long each call took, in nanoseconds. Ends when a call fails, and MESSAGE
 * then says why. */
void gauge_service(struct titen_client *client, const struct agent *agent, int64_t until_ms,
    struct histogram *took, char message[static 200]);

#endif

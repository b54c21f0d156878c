/* SPDX-License-Identifier: MIT */
/*
 * A client that behaves well while others do not: it takes a lease, again and again, on one
 * connection and a thread of its own, and remembers how it was served.
 */
#ifndef TITEN_TESTS_STEADY_H
#define TITEN_TESTS_STEADY_H

#include "tests/support/program.h"

#define STEADY_MS_MAX 5000 /* what a call may take beside hostile clients on a busy machine */

struct steady;

/* Through URL: p->rpc, p->local or p->http. Its first call has been answered. */
struct steady *steady_start(const struct program *p, const char *url);
/* Every call was answered, and none took longer than STEADY_MS_MAX. Prints how long the longest
 * took. Clears *STEADY. */
void steady_stop(struct steady **steady);

#endif

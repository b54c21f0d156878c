/* SPDX-License-Identifier: MIT */
/*
 * A TCP proxy between a client and the server that loses answers: it passes everything on, but the
 * first time the server says more than it must to greet, it hangs up on both instead. Later
 * connections are left alone.
 */
#ifndef TITEN_TESTS_SWALLOW_H
#define TITEN_TESTS_SWALLOW_H

#include <stddef.h>

struct swallow;

/* In front of PORT; GREETING bytes of the server are passed on in any case. */
struct swallow *swallow_start(int port, size_t greeting);
int swallow_port(const struct swallow *swallow);
/* Every connection ends. How many answers it has lost: 1, or 0 if nobody was answered. Clears
 * *SWALLOW. */
int swallow_stop(struct swallow **swallow);

#endif

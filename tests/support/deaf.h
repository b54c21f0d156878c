/* SPDX-License-Identifier: MIT */
/* A TCP connection whose windows are so small that kernels take next to nothing for a client that
 * does not read; else it would be megabytes. */
#ifndef TITEN_TESTS_DEAF_H
#define TITEN_TESTS_DEAF_H

#include "tests/support/peer.h"

struct peer deaf_dial(int port);

#endif

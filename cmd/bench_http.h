/* SPDX-License-Identifier: MIT */
/*
 * The calls of a benchmark over REST: HTTP/1.1 with keep-alive, and a connection for each
 * outstanding call. Main thread.
 */
#ifndef TITEN_CMD_BENCH_HTTP_H
#define TITEN_CMD_BENCH_HTTP_H

#include <stddef.h>

#include "cmd/bench_load.h"
#include "core/arena.h"

struct bench_http;

/* Connect to URL, which is http://HOST:PORT. KEY may be NULL. NULL: *ERROR_R is one line. In ARENA,
 * but for the connections: bench_http_close(). */
struct bench_http *bench_http_open(
    struct arena *arena, const char *url, const char *key, int outstanding, const char **error_r);

/* Measured: POST /v1/leases of a fresh resource. Baseline: GET /healthz on the same connections. */
struct bench_door bench_http_door(struct bench_http *http);

/* Clears *HTTP. */
void bench_http_close(struct bench_http **http);

#endif

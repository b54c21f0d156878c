/* SPDX-License-Identifier: MIT */
/* What a benchmark has seen, for people and for programs. */
#ifndef TITEN_CMD_BENCH_REPORT_H
#define TITEN_CMD_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/bench_load.h"
#include "core/arena.h"

struct bench_report {
	const char *work;     /* "acquire" */
	const char *baseline; /* "echo", or "healthz" */
	const char *url;
	int outstanding;
	int connections;
	int seconds;
	bool server_known;            /* the server's process was given */
	uint64_t live;                /* leases taken before */
	const struct histogram *sync; /* of the disk, in ns; NULL when not asked for */
	const struct bench_result *result;
};

void bench_report_table(const struct bench_report *report, FILE *out);
/* One object, in ARENA. Units are in the names; what is not known is null. */
const char *bench_report_json(const struct bench_report *report, struct arena *arena);

#endif

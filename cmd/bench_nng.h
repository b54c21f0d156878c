/* SPDX-License-Identifier: MIT */
/*
 * The calls of a benchmark over nng: any number outstanding on a few connections.
 */
#ifndef TITEN_CMD_BENCH_NNG_H
#define TITEN_CMD_BENCH_NNG_H

#include <stdbool.h>

#include "client/client.h"
#include "cmd/bench_load.h"
#include "core/arena.h"

enum bench_work {
	BENCH_ACQUIRE, /* a fresh resource each time */
	BENCH_CYCLE,   /* acquire, then release it */
	BENCH_HANDOFF, /* create, then accept it */
	BENCH_ECHO,    /* the same as the baseline */
};

struct bench_nng;

struct bench_nng_options {
	enum bench_work work;
	struct titen_client *const *clients; /* borrowed */
	int clients_n;
	int outstanding;
	const char *principal; /* whom handoffs go to, who must be the caller */
};

/* All of it is in ARENA. */
struct bench_nng *bench_nng_new(struct arena *arena, const struct bench_nng_options *options);

/* Measured calls, and as a baseline HealthService/Echo with frames as large as those of an
 * acquire. */
struct bench_door bench_nng_door(struct bench_nng *nng);
/* Acquires of leases that outlive the run, whatever the work. */
struct bench_door bench_nng_filler(struct bench_nng *nng);

#endif

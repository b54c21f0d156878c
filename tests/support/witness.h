/* SPDX-License-Identifier: MIT */
/*
 * Somebody who uses a core, remembers every change that was acknowledged, and can say of a database
 * whether it has all of them and nothing by halves. Calls are drawn by a seed: take and give back
 * leases, one or four at once, hand off and settle, save states small and large, make and revoke
 * keys, each with an idempotency key of its own.
 */
#ifndef TITEN_TESTS_WITNESS_H
#define TITEN_TESTS_WITNESS_H

#include <stdatomic.h>

#include "tests/support/fixture.h"

#define WITNESS_FACTS_MAX 16384

enum fact_kind {
	FACT_LEASE,
	FACT_RELEASE,
	FACT_HANDOFF,
	FACT_RESOLVE,
	FACT_SAVE,
	FACT_KEY,
	FACT_REVOKE,
	FACT_KINDS
};

/* One acknowledged change. */
struct fact {
	enum fact_kind kind;
	const char *id;  /* of the lease, handoff, checkpoint or key */
	int number;      /* of the call: its idempotency key, and the name of what it made */
	int64_t version; /* of a checkpoint */
	bool used;       /* given back, settled, revoked, or maybe so */
};

struct witness {
	struct fixture *f; /* borrowed; ids are in its memory */
	uint64_t seed;
	int number;
	atomic_int facts_n;
	struct fact facts[WITNESS_FACTS_MAX];
};

void witness_init(struct witness *w, struct fixture *f, uint64_t seed);

/* The next call. STATUS_OK, or why it was refused. */
enum status witness_act(struct witness *w);

/* How many changes have been acknowledged. Any thread. */
int witness_facts(struct witness *w);

/* Go on from a database that is only sure to have the first N facts. Leases that were asked for
 * beyond them are asked for again, with the idempotency keys they had. */
void witness_resume(struct witness *w, int n);

/* What is wrong with the database at the fixture's path, which must have the first N facts; NULL:
 * nothing. Static text. */
const char *witness_fault(struct witness *w, int n);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A fleet at work: agents that take leases, hand off, save and read through both doors at once, and
 * a memory of everything that was acknowledged to them. Agents over nng have many acts under way on
 * one connection each; agents over REST have a connection and a thread each.
 *
 *	load_start -> the fleet works -> load_halt -> look at the acts -> load_free
 *
 * It can lose its server at any moment: an act that is not answered, or UNAVAILABLE, ends its
 *strand.
 */
#ifndef TITEN_TESTS_LOAD_H
#define TITEN_TESTS_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/act.h"

struct load;

struct load_options {
	const char *rpc;  /* url of the nng door, or NULL */
	const char *http; /* http://HOST:PORT, or NULL */
	const char *key;  /* may make keys: each agent gets its own */
	int rpc_agents;
	int rpc_strands; /* acts under way of each of them */
	int rest_agents;
	unsigned seed;
	bool only_acquire; /* for measuring: fresh resources, nothing else, nothing kept */
};

struct load_result {
	const struct act *acts; /* changes that were acknowledged, or not answered; in order for
				   each strand */
	size_t acts_n;
	const struct agent *agents; /* the first rpc_agents of them came through nng */
	size_t agents_n;
	int64_t answers;  /* of all acts, reads and refusals too */
	int64_t refusals; /* of these, CONFLICT and NOT_FOUND: agents do get in each other's way */
	int64_t faults;   /* of these, what should not be: other refusals, events out of order */
	char first_fault[192];
	int64_t kinds[ACT_KINDS]; /* done */
};

/* Make the agents and let them work. NULL: ERROR is one line for people. */
struct load *load_start(const struct load_options *options, char *error, size_t error_bytes);
/* No more acts. Waits until those under way are answered or, when the server is GONE, gives them
 * up. */
void load_halt(struct load *load, bool gone);
/* After load_halt(); valid until load_free(). */
const struct load_result *load_result(const struct load *load);
/* Clears *LOAD. */
void load_free(struct load **load);

#endif

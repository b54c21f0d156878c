/* SPDX-License-Identifier: MIT */
/*
 * A fleet that never stays the same: crews come and go, one process each, with a key of their own
 * that is made before and revoked after. Their members work through both doors, open and drop
 * connections, some with calls under way; every other crew is killed in the middle of its work.
 *
 *	churn_start -> crews come and go -> churn_stop
 */
#ifndef TITEN_TESTS_CHURN_H
#define TITEN_TESTS_CHURN_H

#include <stddef.h>
#include <stdint.h>

struct churn;

struct churn_options {
	const char *rpc;  /* url of the nng door */
	const char *http; /* http://HOST:PORT */
	const char *key;  /* may make and revoke keys */
	unsigned seed;
};

struct churn_result {
	int64_t left;    /* crews that went by themselves */
	int64_t killed;  /* and those that were killed */
	char fault[256]; /* the first thing that should not be; empty: none */
};

/* The program must call churn_crew() when its first argument is CHURN_CREW: crews are the same
 * program. NULL: ERROR is one line for people. */
struct churn *churn_start(const struct churn_options *options, char *error, size_t error_bytes);
/* End all crews. Clears *CHURN. */
struct churn_result churn_stop(struct churn **churn);

#define CHURN_CREW "crew"

/* The whole life of a crew; what its process exits with. */
int churn_crew(int argc, char **argv);

#endif

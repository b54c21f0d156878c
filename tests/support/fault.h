/* SPDX-License-Identifier: MIT */
/* Trouble on demand: steps of the store that fail, and threads of the core that are held up. */
#ifndef TITEN_TESTS_FAULT_H
#define TITEN_TESTS_FAULT_H

#include "tests/support/fixture.h"

/* Make the writer's N-th step from now fail, and, when LASTING, all after it; 0 ends that. Only
 * while the writer is idle or held. */
void fail_step(struct fixture *f, int n, bool lasting);

/* A call that keeps its thread until let_go(). */
struct hold {
	struct answer *answer;
	sem_t entered;
	sem_t go;
};

/* Returns when the writer has begun a batch with nothing else in it: what is submitted until
 * let_go() waits for the next one. */
void hold_writer(struct fixture *f, struct hold *hold);
/* The same for one of the readers. */
void hold_reader(struct fixture *f, struct hold *hold);
/* Returns when the held call has been answered. */
enum status let_go(struct hold *hold);

#endif

/* SPDX-License-Identifier: MIT */
/* Faults through the writer's own connection, holds through handlers that wait. */
#include "tests/support/fault.h"

#include <errno.h>

#include "core/core.h"

void
fail_step(struct fixture *f, int n, bool lasting)
{
	db_fail_step(store_writer(f->core->store), n, lasting);
}

static void
sem_wait_through(sem_t *sem)
{
	while (sem_wait(sem) != 0 && errno == EINTR)
		;
}

static enum status
hold_run(struct call *c)
{
	struct hold *hold = own_arg(c);

	sem_post(&hold->entered);
	sem_wait_through(&hold->go);
	sem_post(&hold->go); /* a repeated call passes */
	return STATUS_OK;
}

static void
hold_thread(struct fixture *f, struct hold *hold, enum access access)
{
	sem_init(&hold->entered, 0, 0);
	sem_init(&hold->go, 0, 0);
	hold->answer = draft_own(f, access, hold_run, hold);
	submit(f, hold->answer);
	sem_wait_through(&hold->entered);
}

void
hold_writer(struct fixture *f, struct hold *hold)
{
	hold_thread(f, hold, ACCESS_WRITE);
}

void
hold_reader(struct fixture *f, struct hold *hold)
{
	hold_thread(f, hold, ACCESS_READ);
}

enum status
let_go(struct hold *hold)
{
	sem_post(&hold->go);
	return await(hold->answer);
}

/* SPDX-License-Identifier: MIT */
/*
 * A core for tests of the doors: the rpc_ functions with calls of its own. Link it instead of the
 * core's rpc.c.
 *
 *	echo   answers with the payload of its HealthEchoRequest
 *	large  answers with 512 KiB
 *	huge   answers with 8 MiB
 *	local  answers "y" when the call came through the owner's socket, else "n"
 *	late   answers when stand_in_answer_held() is called
 */
#ifndef TITEN_TESTS_STAND_IN_H
#define TITEN_TESTS_STAND_IN_H

#include <pthread.h>

#include "core/call.h"

struct core {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct call *held;
	int held_n;
	int submitted;
};

/* Until *COUNT, one of CORE's, is N; fails the test after a while. */
void stand_in_await(struct core *core, const int *count, int n);
void stand_in_answer_held(struct core *core);

#endif

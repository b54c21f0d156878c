/* SPDX-License-Identifier: MIT */
/*
 * What runs the calls that the web door takes: the core in this process, or one in another. Every
 * function is called with SELF, from any thread, and does not block; whoever takes a call has it
 * answered by call_answer(), at once or later.
 */
#ifndef TITEN_GATEWAY_BACKEND_H
#define TITEN_GATEWAY_BACKEND_H

#include "core/call.h"

struct backend {
	void *self;
	/* Before the body is read: key and right, if that costs nothing. STATUS_OK, or what
	 * refuse() is to answer. */
	enum status (*admit)(void *self, struct call *c);
	/* Run an admitted call. */
	void (*submit)(void *self, struct call *c);
	/* Answer with ST and the call's message, unless its key or right is bad, which comes
	 * first. The method is NULL where no route was found. */
	void (*refuse)(void *self, struct call *c, enum status st);
};

/* CORE, of this process. */
struct backend backend_of_core(struct core *core);

#endif

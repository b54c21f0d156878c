/* SPDX-License-Identifier: MIT */
/* The core of this process: each function is one of core/rpc.h. */
#include "gateway/backend.h"

#include "core/rpc.h"

static enum status
core_admit(void *self, struct call *c)
{
	return rpc_admit(self, c);
}

static void
core_submit(void *self, struct call *c)
{
	rpc_submit(self, c);
}

/* Admitting has asked about the key already. */
static void
core_refuse(void *self, struct call *c, enum status st)
{
	(void)self;
	rpc_refuse(c, st);
}

struct backend
backend_of_core(struct core *core)
{
	return (struct backend){ core, core_admit, core_submit, core_refuse };
}

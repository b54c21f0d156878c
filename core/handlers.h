/* SPDX-License-Identifier: MIT */
/*
 * The handlers of proto/methods.def and their rules, declared from its rows: a row without a
 * handler does not link, a handler with other messages does not compile.
 *
 * A handler decides first and writes last. It may be run again after its effects were rolled back,
 * so it changes nothing outside its transaction. It returns STATUS_OK with *RESP filled, or what
 * call_fail() gave it, having written nothing.
 */
#ifndef TITEN_CORE_HANDLERS_H
#define TITEN_CORE_HANDLERS_H

#include "checkpoint.pb-c.h"
#include "event.pb-c.h"
#include "handoff.pb-c.h"
#include "health.pb-c.h"
#include "key.pb-c.h"
#include "lease.pb-c.h"
#include "principal.pb-c.h"
#include "reflection.pb-c.h"
#include "core/call.h"

#define RPC(service, method, handler, response, access, right, result, verb, path, summary)        \
	enum status handler(                                                                       \
	    struct call *c, const PB(service##method##Request) *req, PB(response) *resp);          \
	extern const struct rule handler##_rules[];
#include "methods.def"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Events: appended by the handlers in the transaction of the change, read by those they concern.
 * An event's number in its organization (seq) rises by one from event to event, in commit order.
 */
#ifndef TITEN_CORE_EVENT_H
#define TITEN_CORE_EVENT_H

#include "core/call.h"

/* proto/kinds.def; the numbers are stored. */
enum event_kind {
#define KIND(name, number, text, resource, prefix, reach) EVENT_##name = (number),
#include "kinds.def"
};

#define EVENT_VIEWERS_MAX 2 /* a handoff has the most: sender and target */

struct event {
	enum event_kind kind;
	struct id resource;                 /* the lease, the handoff */
	const char *payload;                /* a JSON object */
	int64_t viewers[EVENT_VIEWERS_MAX]; /* principals who may see it; 0: nobody more */
};

/* Append EVENT to the log of the caller's organization, by the caller, at the call's time. The last
 * thing a handler does. Writer thread. */
enum status event_append(struct call *c, const struct event *event);

#endif

/* SPDX-License-Identifier: MIT */
/* Who changed what about keys and handoffs: kept beside the change, never with what was said. */
#ifndef TITEN_CORE_AUDIT_H
#define TITEN_CORE_AUDIT_H

#include "core/call.h"

/* Note that the caller did ACTION ("key.create") to RESOURCE (a public id). DETAIL is a JSON object
 * or NULL. In the transaction of the change; writer thread. */
enum status audit_append(
    struct call *c, const char *action, const char *resource, const char *detail);

#endif

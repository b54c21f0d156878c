/* SPDX-License-Identifier: MIT */
/* proto/status.def, expanded. */
#include "core/status.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *reason;
	int grpc;
	int http;
} statuses[] = {
	[STATUS_OK] = { "OK", 0, 200 },
#define STATUS(reason, grpc, name, http) [STATUS_##reason] = { #reason, grpc, http },
#include "status.def"
};

const char *
status_reason(enum status st)
{
	return statuses[st].reason;
}

int
status_grpc(enum status st)
{
	return statuses[st].grpc;
}

int
status_http(enum status st)
{
	return statuses[st].http;
}

enum status
status_find(const char *reason)
{
	for (size_t i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].reason, reason) == 0)
			return (enum status)i;
	return STATUS_INTERNAL;
}

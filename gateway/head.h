/* SPDX-License-Identifier: MIT */
/*
 * The head of a request: its headers, and what they say about the body. civetweb is lenient here
 * (the first of two lengths counts, a chunked coding beside a length wins, headers beyond the 64th
 * are dropped), so that a proxy in front may see other requests than it does. Such heads are
 * faults.
 */
#ifndef TITEN_GATEWAY_HEAD_H
#define TITEN_GATEWAY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <civetweb.h>

/* How the body comes. */
struct framing {
	bool chunked;
	bool expects;      /* the client waits for 100 Continue before it sends the body */
	long long bytes;   /* of a body that is not chunked, as declared */
	const char *fault; /* why that cannot be relied upon, static text; NULL when it can */
	int fault_status;  /* of HTTP; 0 for the common one */
};

/* How often header NAME is there. *VALUE_R is the first one's value, or NULL. */
int head_find(const struct mg_request_info *info, const char *name, const char **value_r);

/* The length of VALUE without the space behind it; civetweb has cut the space before it. */
size_t head_value_bytes(const char *value);

void head_framing(const struct mg_request_info *info, struct framing *f);

/* Whether the client wants to go on after the answer, by the rule that civetweb follows then.
 * Nothing goes on after a request to upgrade. */
bool head_client_stays(const struct mg_request_info *info);

#endif

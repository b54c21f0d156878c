/* SPDX-License-Identifier: MIT */
/*
 * Calls as people write them: methods by short names, requests and answers as the JSON of REST.
 */
#ifndef TITEN_CMD_JSON_RPC_H
#define TITEN_CMD_JSON_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "envelope.pb-c.h"
#include "core/arena.h"
#include "core/call.h"
#include "core/methods.h"

/* By full name, without the package (LeaseService/Acquire), or short (lease.acquire) in any case.
 * NULL when there is none. */
const struct method *json_rpc_method(const char *name);

/* "lease.acquire" */
const char *json_rpc_short_name(struct arena *arena, const struct method *method);

/* "; did you mean lease.acquire?" for a NAME that is none, or "". */
const char *json_rpc_hint(struct arena *arena, const char *name);

/* The request of METHOD from the text of a JSON object. A server ignores members that it does not
 * know; people misspell them, and so they are refused here. NULL: *ERROR_R says why. */
ProtobufCMessage *json_rpc_request(struct arena *arena, const struct method *method,
    const char *text, size_t bytes, const char **error_r);

/* The response in an answer that is no failure; NULL when it is not one of METHOD. */
ProtobufCMessage *json_rpc_response(
    struct arena *arena, const struct method *method, const PB(Reply) *reply);

/* The text of a message alone. */
const char *json_rpc_message(struct arena *arena, const ProtobufCMessage *message);

/* What REST would answer: {"data": ..., "meta": ...}, or {"error": ..., "meta": ...} when RESPONSE
 * is NULL. */
const char *json_rpc_answer(
    struct arena *arena, const PB(Reply) *reply, const ProtobufCMessage *response);

#endif

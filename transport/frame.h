/* SPDX-License-Identifier: MIT */
/* Between bytes and calls: the envelope of proto/envelope.proto. Any thread. */
#ifndef TITEN_TRANSPORT_FRAME_H
#define TITEN_TRANSPORT_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <nng/nng.h>

#include "core/call.h"
#include "envelope.pb-c.h"

/* Longer ones mean the same, and cannot overflow a sum. */
#define TIMEOUT_MS_MAX ((int64_t)24 * 60 * 60 * 1000)

/*
 * Read a packed Request into the arena of C, and set what it says of the call: authorization,
 * idempotency key, deadline. BYTES are not needed afterwards. STATUS_OK: *REQUEST_R has a method
 * and a payload within the limit. Otherwise VALIDATION_ERROR, PAYLOAD_TOO_LARGE or UNAVAILABLE,
 * with text.
 */
enum status frame_parse(
    struct call *c, const uint8_t *bytes, size_t length, PB(Request) **request_r);

/* The packed Reply of an answered call. The caller owns the message. Uses the call's arena. */
nng_msg *frame_build(struct call *c, int64_t now_ms);

#endif

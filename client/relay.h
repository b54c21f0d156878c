/* SPDX-License-Identifier: MIT */
/*
 * Calling for others, as a gateway does: each call brings an envelope of its own, with the caller's
 * authorization in it, and the server may be away for a while. Everything else is as client.h says.
 */
#ifndef TITEN_CLIENT_RELAY_H
#define TITEN_CLIENT_RELAY_H

#include "client/client.h"
#include "envelope.pb-c.h"

/* A client of the server at URL, which may come later. A call that finds no connection within
 * WAIT_MS fails with TITEN_LOST, and was not sent. NULL: ERROR is one line for people. */
struct titen_client *titen_relay_open(
    const char *url, int32_t wait_ms, char *error, size_t error_bytes);

/* Start the call that REQUEST is, whose timeout_ms is above 0; REQUEST is not needed afterwards.
 * DONE as of titen_call_start(). */
void titen_relay_start(
    struct titen_client *client, const Titen__V1__Request *request, titen_done *done, void *arg);

#endif

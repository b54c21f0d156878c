/* SPDX-License-Identifier: MIT */
/* What the addresses of both doors must look like, and why one cannot be opened. */
#ifndef TITEN_CMD_ADDRESS_H
#define TITEN_CMD_ADDRESS_H

#include <stdbool.h>

#include "core/arena.h"

#define SOCKET_PATH_BYTES 107 /* of a local socket, unix(7), without NUL */

/* Whether TEXT is HOST:PORT for REST: HOST an IPv4 address, PORT 0 (any) to 65535. False: *ERROR_R
 * is one line, in ARENA. */
bool address_http(struct arena *arena, const char *text, const char **error_r);

/* Whether URL is tcp://HOST:PORT or ipc:///PATH. False: likewise. */
bool address_url(struct arena *arena, const char *url, const char **error_r);

/* Whether URL leaves the port to the system: tcp://HOST:0. */
bool address_any_port(const char *url);

/* Whether the system lets this process listen on TEXT, which address_http() likes. False: *ERROR_R
 * says why not, in ARENA. Nothing stays open. */
bool address_free(struct arena *arena, const char *text, const char **error_r);

#endif

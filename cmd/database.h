/* SPDX-License-Identifier: MIT */
/*
 * What stands beside a database FILE: the directory FILE.run, which only the owner may enter, and
 * in it the socket by which the server knows its owner.
 */
#ifndef TITEN_CMD_DATABASE_H
#define TITEN_CMD_DATABASE_H

#include <stdbool.h>

#include "core/arena.h"

/* The absolute path of FILE without links, so that one database has one lock and one socket under
 * all its names; FILE need not exist, its directory must. NULL: *ERROR_R is one line. */
const char *database_path(struct arena *arena, const char *file, const char **error_r);

/* ipc:///PATH.run/rpc.sock of an absolute path. NULL when a socket cannot have so long a name. */
const char *database_url(struct arena *arena, const char *path);

/* Make PATH.run (mode 0700), or see that it is ours. False: *ERROR_R is one line. */
bool database_make_run(struct arena *arena, const char *path, const char **error_r);

/* Whether a server listens on that url. */
bool database_served(const char *url);

#endif

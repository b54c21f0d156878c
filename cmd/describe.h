/* SPDX-License-Identifier: MIT */
/* `titen rpc list` and `titen rpc describe`: what this program knows, or what a server says of
 * itself by Reflection. */
#ifndef TITEN_CMD_DESCRIBE_H
#define TITEN_CMD_DESCRIBE_H

#include "core/arena.h"

int describe_list_run(struct arena *arena, int argc, char **argv);
int describe_run(struct arena *arena, int argc, char **argv);

#endif

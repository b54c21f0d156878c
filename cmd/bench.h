/* SPDX-License-Identifier: MIT */
/* `titen bench`, a command of the first level. */
#ifndef TITEN_CMD_BENCH_H
#define TITEN_CMD_BENCH_H

#include "core/arena.h"

int bench_run(struct arena *arena, int argc, char **argv);

#endif

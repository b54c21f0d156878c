/* SPDX-License-Identifier: MIT */
/* What the disk takes for what every durable call waits for. */
#ifndef TITEN_CMD_BENCH_DISK_H
#define TITEN_CMD_BENCH_DISK_H

#include <stdbool.h>

#include "cmd/histogram.h"

/* For a second, write 4 KiB and fdatasync() in a file in DIRECTORY that has no name; add the times,
 * in ns, to TIMES. False: *ERROR_R is one line (text of the C library). */
bool bench_disk_sync(const char *directory, struct histogram *times, const char **error_r);

#endif

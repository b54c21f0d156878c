/* SPDX-License-Identifier: MIT */
/* What the disk takes for what every durable call waits for. */
#ifndef TITEN_CMD_BENCH_DISK_H
#define TITEN_CMD_BENCH_DISK_H

#include "cmd/histogram.h"

/* For a second, write 4 KiB and fdatasync() in a file in DIRECTORY that has no name; the times are
 * in ns. NULL, or one line that says what is wrong (static text). */
const char *bench_disk_sync(const char *directory, struct histogram *times);

#endif

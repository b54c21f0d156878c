/* SPDX-License-Identifier: MIT */
/* What the kernel says about a running process. */
#ifndef TITEN_TESTS_PROCESS_H
#define TITEN_TESTS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many descriptors it has open. */
int process_descriptors(pid_t pid);
/* Whether it has at most N of them within WITHIN_MS. */
bool process_gives_back(pid_t pid, int n, int64_t within_ms);
/* Its resident memory. */
int64_t process_rss_kib(pid_t pid);

#endif

/* SPDX-License-Identifier: MIT */
/* Reads /proc. */
#include "tests/support/process.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

#define LOOK_MS 10

int
process_descriptors(pid_t pid)
{
	char name[64];
	DIR *directory;
	int n = -2; /* "." and ".." */

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	directory = opendir(name);
	assert_non_null(directory);
	while (readdir(directory) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		n++;
	closedir(directory);
	return n;
}

bool
process_gives_back(pid_t pid, int n, int64_t within_ms)
{
	int64_t end_ms = clock_monotonic_ms() + within_ms;

	while (process_descriptors(pid) > n && clock_monotonic_ms() < end_ms)
		poll(NULL, 0, LOOK_MS);
	return process_descriptors(pid) <= n;
}

int64_t
process_rss_kib(pid_t pid)
{
	char name[64], line[256];
	long long kib = 0;
	FILE *status;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	status = fopen(name, "re");
	assert_non_null(status);
	while (kib == 0 && fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "VmRSS:", 6) == 0)
			sscanf(line + 6, "%lld", &kib);
	fclose(status);
	assert_true(kib > 0);
	return kib;
}

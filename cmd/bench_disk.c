/* SPDX-License-Identifier: MIT */
/*
 * The file is written in place, round and round, as a write-ahead log is: its size does not change,
 * so that a sync has only data to write.
 */
#include "cmd/bench_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cmd/bench_load.h"

#define PAGE_BYTES 4096
#define PAGES 1024 /* 4 MiB: what a log grows to before it is folded back */
#define PROBE_NS INT64_C(1000000000)

static bool
page_write(int fd, int page)
{
	static const char bytes[PAGE_BYTES];

	return pwrite(fd, bytes, sizeof(bytes), (off_t)page * PAGE_BYTES) == PAGE_BYTES;
}

static bool
fill(int fd)
{
	for (int page = 0; page < PAGES; page++)
		if (!page_write(fd, page))
			return false;
	return fsync(fd) == 0;
}

static bool
probe(int fd, struct histogram *times)
{
	int64_t end_ns = bench_load_now_ns() + PROBE_NS, began_ns;

	for (int page = 0; (began_ns = bench_load_now_ns()) < end_ns; page = (page + 1) % PAGES) {
		if (!page_write(fd, page) || fdatasync(fd) != 0)
			return false;
		histogram_add(times, bench_load_now_ns() - began_ns);
	}
	return true;
}

bool
bench_disk_sync(const char *directory, struct histogram *times, const char **error_r)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bool done = fd >= 0 && fill(fd) && probe(fd, times);

	if (!done)
		*error_r = strerror(errno);
	if (fd >= 0)
		close(fd);
	return done;
}

/* SPDX-License-Identifier: MIT */
/* What is there, then the service by a client's own calls. */
#include "tests/support/gauge.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/clock.h"

#define PACE_MS 5 /* between two calls: a hundred a second and more make a percentile */

int
gauge_threads(pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (tasks == NULL)
		return 0;
	while ((entry = readdir(tasks)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		n += entry->d_name[0] != '.';
	closedir(tasks);
	return n;
}

int64_t
gauge_file(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 ? file.st_size : 0;
}

/* --- service */

static int64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool
call(struct act *act, struct titen_client *client, struct histogram *took, char message[static 200])
{
	int64_t began_ns = now_ns();

	act_by_rpc(act, client);
	histogram_add(took, now_ns() - began_ns);
	if (!act_done(act))
		snprintf(message, 200, "%s: %s %s", act_method(act),
		    act->answered ? act->reason : "not answered", act->message);
	return act_done(act);
}

void
gauge_service(struct titen_client *client, const struct agent *agent, int64_t until_ms,
    struct histogram *took, char message[static 200])
{
	while (clock_monotonic_ms() < until_ms) {
		struct act acquire = { .kind = ACT_ACQUIRE, .agent = agent, .name = "gauge" };
		struct act release = { .kind = ACT_RELEASE, .agent = agent };

		if (!call(&acquire, client, took, message))
			return;
		snprintf(release.target, sizeof release.target, "%s", acquire.answer.id);
		if (!call(&release, client, took, message))
			return;
		poll(NULL, 0, PACE_MS);
	}
}

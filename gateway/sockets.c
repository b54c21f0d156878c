/* SPDX-License-Identifier: MIT */
/* A walk through /proc/self/fd. */
#include "gateway/sockets.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool
is_at(const struct sockaddr_in *address, int port)
{
	return address->sin_family == AF_INET && ntohs(address->sin_port) == port;
}

/* Whether FD is a connection from PORT to PEER. A listening socket has no peer. */
static bool
leads_to(int fd, int port, const struct sockaddr_in *peer)
{
	struct sockaddr_in here = { .sin_family = AF_UNSPEC }, there = here;
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&here, &here_bytes) != 0 || !is_at(&here, port))
		return false;
	if (getpeername(fd, (struct sockaddr *)&there, &there_bytes) != 0)
		return false;
	return peer == NULL || (is_at(&there, ntohs(peer->sin_port)) &&
				   there.sin_addr.s_addr == peer->sin_addr.s_addr);
}

void
sockets_shut(int port, const struct sockaddr_in *peer, int how)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (directory == NULL)
		return;
	/* The stream is this thread's own. */
	while ((entry = readdir(directory)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		int fd = atoi(entry->d_name);

		if (leads_to(fd, port, peer))
			shutdown(fd, how);
	}
	closedir(directory);
}

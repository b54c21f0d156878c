/* SPDX-License-Identifier: MIT */
/* A database's neighbours in the file system. */
#include "cmd/database.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/address.h"

#define IPC "ipc://"

static const char *
path_of_new(struct arena *arena, const char *file, const char **error_r)
{
	char real[PATH_MAX];
	const char *slash = strrchr(file, '/');
	const char *name = slash == NULL ? file : slash + 1;
	const char *directory = ".";

	if (slash != NULL)
		directory = slash == file ? "/" : arena_text_n(arena, file, (size_t)(slash - file));
	if (realpath(directory, real) == NULL) {
		*error_r = arena_printf(arena, "%s: %s", directory, strerror(errno));
		return NULL;
	}
	return arena_printf(arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
}

const char *
database_path(struct arena *arena, const char *file, const char **error_r)
{
	char real[PATH_MAX];

	if (realpath(file, real) != NULL)
		return arena_text(arena, real);
	if (errno == ENOENT)
		return path_of_new(arena, file, error_r);
	*error_r = arena_printf(arena, "%s: %s", file, strerror(errno));
	return NULL;
}

const char *
database_url(struct arena *arena, const char *path)
{
	const char *url = arena_printf(arena, IPC "%s.run/rpc.sock", path);

	return strlen(url) - strlen(IPC) > SOCKET_PATH_BYTES ? NULL : url;
}

bool
database_make_run(struct arena *arena, const char *path, const char **error_r)
{
	const char *run = arena_printf(arena, "%s.run", path);
	struct stat st;

	if (mkdir(run, 0700) == 0)
		return true;
	if (errno == EEXIST && lstat(run, &st) == 0) {
		if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
			*error_r = arena_printf(arena, "%s is not a directory of this user", run);
			return false;
		}
		if (chmod(run, 0700) == 0)
			return true;
	}
	*error_r = arena_printf(arena, "%s: %s", run, strerror(errno));
	return false;
}

bool
database_served(const char *url)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool served;

	if (fd < 0)
		return false;
	strncpy(address.sun_path, url + strlen(IPC), sizeof(address.sun_path) - 1);
	served = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	close(fd);
	return served;
}

/* SPDX-License-Identifier: MIT */
/* Processes are spawned, never forked, and inherit nothing but their three standard descriptors:
 * the library for nng does not live through a fork. */
#include "tests/support/program.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

#define ARGUMENTS_MAX 20

/* --- processes */

static pid_t
spawn(const char *const *arguments, int out, int err)
{
	char *argv[ARGUMENTS_MAX + 2] = { getenv("TITEN") };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;

	assert_non_null(argv[0]);
	for (int i = 0; arguments[i] != NULL; i++) {
		assert_true(i < ARGUMENTS_MAX);
		argv[i + 1] = (char *)arguments[i];
	}
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, err, 2);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	assert_int_equal(posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return pid;
}

/* The end of PID, which must come in time. */
static int
await(pid_t pid)
{
	struct pollfd ended = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int in_time = poll(&ended, 1, PROGRAM_PATIENCE_MS), status;

	close(ended.fd);
	if (in_time != 1)
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(in_time, 1);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* An unnamed file that a process writes to and we read afterwards. */
static int
scratch(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void
scratch_read(int fd, char text[static PROGRAM_OUTPUT_BYTES])
{
	ssize_t n = pread(fd, text, PROGRAM_OUTPUT_BYTES - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

struct program_output
program_run(const char *const *arguments)
{
	struct program_output output;
	int out = scratch(), err = scratch();

	output.code = await(spawn(arguments, out, err));
	scratch_read(out, output.out);
	scratch_read(err, output.err);
	return output;
}

/* --- directories */

int
program_open(void **state)
{
	struct program *p = calloc(1, sizeof *p);

	strcpy(p->directory, "/tmp/titen-program-XXXXXX");
	assert_non_null(mkdtemp(p->directory));
	snprintf(p->db, sizeof p->db, "%s/titen.db", p->directory);
	snprintf(p->err, sizeof p->err, "%s/serve.log", p->directory);
	snprintf(p->local, sizeof p->local, "ipc://%s.run/rpc.sock", p->db);
	p->rpc_port = program_free_port();
	snprintf(p->rpc, sizeof p->rpc, "tcp://127.0.0.1:%d", p->rpc_port);
	unsetenv("TITEN_API_KEY");
	unsetenv("TITEN_DB");
	setenv("TITEN_RPC_URL", p->rpc, 1);
	*state = p;
	return 0;
}

static void
directory_remove(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[512];

	while ((entry = readdir(directory)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (unlink(name) != 0 && errno == EISDIR)
			directory_remove(name);
	}
	closedir(directory);
	rmdir(path);
}

int
program_close(void **state)
{
	struct program *p = *state;

	if (p->pid != 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	directory_remove(p->directory);
	free(p);
	return 0;
}

/* --- the server */

void
program_bootstrap(struct program *p)
{
	struct program_output said = RUN("bootstrap", "--db", p->db, "--org", "acme");

	assert_int_equal(said.code, 0);
	program_member(said.out, "api_key", p->owner_key, sizeof p->owner_key);
}

/* The line that says that all doors are open comes last. */
static void
hear_serving(struct program *p, int fd)
{
	FILE *out = fdopen(fd, "r");
	char line[256] = "";

	while (strstr(line, p->local) == NULL && fgets(line, sizeof line, out) != NULL)
		if (strncmp(line, "listening http:", 15) == 0)
			sscanf(line, "listening %63s", p->http);
	fclose(out);
	assert_non_null(strstr(line, p->local));
	assert_int_not_equal(p->http[0], '\0');
}

void
program_serve(struct program *p)
{
	const char *const arguments[] = { "serve", "--db", p->db, "--http", "127.0.0.1:0", "--rpc",
		p->rpc, NULL };
	int err = open(p->err, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int out[2];

	assert_true(err >= 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	p->http[0] = '\0';
	p->pid = spawn(arguments, out[1], err);
	close(out[1]);
	close(err);
	hear_serving(p, out[0]);
}

void
program_signal(const struct program *p, int signal_number)
{
	assert_int_equal(kill(p->pid, signal_number), 0);
}

int
program_await(struct program *p, int64_t *ms_r)
{
	int64_t began_ms = clock_monotonic_ms();
	pid_t pid = p->pid;
	int code;

	p->pid = 0;
	code = await(pid);
	if (ms_r != NULL)
		*ms_r = clock_monotonic_ms() - began_ms;
	return code;
}

/* --- small things */

int
program_free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	close(fd);
	return ntohs(address.sin_port);
}

void
program_member(const char *json, const char *name, char *out, size_t out_bytes)
{
	char quoted[64];
	const char *value;

	snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
	value = strstr(json, quoted);
	assert_non_null(value);
	value += strlen(quoted);
	snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\""), value);
}

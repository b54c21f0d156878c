/* SPDX-License-Identifier: MIT */
/* What stands beside a database: its one name, its directory, its socket. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/database.h"

static struct arena arena;
static char directory[32];

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	strcpy(directory, "/tmp/titen-db-XXXXXX");
	return mkdtemp(directory) == NULL;
}

/* Each test removes what it has made; an unexpected rest makes rmdir() and so the test fail. */
static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return rmdir(directory);
}

static const char *
in_directory(const char *name)
{
	return arena_printf(&arena, "%s/%s", directory, name);
}

static void
a_new_database_has_a_name_where_its_directory_is(void **state)
{
	const char *error = NULL;

	(void)state;
	assert_string_equal(
	    database_path(&arena, in_directory("./new.db"), &error), in_directory("new.db"));
	assert_string_equal(database_path(&arena, "/new.db", &error), "/new.db");
	assert_null(database_path(&arena, in_directory("nowhere/new.db"), &error));
	assert_non_null(strstr(error, "nowhere"));
}

static void
a_link_leads_to_the_same_name(void **state)
{
	const char *error = NULL;
	const char *real = in_directory("real.db");
	const char *other = in_directory("other.db");

	(void)state;
	close(open(real, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink("real.db", other), 0);
	assert_string_equal(database_path(&arena, other, &error), real);
	unlink(other);
	unlink(real);
}

static void
a_name_too_long_for_a_socket_has_no_url(void **state)
{
	char path[108];

	(void)state;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[107 - strlen(".run/rpc.sock")] = '\0';
	assert_non_null(database_url(&arena, path));
	path[107 - strlen(".run/rpc.sock")] = 'a';
	path[108 - strlen(".run/rpc.sock")] = '\0';
	assert_null(database_url(&arena, path));
}

static void
the_directory_is_for_its_owner_alone(void **state)
{
	const char *path = in_directory("x.db");
	const char *run = in_directory("x.db.run");
	const char *error = NULL;
	struct stat st;

	(void)state;
	assert_true(database_make_run(&arena, path, &error));
	assert_int_equal(chmod(run, 0755), 0);
	assert_true(database_make_run(&arena, path, &error));
	assert_int_equal(stat(run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	rmdir(run);
}

static void
what_is_no_directory_is_refused(void **state)
{
	const char *run = in_directory("x.db.run");
	const char *error = NULL;

	(void)state;
	assert_int_equal(symlink("/tmp", run), 0);
	assert_false(database_make_run(&arena, in_directory("x.db"), &error));
	assert_non_null(strstr(error, run));
	unlink(run);
}

static void
only_a_listening_socket_is_served(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = in_directory("sock");
	const char *url = arena_printf(&arena, "ipc://%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	assert_false(database_served(url));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_true(database_served(url));
	close(fd);
	assert_false(database_served(url));
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_new_database_has_a_name_where_its_directory_is, setup, teardown),
		cmocka_unit_test_setup_teardown(a_link_leads_to_the_same_name, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_name_too_long_for_a_socket_has_no_url, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    the_directory_is_for_its_owner_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_directory_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(only_a_listening_socket_is_served, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

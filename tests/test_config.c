/* SPDX-License-Identifier: MIT */
/* Settings of `titen serve`: who wins, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/config.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof(a)[0])

static struct arena arena;
static char file_name[] = "/tmp/titen-config-XXXXXX";

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	unsetenv("TITEN_DB");
	unsetenv("TITEN_HTTP");
	unsetenv("TITEN_RPC");
	unsetenv("TITEN_EVENTS");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* A file that lives until the end of the test program. */
static const char *
file_with(const char *text)
{
	FILE *file = fopen(file_name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return file_name;
}

static void
without_any_word_the_documented_addresses_are_used(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	assert_true(config_resolve(&config, &arena, &flags, NULL, &error));
	assert_string_equal(config.db, "titen.db");
	assert_string_equal(config.http, "127.0.0.1:8787");
	assert_string_equal(config.rpc[0], "tcp://127.0.0.1:8788");
	assert_null(config.rpc[1]);
	assert_null(config.events[0]);
}

static void
flags_win_over_environment_over_file(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;
	const char *file = file_with("[serve]\ndb = file.db\nhttp = 10.0.0.1:1\nrpc = off\n");

	(void)state;
	setenv("TITEN_DB", "environment.db", 1);
	setenv("TITEN_HTTP", "10.0.0.2:2", 1);
	config_add(&flags, &arena, CONFIG_DB, "flag.db");
	assert_true(config_resolve(&config, &arena, &flags, file, &error));
	assert_string_equal(config.db, "flag.db");
	assert_string_equal(config.http, "10.0.0.2:2");
	assert_null(config.rpc[0]);
}

static void
an_empty_variable_says_nothing(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	setenv("TITEN_HTTP", "", 1);
	assert_true(config_resolve(&config, &arena, &flags, NULL, &error));
	assert_string_equal(config.http, "127.0.0.1:8787");
}

static void
urls_come_repeated_or_separated_by_blanks(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	config_add(&flags, &arena, CONFIG_RPC, "tcp://127.0.0.1:1");
	config_add(&flags, &arena, CONFIG_RPC, "ipc:///run/a  tcp://[::1]:65535");
	assert_true(config_resolve(&config, &arena, &flags, NULL, &error));
	assert_string_equal(config.rpc[0], "tcp://127.0.0.1:1");
	assert_string_equal(config.rpc[1], "ipc:///run/a");
	assert_string_equal(config.rpc[2], "tcp://[::1]:65535");
	assert_null(config.rpc[3]);
}

static void
off_means_no_web_door(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	config_add(&flags, &arena, CONFIG_HTTP, "off");
	assert_true(config_resolve(&config, &arena, &flags, NULL, &error));
	assert_null(config.http);
}

static void
what_does_not_fit_is_refused_with_its_place(void **state)
{
	static const struct {
		enum config_key key;
		const char *text;
		const char *error;
	} rows[] = {
		{ CONFIG_DB, "", "--db: " },
		{ CONFIG_HTTP, "8787", "--http: 8787 is not HOST:PORT" },
		{ CONFIG_HTTP, "localhost:80", "--http: localhost: give an IPv4 address" },
		{ CONFIG_RPC, "127.0.0.1:8788", "--rpc: 127.0.0.1:8788 is neither" },
		{ CONFIG_RPC, "tcp://127.0.0.1:0", NULL },
		{ CONFIG_RPC, "ipc:///x tcp://127.0.0.1:0 tcp://127.0.0.1:1", NULL },
		{ CONFIG_RPC, "tcp://127.0.0.1:1 tcp://127.0.0.1:0", "--rpc: only the first" },
		{ CONFIG_EVENTS, "http://x:1", "--events: " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config_source flags = { { NULL } };
		struct config config;
		const char *error = NULL;
		bool fits;

		flags.text[rows[i].key] = rows[i].text;
		fits = config_resolve(&config, &arena, &flags, NULL, &error);
		if (fits != (rows[i].error == NULL) ||
		    (!fits && strncmp(error, rows[i].error, strlen(rows[i].error)) != 0))
			fail_msg("row %zu: %s", i, fits ? "accepted" : error);
	}
}

static void
what_is_wrong_names_who_said_it(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error = "";

	(void)state;
	assert_false(
	    config_resolve(&config, &arena, &flags, file_with("[serve]\nhttp = 80\n"), &error));
	assert_string_equal(
	    error, arena_printf(&arena, "%s: http: 80 is not HOST:PORT", file_name));
	setenv("TITEN_HTTP", "81", 1);
	assert_false(config_resolve(&config, &arena, &flags, NULL, &error));
	assert_string_equal(error, "TITEN_HTTP: 81 is not HOST:PORT");
}

static void
more_urls_than_the_limit_are_refused(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	for (int i = 0; i < CONFIG_URLS_MAX; i++)
		config_add(&flags, &arena, CONFIG_RPC, "tcp://127.0.0.1:1");
	assert_true(config_resolve(&config, &arena, &flags, NULL, &error));
	config_add(&flags, &arena, CONFIG_RPC, "tcp://127.0.0.1:1");
	assert_false(config_resolve(&config, &arena, &flags, NULL, &error));
}

static void
what_the_file_should_not_hold_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} rows[] = {
		{ "[serve]\nport = 1\n", ":2: '[serve] port' is no setting; there are db, http" },
		{ "[other]\ndb = x\n", ":2: '[other] db' is no setting" },
		{ "# db\ndb = x\n", ":2: '[] db' is no setting" },
		{ "[serve]\ndb\nport = 1\n", ":2: is not NAME = VALUE" },
		{ "[serve]\nport = 1\ndb\nport = 2\n", ":2: '[serve] port' is no setting" },
	};
	struct config_source flags = { { NULL } };
	struct config config;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *error = "";
		if (config_resolve(&config, &arena, &flags, file_with(rows[i].text), &error) ||
		    strstr(error, rows[i].error) == NULL)
			fail_msg("row %zu: '%s'", i, error);
	}
}

static void
a_file_that_is_not_there_is_refused(void **state)
{
	struct config_source flags = { { NULL } };
	struct config config;
	const char *error;

	(void)state;
	assert_false(config_resolve(&config, &arena, &flags, "/nonexistent/titen.ini", &error));
	assert_non_null(strstr(error, "/nonexistent/titen.ini"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    without_any_word_the_documented_addresses_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    flags_win_over_environment_over_file, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_variable_says_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    urls_come_repeated_or_separated_by_blanks, setup, teardown),
		cmocka_unit_test_setup_teardown(off_means_no_web_door, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_does_not_fit_is_refused_with_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_names_who_said_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    more_urls_than_the_limit_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    what_the_file_should_not_hold_is_refused_with_its_line, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_file_that_is_not_there_is_refused, setup, teardown),
	};
	int fd = mkstemp(file_name);
	int failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file_name);
	return failed;
}

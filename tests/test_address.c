/* SPDX-License-Identifier: MIT */
/* Addresses: which ones fit, and what is said of the others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/address.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PATH_100                                                                                   \
	"/2345678901234567890123456789012345678901234567890"                                       \
	"12345678901234567890123456789012345678901234567890"

struct row {
	const char *text;
	const char *fault; /* NULL: it fits */
};

static struct arena arena;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static void
expect_rows(const struct row *rows, size_t n,
    bool (*fits)(struct arena *arena, const char *text, const char **error_r))
{
	for (size_t i = 0; i < n; i++) {
		const char *error = NULL;
		bool good = fits(&arena, rows[i].text, &error);

		if (good != (rows[i].fault == NULL) ||
		    (!good && strstr(error, rows[i].fault) == NULL))
			fail_msg("row %zu: %s", i, good ? "accepted" : error);
	}
}

static void
rest_takes_an_ipv4_address_and_a_port(void **state)
{
	static const struct row rows[] = {
		{ "127.0.0.1:8787", NULL },
		{ "0.0.0.0:0", NULL },
		{ "127.0.0.1:65535", NULL },
		{ "127.0.0.1:65536", "127.0.0.1:65536 is not HOST:PORT" },
		{ "8787", "is not HOST:PORT" },
		{ ":8787", "is not HOST:PORT" },
		{ "127.0.0.1:", "is not HOST:PORT" },
		{ "127.0.0.1:+80", "is not HOST:PORT" },
		{ "127.0.0.1:1e3", "is not HOST:PORT" },
		{ "http://127.0.0.1:80", "is not HOST:PORT" },
		{ "localhost:8787", "localhost: give an IPv4 address" },
		{ "127.1:8787", "127.1: give an IPv4 address" },
		{ "[::1]:8787", "IPv6 is not supported; put a proxy in front" },
		{ "::1:8787", "IPv6 is not supported" },
	};

	(void)state;
	expect_rows(rows, ARRAY_LEN(rows), address_http);
}

static void
nng_takes_a_host_and_a_port_or_a_path(void **state)
{
	static const struct row rows[] = {
		{ "tcp://127.0.0.1:8788", NULL },
		{ "tcp://server.example:1", NULL },
		{ "tcp://[::1]:65535", NULL },
		{ "tcp://127.0.0.1:0", NULL },
		{ "ipc:///run/titen.sock", NULL },
		{ "ipc://" PATH_100 "1234567", NULL },
		{ "ipc://" PATH_100 "12345678", "longer than the 107 bytes" },
		{ "tcp://127.0.0.1", "is neither tcp://HOST:PORT nor ipc:///PATH" },
		{ "tcp://:80", "is neither" },
		{ "127.0.0.1:8788", "is neither" },
		{ "http://127.0.0.1:8787", "is neither" },
		{ "ws://127.0.0.1:80", "is neither" },
		{ "ipc://relative", "is neither" },
		{ "", "is neither" },
	};

	(void)state;
	expect_rows(rows, ARRAY_LEN(rows), address_url);
}

static void
only_port_0_is_any_port(void **state)
{
	(void)state;
	assert_true(address_any_port("tcp://127.0.0.1:0"));
	assert_false(address_any_port("tcp://127.0.0.1:10"));
	assert_false(address_any_port("ipc:///tmp/x:0"));
}

static void
a_port_with_a_listener_is_in_use(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const char *text, *error = NULL;

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	text = arena_printf(&arena, "127.0.0.1:%d", ntohs(address.sin_port));
	assert_false(address_free(&arena, text, &error));
	assert_string_equal(
	    error, arena_printf(&arena, "http://%s is in use; choose another with --http", text));
	close(fd);
	assert_true(address_free(&arena, text, &error));
}

/* 192.0.2.0/24 is for documentation (RFC 5737). */
static void
an_address_of_another_machine_is_not_free(void **state)
{
	const char *error = NULL;

	(void)state;
	assert_false(address_free(&arena, "192.0.2.1:0", &error));
	assert_non_null(strstr(error, "http://192.0.2.1:0: "));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    rest_takes_an_ipv4_address_and_a_port, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    nng_takes_a_host_and_a_port_or_a_path, setup, teardown),
		cmocka_unit_test(only_port_0_is_any_port),
		cmocka_unit_test_setup_teardown(a_port_with_a_listener_is_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    an_address_of_another_machine_is_not_free, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Connections and the requests under way on them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/pipes.h"

static void
only_so_many_connections_are_taken(void **state)
{
	struct pipes *pipes = pipes_open();

	(void)state;
	for (int id = 1; id <= PIPES_MAX; id++)
		assert_true(pipes_add(pipes, id, false));
	assert_false(pipes_add(pipes, PIPES_MAX + 1, false));
	pipes_remove(pipes, 7);
	assert_true(pipes_add(pipes, PIPES_MAX + 1, false));
	pipes_close(&pipes);
	assert_null(pipes);
}

static void
a_connection_knows_whether_it_is_local(void **state)
{
	struct pipes *pipes = pipes_open();
	bool local;

	(void)state;
	assert_true(pipes_add(pipes, 1, true));
	assert_true(pipes_add(pipes, 2, false));
	assert_true(pipes_begin(pipes, 1, &local));
	assert_true(local);
	assert_true(pipes_begin(pipes, 2, &local));
	assert_false(local);
	pipes_close(&pipes);
}

static void
one_connection_may_not_have_everything_under_way(void **state)
{
	struct pipes *pipes = pipes_open();
	bool local;

	(void)state;
	assert_true(pipes_add(pipes, 1, false));
	assert_true(pipes_add(pipes, 2, false));
	for (int i = 0; i < PIPE_OUTSTANDING_MAX; i++)
		assert_true(pipes_begin(pipes, 1, &local));
	assert_false(pipes_begin(pipes, 1, &local));
	assert_true(pipes_begin(pipes, 2, &local));
	pipes_end(pipes, 1);
	pipes_end(pipes, 1);
	assert_true(pipes_begin(pipes, 1, &local));
	pipes_close(&pipes);
}

static void
a_request_of_a_connection_that_is_gone_is_never_local(void **state)
{
	struct pipes *pipes = pipes_open();
	bool local = true;

	(void)state;
	assert_true(pipes_add(pipes, 1, true));
	pipes_remove(pipes, 1);
	pipes_remove(pipes, 1);
	assert_true(pipes_begin(pipes, 1, &local));
	assert_false(local);
	pipes_end(pipes, 1);
	pipes_close(&pipes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_so_many_connections_are_taken),
		cmocka_unit_test(a_connection_knows_whether_it_is_local),
		cmocka_unit_test(one_connection_may_not_have_everything_under_way),
		cmocka_unit_test(a_request_of_a_connection_that_is_gone_is_never_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

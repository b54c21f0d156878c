/* SPDX-License-Identifier: MIT */
/* Scopes: names, and what a set of them grants. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/arena.h"
#include "core/scopes.h"

static scope_set
set_of(enum right scope)
{
	return (scope_set)1 << scope;
}

static void
every_scope_is_found_by_its_text(void **state)
{
	(void)state;
	for (int i = 0; i < RIGHT_SCOPES; i++)
		assert_int_equal(scope_find(scope_text((enum right)i)), i);
	assert_string_equal(scope_text(RIGHT_LEASES_WRITE), "leases:write");
}

static void
what_is_no_scope_has_no_text(void **state)
{
	(void)state;
	assert_int_equal(scope_find("leases"), RIGHT_SCOPES);
	assert_int_equal(scope_find(""), RIGHT_SCOPES);
	assert_int_equal(scope_find("LEASES:WRITE"), RIGHT_SCOPES);
	assert_null(scope_text(RIGHT_KEY));
	assert_null(scope_text(RIGHT_PUBLIC));
	assert_null(scope_text(RIGHT_LOCAL));
}

static void
a_scope_is_granted_by_name_or_by_star(void **state)
{
	(void)state;
	assert_true(scope_granted(set_of(RIGHT_LEASES_WRITE), RIGHT_LEASES_WRITE));
	assert_true(scope_granted(set_of(RIGHT_ALL), RIGHT_LEASES_WRITE));
	assert_false(scope_granted(set_of(RIGHT_LEASES_READ), RIGHT_LEASES_WRITE));
	assert_false(scope_granted(0, RIGHT_LEASES_WRITE));
}

static void
star_contains_every_set_and_no_list_contains_star(void **state)
{
	scope_set two = set_of(RIGHT_LEASES_READ) | set_of(RIGHT_EVENTS_READ);

	(void)state;
	assert_true(scope_within(two, set_of(RIGHT_ALL)));
	assert_true(scope_within(set_of(RIGHT_ALL), set_of(RIGHT_ALL)));
	assert_true(scope_within(set_of(RIGHT_LEASES_READ), two));
	assert_true(scope_within(0, 0));
	assert_false(scope_within(two, set_of(RIGHT_LEASES_READ)));
	assert_false(scope_within(set_of(RIGHT_ALL), ~set_of(RIGHT_ALL)));
}

static void
a_set_is_listed_by_name_and_star_alone(void **state)
{
	struct arena arena;
	char **list;
	size_t n;

	(void)state;
	arena_init(&arena);
	list = scope_list(&arena, set_of(RIGHT_EVENTS_READ) | set_of(RIGHT_LEASES_READ), &n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0], "leases:read");
	assert_string_equal(list[1], "events:read");
	list = scope_list(&arena, set_of(RIGHT_ALL) | set_of(RIGHT_LEASES_READ), &n);
	assert_int_equal(n, 1);
	assert_string_equal(list[0], "*");
	scope_list(&arena, 0, &n);
	assert_int_equal(n, 0);
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scope_is_found_by_its_text),
		cmocka_unit_test(what_is_no_scope_has_no_text),
		cmocka_unit_test(a_scope_is_granted_by_name_or_by_star),
		cmocka_unit_test(star_contains_every_set_and_no_list_contains_star),
		cmocka_unit_test(a_set_is_listed_by_name_and_star_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

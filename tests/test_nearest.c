/* SPDX-License-Identifier: MIT */
/* What somebody may have meant. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cmd/nearest.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static void
a_slip_of_a_finger_finds_its_name(void **state)
{
	static const char *const names[] = { "ttl_seconds", "expected_version", "kind",
		"lease.acquire", "lease.release" };
	static const struct {
		const char *wanted;
		const char *name; /* NULL: nothing is close */
	} rows[] = {
		{ "lease.aquire", "lease.acquire" },
		{ "LEASE.RELEASES", "lease.release" },
		{ "expected_vresion", "expected_version" },
		{ "ttl", NULL },
		{ "ttl_second", "ttl_seconds" },
		{ "knid", "kind" },
		{ "kinds", "kind" },
		{ "purpose", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a-name-far-longer-than-any-that-there-is-or-will-be-in-this-program", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nearest nearest;

		nearest_begin(&nearest, rows[i].wanted);
		for (size_t j = 0; j < ARRAY_LEN(names); j++)
			nearest_offer(&nearest, names[j]);
		if ((nearest.name == NULL) != (rows[i].name == NULL) ||
		    (nearest.name != NULL && strcmp(nearest.name, rows[i].name) != 0))
			fail_msg("row %zu: %s", i, nearest.name == NULL ? "none" : nearest.name);
	}
}

static void
the_first_of_two_that_are_as_near_is_kept(void **state)
{
	struct nearest nearest;

	(void)state;
	nearest_begin(&nearest, "key.list");
	nearest_offer(&nearest, "key.lisp");
	nearest_offer(&nearest, "key.lost");
	assert_string_equal(nearest.name, "key.lisp");
}

static void
a_hint_is_a_question_or_nothing(void **state)
{
	struct nearest nearest;
	struct arena arena;

	(void)state;
	arena_init(&arena);
	nearest_begin(&nearest, "serv");
	assert_string_equal(nearest_hint(&nearest, &arena), "");
	nearest_offer(&nearest, "serve");
	assert_string_equal(nearest_hint(&nearest, &arena), "; did you mean serve?");
	arena_free(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slip_of_a_finger_finds_its_name),
		cmocka_unit_test(the_first_of_two_that_are_as_near_is_kept),
		cmocka_unit_test(a_hint_is_a_question_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

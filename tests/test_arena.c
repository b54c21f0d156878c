/* SPDX-License-Identifier: MIT */
/* Arenas: what they hand out, what they refuse, and that all of it comes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/arena.h"

#define ARENAS 80 /* enough to go over the budget with the largest requests */

static void
memory_is_zero_and_aligned_also_when_used_again(void **state)
{
	struct arena a;
	char *first, *second;

	(void)state;
	arena_init(&a);
	for (int round = 0; round < 2; round++) {
		first = arena_alloc(&a, 3);
		second = arena_alloc(&a, 100);
		assert_int_equal((uintptr_t)second % _Alignof(max_align_t), 0);
		for (int i = 0; i < 100; i++)
			assert_int_equal(second[i], 0);
		memset(first, 'x', 3);
		memset(second, 'x', 100);
		arena_reset(&a);
	}
	arena_free(&a);
}

static void
an_arena_refuses_above_its_limit(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a);
	assert_non_null(arena_try(&a, ARENA_BYTES_MAX - 64));
	assert_false(a.refused);
	assert_null(arena_try(&a, 65));
	assert_true(a.refused);
	assert_non_null(arena_try(&a, 64));
	assert_null(arena_try(&a, SIZE_MAX));
	assert_null(a.decoder.alloc(a.decoder.allocator_data, 1));
	assert_non_null(arena_alloc(&a, 1024));
	arena_free(&a);
}

static void
all_arenas_together_refuse_above_the_budget(void **state)
{
	static struct arena arenas[ARENAS];
	int granted = 0;

	(void)state;
	for (int i = 0; i < ARENAS; i++) {
		arena_init(&arenas[i]);
		granted += arena_try(&arenas[i], ARENA_BYTES_MAX) != NULL;
	}
	assert_int_equal(granted, ARENA_BUDGET_BYTES / ARENA_BYTES_MAX - 1);
	assert_true(arena_budget_used() <= ARENA_BUDGET_BYTES);
	arena_free(&arenas[0]);
	assert_non_null(arena_try(&arenas[ARENAS - 1], ARENA_BYTES_MAX));
	for (int i = 0; i < ARENAS; i++)
		arena_free(&arenas[i]);
	assert_int_equal(arena_budget_used(), 0);
}

static void
a_reset_keeps_one_small_chunk(void **state)
{
	struct arena a;
	size_t one;

	(void)state;
	arena_init(&a);
	arena_alloc(&a, 1);
	one = arena_budget_used();
	for (int i = 0; i < 1000; i++)
		arena_alloc(&a, 1000);
	assert_true(arena_budget_used() > 1000 * 1000);
	arena_reset(&a);
	assert_int_equal(arena_budget_used(), one);
	assert_int_equal(a.bytes, 0);
	arena_free(&a);
	arena_alloc(&a, 100000);
	arena_reset(&a);
	assert_int_equal(arena_budget_used(), 0);
	arena_free(&a);
}

static void
a_return_forgets_what_came_after_the_mark(void **state)
{
	struct arena a;
	struct arena_mark empty, mark;
	char *before, *after;

	(void)state;
	arena_init(&a);
	empty = arena_mark(&a);
	before = arena_text(&a, "before");
	mark = arena_mark(&a);
	after = arena_text(&a, "after");
	arena_alloc(&a, 100000);
	arena_return(&a, mark);
	assert_string_equal(before, "before");
	assert_ptr_equal(arena_text(&a, "again"), after);
	arena_return(&a, empty);
	assert_int_equal(a.bytes, 0);
	assert_int_equal(arena_budget_used(), 0);
	arena_free(&a);
}

static void
texts_are_copied_and_printed(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a);
	assert_string_equal(arena_text_n(&a, "lease and more", 5), "lease");
	assert_string_equal(arena_text(&a, ""), "");
	assert_string_equal(arena_printf(&a, "%s-%d", "lease", 7), "lease-7");
	arena_free(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zero_and_aligned_also_when_used_again),
		cmocka_unit_test(an_arena_refuses_above_its_limit),
		cmocka_unit_test(all_arenas_together_refuse_above_the_budget),
		cmocka_unit_test(a_reset_keeps_one_small_chunk),
		cmocka_unit_test(a_return_forgets_what_came_after_the_mark),
		cmocka_unit_test(texts_are_copied_and_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The queue: first come, first served, bounded, and emptied before it ends. */
#include "tests/support/fixture.h"

#include <pthread.h>

#include "core/queue.h"

#define ROOM 4

static void
calls_leave_in_the_order_they_came(void **state)
{
	struct call calls[ROOM], *taken[ROOM];
	struct queue q;

	(void)state;
	queue_init(&q, ROOM);
	assert_true(queue_empty(&q));
	for (int i = 0; i < ROOM; i++)
		assert_true(queue_put(&q, &calls[i]));
	assert_false(queue_empty(&q));
	assert_int_equal(queue_take(&q, taken, 3), 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(taken[i], &calls[i]);
	assert_true(queue_put(&q, &calls[0]));
	assert_int_equal(queue_take(&q, taken, ROOM), 2);
	assert_ptr_equal(taken[0], &calls[3]);
	assert_ptr_equal(taken[1], &calls[0]);
	assert_true(queue_empty(&q));
	queue_destroy(&q);
}

static void
a_full_queue_takes_no_more_until_one_has_left(void **state)
{
	struct call calls[ROOM + 1], *taken[ROOM + 1];
	struct queue q;

	(void)state;
	queue_init(&q, ROOM);
	for (int i = 0; i < ROOM; i++)
		assert_true(queue_put(&q, &calls[i]));
	assert_false(queue_put(&q, &calls[ROOM]));
	assert_int_equal(queue_take(&q, taken, 1), 1);
	assert_true(queue_put(&q, &calls[ROOM]));
	assert_int_equal(queue_take(&q, taken, ROOM + 1), ROOM);
	queue_destroy(&q);
}

static void
many_at_once_are_put_whatever_the_limit(void **state)
{
	struct call calls[ROOM], *all[ROOM], *taken[ROOM];
	struct queue q;

	(void)state;
	queue_init(&q, 1);
	for (int i = 0; i < ROOM; i++)
		all[i] = &calls[i];
	queue_put_all(&q, all, ROOM);
	assert_false(queue_put(&q, &calls[0]));
	assert_int_equal(queue_take(&q, taken, ROOM), ROOM);
	assert_ptr_equal(taken[ROOM - 1], &calls[ROOM - 1]);
	queue_destroy(&q);
}

static void
a_closed_queue_gives_what_it_holds_and_then_nothing(void **state)
{
	struct call call, *taken[ROOM];
	struct queue q;

	(void)state;
	queue_init(&q, ROOM);
	assert_true(queue_put(&q, &call));
	queue_close(&q);
	assert_int_equal(queue_take(&q, taken, ROOM), 1);
	assert_int_equal(queue_take(&q, taken, ROOM), 0);
	assert_int_equal(queue_take(&q, taken, ROOM), 0);
	queue_destroy(&q);
}

static void *
take_until_the_end(void *arg)
{
	struct call *taken[ROOM];
	intptr_t sum = 0;
	int n;

	while ((n = queue_take(arg, taken, ROOM)) > 0)
		sum += n;
	return (void *)sum;
}

static void
whoever_waits_is_woken_by_calls_and_by_the_end(void **state)
{
	struct call calls[100];
	pthread_t takers[3];
	struct queue q;
	intptr_t sum = 0;
	void *part;

	(void)state;
	queue_init(&q, 100);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&takers[i], NULL, take_until_the_end, &q), 0);
	for (int i = 0; i < 100; i++)
		assert_true(queue_put(&q, &calls[i]));
	queue_close(&q);
	for (int i = 0; i < 3; i++) {
		pthread_join(takers[i], &part);
		sum += (intptr_t)part;
	}
	assert_int_equal(sum, 100);
	queue_destroy(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_leave_in_the_order_they_came),
		cmocka_unit_test(a_full_queue_takes_no_more_until_one_has_left),
		cmocka_unit_test(many_at_once_are_put_whatever_the_limit),
		cmocka_unit_test(a_closed_queue_gives_what_it_holds_and_then_nothing),
		cmocka_unit_test(whoever_waits_is_woken_by_calls_and_by_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

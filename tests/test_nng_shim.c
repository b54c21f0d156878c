/* SPDX-License-Identifier: MIT */
/* The repairs of nng, each at its own seam. What they are for is proved in test_server.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>

#define PATIENCE_MS 2000 /* more than any of this takes on a busy machine */

/* Both ends of a connection, and the aio that a test uses on it. */
struct stage {
	nng_stream_listener *listener;
	nng_stream_dialer *dialer;
	nng_stream *near, *far;
	nng_mtx *lock;
	nng_cv *changed;
	int completions;
	nng_aio *aio;
};

static void
count_completion(void *arg)
{
	struct stage *stage = arg;

	nng_mtx_lock(stage->lock);
	stage->completions++;
	nng_cv_wake(stage->changed);
	nng_mtx_unlock(stage->lock);
}

static void
expect_completion(struct stage *stage, int result)
{
	nng_time deadline = nng_clock() + PATIENCE_MS;

	nng_mtx_lock(stage->lock);
	while (stage->completions == 0 && nng_cv_until(stage->changed, deadline) == 0)
		;
	nng_mtx_unlock(stage->lock);
	assert_int_equal(stage->completions, 1);
	assert_int_equal(nng_aio_result(stage->aio), result);
}

static void
connect_both(struct stage *stage, const char *url)
{
	nng_aio *accepted, *dialed;

	assert_int_equal(nng_aio_alloc(&accepted, NULL, NULL), 0);
	assert_int_equal(nng_aio_alloc(&dialed, NULL, NULL), 0);
	assert_int_equal(nng_stream_listener_alloc(&stage->listener, url), 0);
	assert_int_equal(nng_stream_listener_listen(stage->listener), 0);
	assert_int_equal(nng_stream_dialer_alloc(&stage->dialer, url), 0);
	nng_stream_listener_accept(stage->listener, accepted);
	nng_stream_dialer_dial(stage->dialer, dialed);
	nng_aio_wait(accepted);
	nng_aio_wait(dialed);
	assert_int_equal(nng_aio_result(accepted), 0);
	assert_int_equal(nng_aio_result(dialed), 0);
	stage->near = nng_aio_get_output(accepted, 0);
	stage->far = nng_aio_get_output(dialed, 0);
	nng_aio_free(accepted);
	nng_aio_free(dialed);
}

static int
open_stage(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	char url[100];

	snprintf(url, sizeof(url), "ipc:///tmp/titen-shim-%d.sock", (int)getpid());
	connect_both(stage, url);
	assert_int_equal(nng_mtx_alloc(&stage->lock), 0);
	assert_int_equal(nng_cv_alloc(&stage->changed, stage->lock), 0);
	assert_int_equal(nng_aio_alloc(&stage->aio, count_completion, stage), 0);
	*state = stage;
	return 0;
}

static int
close_stage(void **state)
{
	struct stage *stage = *state;

	nng_aio_free(stage->aio);
	nng_stream_free(stage->near);
	nng_stream_free(stage->far);
	nng_stream_dialer_free(stage->dialer);
	nng_stream_listener_free(stage->listener);
	nng_cv_free(stage->changed);
	nng_mtx_free(stage->lock);
	free(stage);
	return 0;
}

static void
set_buffer(struct stage *stage, char *byte)
{
	nng_iov iov = { .iov_buf = byte, .iov_len = 1 };

	assert_int_equal(nng_aio_set_iov(stage->aio, 1, &iov), 0);
}

static void
a_receive_on_a_stopped_aio_is_completed(void **state)
{
	struct stage *stage = *state;
	char byte;

	set_buffer(stage, &byte);
	nng_aio_stop(stage->aio);
	nng_stream_recv(stage->near, stage->aio);
	expect_completion(stage, NNG_ECONNSHUT);
}

static void
a_send_on_a_stopped_aio_is_completed(void **state)
{
	struct stage *stage = *state;
	char byte = 'x';

	set_buffer(stage, &byte);
	nng_aio_stop(stage->aio);
	nng_stream_send(stage->near, stage->aio);
	expect_completion(stage, NNG_ECONNSHUT);
}

static void
a_receive_that_waits_is_left_alone(void **state)
{
	struct stage *stage = *state;
	char byte;

	set_buffer(stage, &byte);
	nng_stream_recv(stage->near, stage->aio);
	assert_int_equal(stage->completions, 0);
	nng_aio_cancel(stage->aio);
	expect_completion(stage, NNG_ECANCELED);
}

static void
a_broken_pipe_is_a_lost_connection(void **state)
{
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	close(ends[1]);
	assert_int_equal(sendmsg(ends[0], &message, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, ECONNRESET);
	close(ends[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_receive_on_a_stopped_aio_is_completed, open_stage, close_stage),
		cmocka_unit_test_setup_teardown(
		    a_send_on_a_stopped_aio_is_completed, open_stage, close_stage),
		cmocka_unit_test_setup_teardown(
		    a_receive_that_waits_is_left_alone, open_stage, close_stage),
		cmocka_unit_test(a_broken_pipe_is_a_lost_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

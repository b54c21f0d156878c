/* SPDX-License-Identifier: MIT */
/* One loop; the door is chosen by the url. */
#include "tests/support/steady.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "tests/support/act.h"

#define PAUSE_MS 2 /* between two calls: it shall be served, not be the load */

struct steady {
	const char *url;
	struct agent owner;
	struct titen_client *client; /* or */
	struct rest *rest;
	pthread_t thread;
	atomic_bool stopping;
	int64_t calls;
	int64_t worst_ms;
	struct act act; /* the last one, or the first that failed */
	bool failed;
};

static void
call(struct steady *s)
{
	int64_t began_ms = clock_monotonic_ms(), took_ms;

	s->act = (struct act){ .kind = ACT_ACQUIRE, .agent = &s->owner, .name = "steady" };
	if (s->rest != NULL)
		act_by_rest(&s->act, s->rest);
	else
		act_by_rpc(&s->act, s->client);
	took_ms = clock_monotonic_ms() - began_ms;
	s->worst_ms = took_ms > s->worst_ms ? took_ms : s->worst_ms;
	s->failed = !act_done(&s->act);
	s->calls++;
}

static void *
steady_main(void *arg)
{
	struct steady *s = arg;

	while (!s->stopping && !s->failed) {
		call(s);
		poll(NULL, 0, PAUSE_MS);
	}
	return NULL;
}

struct steady *
steady_start(const struct program *p, const char *url)
{
	struct steady *s = calloc(1, sizeof(*s));
	char error[256] = "";

	s->url = url;
	strcpy(s->owner.principal, "owner");
	strcpy(s->owner.key, p->owner_key);
	if (strncmp(url, "http:", 5) == 0)
		s->rest = rest_open(url);
	else
		s->client =
		    titen_connect(&(struct titen_options){ .url = url, .key = s->owner.key }, error,
			sizeof(error));
	assert_string_equal(error, "");
	call(s);
	assert_false(s->failed);
	assert_int_equal(pthread_create(&s->thread, NULL, steady_main, s), 0);
	return s;
}

void
steady_stop(struct steady **steady)
{
	struct steady *s = *steady;

	*steady = NULL;
	s->stopping = true;
	pthread_join(s->thread, NULL);
	if (s->rest != NULL)
		rest_close(&s->rest);
	if (s->client != NULL)
		titen_close(&s->client);
	print_message("%s: %lld calls, the longest took %lld ms\n", s->url, (long long)s->calls,
	    (long long)s->worst_ms);
	if (s->failed)
		fail_msg("%s: call %lld, answered %d: %s %s", s->url, (long long)s->calls,
		    s->act.answered, s->act.reason, s->act.message);
	assert_in_range(s->worst_ms, 0, STEADY_MS_MAX);
	free(s);
}

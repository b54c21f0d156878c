/* SPDX-License-Identifier: MIT */
/* `titen bench` against a server: every figure is there, and they fit each other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/bench_load.h"
#include "tests/support/program.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof(a)[0])

/* The programs that are run from here on have it; this one has no other threads. NULL: none. */
static void
key_set(const char *key)
{
	if (key == NULL)
		unsetenv("TITEN_API_KEY"); /* NOLINT(concurrency-mt-unsafe) */
	else
		setenv("TITEN_API_KEY", key, 1); /* NOLINT(concurrency-mt-unsafe) */
}

static int
setup(void **state)
{
	struct program *p;

	program_open(state);
	p = *state;
	program_bootstrap(p);
	program_serve(p);
	key_set(p->owner_key);
	return 0;
}

static int
teardown(void **state)
{
	key_set(NULL);
	return program_close(state);
}

/* --- a run of a second, and what it says */

static json_t *
report_parse(const struct program_output *said)
{
	json_t *report = json_loads(said->out, 0, NULL);

	if (report == NULL)
		fail_msg("exit %d: %s%s", said->code, said->out, said->err);
	return report;
}

static json_t *
bench(const struct program *p, const char *work)
{
	const char *url = strcmp(work, "rest") == 0 ? p->http : p->rpc;
	char pid[16];
	struct program_output said;

	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	said = RUN("bench", work, "-u", url, "-c", "3", "-d", "1", "--server-pid", pid,
	    "--fsync-dir", p->directory, "-o", "json");
	if (said.code != 0)
		fail_msg("%s: exit %d: %s%s", work, said.code, said.out, said.err);
	return report_parse(&said);
}

static json_int_t
integer(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	if (!json_is_integer(value))
		fail_msg("%s is no integer", name);
	return json_integer_value(value);
}

static double
positive(const json_t *object, const char *name)
{
	double value = json_number_value(json_object_get(object, name));

	if (!(value > 0))
		fail_msg("%s is %g", name, value);
	return value;
}

static json_int_t
sum(const json_t *counts)
{
	const char *name;
	json_t *count;
	json_int_t total = 0;

	assert_true(json_is_object(counts));
	json_object_foreach ((json_t *)counts, name, count)
		total += json_integer_value(count);
	return total;
}

static void
assert_adds_up(const json_t *side)
{
	json_int_t answered = integer(side, "answered");
	double rate = positive(side, "calls_per_second");
	double seconds = positive(side, "elapsed_seconds");

	assert_int_equal(integer(side, "calls"), answered + sum(json_object_get(side, "refused")) +
						     sum(json_object_get(side, "failed")));
	assert_true(rate * seconds > 0.99 * (double)answered);
	assert_true(rate * seconds < 1.01 * (double)answered);
}

static void
assert_rises(const json_t *side)
{
	static const char *const names[] = { "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us" };
	double last = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		double value = positive(side, names[i]);
		if (value < last)
			fail_msg("%s is %g, below %g", names[i], value, last);
		last = value;
	}
}

static void
assert_side(const json_t *side)
{
	assert_adds_up(side);
	assert_rises(side);
	positive(side, "longest_stall_us");
	positive(side, "client_cpu_us_per_call");
	positive(side, "server_cpu_us_per_call");
	positive(side, "request_bytes");
	positive(side, "reply_bytes");
}

static void
assert_report(const json_t *report, const char *work)
{
	double ratio = positive(report, "echo_ratio");

	assert_string_equal(json_string_value(json_object_get(report, "work")), work);
	assert_true(json_is_string(json_object_get(report, "url")));
	assert_int_equal(integer(report, "outstanding"), 3);
	assert_int_equal(integer(report, "connections"), strcmp(work, "rest") == 0 ? 3 : 1);
	assert_int_equal(integer(report, "seconds"), 1);
	assert_int_equal(integer(report, "live_leases"), 0);
	assert_true(positive(report, "fsync_p50_us") <= positive(report, "fsync_p99_us"));
	assert_true(positive(report, "echo_ratio_min") <= positive(report, "echo_ratio_max"));
	assert_true(ratio > 0);
	assert_side(json_object_get(report, "measured"));
	assert_side(json_object_get(report, "baseline"));
}

static void
every_work_reports_every_figure(void **state)
{
	static const char *const works[] = { "acquire", "cycle", "handoff", "echo", "rest" };

	for (size_t i = 0; i < ARRAY_LEN(works); i++) {
		json_t *report = bench(*state, works[i]);
		assert_report(report, works[i]);
		json_decref(report);
	}
}

static void
the_echo_is_as_large_as_an_acquire(void **state)
{
	static const char *const names[] = { "request_bytes", "reply_bytes" };
	json_t *report = bench(*state, "acquire");
	const json_t *measured = json_object_get(report, "measured");
	const json_t *baseline = json_object_get(report, "baseline");

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (llabs(integer(measured, names[i]) - integer(baseline, names[i])) > 4)
			fail_msg("%s", names[i]);
	json_decref(report);
}

static void
no_handoff_is_left_half_done(void **state)
{
	struct program_output said;

	json_decref(bench(*state, "handoff"));
	said = RUN("rpc", "call", "handoff.list");
	if (strstr(said.out, "\"handoffs\":[]") == NULL)
		fail_msg("%s%s", said.out, said.err);
}

static void
live_leases_are_taken_before(void **state)
{
	const struct program *p = *state;
	struct program_output said = RUN("bench", "echo", "-u", p->rpc, "-c", "7", "-d", "1",
	    "--live", "100", "--conns", "2", "-o", "json");
	json_t *report = report_parse(&said);

	assert_int_equal(said.code, 0);
	assert_int_equal(integer(report, "live_leases"), 100);
	assert_int_equal(integer(report, "connections"), 2);
	assert_true(json_is_null(json_object_get(report, "fsync_p50_us")));
	json_decref(report);
}

static void
a_table_says_the_same_to_people(void **state)
{
	const struct program *p = *state;
	struct program_output said =
	    RUN("bench", "acquire", "-u", p->rpc, "-c", "2", "-d", "1", "-o", "table");

	assert_int_equal(said.code, 0);
	assert_non_null(strstr(said.out, "p99.9 us"));
	assert_non_null(strstr(said.out, "acquire / echo: "));
}

/* --- what goes wrong */

static void
a_bad_key_is_found_out_before_measuring(void **state)
{
	const struct program *p = *state;
	struct program_output said;

	key_set("titen_sk_none");
	said = RUN("bench", "acquire", "-u", p->rpc, "-d", "1", "-o", "json");
	key_set(p->owner_key);
	assert_int_equal(said.code, 4);
	assert_string_equal(said.out, "");
}

static void
refusals_are_counted_by_reason(void **state)
{
	const struct program *p = *state;
	struct program_output said;
	const json_t *measured;
	json_t *report;

	key_set("titen_sk_none");
	said = RUN("bench", "rest", "-u", p->http, "-c", "2", "-d", "1", "-o", "json");
	key_set(p->owner_key);
	assert_int_equal(said.code, 1);
	report = report_parse(&said);
	measured = json_object_get(report, "measured");
	assert_int_equal(integer(measured, "answered"), 0);
	assert_int_equal(integer(json_object_get(measured, "refused"), "UNAUTHENTICATED"),
	    integer(measured, "calls"));
	assert_true(integer(measured, "calls") > 0);
	assert_true(json_is_null(json_object_get(measured, "p50_us")));
	json_decref(report);
}

static void
no_server_is_unreachable(void **state)
{
	char url[64];

	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", program_free_port());
	assert_int_equal(RUN("bench", "rest", "-u", url, "-d", "1").code, 8);
}

static void
what_makes_no_sense_is_a_usage_error(void **state)
{
	static const char *const rows[][6] = {
		{ "bench" },
		{ "bench", "everything" },
		{ "bench", "acquire", "cycle" },
		{ "bench", "acquire", "-c", "0" },
		{ "bench", "acquire", "-c", "4097" },
		{ "bench", "acquire", "-d", "x" },
		{ "bench", "acquire", "--conns", "0" },
		{ "bench", "rest", "--conns", "2" },
		{ "bench", "rest", "-c", "513" },
		{ "bench", "acquire", "-o", "xml" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (program_run(rows[i]).code != 2)
			fail_msg("row %zu", i);
}

/* --- counting, without a server */

/* A door that ends its calls itself, always in one way. */
struct stub {
	struct bench_end end;
	int slots;
	int calls;
};

static void
stub_calls(void *door, bool baseline, struct bench_load *load)
{
	struct stub *stub = door;

	(void)baseline;
	for (int i = 0; i < stub->slots && bench_load_take(load); i++) {
		do
			stub->calls++;
		while (bench_load_count(load, &stub->end));
		bench_load_leave(load);
	}
	bench_load_await(load);
}

static void
a_fill_makes_exactly_its_calls(void **state)
{
	struct stub stub = { .end = { .outcome = TITEN_ANSWERED }, .slots = 3 };
	const struct bench_door door = { &stub, stub_calls };
	struct bench_side *side = calloc(1, sizeof(*side));

	(void)state;
	bench_load_fill(&door, 10, side);
	assert_int_equal(stub.calls, 10);
	assert_int_equal(side->answered, 10);
	assert_int_equal(side->latency.count, 10);
	free(side);
}

static void
a_slot_whose_call_failed_rests(void **state)
{
	struct stub stub = { .end = { .outcome = TITEN_LOST }, .slots = 3 };
	const struct bench_door door = { &stub, stub_calls };
	struct bench_side *side = calloc(1, sizeof(*side));

	(void)state;
	bench_load_fill(&door, 10, side);
	assert_int_equal(stub.calls, 3);
	assert_int_equal(side->failed[TITEN_LOST], 3);
	assert_false(bench_load_sound(side));
	free(side);
}

static void
only_shed_load_is_sound(void **state)
{
	struct bench_side *side = calloc(1, sizeof(*side));

	(void)state;
	for (int st = STATUS_OK + 1; st < STATUS_COUNT; st++) {
		bool shed = st == STATUS_RATE_LIMITED || st == STATUS_UNAVAILABLE;
		memset(side, 0, sizeof(*side));
		side->calls = 2;
		side->answered = side->refused[st] = 1;
		if (bench_load_sound(side) != shed)
			fail_msg("row %d", st);
		side->answered = 0;
		side->refused[st] = 2;
		if (bench_load_sound(side))
			fail_msg("row %d: nothing was answered", st);
	}
	free(side);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_work_reports_every_figure),
		cmocka_unit_test(the_echo_is_as_large_as_an_acquire),
		cmocka_unit_test(no_handoff_is_left_half_done),
		cmocka_unit_test(live_leases_are_taken_before),
		cmocka_unit_test(a_table_says_the_same_to_people),
		cmocka_unit_test(a_bad_key_is_found_out_before_measuring),
		cmocka_unit_test(refusals_are_counted_by_reason),
		cmocka_unit_test(no_server_is_unreachable),
		cmocka_unit_test(what_makes_no_sense_is_a_usage_error),
		cmocka_unit_test(a_fill_makes_exactly_its_calls),
		cmocka_unit_test(a_slot_whose_call_failed_rests),
		cmocka_unit_test(only_shed_load_is_sound),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: MIT */
/* Routes, over a small table of our own: what is matched, what is bound, what a table may not be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "checkpoint.pb-c.h"
#include "event.pb-c.h"
#include "handoff.pb-c.h"
#include "health.pb-c.h"
#include "lease.pb-c.h"
#include "core/methods.h"
#include "gateway/route.h"

#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct method good[] = {
	{ .name = "health",
	    .verb = VERB_GET,
	    .path = "/healthz",
	    .request = &titen__v1__health_check_request__descriptor },
	{ .name = "acquire",
	    .verb = VERB_POST,
	    .path = "/v1/leases",
	    .request = &titen__v1__lease_acquire_request__descriptor },
	{ .name = "release",
	    .verb = VERB_DELETE,
	    .path = "/v1/leases/{lease_id}",
	    .request = &titen__v1__lease_release_request__descriptor },
	{ .name = "list",
	    .verb = VERB_GET,
	    .path = "/v1/handoffs",
	    .request = &titen__v1__handoff_list_request__descriptor },
	{ .name = "create",
	    .verb = VERB_POST,
	    .path = "/v1/handoffs",
	    .request = &titen__v1__handoff_create_request__descriptor },
	{ .name = "resolve",
	    .verb = VERB_POST,
	    .path = "/v1/handoffs/{handoff_id}/resolve",
	    .request = &titen__v1__handoff_resolve_request__descriptor },
	{ .name = "event",
	    .verb = VERB_GET,
	    .path = "/v1/events/{event_id}",
	    .request = &titen__v1__event_get_request__descriptor },
	{ .name = "stream",
	    .verb = VERB_GET,
	    .path = "/v1/events/stream",
	    .request = &titen__v1__event_list_request__descriptor },
	{ .name = "inside", .verb = VERB_NONE, .path = "" },
};

/* The table that route.c sees. */
static const struct method *rows;
static size_t rows_n;

static struct arena arena;
static struct call call;
static struct route_match match;

size_t
methods_count(void)
{
	return rows_n;
}

const struct method *
method_at(size_t i)
{
	return &rows[i];
}

/* The doors of doors.def lead to the first row. */
const struct method *
method_find(const char *name)
{
	return strcmp(name, "titen.v1.HealthService/Check") == 0 ? &rows[0] : NULL;
}

static int
start(void **state)
{
	(void)state;
	rows = good;
	rows_n = ROWS(good);
	arena_init(&arena);
	call_init(&call, &arena, NULL, NULL);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* The name of the call that VERB and PATH lead to, or the reason of the refusal. */
static const char *
found(const char *verb, const char *path)
{
	enum status st = route_find(&call, verb, path, &match);

	return st == STATUS_OK ? call.method->name : status_reason(st);
}

static void
a_path_leads_to_its_call(void **state)
{
	static const struct {
		const char *verb;
		const char *path;
		const char *call;
	} table[] = {
		{ "GET", "/healthz", "health" },
		{ "GET", "/livez", "health" },
		{ "POST", "/v1/leases", "acquire" },
		{ "DELETE", "/v1/leases/lease_1", "release" },
		{ "GET", "/v1/handoffs", "list" },
		{ "POST", "/v1/handoffs", "create" },
		{ "POST", "/v1/handoffs/h/resolve", "resolve" },
		{ "POST", "//v1//leases/", "acquire" },
		{ "POST", "/v1/le%61ses", "acquire" },
		{ "DELETE", "/v1/leases/.", "release" },
		{ "GET", "/", "NOT_FOUND" },
		{ "GET", "", "NOT_FOUND" },
		{ "GET", "/v1", "NOT_FOUND" },
		{ "GET", "/v1/nope", "NOT_FOUND" },
		{ "GET", "/V1/leases", "NOT_FOUND" },
		{ "POST", "/v1/lease", "NOT_FOUND" },
		{ "POST", "/v1/leases/x/y", "NOT_FOUND" },
		{ "POST", "/v1/./leases", "NOT_FOUND" },
		{ "POST", "/v1/x/../leases", "NOT_FOUND" },
		{ "POST", "/v1%2Fleases", "NOT_FOUND" },
		{ "GET", "/1/2/3/4/5/6/7/8/9/10", "NOT_FOUND" },
		{ "get", "/healthz", "METHOD_NOT_ALLOWED" },
		{ "PUT", "/v1/leases", "METHOD_NOT_ALLOWED" },
		{ "PATCH", "/v1/leases/x", "METHOD_NOT_ALLOWED" },
		{ "", "/v1/leases", "METHOD_NOT_ALLOWED" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(table); i++)
		if (strcmp(found(table[i].verb, table[i].path), table[i].call) != 0)
			fail_msg("row %zu: %s %s is not %s", i, table[i].verb, table[i].path,
			    table[i].call);
}

static void
a_parameter_is_bound_by_name_and_decoded(void **state)
{
	(void)state;
	assert_string_equal(found("POST", "/v1/handoffs/a%2Fb%20%c3%a9+/resolve"), "resolve");
	assert_int_equal(match.params_n, 1);
	assert_string_equal(match.params[0].field, "handoff_id");
	assert_string_equal(match.params[0].value, "a/b \xc3\xa9+");
}

static void
a_path_that_cannot_be_decoded_is_refused(void **state)
{
	static const char *const table[] = { "%", "%4", "%zz", "%4g", "100%", "%00", "a%00b", "%FF",
		"%C0%AF", "%ED%A0%80", "%F5%80%80%80", "\xff" };

	(void)state;
	for (size_t i = 0; i < ROWS(table); i++) {
		const char *path = arena_printf(&arena, "/v1/leases/lease_%s", table[i]);
		if (strcmp(found("DELETE", path), "VALIDATION_ERROR") != 0)
			fail_msg("row %zu: %s is taken", i, path);
	}
}

static void
a_row_that_spells_the_path_out_comes_first(void **state)
{
	(void)state;
	assert_string_equal(found("GET", "/v1/events/stream"), "stream");
	assert_string_equal(found("GET", "/v1/events/streams"), "event");
}

static void
a_wrong_verb_is_told_the_right_ones(void **state)
{
	(void)state;
	found("PUT", "/v1/handoffs");
	assert_string_equal(match.allow, "GET, HEAD, POST, OPTIONS");
	found("OPTIONS", "/v1/leases/x");
	assert_string_equal(match.allow, "DELETE, OPTIONS");
	found("GET", "/v1/nope");
	assert_null(match.allow);
}

static void
plus_is_a_space_only_where_it_should_be(void **state)
{
	(void)state;
	assert_string_equal(route_decode(&arena, "a+b%2B", 6, true), "a b+");
	assert_string_equal(route_decode(&arena, "a+b%2B", 6, false), "a+b+");
	assert_string_equal(route_decode(&arena, "", 0, true), "");
	assert_null(route_decode(&arena, "a%41", 3, true));
}

/* The fault of a table that has ROW after the good rows. */
static const char *
fault_with(struct method row)
{
	static struct method table[ROWS(good) + 1];
	const char *error;

	memcpy(table, good, sizeof(good));
	table[ROWS(good)] = row;
	rows = table;
	rows_n = ROWS(table);
	return route_check(&error) ? "none" : error;
}

static void
a_good_table_is_fit(void **state)
{
	const char *error;

	(void)state;
	assert_true(route_check(&error));
	assert_null(error);
}

static void
a_wrong_table_is_noticed(void **state)
{
	static const struct {
		enum verb verb;
		const char *path;
		const char *error;
	} table[] = {
		{ VERB_DELETE, "/v1/other/{lease_id}", "none" },
		{ VERB_DELETE, "/v1/leases/all", "none" },
		{ VERB_NONE, "", "none" },
		{ VERB_DELETE, "/v1/leases/{lease_id}", "two routes are alike" },
		{ VERB_GET, "/livez", "two routes are alike" },
		{ VERB_DELETE, "", "a route does not begin with a slash" },
		{ VERB_DELETE, "v1/x", "a route does not begin with a slash" },
		{ VERB_DELETE, "/v1//x", "a route has an empty segment" },
		{ VERB_DELETE, "/v1/x/", "a route has an empty segment" },
		{ VERB_DELETE, "/1/2/3/4/5/6/7/8/9", "a route is too long" },
		{ VERB_DELETE, "/v1/x/{lease}",
		    "a route has a parameter that is no text field of its request" },
		{ VERB_DELETE, "/v1/x/{lease_id",
		    "a route has a parameter that is no text field of its request" },
		{ VERB_DELETE, "/v1/x/{}",
		    "a route has a parameter that is no text field of its request" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(table); i++) {
		const char *error = fault_with((struct method){ .name = "new",
		    .verb = table[i].verb,
		    .path = table[i].path,
		    .request = &titen__v1__lease_release_request__descriptor });
		if (strcmp(error, table[i].error) != 0)
			fail_msg("row %zu: %s: %s", i, table[i].path, error);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_path_leads_to_its_call, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_parameter_is_bound_by_name_and_decoded, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_path_that_cannot_be_decoded_is_refused, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_row_that_spells_the_path_out_comes_first, start, stop),
		cmocka_unit_test_setup_teardown(a_wrong_verb_is_told_the_right_ones, start, stop),
		cmocka_unit_test_setup_teardown(
		    plus_is_a_space_only_where_it_should_be, start, stop),
		cmocka_unit_test_setup_teardown(a_good_table_is_fit, start, stop),
		cmocka_unit_test_setup_teardown(a_wrong_table_is_noticed, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

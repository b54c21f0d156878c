/* SPDX-License-Identifier: MIT */
/* `titen rpc list` and `titen rpc describe`, with a server and without. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/methods.h"
#include "tests/support/program.h"

static void
every_call_of_the_server_is_listed(void **state)
{
	struct program *p = *state;
	struct program_output said = RUN("rpc", "list", "--url", p->rpc);

	assert_int_equal(said.code, 0);
	for (size_t i = 0; i < methods_count(); i++)
		if (strstr(said.out, method_at(i)->name) == NULL)
			fail_msg("%s is not listed", method_at(i)->name);
	assert_int_equal(strncmp(said.out, "lease.acquire  ", 15), 0);
}

static void
a_call_is_found_by_each_of_its_names(void **state)
{
	static const char *const names[] = { "titen.v1.LeaseService/Acquire",
		"LeaseService/Acquire", "lease.acquire" };
	struct program *p = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct program_output said = RUN("rpc", "describe", names[i], "--url", p->rpc);
		if (said.code != 0 || strstr(said.out, "int64 ttl_seconds = 4;") == NULL ||
		    strstr(said.out, "int64 fence = 3;") == NULL)
			fail_msg("row %zu: %d %s%s", i, said.code, said.out, said.err);
	}
}

static void
a_message_is_shown_with_its_comments(void **state)
{
	struct program *p = *state;
	struct program_output said =
	    RUN("rpc", "describe", "HealthReadyResponse.Schema", "--url", p->rpc);

	assert_string_equal(said.out, "message HealthReadyResponse.Schema {\n"
				      "  optional int64 applied = 1;\n"
				      "  optional int64 expected = 2;\n"
				      "}\n");
	said = RUN("rpc", "describe", "titen.v1.Key", "--url", p->rpc);
	assert_non_null(strstr(said.out, "  enum Status { ACTIVE = 1; REVOKED = 2; }\n"));
	assert_non_null(strstr(said.out, "  repeated string scopes = 5;\n"));
	said = RUN("rpc", "describe", "EventListRequest", "--url", p->rpc);
	assert_non_null(strstr(said.out, "  // An event id: the page begins behind it.\n"
					 "  optional string after = 1;\n"));
}

static void
what_is_not_there_is_told(void **state)
{
	struct program *p = *state;
	struct program_output said = RUN("rpc", "describe", "lease.keep", "--url", p->rpc);

	assert_int_equal(said.code, 5);
	assert_non_null(strstr(said.err, "lease.keep"));
	said = RUN("rpc", "describe", "lease.aquire", "--url", p->rpc);
	assert_non_null(strstr(said.err, "'lease.aquire'; did you mean lease.acquire?"));
	said = RUN("rpc", "describe", "handof", "--url", p->rpc);
	assert_non_null(strstr(said.err, "did you mean Handoff?"));
}

/* Without a word about a server, which the environment would be, too. */
static struct program_output
alone(const char *command, const char *name)
{
	char *named = getenv("TITEN_RPC_URL");
	char *kept = named == NULL ? NULL : strdup(named);
	struct program_output said;

	unsetenv("TITEN_RPC_URL");
	said = RUN("rpc", command, name);
	if (kept != NULL)
		setenv("TITEN_RPC_URL", kept, 1);
	free(kept);
	return said;
}

static void
without_a_server_the_programs_own_calls_are_listed(void **state)
{
	struct program_output said = alone("list", NULL);

	(void)state;
	assert_int_equal(said.code, 0);
	for (size_t i = 0; i < methods_count(); i++)
		if (strstr(said.out, method_at(i)->summary) == NULL)
			fail_msg("%s is not listed", method_at(i)->name);
	assert_non_null(strstr(said.out, "\nkey.bootstrap  "));
	assert_non_null(strstr(said.out, " DELETE /v1/leases/{lease_id} "));
	assert_non_null(strstr(said.out, " leases:write "));
}

static void
a_description_needs_no_server(void **state)
{
	struct program *p = *state;
	struct program_output here = alone("describe", "lease.acquire");
	struct program_output there = RUN("rpc", "describe", "lease.acquire", "--url", p->rpc);

	assert_int_equal(here.code, 0);
	assert_string_equal(here.out, there.out);
}

static int
open_server(void **state)
{
	if (program_open(state) != 0)
		return -1;
	program_bootstrap(*state);
	program_serve(*state);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_the_server_is_listed),
		cmocka_unit_test(a_call_is_found_by_each_of_its_names),
		cmocka_unit_test(a_message_is_shown_with_its_comments),
		cmocka_unit_test(what_is_not_there_is_told),
		cmocka_unit_test(without_a_server_the_programs_own_calls_are_listed),
		cmocka_unit_test(a_description_needs_no_server),
	};

	return cmocka_run_group_tests(tests, open_server, program_close);
}

/* SPDX-License-Identifier: MIT */
/* The table of calls: that every row agrees with its service, and is what doors expect of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "core/methods.h"

static int
table_open(void **state)
{
	const char *error;

	(void)state;
	if (methods_init(&error))
		return 0;
	print_error("%s\n", error);
	return -1;
}

static void
every_row_is_found_by_its_name_and_no_other(void **state)
{
	(void)state;
	assert_true(methods_count() > 15);
	for (size_t i = 0; i < methods_count(); i++)
		assert_ptr_equal(method_find(method_at(i)->name), method_at(i));
	assert_string_equal(
	    method_find("titen.v1.LeaseService/Acquire")->summary, "Take a lease on a resource");
	assert_null(method_find("titen.v1.LeaseService/acquire"));
	assert_null(method_find("LeaseService/Acquire"));
	assert_null(method_find("titen.v1.LeaseService/"));
	assert_null(method_find(""));
}

static void
every_row_has_its_messages_its_handler_and_a_summary(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);

		if (m->request == NULL || m->response == NULL || m->run == NULL ||
		    m->rules == NULL || m->summary[0] == '\0')
			fail_msg("%s is incomplete", m->name);
		else if (m->request->sizeof_message != m->request_bytes ||
			 m->response->sizeof_message != m->response_bytes)
			fail_msg("%s has other messages", m->name);
	}
}

static void
a_row_has_a_path_if_and_only_if_it_has_a_verb(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);

		if ((m->verb == VERB_NONE) != (m->path[0] == '\0'))
			fail_msg("%s: %s", m->name, m->path);
		if (m->verb == VERB_GET && m->access == ACCESS_WRITE)
			fail_msg("%s writes on GET", m->name);
	}
}

static void
no_two_rows_have_the_same_verb_and_path(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++)
		for (size_t k = 0; k < i; k++)
			if (method_at(i)->verb != VERB_NONE &&
			    method_at(i)->verb == method_at(k)->verb &&
			    strcmp(method_at(i)->path, method_at(k)->path) == 0)
				fail_msg("%s and %s", method_at(i)->name, method_at(k)->name);
}

/* Fail unless every {name} in the path of M is a field of its request. */
static void
check_path(const struct method *m)
{
	char name[64];

	for (const char *p = strchr(m->path, '{'); p != NULL; p = strchr(p + 1, '{')) {
		size_t length = strcspn(p + 1, "}");

		assert_true(length < sizeof name && p[1 + length] == '}');
		memcpy(name, p + 1, length);
		name[length] = '\0';
		if (protobuf_c_message_descriptor_get_field_by_name(m->request, name) == NULL)
			fail_msg("%s has no field %s", m->name, name);
	}
}

static void
every_name_in_a_path_is_a_field_of_the_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++)
		check_path(method_at(i));
}

static void
what_writes_asks_for_a_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);

		if (m->access == ACCESS_WRITE &&
		    (m->right == RIGHT_PUBLIC || m->right == RIGHT_KEY))
			fail_msg("%s is open to everybody", m->name);
	}
	assert_int_equal(method_find("titen.v1.KeyService/Bootstrap")->right, RIGHT_LOCAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_found_by_its_name_and_no_other),
		cmocka_unit_test(every_row_has_its_messages_its_handler_and_a_summary),
		cmocka_unit_test(a_row_has_a_path_if_and_only_if_it_has_a_verb),
		cmocka_unit_test(no_two_rows_have_the_same_verb_and_path),
		cmocka_unit_test(every_name_in_a_path_is_a_field_of_the_request),
		cmocka_unit_test(what_writes_asks_for_a_right),
	};

	return cmocka_run_group_tests(tests, table_open, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Who is let in: the credential, the ring of keys, and the scope of every call. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/auth.h"
#include "core/core.h"

#define REFUSAL "A valid API key is required."

/* Ask who we are with AUTHORIZATION. */
static enum status
who_am_i(struct fixture *f, const char *authorization)
{
	PB(PrincipalGetRequest) req = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;
	struct agent agent = { "", "", authorization };

	return ask(f, &agent, "PrincipalService/Get", &req);
}

static void
the_scheme_is_bearer_in_any_case_with_blanks_around_the_key(void **state)
{
	struct fixture *f = *state;
	const char *key = f->alice->authorization + strlen("Bearer ");
	static const char *const around[][2] = { { "Bearer ", "" }, { "bearer ", "" },
		{ "BEARER ", "" }, { "bEaReR   ", "" }, { "Bearer\t", "" }, { "Bearer ", "  " },
		{ "Bearer \t ", " \t" } };
	char text[128];

	for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
		snprintf(text, sizeof text, "%s%s%s", around[i][0], key, around[i][1]);
		if (who_am_i(f, text) != STATUS_OK)
			fail_msg("row %zu: %s", i, last_message(f));
		assert_string_equal(GOT(f, Principal)->principal_id, "alice");
	}
}

static void
every_other_credential_gets_the_same_refusal(void **state)
{
	struct fixture *f = *state;
	const char *good = f->alice->authorization, *key = good + strlen("Bearer ");
	char rows[][128] = { "", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "Bearer titen_sk_",
		"", "", "", "", "" };

	snprintf(rows[6], sizeof rows[6], "%s", key);
	snprintf(rows[7], sizeof rows[7], "Bearer%s", key);
	snprintf(rows[8], sizeof rows[8], "%sx", good);
	snprintf(rows[9], sizeof rows[9], "%s x", good);
	snprintf(rows[10], sizeof rows[10], "%s", good);
	rows[10][strlen(rows[10]) - 1] ^= 1;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (who_am_i(f, rows[i]) != STATUS_UNAUTHENTICATED)
			fail_msg("row %zu is let in", i);
		assert_string_equal(last_message(f), REFUSAL);
	}
	expect(f, UNAUTHENTICATED, who_am_i(f, NULL));
	assert_string_equal(last_message(f), REFUSAL);
}

static void
the_ring_is_what_the_store_says_after_a_restart(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(key_ring_count(f->core->ring), 6);
	expect(f, OK, revoke_key(f, f->owner, f->tom->key_id));
	assert_int_equal(key_ring_count(f->core->ring), 5);
	restart(f);
	assert_int_equal(key_ring_count(f->core->ring), 5);
	expect(f, OK, who_am_i(f, f->alice->authorization));
	assert_string_equal(GOT(f, Principal)->key_id, f->alice->key_id);
	assert_string_equal(GOT(f, Principal)->label, "a key");
	assert_int_equal(GOT(f, Principal)->n_scopes, 6);
	expect(f, OK, who_am_i(f, f->dora->authorization));
	assert_string_equal(GOT(f, Principal)->principal_id, "dora");
	expect(f, UNAUTHENTICATED, who_am_i(f, f->tom->authorization));
}

static void
made_keys_are_never_alike(void **state)
{
	char one[KEY_TEXT_BYTES], two[KEY_TEXT_BYTES];
	uint8_t first[KEY_DIGEST_BYTES], second[KEY_DIGEST_BYTES];

	(void)state;
	auth_key_make(one, first);
	auth_key_make(two, second);
	assert_int_equal(strlen(one), KEY_TEXT_BYTES - 1);
	assert_string_not_equal(one, two);
	assert_memory_not_equal(first, second, sizeof first);
}

/* An empty request of M by WHO; the rules may refuse it, but only behind the right. */
static enum status
ask_empty(struct fixture *f, const struct agent *who, const struct method *m)
{
	ProtobufCMessage *req = malloc(m->request->sizeof_message);
	enum status st;

	protobuf_c_message_init(m->request, req);
	st = ask(f, who, m->name + strlen("titen.v1."), req);
	free(req);
	return st;
}

static void
every_call_with_a_scope_is_forbidden_without_it(void **state)
{
	struct fixture *f = *state;
	const char *scopes[RIGHT_SCOPES + 1];
	const struct agent *without, *nobody = &(struct agent){ "", "", NULL };
	int tried = 0;

	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);
		int n = 0;

		if (m->right >= RIGHT_SCOPES)
			continue;
		for (int s = RIGHT_ALL + 1; s < RIGHT_SCOPES; s++)
			if (s != (int)m->right)
				scopes[n++] = scope_text((enum right)s);
		scopes[n] = NULL;
		without = agent_join(f, f->owner, "without", scopes);
		expect(f, FORBIDDEN, ask_empty(f, without, m));
		assert_non_null(strstr(last_message(f), scope_text(m->right)));
		expect(f, UNAUTHENTICATED, ask_empty(f, nobody, m));
		tried++;
	}
	assert_true(tried > 10);
}

static void
the_star_grants_every_call_that_asks_for_a_scope(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < methods_count(); i++) {
		enum status st = ask_empty(f, f->owner, method_at(i));

		if (method_at(i)->right < RIGHT_SCOPES && st != STATUS_OK &&
		    st != STATUS_VALIDATION_ERROR)
			fail_msg("%s: %s", method_at(i)->name, status_reason(st));
	}
}

static void
public_calls_ask_nobody(void **state)
{
	struct fixture *f = *state;
	const struct agent *nobody = &(struct agent){ "", "", NULL };
	const struct agent *liar = &(struct agent){ "", "", "Bearer nonsense" };

	for (size_t i = 0; i < methods_count(); i++) {
		if (method_at(i)->right != RIGHT_PUBLIC)
			continue;
		expect(f, OK, ask_empty(f, nobody, method_at(i)));
		expect(f, OK, ask_empty(f, liar, method_at(i)));
	}
}

static void
the_local_socket_is_no_key(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < methods_count(); i++)
		if (method_at(i)->right <= RIGHT_KEY)
			expect(f, UNAUTHENTICATED, ask_empty(f, NULL, method_at(i)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_scheme_is_bearer_in_any_case_with_blanks_around_the_key),
		STORY(every_other_credential_gets_the_same_refusal),
		STORY(the_ring_is_what_the_store_says_after_a_restart),
		STORY(made_keys_are_never_alike),
		STORY(every_call_with_a_scope_is_forbidden_without_it),
		STORY(the_star_grants_every_call_that_asks_for_a_scope),
		STORY(public_calls_ask_nobody),
		STORY(the_local_socket_is_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

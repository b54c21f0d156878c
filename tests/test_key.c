/* SPDX-License-Identifier: MIT */
/* Keys: who may make which, what is kept of them, and the end of one. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const agent_scopes[] = { AGENT_SCOPES, NULL };

static const PB(KeyCreateResponse) *
made(struct fixture *f)
{
	return GOT(f, KeyCreateResponse);
}

static enum status
keys_after(struct fixture *f, const struct agent *who, const char *after, int64_t limit)
{
	PB(KeyListRequest) req = TITEN__V1__KEY_LIST_REQUEST__INIT;

	req.after = (char *)(uintptr_t)after;
	req.has_limit = limit != 0;
	req.limit = limit;
	return ask(f, who, "KeyService/List", &req);
}

/* A request for one scope, for a test to change. */
static PB(KeyCreateRequest)
request(void)
{
	static char label[] = "a key", scope[] = "leases:write";
	static char *scopes[] = { scope };
	PB(KeyCreateRequest) req = TITEN__V1__KEY_CREATE_REQUEST__INIT;

	req.label = label;
	req.scopes = scopes;
	req.n_scopes = 1;
	return req;
}

/* --- making */

static void
bootstrap_makes_an_organization_and_a_key_for_everything(void **state)
{
	struct fixture *f = *state;
	PB(PrincipalGetRequest) req = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;
	const char *organization_id;

	expect(f, OK, bootstrap(f, "third"));
	organization_id = GOT(f, KeyBootstrapResponse)->organization_id;
	assert_memory_equal(organization_id, "org_", 4);
	assert_string_equal(GOT(f, KeyBootstrapResponse)->principal_id, "owner");
	expect(f, OK, ask(f, agent_made(f), "PrincipalService/Get", &req));
	assert_string_equal(GOT(f, Principal)->organization_id, organization_id);
	assert_string_equal(GOT(f, Principal)->principal_id, "owner");
	assert_int_equal(GOT(f, Principal)->principal_kind, TITEN__V1__PRINCIPAL__KIND__HUMAN);
	assert_int_equal(GOT(f, Principal)->n_scopes, 1);
	assert_string_equal(GOT(f, Principal)->scopes[0], "*");
}

static void
an_organization_is_made_once_and_only_by_the_owner_of_the_machine(void **state)
{
	struct fixture *f = *state;
	PB(KeyBootstrapRequest) req = TITEN__V1__KEY_BOOTSTRAP_REQUEST__INIT;
	char name[] = "mine";

	expect(f, CONFLICT, bootstrap(f, "acme"));
	req.name = name;
	expect(f, FORBIDDEN, ask(f, f->owner, "KeyService/Bootstrap", &req));
	expect(f, VALIDATION_ERROR, bootstrap(f, ""));
	assert_int_equal(count(f, "SELECT count(*) FROM organizations"), 2);
	assert_int_equal(count(f, "SELECT count(*) FROM principals WHERE name = 'owner'"), 2);
}

static void
a_key_is_shown_once_and_kept_nowhere(void **state)
{
	struct fixture *f = *state;
	char *rows;
	const char *key;

	expect(f, OK, make_key(f, f->owner, "carol", agent_scopes));
	key = made(f)->api_key;
	assert_int_equal(strlen(key), 52);
	assert_memory_equal(key, "titen_sk_", 9);
	assert_int_equal(strspn(key + 9, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789-_"),
	    43);
	assert_non_null(made(f)->warning);
	rows = dump(f);
	assert_null(strstr(rows, "746974656e5f736b")); /* titen_sk in hexadecimal */
	free(rows);
	expect(f, OK, acquire(f, agent_made(f), "deploy", "x", 30));
	assert_int_equal(count(f, "SELECT count(*) FROM keys WHERE length(digest) = 32"),
	    count(f, "SELECT count(*) FROM keys"));
}

static void
a_key_without_a_principal_makes_one_and_names_it(void **state)
{
	struct fixture *f = *state;
	const char *first;

	expect(f, OK, make_key(f, f->owner, NULL, agent_scopes));
	first = made(f)->principal_id;
	assert_memory_equal(first, "agent_", 6);
	assert_int_equal(made(f)->principal_kind, TITEN__V1__PRINCIPAL__KIND__AGENT);
	assert_int_equal(made(f)->max_trust, TITEN__V1__TRUST__ASSERTED);
	expect(f, OK, hand_off(f, f->alice, first, "task"));
	expect(f, OK, make_key(f, f->owner, NULL, agent_scopes));
	assert_string_not_equal(made(f)->principal_id, first);
}

static void
a_second_key_is_for_the_same_principal(void **state)
{
	struct fixture *f = *state;
	PB(KeyCreateRequest) req = request();
	char alice[] = "alice";

	expect(f, OK, make_key(f, f->owner, "alice", agent_scopes));
	assert_string_equal(made(f)->principal_id, "alice");
	assert_int_equal(count(f, "SELECT count(*) FROM principals WHERE name = 'alice'"), 1);
	req.principal_id = alice;
	req.has_principal_kind = true;
	req.principal_kind = TITEN__V1__PRINCIPAL__KIND__SERVICE;
	expect(f, CONFLICT, ask(f, f->owner, "KeyService/Create", &req));
	req.principal_kind = TITEN__V1__PRINCIPAL__KIND__AGENT;
	expect(f, OK, ask(f, f->owner, "KeyService/Create", &req));
}

static void
equal_names_in_two_organizations_are_two_principals(void **state)
{
	struct fixture *f = *state;
	const struct agent *other = agent_join(f, f->zed, "alice", agent_scopes);

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, OK, acquire(f, other, "deploy", "x", 30));
	expect(f, OK, hand_off(f, f->dora, "alice", "task"));
	expect(f, OK, save(f, other, "task", "1"));
	assert_int_equal(inbox_size(f, f->alice), 0);
	assert_int_equal(inbox_size(f, other), 1);
	assert_int_equal(event_count(f, f->alice, "*"), 1);
	assert_int_equal(event_count(f, other, "*"), 2);
	expect(f, NOT_FOUND, find(f, f->alice, "task"));
}

/* --- what a key manager cannot do */

static void
managing_keys_is_a_right_of_its_own(void **state)
{
	struct fixture *f = *state;

	expect(f, FORBIDDEN, make_key(f, f->alice, NULL, agent_scopes));
	assert_non_null(strstr(last_message(f), "keys:manage"));
	expect(f, FORBIDDEN, keys_after(f, f->alice, NULL, 0));
	expect(f, FORBIDDEN, revoke_key(f, f->alice, f->bob->key_id));
}

static void
a_key_manager_cannot_grant_what_it_lacks(void **state)
{
	struct fixture *f = *state;
	static const char *const manager_scopes[] = { "keys:manage", "leases:write", NULL };
	static const char *const rows[][3] = { { "leases:write", NULL },
		{ "leases:write", "keys:manage", NULL }, { "handoffs:read", NULL }, { "*", NULL },
		{ "leases:write", "events:all", NULL } };
	const struct agent *manager = agent_join(f, f->owner, "manager", manager_scopes);

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum status st = make_key(f, manager, NULL, rows[i]);

		if (st != (i < 2 ? STATUS_OK : STATUS_FORBIDDEN))
			fail_msg("row %zu: %s", i, status_reason(st));
	}
}

static void
only_a_key_for_everything_names_another_principal(void **state)
{
	struct fixture *f = *state;
	static const char *const manager_scopes[] = { "keys:manage", "leases:write", NULL };
	const struct agent *manager = agent_join(f, f->owner, "manager", manager_scopes);

	expect(f, FORBIDDEN, make_key(f, manager, "alice", manager_scopes));
	expect(f, FORBIDDEN, make_key(f, manager, "somebody-new", manager_scopes));
	expect(f, OK, make_key(f, manager, "manager", manager_scopes));
	expect(f, OK, make_key(f, manager, NULL, manager_scopes));
}

static void
no_key_is_trusted_more_than_its_maker(void **state)
{
	struct fixture *f = *state;
	static const char *const manager_scopes[] = { "keys:manage", "leases:write", NULL };
	const struct agent *manager = agent_join(f, f->owner, "manager", manager_scopes);
	PB(KeyCreateRequest) req = request();

	req.has_max_trust = true;
	req.max_trust = TITEN__V1__TRUST__VERIFIED;
	expect(f, FORBIDDEN, ask(f, manager, "KeyService/Create", &req));
	req.max_trust = TITEN__V1__TRUST__UNVERIFIED;
	expect(f, OK, ask(f, manager, "KeyService/Create", &req));
	req.max_trust = TITEN__V1__TRUST__POLICY_APPROVED;
	expect(f, OK, ask(f, f->owner, "KeyService/Create", &req));
}

static void
scopes_must_be_known_and_some(void **state)
{
	struct fixture *f = *state;
	static const char *const unknown[] = { "leases:write", "leases", NULL };
	static const char *const none[] = { NULL };
	static const char *const twice[] = { "leases:write", "leases:write", NULL };
	static const char *const all[] = { "leases:write", "*", NULL };

	expect(f, VALIDATION_ERROR, make_key(f, f->owner, NULL, unknown));
	assert_non_null(strstr(last_message(f), "scopes[1]"));
	expect(f, VALIDATION_ERROR, make_key(f, f->owner, NULL, none));
	expect(f, OK, make_key(f, f->owner, NULL, twice));
	assert_int_equal(made(f)->n_scopes, 1);
	expect(f, OK, make_key(f, f->owner, NULL, all));
	assert_int_equal(made(f)->n_scopes, 1);
	assert_string_equal(made(f)->scopes[0], "*");
}

/* --- revoking */

static void
a_revoked_key_is_refused_from_the_next_call_on(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	assert_true(GOT(f, KeyRevokeResponse)->revoked);
	assert_int_equal(time_of(GOT(f, KeyRevokeResponse)->revoked_at), START_MS);
	expect(f, UNAUTHENTICATED, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, UNAUTHENTICATED, inbox(f, f->alice, NULL));
	restart(f);
	expect(f, UNAUTHENTICATED, acquire(f, f->alice, "deploy", "x", 30));
	expect(f, OK, acquire(f, f->bob, "deploy", "y", 30));
}

static void
revoking_twice_gives_the_first_answer(void **state)
{
	struct fixture *f = *state;
	int64_t rows;

	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	rows = count(f, "SELECT count(*) FROM audit");
	advance_seconds(f, 5);
	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	assert_int_equal(time_of(GOT(f, KeyRevokeResponse)->revoked_at), START_MS);
	assert_int_equal(count(f, "SELECT count(*) FROM audit"), rows);
}

static void
keys_of_others_cannot_be_revoked(void **state)
{
	struct fixture *f = *state;

	expect(f, NOT_FOUND, revoke_key(f, f->zed, f->alice->key_id));
	expect(f, NOT_FOUND, revoke_key(f, f->owner, "key_1"));
	expect(f, NOT_FOUND, revoke_key(f, f->owner, "key_00000000000000000000000000000000"));
	expect(f, OK, acquire(f, f->alice, "deploy", "x", 30));
}

static void
a_manager_revokes_only_what_it_could_have_made(void **state)
{
	static const char *const narrow[] = { "keys:manage", "events:read", NULL };
	static const char *const less[] = { "events:read", NULL };
	struct fixture *f = *state;
	const struct agent *manager = agent_join(f, f->owner, "manager", narrow);
	const struct agent *reader = agent_join(f, f->owner, "reader", less);

	expect(f, FORBIDDEN, revoke_key(f, manager, f->owner->key_id));
	expect(f, FORBIDDEN, revoke_key(f, manager, f->alice->key_id));
	expect(f, NOT_FOUND, revoke_key(f, manager, f->zed->key_id));
	expect(f, OK, revoke_key(f, manager, reader->key_id));
}

static void
the_last_key_for_everything_cannot_be_revoked(void **state)
{
	static const char *const all[] = { "*", NULL };
	struct fixture *f = *state;
	const struct agent *second;

	expect(f, CONFLICT, revoke_key(f, f->owner, f->owner->key_id));
	second = agent_join(f, f->owner, "second", all);
	expect(f, OK, revoke_key(f, f->owner, f->owner->key_id));
	expect(f, CONFLICT, revoke_key(f, second, second->key_id));
	expect(f, OK, revoke_key(f, second, f->alice->key_id));
}

static void
the_other_keys_of_a_principal_stay(void **state)
{
	struct fixture *f = *state;
	const struct agent *again = agent_join(f, f->owner, "alice", agent_scopes);

	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	expect(f, UNAUTHENTICATED, inbox(f, f->alice, NULL));
	expect(f, OK, inbox(f, again, NULL));
	expect(f, OK, hand_off(f, f->bob, "alice", "task"));
}

/* --- listing and audit */

static void
keys_are_listed_page_by_page_without_their_secret(void **state)
{
	struct fixture *f = *state;
	const PB(KeyListResponse) *page;

	expect(f, OK, revoke_key(f, f->owner, f->tom->key_id));
	expect(f, OK, keys_after(f, f->owner, NULL, 3));
	page = GOT(f, KeyListResponse);
	assert_int_equal(page->n_keys, 3);
	assert_string_equal(page->keys[1]->key_id, f->alice->key_id);
	assert_string_equal(page->keys[1]->principal_id, "alice");
	assert_int_equal(page->keys[1]->n_scopes, 6);
	assert_int_equal(page->keys[1]->status, TITEN__V1__KEY__STATUS__ACTIVE);
	assert_null(page->keys[1]->revoked_at);
	expect(f, OK, keys_after(f, f->owner, page->cursor, 3));
	page = GOT(f, KeyListResponse);
	assert_int_equal(page->n_keys, 1);
	assert_null(page->cursor);
	assert_int_equal(page->keys[0]->status, TITEN__V1__KEY__STATUS__REVOKED);
	assert_int_equal(time_of(page->keys[0]->revoked_at), START_MS);
	expect(f, VALIDATION_ERROR, keys_after(f, f->owner, f->dora->key_id, 3));
	expect(f, VALIDATION_ERROR, keys_after(f, f->owner, NULL, -1));
}

static void
making_and_revoking_leave_audit_rows_without_the_key(void **state)
{
	struct fixture *f = *state;

	expect(f, OK, revoke_key(f, f->owner, f->alice->key_id));
	assert_int_equal(count(f, "SELECT count(*) FROM audit WHERE action = 'key.create'"), 6);
	assert_int_equal(count(f, "SELECT count(*) FROM audit a JOIN principals p ON p.id = "
				  "a.actor WHERE a.action = 'key.revoke' AND p.name = 'owner'"),
	    1);
	assert_int_equal(count(f, "SELECT count(*) FROM audit WHERE detail LIKE '%titen_sk%'"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(bootstrap_makes_an_organization_and_a_key_for_everything),
		STORY(an_organization_is_made_once_and_only_by_the_owner_of_the_machine),
		STORY(a_key_is_shown_once_and_kept_nowhere),
		STORY(a_key_without_a_principal_makes_one_and_names_it),
		STORY(a_second_key_is_for_the_same_principal),
		STORY(equal_names_in_two_organizations_are_two_principals),
		STORY(managing_keys_is_a_right_of_its_own),
		STORY(a_key_manager_cannot_grant_what_it_lacks),
		STORY(only_a_key_for_everything_names_another_principal),
		STORY(no_key_is_trusted_more_than_its_maker),
		STORY(scopes_must_be_known_and_some),
		STORY(a_revoked_key_is_refused_from_the_next_call_on),
		STORY(revoking_twice_gives_the_first_answer),
		STORY(keys_of_others_cannot_be_revoked),
		STORY(a_manager_revokes_only_what_it_could_have_made),
		STORY(the_last_key_for_everything_cannot_be_revoked),
		STORY(the_other_keys_of_a_principal_stay),
		STORY(keys_are_listed_page_by_page_without_their_secret),
		STORY(making_and_revoking_leave_audit_rows_without_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

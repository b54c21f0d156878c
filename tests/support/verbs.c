/* SPDX-License-Identifier: MIT */
/* What people do in tests: one call each. Requests only borrow their texts. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>

/* protobuf-c has no const strings in its structs; nobody writes to a request. */
static char *
text(const char *borrowed)
{
	return (char *)(uintptr_t)borrowed;
}

/* --- leases */

static enum status
lease(struct fixture *f, const struct agent *who, const char *type, const char *id,
    int64_t ttl_seconds, const char *purpose)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;

	req.resource_type = text(type);
	req.resource_id = text(id);
	req.purpose = text(purpose);
	req.has_ttl_seconds = true;
	req.ttl_seconds = ttl_seconds;
	return ask(f, who, "LeaseService/Acquire", &req);
}

enum status
acquire(struct fixture *f, const struct agent *who, const char *type, const char *id,
    int64_t ttl_seconds)
{
	return lease(f, who, type, id, ttl_seconds, "p");
}

enum status
acquire_for(struct fixture *f, const struct agent *who, const char *id, int64_t ttl_seconds,
    const char *purpose)
{
	return lease(f, who, "deploy", id, ttl_seconds, purpose);
}

enum status
release(struct fixture *f, const struct agent *who, const char *lease_id)
{
	PB(LeaseReleaseRequest) req = TITEN__V1__LEASE_RELEASE_REQUEST__INIT;

	req.lease_id = text(lease_id);
	return ask(f, who, "LeaseService/Release", &req);
}

/* --- handoffs */

enum status
hand_over(struct fixture *f, const struct agent *who, const char *to_principal,
    const char *subject_id, const char *checkpoint_id, const char *message)
{
	PB(HandoffCreateRequest) req = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;

	req.to_principal = text(to_principal);
	req.subject_id = text(subject_id);
	req.checkpoint_id = text(checkpoint_id);
	req.message = text(message);
	return ask(f, who, "HandoffService/Create", &req);
}

enum status
hand_off(
    struct fixture *f, const struct agent *who, const char *to_principal, const char *subject_id)
{
	return hand_over(f, who, to_principal, subject_id, NULL, NULL);
}

enum status
inbox(struct fixture *f, const struct agent *who, const char *after)
{
	PB(HandoffListRequest) req = TITEN__V1__HANDOFF_LIST_REQUEST__INIT;

	req.after = text(after);
	return ask(f, who, "HandoffService/List", &req);
}

size_t
inbox_size(struct fixture *f, const struct agent *who)
{
	expect(f, OK, inbox(f, who, NULL));
	return GOT(f, HandoffListResponse)->n_handoffs;
}

enum status
resolve(struct fixture *f, const struct agent *who, const char *handoff_id, int status)
{
	PB(HandoffResolveRequest) req = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;

	req.handoff_id = text(handoff_id);
	req.has_status = true;
	req.status = (PB(HandoffResolveRequest__Decision))status;
	return ask(f, who, "HandoffService/Resolve", &req);
}

/* --- checkpoints */

enum status
save(struct fixture *f, const struct agent *who, const char *subject_id, const char *state)
{
	PB(CheckpointSaveRequest) req = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;
	PB(Json) json = TITEN__V1__JSON__INIT;

	json.text = text(state);
	req.subject_id = text(subject_id);
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	req.state = &json;
	req.has_ttl_seconds = true;
	req.ttl_seconds = 600;
	return ask(f, who, "CheckpointService/Save", &req);
}

enum status
load(struct fixture *f, const struct agent *who, const char *checkpoint_id)
{
	PB(CheckpointGetRequest) req = TITEN__V1__CHECKPOINT_GET_REQUEST__INIT;

	req.checkpoint_id = text(checkpoint_id);
	return ask(f, who, "CheckpointService/Get", &req);
}

enum status
find(struct fixture *f, const struct agent *who, const char *subject_id)
{
	PB(CheckpointFindRequest) req = TITEN__V1__CHECKPOINT_FIND_REQUEST__INIT;

	req.subject_id = text(subject_id);
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	return ask(f, who, "CheckpointService/Find", &req);
}

enum status
discard(struct fixture *f, const struct agent *who, const char *checkpoint_id)
{
	PB(CheckpointDeleteRequest) req = TITEN__V1__CHECKPOINT_DELETE_REQUEST__INIT;

	req.checkpoint_id = text(checkpoint_id);
	return ask(f, who, "CheckpointService/Delete", &req);
}

/* --- events */

enum status
events_after(
    struct fixture *f, const struct agent *who, const char *after, int64_t limit, const char *kind)
{
	PB(EventListRequest) req = TITEN__V1__EVENT_LIST_REQUEST__INIT;
	char *kinds[] = { text(kind) };

	req.after = text(after);
	req.has_limit = limit != 0;
	req.limit = limit;
	req.kind = kinds;
	req.n_kind = kind != NULL;
	return ask(f, who, "EventService/List", &req);
}

enum status
events_of(struct fixture *f, const struct agent *who, const char *kind)
{
	return events_after(f, who, NULL, 200, kind);
}

size_t
event_count(struct fixture *f, const struct agent *who, const char *kind)
{
	expect(f, OK, events_of(f, who, kind));
	return GOT(f, EventListResponse)->n_events;
}

/* --- keys */

enum status
make_key(
    struct fixture *f, const struct agent *who, const char *principal, const char *const *scopes)
{
	PB(KeyCreateRequest) req = TITEN__V1__KEY_CREATE_REQUEST__INIT;
	char *list[RIGHT_SCOPES];

	for (; scopes[req.n_scopes] != NULL; req.n_scopes++)
		list[req.n_scopes] = text(scopes[req.n_scopes]);
	req.scopes = list;
	req.label = text("a key");
	req.principal_id = text(principal);
	return ask(f, who, "KeyService/Create", &req);
}

enum status
revoke_key(struct fixture *f, const struct agent *who, const char *key_id)
{
	PB(KeyRevokeRequest) req = TITEN__V1__KEY_REVOKE_REQUEST__INIT;

	req.key_id = text(key_id);
	return ask(f, who, "KeyService/Revoke", &req);
}

enum status
bootstrap(struct fixture *f, const char *name)
{
	PB(KeyBootstrapRequest) req = TITEN__V1__KEY_BOOTSTRAP_REQUEST__INIT;

	req.name = text(name);
	return ask(f, NULL, "KeyService/Bootstrap", &req);
}

const struct agent *
agent_made(struct fixture *f)
{
	struct agent *agent = arena_alloc(&f->last->arena, sizeof *agent);
	const char *key;

	if (f->last->call.method->response == &titen__v1__key_create_response__descriptor) {
		agent->name = GOT(f, KeyCreateResponse)->principal_id;
		agent->key_id = GOT(f, KeyCreateResponse)->key_id;
		key = GOT(f, KeyCreateResponse)->api_key;
	} else {
		agent->name = GOT(f, KeyBootstrapResponse)->principal_id;
		agent->key_id = GOT(f, KeyBootstrapResponse)->key_id;
		key = GOT(f, KeyBootstrapResponse)->api_key;
	}
	assert_non_null(key);
	agent->authorization = arena_printf(&f->last->arena, "Bearer %s", key);
	return agent;
}

const struct agent *
agent_join(struct fixture *f, const struct agent *who, const char *name, const char *const *scopes)
{
	expect(f, OK, make_key(f, who, name, scopes));
	return agent_made(f);
}

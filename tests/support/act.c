/* SPDX-License-Identifier: MIT */
/* What the kinds of act say over nng: one function each for the request, one for the answer. */
#include "tests/support/act.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.pb-c.h"
#include "envelope.pb-c.h"
#include "event.pb-c.h"
#include "handoff.pb-c.h"
#include "key.pb-c.h"
#include "lease.pb-c.h"
#include "core/call.h"

bool
act_done(const struct act *act)
{
	return act->answered && act->reason[0] == '\0';
}

void
act_state(const struct act *act, char state[static STATE_BYTES])
{
	snprintf(state, STATE_BYTES, "{\"step\":%d,\"of\":\"%s\"}", act->step, act->name);
}

/* --- requests */

static size_t
pack(const void *message, uint8_t *out)
{
	assert(protobuf_c_message_get_packed_size(message) <= ACT_REQUEST_BYTES);
	return protobuf_c_message_pack(message, out);
}

static size_t
pack_acquire(const struct act *act, uint8_t *out)
{
	PB(LeaseAcquireRequest) req = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;

	req.resource_type = "load";
	req.resource_id = (char *)act->name;
	req.purpose = "load";
	req.has_ttl_seconds = true;
	req.ttl_seconds = ACT_TTL_SECONDS;
	return pack(&req, out);
}

static size_t
pack_release(const struct act *act, uint8_t *out)
{
	PB(LeaseReleaseRequest) req = TITEN__V1__LEASE_RELEASE_REQUEST__INIT;

	req.lease_id = (char *)act->target;
	return pack(&req, out);
}

static size_t
pack_hand_off(const struct act *act, uint8_t *out)
{
	PB(HandoffCreateRequest) req = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;

	req.to_principal = (char *)act->peer->principal;
	req.subject_id = (char *)act->name;
	if (act->target[0] != '\0')
		req.checkpoint_id = (char *)act->target;
	return pack(&req, out);
}

static size_t
pack_resolve(const struct act *act, uint8_t *out)
{
	PB(HandoffResolveRequest) req = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;

	req.handoff_id = (char *)act->target;
	req.has_status = true;
	req.status = act->accept ? TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__ACCEPTED
				 : TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__REJECTED;
	return pack(&req, out);
}

static size_t
pack_save(const struct act *act, uint8_t *out)
{
	PB(CheckpointSaveRequest) req = TITEN__V1__CHECKPOINT_SAVE_REQUEST__INIT;
	PB(Json) json = TITEN__V1__JSON__INIT;
	char state[STATE_BYTES];

	act_state(act, state);
	json.text = state;
	req.subject_id = (char *)act->name;
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	req.state = &json;
	req.has_ttl_seconds = true;
	req.ttl_seconds = ACT_TTL_SECONDS;
	return pack(&req, out);
}

static size_t
pack_make_key(const struct act *act, uint8_t *out)
{
	static const char *const scopes[] = { "leases:write", "handoffs:read", "handoffs:write",
		"checkpoints:read", "checkpoints:write", "events:read", "keys:manage" };
	PB(KeyCreateRequest) req = TITEN__V1__KEY_CREATE_REQUEST__INIT;

	req.label = (char *)act->name;
	req.scopes = (char **)scopes;
	req.n_scopes = sizeof scopes / sizeof scopes[0];
	return pack(&req, out);
}

static size_t
pack_find(const struct act *act, uint8_t *out)
{
	PB(CheckpointFindRequest) req = TITEN__V1__CHECKPOINT_FIND_REQUEST__INIT;

	req.subject_id = (char *)act->name;
	req.has_kind = true;
	req.kind = TITEN__V1__CHECKPOINT__KIND__TASK_STATE;
	return pack(&req, out);
}

static size_t
pack_inbox(const struct act *act, uint8_t *out)
{
	PB(HandoffListRequest) req = TITEN__V1__HANDOFF_LIST_REQUEST__INIT;

	(void)act;
	return pack(&req, out);
}

static size_t
pack_events(const struct act *act, uint8_t *out)
{
	PB(EventListRequest) req = TITEN__V1__EVENT_LIST_REQUEST__INIT;
	char *every[] = { "*" };

	if (act->target[0] != '\0')
		req.after = (char *)act->target;
	req.kind = every;
	req.n_kind = 1;
	return pack(&req, out);
}

/* --- answers */

static void
take(char out[static NAME_BYTES], const char *text)
{
	snprintf(out, NAME_BYTES, "%s", text == NULL ? "" : text);
}

static int64_t
time_ms(const Google__Protobuf__Timestamp *time)
{
	return time == NULL ? 0 : time->seconds * 1000 + time->nanos / 1000000;
}

static void
take_acquired(struct answer *a, const void *message)
{
	const PB(LeaseAcquireResponse) *resp = message;

	take(a->id, resp->lease_id);
	a->time_ms = time_ms(resp->expires_at);
	a->number = resp->fence;
}

static void
take_released(struct answer *a, const void *message)
{
	const PB(LeaseReleaseResponse) *resp = message;

	take(a->id, resp->lease_id);
	a->time_ms = time_ms(resp->released_at);
}

static void
take_handed_off(struct answer *a, const void *message)
{
	take(a->id, ((const PB(HandoffCreateResponse) *)message)->handoff_id);
}

static void
take_resolved(struct answer *a, const void *message)
{
	const PB(HandoffResolveResponse) *resp = message;

	take(a->id, resp->handoff_id);
	a->time_ms = time_ms(resp->resolved_at);
}

static void
take_saved(struct answer *a, const void *message)
{
	const PB(CheckpointSaveResponse) *resp = message;

	take(a->id, resp->checkpoint_id);
	snprintf(a->text, sizeof a->text, "%s", resp->state_hash);
	a->time_ms = time_ms(resp->expires_at);
	a->number = resp->version;
}

static void
take_made_key(struct answer *a, const void *message)
{
	const PB(KeyCreateResponse) *resp = message;

	take(a->id, resp->key_id);
	take(a->text, resp->api_key);
	take(a->principal, resp->principal_id);
}

static void
take_found(struct answer *a, const void *message)
{
	const PB(Checkpoint) *resp = message;

	take(a->id, resp->checkpoint_id);
	snprintf(a->text, sizeof a->text, "%s", resp->state_hash);
	a->time_ms = time_ms(resp->expires_at);
	a->number = resp->version;
}

static void
take_inbox(struct answer *a, const void *message)
{
	const PB(HandoffListResponse) *resp = message;

	a->number = (int64_t)resp->n_handoffs;
	if (resp->n_handoffs > 0)
		take(a->id, resp->handoffs[0]->handoff_id);
}

static void
take_events(struct answer *a, const void *message)
{
	const PB(EventListResponse) *resp = message;

	a->number = (int64_t)resp->n_events;
	take(a->id, resp->cursor);
	for (size_t i = 1; i < resp->n_events; i++)
		if (strcmp(resp->events[i - 1]->id, resp->events[i]->id) >= 0)
			a->disordered = true;
}

/* --- the table */

static const struct {
	const char *method;
	const ProtobufCMessageDescriptor *response;
	size_t (*pack)(const struct act *act, uint8_t *out);
	void (*take)(struct answer *a, const void *message);
} kinds[ACT_KINDS] = {
	[ACT_ACQUIRE] = { "titen.v1.LeaseService/Acquire",
	    &titen__v1__lease_acquire_response__descriptor, pack_acquire, take_acquired },
	[ACT_RELEASE] = { "titen.v1.LeaseService/Release",
	    &titen__v1__lease_release_response__descriptor, pack_release, take_released },
	[ACT_HAND_OFF] = { "titen.v1.HandoffService/Create",
	    &titen__v1__handoff_create_response__descriptor, pack_hand_off, take_handed_off },
	[ACT_RESOLVE] = { "titen.v1.HandoffService/Resolve",
	    &titen__v1__handoff_resolve_response__descriptor, pack_resolve, take_resolved },
	[ACT_SAVE] = { "titen.v1.CheckpointService/Save",
	    &titen__v1__checkpoint_save_response__descriptor, pack_save, take_saved },
	[ACT_MAKE_KEY] = { "titen.v1.KeyService/Create",
	    &titen__v1__key_create_response__descriptor, pack_make_key, take_made_key },
	[ACT_FIND] = { "titen.v1.CheckpointService/Find", &titen__v1__checkpoint__descriptor,
	    pack_find, take_found },
	[ACT_INBOX] = { "titen.v1.HandoffService/List",
	    &titen__v1__handoff_list_response__descriptor, pack_inbox, take_inbox },
	[ACT_EVENTS] = { "titen.v1.EventService/List", &titen__v1__event_list_response__descriptor,
	    pack_events, take_events },
};

const char *
act_method(const struct act *act)
{
	return kinds[act->kind].method;
}

size_t
act_pack(const struct act *act, uint8_t out[static ACT_REQUEST_BYTES])
{
	return kinds[act->kind].pack(act, out);
}

bool
act_unpack(const struct act *act, const void *bytes, size_t n, struct answer *answer)
{
	ProtobufCMessage *message =
	    protobuf_c_message_unpack(kinds[act->kind].response, NULL, n, bytes);

	*answer = (struct answer){ .number = 0 };
	if (message == NULL)
		return false;
	kinds[act->kind].take(answer, message);
	protobuf_c_message_free_unpacked(message, NULL);
	return true;
}

void
act_take_reply(struct act *act, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	act->answered = outcome == TITEN_ANSWERED;
	act->replayed = act->answered && reply->replayed;
	act->reason[0] = act->message[0] = '\0';
	if (act->answered && reply->code != 0) {
		snprintf(act->reason, sizeof act->reason, "%s", reply->reason);
		snprintf(act->message, sizeof act->message, "%s", reply->message);
	} else if (act->answered &&
		   !act_unpack(act, reply->payload.data, reply->payload.len, &act->answer)) {
		snprintf(act->reason, sizeof act->reason, "GARBLED");
	}
	titen_reply_free(reply);
}

void
act_by_rpc(struct act *act, struct titen_client *client)
{
	const struct titen_call call = { .method = act_method(act),
		.idempotency_key = act->key[0] == '\0' ? NULL : act->key,
		.timeout_ms = ACT_TIMEOUT_MS };
	uint8_t request[ACT_REQUEST_BYTES];
	Titen__V1__Reply *reply = NULL;
	enum titen_outcome outcome =
	    titen_call_packed(client, &call, request, act_pack(act, request), &reply);

	act_take_reply(act, outcome, reply);
}

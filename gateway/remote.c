/* SPDX-License-Identifier: MIT */
/*
 * From a call to an envelope, and from a reply to the call's answer. The core checks key and right
 * of every call that reaches it; one that will not (its body is no JSON, or too long) costs a
 * question about the key instead, so that a stranger learns nothing but that he is one.
 */
#include "gateway/remote.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/relay.h"
#include "core/log.h"
#include "core/rpc.h"
#include "core/text.h"
#include "health.pb-c.h"
#include "principal.pb-c.h"

/* nng carries one message at a time on each; and a quarter of the web door's threads is well below
 * what a core lets one connection have under way. */
#define CONNECTIONS 4
#define WAIT_MS 1500     /* for a connection: longer than it takes to find a core that is there */
#define TIMEOUT_MS 30000 /* of a call; the core does nothing for one that is over */
#define RETRY_MS 1000    /* a connection is tried again at least so often */

#define RUNTIME "titen-c" /* as the core says it */

struct remote {
	const char *revision;
	atomic_uint turn;
	struct titen_client *clients[CONNECTIONS];
};

/* A call that is to be refused unless its key is. */
struct refusal {
	struct call *call;
	enum status status;
};

/* --- out */

/* Bytes that are no text are no key either; the envelope has only text. */
static const char *
authorization_text(const struct call *c)
{
	const char *text = c->authorization;

	return text == NULL || text_utf8(text, strlen(text)) ? text : "";
}

static void
ask(struct remote *r, struct call *c, const char *method, const ProtobufCMessage *request,
    titen_done *done, void *arg)
{
	PB(Request) envelope = TITEN__V1__REQUEST__INIT;
	unsigned turn = atomic_fetch_add(&r->turn, 1) % CONNECTIONS;

	envelope.method = (char *)method;
	envelope.authorization = (char *)authorization_text(c);
	envelope.idempotency_key = (char *)c->idempotency_key;
	envelope.has_timeout_ms = true;
	envelope.timeout_ms = TIMEOUT_MS;
	envelope.has_payload = true;
	envelope.payload.len = protobuf_c_message_get_packed_size(request);
	envelope.payload.data = arena_alloc(c->arena, envelope.payload.len + 1);
	protobuf_c_message_pack(request, envelope.payload.data);
	titen_relay_start(r->clients[turn], &envelope, done, arg);
}

/* --- back */

static enum status
no_answer(struct call *c, enum titen_outcome outcome)
{
	if (outcome == TITEN_TOO_LARGE)
		return call_fail(c, STATUS_PAYLOAD_TOO_LARGE, "A request may have %zu bytes.",
		    PAYLOAD_BYTES_MAX);
	if (outcome == TITEN_TIMED_OUT)
		return call_fail(c, STATUS_DEADLINE_EXCEEDED,
		    "No answer came in time, so it is unknown whether this was done. A retry with "
		    "the same Idempotency-Key is safe.");
	c->retry_after_ms = RETRY_MS;
	return call_fail(c, STATUS_UNAVAILABLE,
	    "The server gave no answer, so it is unknown whether this was done. A retry with the "
	    "same Idempotency-Key is safe.");
}

/* The id under which the core has logged the call. It goes into a header, so it is looked at. */
static void
request_id_take(struct call *c, const char *id)
{
	size_t bytes = id == NULL ? 0 : strlen(id);

	if (bytes > 0 && bytes < sizeof(c->request_id) &&
	    strspn(id, "abcdefghijklmnopqrstuvwxyz_0123456789") == bytes)
		memcpy(c->request_id, id, bytes + 1);
}

static enum status
refusal_take(struct call *c, const PB(Reply) *reply)
{
	enum status st = reply->reason == NULL ? STATUS_INTERNAL : status_find(reply->reason);

	c->message = reply->message == NULL ? NULL : arena_text(c->arena, reply->message);
	c->retry_after_ms = reply->retry_after_ms;
	return st == STATUS_OK ? STATUS_INTERNAL : st;
}

/* What came back, without the response. */
static enum status
reply_take(struct call *c, enum titen_outcome outcome, const PB(Reply) *reply)
{
	if (outcome != TITEN_ANSWERED)
		return no_answer(c, outcome);
	request_id_take(c, reply->request_id);
	if (reply->code != 0)
		return refusal_take(c, reply);
	c->created = reply->created;
	c->replayed = reply->replayed;
	return STATUS_OK;
}

static ProtobufCMessage *
response_unpack(struct call *c, const ProtobufCMessageDescriptor *type, const PB(Reply) *reply)
{
	return protobuf_c_message_unpack(
	    type, &c->arena->decoder, reply->payload.len, reply->payload.data);
}

static void
call_done(void *arg, enum titen_outcome outcome, PB(Reply) *reply)
{
	struct call *c = arg;

	c->status = reply_take(c, outcome, reply);
	if (c->status == STATUS_OK) {
		c->response = response_unpack(c, c->method->response, reply);
		if (c->response == NULL)
			c->status = no_answer(c, TITEN_GARBLED);
	}
	titen_reply_free(reply);
	call_answer(c);
}

/* --- refusing */

static bool
principal_may(const PB(Principal) *principal, enum right right)
{
	scope_set set = 0;

	for (size_t i = 0; i < principal->n_scopes; i++) {
		enum right scope = scope_find(principal->scopes[i]);
		if (scope < RIGHT_SCOPES)
			set |= (scope_set)1 << scope;
	}
	return right == RIGHT_KEY || scope_granted(set, right);
}

/* The key is good; what it may do decides. */
static enum status
refusal_weigh(struct refusal *refusal, const PB(Reply) *reply)
{
	struct call *c = refusal->call;
	enum right right = c->method->right;
	const PB(Principal) *principal =
	    (const PB(Principal) *)response_unpack(c, &titen__v1__principal__descriptor, reply);

	if (principal == NULL)
		return no_answer(c, TITEN_GARBLED);
	if (!principal_may(principal, right))
		return call_fail(
		    c, STATUS_FORBIDDEN, "This key lacks the scope %s.", scope_text(right));
	return refusal->status;
}

static void
refusal_done(void *arg, enum titen_outcome outcome, PB(Reply) *reply)
{
	struct refusal *refusal = arg;
	struct call *c = refusal->call;

	if (outcome == TITEN_ANSWERED) {
		c->status = reply_take(c, outcome, reply);
		if (c->status == STATUS_OK)
			c->status = refusal_weigh(refusal, reply);
	} else {
		c->status = STATUS_UNAVAILABLE;
		c->message = NULL; /* the usual one: nothing was changed */
		c->retry_after_ms = RETRY_MS;
	}
	titen_reply_free(reply);
	call_answer(c);
}

static void
remote_refuse(void *self, struct call *c, enum status st)
{
	PB(PrincipalGetRequest) request = TITEN__V1__PRINCIPAL_GET_REQUEST__INIT;
	struct refusal *refusal;

	if ((st != STATUS_VALIDATION_ERROR && st != STATUS_PAYLOAD_TOO_LARGE) ||
	    c->method == NULL || c->method->right == RIGHT_PUBLIC) {
		rpc_refuse(c, st);
		return;
	}
	refusal = arena_alloc(c->arena, sizeof(*refusal));
	*refusal = (struct refusal){ c, st };
	c->idempotency_key = NULL;
	ask(self, c, "titen.v1.PrincipalService/Get", &request.base, refusal_done, refusal);
}

/* --- the backend */

static enum status
remote_admit(void *self, struct call *c)
{
	(void)self;
	(void)c;
	return STATUS_OK;
}

/* This process lives, whatever the core does. */
static void
health_answer(const struct remote *r, struct call *c)
{
	PB(HealthCheckResponse) *response = arena_alloc(c->arena, sizeof(*response));

	titen__v1__health_check_response__init(response);
	response->status = arena_text(c->arena, "ok");
	response->runtime = arena_text(c->arena, RUNTIME);
	response->revision = arena_text(c->arena, r->revision);
	c->response = &response->base;
	c->status = STATUS_OK;
	call_answer(c);
}

static void
remote_submit(void *self, struct call *c)
{
	struct remote *r = self;

	if (strcmp(c->method->name, "titen.v1.HealthService/Check") == 0)
		health_answer(r, c);
	else
		ask(r, c, c->method->name, c->request, call_done, c);
}

struct remote *
remote_start(const char *url, const char *revision, char *error, size_t error_bytes)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (r == NULL)
		log_die("There is no memory for the gateway.");
	r->revision = revision;
	for (size_t i = 0; i < CONNECTIONS; i++) {
		r->clients[i] = titen_relay_open(url, WAIT_MS, error, error_bytes);
		if (r->clients[i] == NULL) {
			remote_stop(&r);
			return NULL;
		}
	}
	return r;
}

struct backend
remote_backend(struct remote *remote)
{
	return (struct backend){ remote, remote_admit, remote_submit, remote_refuse };
}

void
remote_stop(struct remote **remote)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if ((*remote)->clients[i] != NULL)
			titen_close(&(*remote)->clients[i]);
	free(*remote);
	*remote = NULL;
}

/* SPDX-License-Identifier: MIT */
/* The envelope: a Request read with care, a Reply written from what the call has become. */
#include "transport/frame.h"

#include <assert.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/rpc.h"
#include "core/wire.h"

#define FAULT_BYTES 200 /* a sentence with a field name in it */

static enum status
request_unpack(struct call *c, const uint8_t *bytes, size_t length, PB(Request) **request_r)
{
	char fault[FAULT_BYTES];

	if (!wire_check(&titen__v1__request__descriptor, bytes, length, fault, sizeof(fault)))
		return call_fail(c, STATUS_VALIDATION_ERROR, "%s", fault);
	*request_r = titen__v1__request__unpack(&c->arena->decoder, length, bytes);
	if (*request_r != NULL)
		return STATUS_OK;
	if (!c->arena->refused)
		return call_fail(c, STATUS_VALIDATION_ERROR, "The request is malformed.");
	return call_fail(c, STATUS_UNAVAILABLE, "The server has no memory to spare.");
}

static enum status
deadline_set(struct call *c, const PB(Request) *request)
{
	int64_t timeout_ms = request->timeout_ms;

	if (!request->has_timeout_ms)
		return STATUS_OK;
	if (timeout_ms <= 0)
		return call_fail(c, STATUS_VALIDATION_ERROR, "timeout_ms must be above 0.");
	if (timeout_ms > TIMEOUT_MS_MAX)
		timeout_ms = TIMEOUT_MS_MAX;
	c->deadline_ms = clock_monotonic_ms() + timeout_ms;
	return STATUS_OK;
}

enum status
frame_parse(struct call *c, const uint8_t *bytes, size_t length, PB(Request) **request_r)
{
	enum status st = request_unpack(c, bytes, length, request_r);
	const PB(Request) *request;

	if (st != STATUS_OK)
		return st;
	request = *request_r;
	assert(request != NULL);
	if (request->payload.len > PAYLOAD_BYTES_MAX)
		return call_fail(c, STATUS_PAYLOAD_TOO_LARGE, "The payload is larger than 1 MiB.");
	if (request->method == NULL)
		return call_fail(c, STATUS_VALIDATION_ERROR, "The request names no method.");
	c->authorization = request->authorization;
	c->idempotency_key = request->idempotency_key;
	return deadline_set(c, request);
}

static ProtobufCBinaryData
response_pack(struct call *c)
{
	ProtobufCBinaryData packed = { 0, NULL };

	packed.data = arena_alloc(c->arena, protobuf_c_message_get_packed_size(c->response));
	packed.len = protobuf_c_message_pack(c->response, packed.data);
	return packed;
}

static void
describe_success(struct call *c, PB(Reply) *reply)
{
	reply->has_payload = c->response != NULL;
	if (c->response != NULL)
		reply->payload = response_pack(c);
	reply->has_replayed = c->replayed;
	reply->replayed = c->replayed;
	reply->has_created = c->method != NULL && c->method->result != RESULT_OK;
	reply->created = reply->has_created && (c->created || c->method->result == RESULT_CREATED);
}

static void
describe_failure(struct call *c, PB(Reply) *reply)
{
	reply->reason = arena_text(c->arena, status_reason(c->status));
	if (c->message != NULL)
		reply->message = arena_text(c->arena, c->message);
	reply->has_retry_after_ms = c->retry_after_ms > 0;
	reply->retry_after_ms = c->retry_after_ms;
}

nng_msg *
frame_build(struct call *c, int64_t now_ms)
{
	PB(Reply) reply = TITEN__V1__REPLY__INIT;
	nng_msg *msg = NULL;

	reply.has_code = true;
	reply.code = status_grpc(c->status);
	reply.request_id = c->request_id;
	reply.server_time = call_time(c, now_ms);
	if (c->status == STATUS_OK)
		describe_success(c, &reply);
	else
		describe_failure(c, &reply);
	if (nng_msg_alloc(&msg, titen__v1__reply__get_packed_size(&reply)) != 0)
		log_die("There is no memory left.");
	titen__v1__reply__pack(&reply, nng_msg_body(msg));
	return msg;
}

/* SPDX-License-Identifier: MIT */
/*
 * One slot for each outstanding call. What a slot does is a short list of steps; it takes what one
 * answer says (an id) to the next step, and begins the list again behind its end.
 *
 * Read slot_begin() and slot_end().
 */
#include "cmd/bench_nng.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "envelope.pb-c.h"
#include "handoff.pb-c.h"
#include "health.pb-c.h"
#include "lease.pb-c.h"
#include "core/call.h"
#include "core/ident.h"

#define STEPS_MAX 2
#define PAYLOAD_BYTES 1024 /* of a request: 200 code points of a principal, and short texts */
#define TIMEOUT_MS 30000
#define TTL_SECONDS 86400 /* no lease of a run expires in it */
#define ECHO_BYTES 60     /* both frames are then within two bytes of those of an acquire */

struct slot;

struct step {
	const char *method;
	size_t (*pack)(struct slot *slot, uint8_t *out);
	/* Keep what the next step needs. NULL: nothing. False: the answer is garbled. */
	bool (*keep)(struct slot *slot, const ProtobufCBinaryData *answer);
};

struct slot {
	struct bench_nng *nng;
	struct bench_load *load;
	struct titen_client *client;
	const struct step *steps; /* one without a method ends them */
	int step;
	int number;
	uint32_t round; /* makes names fresh */
	char id[ID_TEXT_BYTES];
	int64_t began_ns;
	size_t request_bytes;
};

struct bench_nng {
	struct bench_nng_options options;
	uint32_t run; /* random: two runs on one database take different resources */
	struct slot *slots;
};

/* --- what there is to do */

static size_t
pack(const ProtobufCMessage *message, uint8_t *out)
{
	assert(protobuf_c_message_get_packed_size(message) <= PAYLOAD_BYTES);
	return protobuf_c_message_pack(message, out);
}

static void
fresh_name(struct slot *slot, char out[static 32])
{
	snprintf(out, 32, "%08x-%04x-%08x", slot->nng->run, (unsigned)slot->number, slot->round++);
}

/* Its texts are so long that it is as large as its answer, as it is with an echo. */
static size_t
acquire_pack(struct slot *slot, uint8_t *out)
{
	PB(LeaseAcquireRequest) request = TITEN__V1__LEASE_ACQUIRE_REQUEST__INIT;
	char name[32];

	fresh_name(slot, name);
	request.resource_type = (char *)"benchmark";
	request.resource_id = name;
	request.purpose = (char *)"how fast is this one";
	request.has_ttl_seconds = true;
	request.ttl_seconds = TTL_SECONDS;
	return pack(&request.base, out);
}

static bool
acquire_keep(struct slot *slot, const ProtobufCBinaryData *answer)
{
	PB(LeaseAcquireResponse) *response =
	    titen__v1__lease_acquire_response__unpack(NULL, answer->len, answer->data);

	if (response == NULL || response->lease_id == NULL)
		return false;
	snprintf(slot->id, sizeof(slot->id), "%s", response->lease_id);
	titen__v1__lease_acquire_response__free_unpacked(response, NULL);
	return true;
}

static size_t
release_pack(struct slot *slot, uint8_t *out)
{
	PB(LeaseReleaseRequest) request = TITEN__V1__LEASE_RELEASE_REQUEST__INIT;

	request.lease_id = slot->id;
	return pack(&request.base, out);
}

static size_t
create_pack(struct slot *slot, uint8_t *out)
{
	PB(HandoffCreateRequest) request = TITEN__V1__HANDOFF_CREATE_REQUEST__INIT;
	char name[32];

	fresh_name(slot, name);
	request.to_principal = (char *)slot->nng->options.principal;
	request.subject_id = name;
	request.message = (char *)"how fast is this";
	return pack(&request.base, out);
}

static bool
create_keep(struct slot *slot, const ProtobufCBinaryData *answer)
{
	PB(HandoffCreateResponse) *response =
	    titen__v1__handoff_create_response__unpack(NULL, answer->len, answer->data);

	if (response == NULL || response->handoff_id == NULL)
		return false;
	snprintf(slot->id, sizeof(slot->id), "%s", response->handoff_id);
	titen__v1__handoff_create_response__free_unpacked(response, NULL);
	return true;
}

static size_t
resolve_pack(struct slot *slot, uint8_t *out)
{
	PB(HandoffResolveRequest) request = TITEN__V1__HANDOFF_RESOLVE_REQUEST__INIT;

	request.handoff_id = slot->id;
	request.has_status = true;
	request.status = TITEN__V1__HANDOFF_RESOLVE_REQUEST__DECISION__ACCEPTED;
	return pack(&request.base, out);
}

static size_t
echo_pack(struct slot *slot, uint8_t *out)
{
	static uint8_t text[ECHO_BYTES];
	PB(HealthEchoRequest) request = TITEN__V1__HEALTH_ECHO_REQUEST__INIT;

	(void)slot;
	request.has_payload = true;
	request.payload = (ProtobufCBinaryData){ .len = sizeof(text), .data = text };
	return pack(&request.base, out);
}

#define ACQUIRE "titen.v1.LeaseService/Acquire"

static const struct step works[][STEPS_MAX + 1] = {
	[BENCH_ACQUIRE] = { { ACQUIRE, acquire_pack, NULL } },
	[BENCH_CYCLE] = { { ACQUIRE, acquire_pack, acquire_keep },
	    { "titen.v1.LeaseService/Release", release_pack, NULL } },
	[BENCH_HANDOFF] = { { "titen.v1.HandoffService/Create", create_pack, create_keep },
	    { "titen.v1.HandoffService/Resolve", resolve_pack, NULL } },
	[BENCH_ECHO] = { { "titen.v1.HealthService/Echo", echo_pack, NULL } },
};

/* --- slots */

static void slot_end(void *arg, enum titen_outcome outcome, PB(Reply) *reply);

static void
slot_begin(struct slot *slot)
{
	const struct step *step = &slot->steps[slot->step];
	const struct titen_call call = { .method = step->method, .timeout_ms = TIMEOUT_MS };
	uint8_t payload[PAYLOAD_BYTES];
	size_t bytes = step->pack(slot, payload);

	slot->request_bytes = bytes;
	slot->began_ns = bench_load_now_ns();
	titen_call_start(slot->client, &call, payload, bytes, slot_end, slot);
}

/* Whether the steps are in their middle now, so that one more is owed. */
static bool
slot_step(struct slot *slot, const struct bench_end *end, const PB(Reply) *reply)
{
	const struct step *step = &slot->steps[slot->step];

	if (end->outcome != TITEN_ANSWERED || end->st != STATUS_OK) {
		slot->step = 0;
		return false;
	}
	if (step->keep != NULL && !step->keep(slot, &reply->payload))
		slot->id[0] = '\0';
	slot->step = step[1].method != NULL ? slot->step + 1 : 0;
	return slot->step > 0;
}

static enum status
reply_status(const PB(Reply) *reply)
{
	if (reply->code == 0)
		return STATUS_OK;
	return reply->reason == NULL ? STATUS_INTERNAL : status_find(reply->reason);
}

static void
slot_end(void *arg, enum titen_outcome outcome, PB(Reply) *reply)
{
	struct slot *slot = arg;
	struct bench_end end = {
		.began_ns = slot->began_ns, .outcome = outcome, .request_bytes = slot->request_bytes
	};
	bool owed, more;

	if (reply != NULL) {
		end.st = reply_status(reply);
		end.reply_bytes = reply->payload.len;
	}
	owed = slot_step(slot, &end, reply);
	titen_reply_free(reply);
	more = bench_load_count(slot->load, &end);
	if (more || owed)
		slot_begin(slot);
	else
		bench_load_leave(slot->load);
}

/* --- the door */

static void
calls(struct bench_nng *nng, enum bench_work work, struct bench_load *load)
{
	for (int i = 0; i < nng->options.outstanding && bench_load_take(load); i++) {
		struct slot *slot = &nng->slots[i];
		slot->load = load;
		slot->steps = works[work];
		slot->step = 0;
		slot_begin(slot);
	}
	bench_load_await(load);
}

static void
door_calls(void *door, bool baseline, struct bench_load *load)
{
	struct bench_nng *nng = door;

	calls(nng, baseline ? BENCH_ECHO : nng->options.work, load);
}

static void
filler_calls(void *door, bool baseline, struct bench_load *load)
{
	assert(!baseline);
	calls(door, BENCH_ACQUIRE, load);
}

struct bench_door
bench_nng_door(struct bench_nng *nng)
{
	return (struct bench_door){ nng, door_calls };
}

struct bench_door
bench_nng_filler(struct bench_nng *nng)
{
	return (struct bench_door){ nng, filler_calls };
}

struct bench_nng *
bench_nng_new(struct arena *arena, const struct bench_nng_options *options)
{
	struct bench_nng *nng = arena_alloc(arena, sizeof(*nng));

	nng->options = *options;
	nng->run = randombytes_random();
	nng->slots = arena_alloc(arena, (size_t)options->outstanding * sizeof(*nng->slots));
	for (int i = 0; i < options->outstanding; i++) {
		nng->slots[i].nng = nng;
		nng->slots[i].number = i;
		nng->slots[i].client = options->clients[i % options->clients_n];
	}
	return nng;
}

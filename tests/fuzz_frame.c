/* SPDX-License-Identifier: MIT */
/* Bytes from the wire: as a whole frame, and as a message of every type. What the wire check lets
 * through must unpack within the arena's limit, pack again, and be fit for the rules. */
#include "tests/fuzz.h"

#include "core/rpc.h"
#include "core/wire.h"
#include "transport/frame.h"

static struct arena arena;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_process_init();
	arena_init(&arena);
	return 0;
}

static void
as_frame(const uint8_t *data, size_t size)
{
	PB(Request) *request = NULL;
	struct call call;
	enum status st;

	arena_reset(&arena);
	call_init(&call, &arena, NULL, NULL);
	st = frame_parse(&call, data, size, &request);
	fuzz_hold(st != STATUS_INTERNAL, "a bad frame is the client's fault");
	fuzz_hold((st == STATUS_OK) == (call.message == NULL), "a refusal says why");
	if (st != STATUS_OK || rpc_find(&call, request->method) != STATUS_OK)
		return;
	if (rpc_decode(&call, request->payload.data, request->payload.len) == STATUS_OK)
		rules_check(&call);
}

/* Packing leaves out what was repeated in vain, so it is the second packing that must be equal. */
static void
packs_again(const ProtobufCMessage *message)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = arena_alloc(&arena, bytes + 1);
	uint8_t *again = arena_alloc(&arena, bytes + 1);
	const ProtobufCMessage *same;

	fuzz_hold(protobuf_c_message_pack(message, packed) == bytes, "packed to its size");
	same = protobuf_c_message_unpack(message->descriptor, &arena.decoder, bytes, packed);
	fuzz_hold(same != NULL, "what was packed unpacks");
	fuzz_hold(protobuf_c_message_get_packed_size(same) == bytes, "the same size again");
	protobuf_c_message_pack(same, again);
	fuzz_hold(memcmp(packed, again, bytes) == 0, "the same bytes again");
}

static ProtobufCMessage *
as_message(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size)
{
	ProtobufCMessage *message;
	char fault[160];

	arena_reset(&arena);
	if (!wire_check(type, data, size, fault, sizeof fault))
		return NULL;
	message = protobuf_c_message_unpack(type, &arena.decoder, size, data);
	fuzz_hold(message != NULL, "what passes the wire check unpacks");
	fuzz_hold(arena.bytes <= ARENA_BYTES_MAX, "within the arena's limit");
	return message;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ProtobufCMessage *message;
	struct call call;

	as_frame(data, size);
	for (size_t i = 0; i < methods_count(); i++) {
		if ((message = as_message(method_at(i)->response, data, size)) != NULL)
			packs_again(message);
		if ((message = as_message(method_at(i)->request, data, size)) == NULL)
			continue;
		packs_again(message);
		call_init(&call, &arena, NULL, NULL);
		call.method = method_at(i);
		call.request = message;
		rules_check(&call);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* JSON to a message of the type that the first byte chooses, to JSON, and to a message again: both
 * messages are the same. Only times lose something, what is below a millisecond. */
#include "tests/fuzz.h"

#include "gateway/field.h"
#include "gateway/render.h"
#include "gateway/transcode.h"

#define NANOS_PER_MS 1000000

static struct arena arena;
static struct method method;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_process_init();
	arena_init(&arena);
	return 0;
}

/* TEXT as a message of the method's request type; NULL when it is refused. */
static ProtobufCMessage *
message_of(const char *text, size_t bytes)
{
	const char *error;
	struct call call;
	enum status st;
	json_t *json = json_read(&arena, text, bytes, JSON_DEPTH_MAX, &error);

	if (!json_is_object(json)) {
		json_done(json);
		return NULL;
	}
	call_init(&call, &arena, NULL, NULL);
	call.method = &method;
	st = transcode_begin(&call);
	if (st == STATUS_OK)
		st = transcode_object(&call, json);
	json_done(json);
	fuzz_hold((st == STATUS_OK) == (call.message == NULL), "a refusal says why");
	return st == STATUS_OK ? call.request : NULL;
}

static void times_cut(const ProtobufCMessage *message);

static void
time_cut(const ProtobufCFieldDescriptor *f, ProtobufCMessage *inner)
{
	Google__Protobuf__Timestamp *time = (Google__Protobuf__Timestamp *)inner;

	if (inner != NULL && field_is_time(f))
		time->nanos -= time->nanos % NANOS_PER_MS;
	else if (inner != NULL)
		times_cut(inner);
}

static void
times_cut(const ProtobufCMessage *message)
{
	const char *base = (const char *)message;

	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &message->descriptor->fields[i];
		const void *at = base + f->offset;
		size_t n = 1;

		if (f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			n = *(const size_t *)(const void *)(base + f->quantifier_offset);
			at = *(void *const *)at;
		}
		for (size_t member = 0; member < n; member++)
			time_cut(f, ((ProtobufCMessage *const *)at)[member]);
	}
}

static const char *
json_of(const ProtobufCMessage *message)
{
	struct json_writer w;

	json_write_begin(&w, &arena);
	json_write_open(&w, '{');
	render_members(&w, message, NULL);
	json_write_close(&w, '}');
	return w.text;
}

static bool
equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t bytes = protobuf_c_message_get_packed_size(a);
	uint8_t *x = arena_alloc(&arena, bytes + 1), *y = arena_alloc(&arena, bytes + 1);

	if (protobuf_c_message_get_packed_size(b) != bytes)
		return false;
	protobuf_c_message_pack(a, x);
	protobuf_c_message_pack(b, y);
	return memcmp(x, y, bytes) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const ProtobufCMessage *message, *again;
	const char *text;
	size_t choice;

	if (size == 0)
		return 0;
	choice = data[0] % (2 * methods_count());
	method = *method_at(choice / 2);
	method.request = choice % 2 == 0 ? method.request : method.response;
	arena_reset(&arena);
	message = message_of((const char *)data + 1, size - 1);
	if (message == NULL)
		return 0;
	times_cut(message);
	text = json_of(message);
	again = message_of(text, strlen(text));
	fuzz_hold(again != NULL, "what was written is read");
	fuzz_hold(equal(message, again), "there and back is the same message");
	fuzz_hold(strcmp(json_of(again), text) == 0, "and the same text");
	return 0;
}

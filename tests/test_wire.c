/* SPDX-License-Identifier: MIT */
/* Packed bytes: what is refused, in which words, and that what passes unpacks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "event.pb-c.h"
#include "key.pb-c.h"
#include "lease.pb-c.h"
#include "core/arena.h"
#include "core/wire.h"

#define PB(name) Titen__V1__##name
#define ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))
#define BUFFER_BYTES 65536
#define MUTATIONS 50000

static uint8_t buffer[BUFFER_BYTES];
static char error[128];

static const ProtobufCMessageDescriptor *const acquire =
    &titen__v1__lease_acquire_request__descriptor;
static const ProtobufCMessageDescriptor *const page = &titen__v1__event_list_response__descriptor;

/* A page of events into BUFFER: two levels, strings, times, numbers. */
static size_t
pack_page(void)
{
	Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
	PB(Json) json = TITEN__V1__JSON__INIT;
	PB(Event) event = TITEN__V1__EVENT__INIT;
	PB(Event) *events[] = { &event, &event };
	PB(EventListResponse) list = TITEN__V1__EVENT_LIST_RESPONSE__INIT;

	time.seconds = 1785409093;
	time.nanos = 829000000;
	json.text = "{\"ttl_seconds\":60}";
	event.id = "evt_0190a1b2c3d470008000000000000000";
	event.kind = "lease.acquired";
	event.payload = &json;
	event.created_at = &time;
	list.n_events = ROWS(events);
	list.events = events;
	list.cursor = event.id;
	return protobuf_c_message_pack(&list.base, buffer);
}

static void
well_formed_messages_pass(void **state)
{
	char *scopes[] = { "leases:read", "\xc3\xa9", "" };
	PB(KeyCreateRequest) key = TITEN__V1__KEY_CREATE_REQUEST__INIT;

	(void)state;
	assert_true(wire_check(page, buffer, pack_page(), error, sizeof(error)));
	assert_true(wire_check(page, NULL, 0, error, sizeof(error)));
	key.n_scopes = ROWS(scopes);
	key.scopes = scopes;
	key.has_max_trust = 1;
	key.max_trust = TITEN__V1__TRUST__VERIFIED;
	assert_true(wire_check(key.base.descriptor, buffer,
	    protobuf_c_message_pack(&key.base, buffer), error, sizeof(error)));
}

static void
what_is_wrong_is_said(void **state)
{
	static const char malformed[] = "The message is not well-formed.";
	static const struct {
		const char *bytes;
		size_t length;
		const char *error; /* NULL: passes */
	} rows[] = {
		{ "\x1a\x02hi", 4, NULL }, { "\x20\x3c", 2, NULL },
		{ "\xc2\x3e\x01x", 4, NULL },            /* unknown field */
		{ "\xf8\xff\xff\xff\x0f\x00", 6, NULL }, /* the largest number */
		{ "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, NULL }, /* -1 */
		{ "\x1a\x02\xc3\x28", 4, "purpose must be valid UTF-8 without NUL." },
		{ "\x1a\x03h\0i", 5, "purpose must be valid UTF-8 without NUL." },
		{ "\x0a\x01\xff", 3, "resource_type must be valid UTF-8 without NUL." },
		{ "\x18\x01", 2, "purpose has another type." },
		{ "\x22\x01\x01", 3, "ttl_seconds has another type." }, { "\x1a", 1, malformed },
		{ "\x1a\x03hi", 4, malformed }, { "\x1a\xff\xff\xff\xff\x0f", 6, malformed },
		{ "\x1a\x82\x80\x80\x80\x80\x00hi", 9, malformed }, /* length in six bytes */
		{ "\x20", 1, malformed }, { "\x20\x80", 2, malformed },
		{ "\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, malformed }, /* 65 bits */
		{ "\x20\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12, malformed },
		{ "\x00\x00", 2, malformed },                         /* field number 0 */
		{ "\x80\x80\x80\x80\x10\x00", 6, malformed },         /* beyond the largest */
		{ "\xa0\x80\x80\x80\x80\x00\x01", 7, malformed },     /* tag in six bytes */
		{ "\x23\x24", 2, malformed },                         /* a group */
		{ "\x26\x00", 2, malformed },                         /* wire type 6 */
		{ "\x27\x00", 2, malformed },                         /* wire type 7 */
		{ "\x29\x01\x02\x03\x04\x05\x06\x07", 8, malformed }, /* cut fixed64 */
		{ "\x2d\x01\x02\x03", 4, malformed },                 /* cut fixed32 */
	};
	bool passes;

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		error[0] = '\0';
		passes = wire_check(
		    acquire, (const uint8_t *)rows[i].bytes, rows[i].length, error, sizeof(error));
		if (passes != (rows[i].error == NULL) ||
		    (!passes && strcmp(error, rows[i].error) != 0))
			fail_msg("row %zu: %s", i, error);
	}
}

static void
members_are_counted_over_the_whole_message(void **state)
{
	(void)state;
	for (size_t i = 0; i <= WIRE_MEMBERS_MAX; i++)
		memcpy(buffer + 2 * i, "\x0a\x00", 2); /* an empty event */
	assert_true(wire_check(page, buffer, 2 * WIRE_MEMBERS_MAX, error, sizeof(error)));
	assert_false(wire_check(page, buffer, 2 * (WIRE_MEMBERS_MAX + 1), error, sizeof(error)));
	assert_string_equal(error, "The message has more than 4096 fields.");
	for (size_t i = 0; i < WIRE_MEMBERS_MAX; i++)
		memcpy(buffer + 4 * i, "\x0a\x02\x7a\x00", 4); /* one with an unknown field */
	assert_false(wire_check(page, buffer, 4 * WIRE_MEMBERS_MAX, error, sizeof(error)));
}

static void
a_member_may_not_reach_out_of_its_parent(void **state)
{
	(void)state;
	/* The event is three bytes long, its id claims five. */
	assert_false(
	    wire_check(page, (const uint8_t *)"\x0a\x03\x0a\x05xaaaa", 9, error, sizeof(error)));
}

/* message Tree { repeated Tree child = 1; repeated int64 number = 2; }: our own messages neither
 * recurse nor have lists of numbers. */
static const ProtobufCFieldDescriptor tree_fields[2];
static const ProtobufCIntRange tree_ranges[] = { { 1, 0 }, { 0, 2 } };
static const unsigned tree_names[] = { 0, 1 };

struct tree {
	ProtobufCMessage base;
	size_t n_child;
	struct tree **child;
	size_t n_number;
	int64_t *number;
};

static const ProtobufCMessageDescriptor tree = {
	.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
	.name = "Tree",
	.sizeof_message = sizeof(struct tree),
	.n_fields = 2,
	.fields = tree_fields,
	.fields_sorted_by_name = tree_names,
	.n_field_ranges = 1,
	.field_ranges = tree_ranges,
};

static const ProtobufCFieldDescriptor tree_fields[2] = {
	{ .name = "child",
	    .id = 1,
	    .label = PROTOBUF_C_LABEL_REPEATED,
	    .type = PROTOBUF_C_TYPE_MESSAGE,
	    .quantifier_offset = offsetof(struct tree, n_child),
	    .offset = offsetof(struct tree, child),
	    .descriptor = &tree },
	{ .name = "number",
	    .id = 2,
	    .label = PROTOBUF_C_LABEL_REPEATED,
	    .type = PROTOBUF_C_TYPE_INT64,
	    .quantifier_offset = offsetof(struct tree, n_number),
	    .offset = offsetof(struct tree, number) },
};

/* DEPTH trees, one in the other, into BUFFER. */
static size_t
pack_tree(int depth)
{
	size_t length = 0;

	for (int i = 1; i < depth; i++) {
		memmove(buffer + 2, buffer, length);
		buffer[0] = 0x0a;
		buffer[1] = (uint8_t)length;
		length += 2;
	}
	return length;
}

static void
nesting_ends_at_its_limit(void **state)
{
	(void)state;
	assert_true(wire_check(&tree, buffer, pack_tree(WIRE_DEPTH_MAX), error, sizeof(error)));
	assert_false(
	    wire_check(&tree, buffer, pack_tree(WIRE_DEPTH_MAX + 1), error, sizeof(error)));
	assert_string_equal(error, "The message is nested deeper than 8 levels.");
}

/* A tree of COUNT packed zeros into BUFFER. */
static size_t
pack_numbers(size_t count)
{
	memset(buffer, 0, BUFFER_BYTES);
	buffer[0] = 0x12;
	buffer[1] = (uint8_t)(0x80 | (count & 0x7f));
	buffer[2] = (uint8_t)(count >> 7);
	return 3 + count;
}

static void
packed_numbers_are_members_too(void **state)
{
	size_t most = WIRE_MEMBERS_MAX - 1; /* the field itself is one */

	(void)state;
	assert_true(wire_check(&tree, buffer, pack_numbers(most), error, sizeof(error)));
	assert_false(wire_check(&tree, buffer, pack_numbers(most + 1), error, sizeof(error)));
	pack_numbers(2);
	assert_true(wire_check(&tree, buffer, 5, error, sizeof(error)));
	buffer[4] = 0x80;
	assert_false(wire_check(&tree, buffer, 5, error, sizeof(error)));
}

/* A small generator of its own, so that every run sees the same bytes. */
static uint32_t
next_random(void)
{
	static uint32_t seed = 1;

	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

/* Change up to four bytes of BUFFER, and sometimes cut its end. */
static size_t
mutate(size_t length)
{
	for (uint32_t i = next_random() % 4 + 1; i > 0; i--)
		buffer[next_random() % length] = (uint8_t)next_random();
	return next_random() % 4 == 0 ? next_random() % length : length;
}

static void
whatever_passes_unpacks(void **state)
{
	static const uint8_t numbers[] = "\x12\x06\x01\x80\x01\xff\xff\x03\x10\x05\x0a\x02\x10\x01";
	struct arena arena;
	size_t length;
	int passed = 0;

	(void)state;
	arena_init(&arena);
	for (int i = 0; i < MUTATIONS; i++) {
		const ProtobufCMessageDescriptor *type = i % 2 == 0 ? page : &tree;

		length = sizeof(numbers) - 1;
		memcpy(buffer, numbers, length);
		length = mutate(type == page ? pack_page() : length);
		if (!wire_check(type, buffer, length, error, sizeof(error)))
			continue;
		passed++;
		if (protobuf_c_message_unpack(type, &arena.decoder, length, buffer) == NULL)
			fail_msg("mutation %d passed and did not unpack", i);
		arena_reset(&arena);
	}
	arena_free(&arena);
	assert_in_range(passed, MUTATIONS / 20, MUTATIONS / 20 * 19);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_formed_messages_pass),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(members_are_counted_over_the_whole_message),
		cmocka_unit_test(a_member_may_not_reach_out_of_its_parent),
		cmocka_unit_test(nesting_ends_at_its_limit),
		cmocka_unit_test(packed_numbers_are_members_too),
		cmocka_unit_test(whatever_passes_unpacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

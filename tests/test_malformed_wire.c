/* SPDX-License-Identifier: MIT */
/*
 * Malformed requests over nng: fields in packed bytes, too many bytes, and bytes without sense.
 * What is expected of the answers stands in attack.h.
 */
#include "tests/support/attack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_read.h"
#include "core/rpc.h"

#define MUTATIONS 400 /* of each row */
#define SEED UINT64_C(0x9e3779b97f4a7c15)

/* --- fields --- */

static const struct flaw wire_flaws[] = {
	{ RULE_TEXT, MISSING, NAMED },
	{ RULE_TEXT, RAW(""), NAMED },
	{ RULE_TEXT, RAW(" \t"), NAMED },
	{ RULE_TEXT, RAW("a\x01"), NAMED },
	{ RULE_TEXT, RAW("a\x7f"), NAMED },
	{ RULE_TEXT, RAW("a\xc2\x85"), NAMED },
	{ RULE_TEXT, RAW("a\xe2\x80\xae"), NAMED },
	{ RULE_TEXT, RAW("a\xff"), NAMED },
	{ RULE_TEXT, RAW("a\xc0\xaf"), NAMED },
	{ RULE_TEXT, RAW("a\xed\xa0\x80"), NAMED },
	{ RULE_TEXT, RAW("a\0b"), NAMED },
	{ RULE_ID, MISSING, NAMED },
	{ RULE_ID, RAW("a\xff"), NAMED },
	{ RULE_ID, RAW("a\0b"), NAMED },
	{ RULE_INT, MISSING, NAMED },
	{ RULE_ENUM, MISSING, NAMED },
	{ RULE_ENUM, RAW("0"), NAMED },
	{ RULE_ENUM, RAW("99"), NAMED },
	{ RULE_ENUM, RAW("-1"), NAMED },
	{ RULE_JSON, MISSING, NAMED },
	{ RULE_JSON, RAW("null"), NAMED },
	{ RULE_JSON, RAW(""), NAMED },
	{ RULE_JSON, RAW("{"), NAMED },
	{ RULE_JSON, RAW("[1,]"), NAMED },
	{ RULE_JSON, RAW("1e400"), NAMED },
	{ RULE_JSON, RAW("\"\\u0000\""), NAMED },
	{ RULE_JSON, RAW("1 1"), NAMED },
	{ RULE_JSON, RAW("\"a\xff\""), UNNAMED }, /* it is the text inside that is named */
	{ RULE_JSON, RAW("\"a\0b\""), UNNAMED },
	{ RULE_TEXTS, RAW(""), NAMED },
	{ RULE_TEXTS, RAW("a\x01"), NAMED },
	{ RULE_TEXTS, RAW("a\xe2\x80\xae"), NAMED },
	{ RULE_TEXTS, RAW("a\xff"), NAMED },
	{ RULE_TEXTS, RAW("a\0b"), NAMED },
};

/* Lists that must not be empty, once more. */
static const struct flaw empty_flaws[] = {
	{ RULE_TEXTS, MISSING, NAMED },
};

static void
print_varint(FILE *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		fputc((int)(value & 0x7f) | 0x80, out);
	fputc((int)value, out);
}

static void
print_bytes(FILE *out, uint32_t number, const char *bytes, size_t length)
{
	print_varint(out, (uint64_t)number << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	print_varint(out, length);
	fwrite(bytes, 1, length, out);
}

/* The field with number NUMBER as its rule has it. A Json is a message with the text inside. */
static void
print_flaw(FILE *out, uint32_t number, const struct flaw *flaw)
{
	FILE *inner;
	size_t length;
	char *bytes;

	if (flaw->kind == RULE_INT || flaw->kind == RULE_ENUM) {
		print_varint(out, (uint64_t)number << 3);
		print_varint(out, (uint64_t)strtoll(flaw->bytes, NULL, 10));
	} else if (flaw->kind == RULE_JSON) {
		inner = open_memstream(&bytes, &length);
		print_bytes(inner, 1, flaw->bytes, flaw->length);
		fclose(inner);
		print_bytes(out, number, bytes, length);
		free(bytes);
	} else {
		print_bytes(out, number, flaw->bytes, flaw->length);
	}
}

static uint32_t
field_number(const struct attack *a)
{
	return protobuf_c_message_descriptor_get_field_by_name(a->method->request, a->rule->field)
	    ->id;
}

/* The good request without the field; more may follow in OUT. */
static void
print_rest(FILE *out, struct attack *a)
{
	json_t *fields = json_deep_copy(a->request);
	uint8_t *packed;
	size_t length;

	json_object_del(fields, a->rule->field);
	packed = caller_pack(a->scene->method, fields, &length);
	fwrite(packed, 1, length, out);
	free(packed);
	json_decref(fields);
}

static void
send_packed(
    struct attack *a, const char *bytes, size_t length, const char *code, const struct flaw *flaw)
{
	attack_refused(a,
	    caller_send(attack_caller(a), a->scene->method, NULL, (const uint8_t *)bytes, length),
	    code, flaw);
}

static void
attempt_wire(struct attack *a, const struct flaw *flaw)
{
	char *bytes;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);

	print_rest(out, a);
	if (flaw->bytes != NULL)
		print_flaw(out, field_number(a), flaw);
	fclose(out);
	send_packed(a, bytes, length, "VALIDATION_ERROR", flaw);
	free(bytes);
}

/* Eight bytes: no field of ours is a double or a fixed64. */
static void
attempt_wrong_type(struct attack *a)
{
	const struct flaw flaw = { a->rule->kind, RAW("(wrong type)"), NAMED };
	char *bytes;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);

	print_rest(out, a);
	print_varint(out, (uint64_t)field_number(a) << 3 | PROTOBUF_C_WIRE_TYPE_64BIT);
	fwrite("12345678", 1, 8, out);
	fclose(out);
	send_packed(a, bytes, length, "VALIDATION_ERROR", &flaw);
	free(bytes);
}

static void
attempt_many(struct attack *a)
{
	const struct flaw flaw = { RULE_TEXTS, RAW("(many)"), NAMED };
	char *bytes;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);

	print_rest(out, a);
	for (int64_t i = 0; i <= a->rule->max; i++)
		print_bytes(out, field_number(a), "x", 1);
	fclose(out);
	send_packed(a, bytes, length, "VALIDATION_ERROR", &flaw);
	free(bytes);
}

/* An id in the wrong form names nothing; as a place in a list it is a mistake. */
static void
attempt_id(struct attack *a)
{
	const struct flaw flaw = { RULE_ID, RAW("x\x01"), UNNAMED };
	char *bytes;
	size_t length;
	FILE *out = open_memstream(&bytes, &length);

	print_rest(out, a);
	print_flaw(out, field_number(a), &flaw);
	fclose(out);
	send_packed(a, bytes, length, a->rule->optional ? "VALIDATION_ERROR" : "NOT_FOUND", &flaw);
	free(bytes);
}

static void
attempt_edges(struct attack *a)
{
	const struct rule *rule = a->rule;

	if (rule->kind == RULE_ID)
		attempt_id(a);
	if (rule->kind == RULE_INT)
		attack_range(a, attempt_wire);
	if (rule->kind == RULE_TEXT)
		attack_text(a, attack_repeat("", "\u00e4", "", rule->max + 1, ""), attempt_wire);
	if (rule->kind == RULE_TEXTS)
		attack_text(
		    a, attack_repeat("", "\u00e4", "", rule->text_max + 1, ""), attempt_wire);
	if (rule->kind == RULE_BYTES)
		attack_text(a, attack_repeat("", "x", "", rule->max + 1, ""), attempt_wire);
	if (rule->kind == RULE_JSON) {
		attack_text(a, attack_repeat("\"", "x", "", rule->max - 1, "\""), attempt_wire);
		attack_text(a, attack_nest("", JSON_DEPTH_MAX, ""), attempt_wire);
	}
	if (rule->kind == RULE_TEXTS)
		attempt_many(a);
}

static void
attack_over_nng(struct attack *a, const struct rule *rule)
{
	attack_begin(a, rule);
	attack_table(a, wire_flaws, LENGTH(wire_flaws), attempt_wire);
	if (!rule->optional)
		attack_table(a, empty_flaws, LENGTH(empty_flaws), attempt_wire);
	attempt_wrong_type(a);
	attempt_edges(a);
	attack_end(a, NNG);
}

static void
attack_fields_over_nng(struct attack *a)
{
	for (const struct rule *r = a->method->rules; r->kind != RULE_END; r++) {
		attack_over_nng(a, r);
		assert_true(a->tried > 0);
	}
}

static void
a_malformed_field_is_refused_over_nng(void **state)
{
	attack_rows(*state, NNG, attack_fields_over_nng);
}

/* --- sizes --- */

static void
attack_size_over_nng(struct attack *a)
{
	const struct flaw flaw = { RULE_END, RAW("(1 MiB and a byte)"), UNNAMED };
	char *payload = attack_repeat("", "x", "", (int64_t)PAYLOAD_BYTES_MAX + 1, "");

	attack_begin(a, NULL);
	send_packed(a, payload, PAYLOAD_BYTES_MAX + 1, "PAYLOAD_TOO_LARGE", &flaw);
	attack_end(a, NNG);
	free(payload);
}

static void
a_payload_above_1_MiB_is_refused(void **state)
{
	attack_rows(*state, NNG, attack_size_over_nng);
}

/* --- garbage --- */

/* xorshift64: the same numbers in every run. */
static uint64_t
random_next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* One to eight bytes of BYTES become others, and sometimes its end is lost. The new length. */
static size_t
mutate(uint8_t *bytes, size_t length, uint64_t *random)
{
	if (length > 0 && random_next(random) % 4 == 0)
		length = random_next(random) % length;
	for (uint64_t n = random_next(random) % 8 + 1; n > 0 && length > 0; n--)
		bytes[random_next(random) % length] = (uint8_t)(random_next(random) >> 32);
	return length;
}

static void
attack_with_garbage(struct attack *a)
{
	uint64_t random = SEED;
	uint8_t *good, bytes[SCENE_REQUEST_BYTES];
	size_t length;

	attack_aim(a);
	good = caller_pack(a->scene->method, a->request, &length);
	for (int i = 0; i < MUTATIONS; i++) {
		struct answer answer;
		size_t mutated;

		memcpy(bytes, good, length);
		mutated = mutate(bytes, length, &random);
		answer = caller_send(attack_caller(a), a->scene->method, NULL, bytes, mutated);
		if (strcmp(answer.code, BROKEN) == 0 || strcmp(answer.code, "INTERNAL") == 0)
			fail_msg("%s mutation %d: %s %s", a->method->name, i, answer.code,
			    answer.message);
		caller_forget(&answer);
	}
	free(good);
	json_decref(a->request);
	attack_begin(a, NULL);
	attack_end(a, NNG);
}

static void
garbage_is_answered(void **state)
{
	attack_rows(*state, NNG, attack_with_garbage);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_malformed_field_is_refused_over_nng),
		cmocka_unit_test(a_payload_above_1_MiB_is_refused),
		cmocka_unit_test(garbage_is_answered),
	};

	return cmocka_run_group_tests(tests, doors_open, doors_close);
}

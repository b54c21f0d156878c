/* SPDX-License-Identifier: MIT */
/*
 * JSON Schema (2020-12, as OpenAPI 3.1 uses it) of fields and messages, from descriptors and rules:
 * the same mapping that transcode.h reads and render.h writes.
 */
#ifndef TITEN_GATEWAY_SCHEMA_H
#define TITEN_GATEWAY_SCHEMA_H

#include <stdbool.h>
#include <jansson.h>

#include "core/arena.h"
#include "core/methods.h"
#include "google/protobuf/descriptor.pb-c.h"

/* What schemas are made from, and where those of messages are collected: an object by name. */
struct schema_book {
	struct arena *arena;
	const Google__Protobuf__FileDescriptorSet *descriptors;
	json_t *schemas;
};

/* All give references that the caller owns. */

/* {"$ref": "#/components/KIND/NAME"} */
json_t *schema_ref(const char *kind, const char *name);

/* The comment of the .proto file as OBJECT's "description", if there is one. */
void schema_describe(const struct schema_book *book, json_t *object, const char *full_name);

/* The rule of a field of METHOD's request. */
const struct rule *schema_rule(const struct method *method, const char *field);

/* The values of a field, within RULE, which may be NULL. */
json_t *schema_field(
    struct schema_book *book, const ProtobufCFieldDescriptor *f, const struct rule *rule);

/* A reference to what an answer has of TYPE: every field, null where it is absent. */
json_t *schema_answer(struct schema_book *book, const ProtobufCMessageDescriptor *type);

/* A reference to the body of METHOD: the fields that neither its path nor a header names. */
json_t *schema_body(struct schema_book *book, const struct method *method);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A look at packed bytes before protobuf-c may unpack them. protobuf-c recurses without bound,
 * inflates 1 MiB of empty messages to 134 MB, cuts strings at NUL and takes any bytes for text;
 * what passes here does none of that. Encoding: protobuf.dev/programming-guides/encoding.
 */
#ifndef TITEN_CORE_WIRE_H
#define TITEN_CORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#define WIRE_DEPTH_MAX 8 /* our deepest message nests four levels */
/* Fields in all, unknown ones too: each costs memory when unpacked. */
#define WIRE_MEMBERS_MAX 4096

/* Whether BYTES are a message of TYPE. False: ERROR is a sentence that names the field where one is
 * known. */
bool wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length,
    char *error, size_t error_bytes);

#endif

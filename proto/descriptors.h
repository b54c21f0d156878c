/* SPDX-License-Identifier: MIT */
/* The google.protobuf.FileDescriptorSet of everything in this folder, made when the program is
 * built. */
#ifndef TITEN_PROTO_DESCRIPTORS_H
#define TITEN_PROTO_DESCRIPTORS_H

#include <stddef.h>

extern const unsigned char titen_descriptors[];
extern const size_t titen_descriptors_bytes;

#endif

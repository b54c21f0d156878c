/* SPDX-License-Identifier: MIT */
/*
 * The comments of .proto files, from a FileDescriptorSet that was made with its source info
 * (google/protobuf/descriptor.proto, SourceCodeInfo).
 */
#ifndef TITEN_GATEWAY_COMMENTS_H
#define TITEN_GATEWAY_COMMENTS_H

#include "core/arena.h"
#include "google/protobuf/descriptor.pb-c.h"

/* What stands before the element with FULL_NAME (titen.v1.Lease.lease_id; a service, method,
 * message, field, enum or value), as one paragraph in ARENA. NULL when nothing does. */
const char *comments_of(
    struct arena *arena, const Google__Protobuf__FileDescriptorSet *set, const char *full_name);

#endif

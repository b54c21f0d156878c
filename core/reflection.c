/* SPDX-License-Identifier: MIT */
/* The descriptors that were embedded when the program was built. */
#include "core/handlers.h"
#include "descriptors.h"

const struct rule reflection_describe_rules[] = {
	RULES_END,
};

enum status
reflection_describe(
    struct call *c, const PB(ReflectionDescribeRequest) *req, PB(ReflectionDescribeResponse) *resp)
{
	(void)c;
	(void)req;
	resp->has_file_descriptor_set = true;
	/* protobuf-c has no const bytes; nobody writes to a response that is about to be packed. */
	resp->file_descriptor_set.data = (uint8_t *)(uintptr_t)titen_descriptors;
	resp->file_descriptor_set.len = titen_descriptors_bytes;
	return STATUS_OK;
}

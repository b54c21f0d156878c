/* SPDX-License-Identifier: MIT */
/*
 * Source info says where an element is by a path: field numbers of descriptor.proto and indexes, by
 * turns. So a name is first turned into its path, from the file inwards, and then looked up.
 */
#include "gateway/comments.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define FDP(name) Google__Protobuf__##name

/* Field numbers of descriptor.proto. */
enum {
	FILE_MESSAGE = 4,
	FILE_ENUM = 5,
	FILE_SERVICE = 6,
	MESSAGE_FIELD = 2,
	MESSAGE_MESSAGE = 3,
	MESSAGE_ENUM = 4,
	ENUM_VALUE = 2,
	SERVICE_METHOD = 2,
};

#define PATH_MAX_STEPS 16 /* messages nest seven deep in that, ours twice */

struct path {
	int32_t steps[PATH_MAX_STEPS];
	size_t n;
};

/* What follows NAME and a dot in FULL; "" when nothing does, NULL when it does not begin so. */
static const char *
name_rest(const char *full, const char *name)
{
	size_t bytes = strlen(name);

	if (strncmp(full, name, bytes) != 0)
		return NULL;
	if (full[bytes] == '.')
		return full + bytes + 1;
	return full[bytes] == '\0' ? full + bytes : NULL;
}

/* Go on to the element that NAME is, which is number INDEX among its kind. */
static bool
path_step(struct path *path, int32_t kind, size_t index, const char *name, const char **rest)
{
	const char *more = name_rest(*rest, name);

	if (more == NULL || path->n + 2 > PATH_MAX_STEPS)
		return false;
	path->steps[path->n++] = kind;
	path->steps[path->n++] = (int32_t)index;
	*rest = more;
	return true;
}

static bool
path_in_enum(struct path *path, const FDP(EnumDescriptorProto) * type, const char *rest)
{
	for (size_t i = 0; *rest != '\0' && i < type->n_value; i++)
		if (path_step(path, ENUM_VALUE, i, type->value[i]->name, &rest))
			break;
	return *rest == '\0';
}

static bool
path_in_message(struct path *path, const FDP(DescriptorProto) * type, const char *rest)
{
	for (size_t i = 0; *rest != '\0' && i < type->n_nested_type; i++)
		if (path_step(path, MESSAGE_MESSAGE, i, type->nested_type[i]->name, &rest))
			return path_in_message(path, type->nested_type[i], rest);
	for (size_t i = 0; *rest != '\0' && i < type->n_enum_type; i++)
		if (path_step(path, MESSAGE_ENUM, i, type->enum_type[i]->name, &rest))
			return path_in_enum(path, type->enum_type[i], rest);
	for (size_t i = 0; *rest != '\0' && i < type->n_field; i++)
		if (path_step(path, MESSAGE_FIELD, i, type->field[i]->name, &rest))
			break;
	return *rest == '\0';
}

static bool
path_in_service(struct path *path, const FDP(ServiceDescriptorProto) * service, const char *rest)
{
	for (size_t i = 0; *rest != '\0' && i < service->n_method; i++)
		if (path_step(path, SERVICE_METHOD, i, service->method[i]->name, &rest))
			break;
	return *rest == '\0';
}

static bool
path_in_file(struct path *path, const FDP(FileDescriptorProto) * file, const char *rest)
{
	for (size_t i = 0; i < file->n_message_type; i++)
		if (path_step(path, FILE_MESSAGE, i, file->message_type[i]->name, &rest))
			return path_in_message(path, file->message_type[i], rest);
	for (size_t i = 0; i < file->n_enum_type; i++)
		if (path_step(path, FILE_ENUM, i, file->enum_type[i]->name, &rest))
			return path_in_enum(path, file->enum_type[i], rest);
	for (size_t i = 0; i < file->n_service; i++)
		if (path_step(path, FILE_SERVICE, i, file->service[i]->name, &rest))
			return path_in_service(path, file->service[i], rest);
	return false;
}

/* The lines of a comment as one paragraph; NULL when there is nothing on them. */
static const char *
paragraph(struct arena *arena, const char *comment)
{
	char *text = arena_alloc(arena, strlen(comment) + 1);
	size_t n = 0;

	for (const char *p = comment; *p != '\0'; p++) {
		if (!isspace((unsigned char)*p))
			text[n++] = *p;
		else if (n > 0 && text[n - 1] != ' ')
			text[n++] = ' ';
	}
	if (n > 0 && text[n - 1] == ' ')
		n--;
	text[n] = '\0';
	return n == 0 ? NULL : text;
}

static const char *
location_comment(const FDP(FileDescriptorProto) * file, const struct path *path)
{
	const FDP(SourceCodeInfo) *info = file->source_code_info;

	for (size_t i = 0; info != NULL && i < info->n_location; i++) {
		const FDP(SourceCodeInfo__Location) *at = info->location[i];
		if (at->n_path == path->n &&
		    memcmp(at->path, path->steps, path->n * sizeof(path->steps[0])) == 0)
			return at->leading_comments;
	}
	return NULL;
}

const char *
comments_of(struct arena *arena, const FDP(FileDescriptorSet) * set, const char *full_name)
{
	for (size_t i = 0; i < set->n_file; i++) {
		const FDP(FileDescriptorProto) *file = set->file[i];
		const char *rest =
		    file->package == NULL ? NULL : name_rest(full_name, file->package);
		struct path path = { .n = 0 };

		if (rest == NULL || !path_in_file(&path, file, rest))
			continue;
		const char *comment = location_comment(file, &path);
		return comment == NULL ? NULL : paragraph(arena, comment);
	}
	return NULL;
}

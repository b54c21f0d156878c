/* SPDX-License-Identifier: MIT */
/*
 * A server answers with the descriptors of everything it knows, comments included; nothing of this
 * program's own tables is asked here. First finding and printing, then the two commands.
 */
#include "cmd/describe.h"

#include <argp.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cmd/command.h"
#include "cmd/remote.h"
#include "gateway/comments.h"
#include "reflection.pb-c.h"

#define FDP(name) Google__Protobuf__##name
#define SERVICE_SUFFIX "Service"

struct describe {
	struct arena *arena;
	const char *url;
	const char *name; /* what to describe */
	FDP(FileDescriptorSet) * set;
};

/* --- names --- */

/* ".titen.v1.Lease" without what FILE puts before its names. */
static const char *
type_text(const FDP(FileDescriptorProto) * file, const char *type)
{
	const char *package = file->package == NULL ? "" : file->package;
	size_t bytes = strlen(package);

	type += *type == '.';
	return strncmp(type, package, bytes) == 0 && type[bytes] == '.' ? type + bytes + 1 : type;
}

/* As people write it: titen.v1.LeaseService/Acquire, LeaseService/Acquire, lease.acquire. */
static bool
method_is(struct describe *d, const FDP(FileDescriptorProto) * file,
    const FDP(ServiceDescriptorProto) * service, const FDP(MethodDescriptorProto) * method)
{
	size_t bytes = strlen(service->name), suffix = strlen(SERVICE_SUFFIX);
	const char *name = arena_printf(d->arena, "%s/%s", service->name, method->name);

	if (strcmp(d->name, name) == 0 ||
	    strcmp(d->name, arena_printf(d->arena, "%s.%s", file->package, name)) == 0)
		return true;
	if (bytes > suffix && strcmp(service->name + bytes - suffix, SERVICE_SUFFIX) == 0)
		bytes -= suffix;
	return strcasecmp(d->name,
		   arena_printf(d->arena, "%.*s.%s", (int)bytes, service->name, method->name)) == 0;
}

/* --- printing --- */

static void
comment_print(struct describe *d, const char *indent, const char *full_name)
{
	const char *comment = comments_of(d->arena, d->set, full_name);

	if (comment != NULL)
		printf("%s// %s\n", indent, comment);
}

/* "int64": the name of TYPE_INT64; the name of the type itself where it has one. */
static const char *
field_type_text(
    struct describe *d, const FDP(FileDescriptorProto) * file, const FDP(FieldDescriptorProto) * f)
{
	const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
	    &google__protobuf__field_descriptor_proto__type__descriptor, (int)f->type);
	char *text;

	if (f->type_name != NULL)
		return type_text(file, f->type_name);
	text = arena_text(d->arena, value == NULL ? "?" : value->name + strlen("TYPE_"));
	for (char *p = text; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return text;
}

static void
enum_print(const FDP(EnumDescriptorProto) * type)
{
	printf("  enum %s {", type->name);
	for (size_t i = 0; i < type->n_value; i++)
		printf(" %s = %d;", type->value[i]->name, type->value[i]->number);
	printf(" }\n");
}

static void
message_print(struct describe *d, const FDP(FileDescriptorProto) * file,
    const FDP(DescriptorProto) * type, const char *full_name)
{
	comment_print(d, "", full_name);
	printf("message %s {\n", type_text(file, full_name));
	for (size_t i = 0; i < type->n_enum_type; i++)
		enum_print(type->enum_type[i]);
	for (size_t i = 0; i < type->n_field; i++) {
		const FDP(FieldDescriptorProto) *f = type->field[i];
		bool list =
		    f->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED;

		comment_print(d, "  ", arena_printf(d->arena, "%s.%s", full_name, f->name));
		printf("  %s %s %s = %d;\n", list ? "repeated" : "optional",
		    field_type_text(d, file, f), f->name, f->number);
	}
	printf("}\n");
}

/* The messages of a list and in them that are called NAME, with or without what comes BEFORE. */
static bool
messages_describe(struct describe *d, const FDP(FileDescriptorProto) * file, const char *name,
    const char *before, FDP(DescriptorProto) *const *types, size_t n)
{
	bool found = false;

	for (size_t i = 0; !found && i < n; i++) {
		const char *full = arena_printf(d->arena, "%s.%s", before, types[i]->name);

		found = strcmp(name, full) == 0 || strcmp(name, type_text(file, full)) == 0;
		if (found)
			message_print(d, file, types[i], full);
		else
			found = messages_describe(
			    d, file, name, full, types[i]->nested_type, types[i]->n_nested_type);
	}
	return found;
}

static bool
message_describe(struct describe *d, const char *name)
{
	for (size_t i = 0; i < d->set->n_file; i++) {
		const FDP(FileDescriptorProto) *file = d->set->file[i];

		if (messages_describe(
			d, file, name, file->package, file->message_type, file->n_message_type))
			return true;
	}
	return false;
}

static void
method_print(const FDP(FileDescriptorProto) * file, const FDP(ServiceDescriptorProto) * service,
    const FDP(MethodDescriptorProto) * method)
{
	printf("%s.%s/%s (%s) returns (%s)\n", file->package, service->name, method->name,
	    type_text(file, method->input_type), type_text(file, method->output_type));
}

static void
method_describe(struct describe *d, const FDP(FileDescriptorProto) * file,
    const FDP(ServiceDescriptorProto) * service, const FDP(MethodDescriptorProto) * method)
{
	comment_print(
	    d, "", arena_printf(d->arena, "%s.%s.%s", file->package, service->name, method->name));
	method_print(file, service, method);
	putchar('\n');
	message_describe(d, method->input_type + 1);
	putchar('\n');
	message_describe(d, method->output_type + 1);
}

/* Every method of FILE that D names; all of them when it names nothing. */
static size_t
methods_show(struct describe *d, const FDP(FileDescriptorProto) * file)
{
	size_t shown = 0;

	for (size_t i = 0; i < file->n_service; i++) {
		const FDP(ServiceDescriptorProto) *service = file->service[i];

		for (size_t j = 0; j < service->n_method; j++) {
			if (d->name == NULL)
				method_print(file, service, service->method[j]);
			else if (method_is(d, file, service, service->method[j]))
				method_describe(d, file, service, service->method[j]);
			else
				continue;
			shown++;
		}
	}
	return shown;
}

/* --- the server --- */

/* Gives an exit code. */
static int
set_fetch(struct describe *d)
{
	PB(ReflectionDescribeRequest) request = TITEN__V1__REFLECTION_DESCRIBE_REQUEST__INIT;
	struct remote_call call = { .method = method_find("titen.v1.ReflectionService/Describe"),
		.request = &request.base };
	struct remote remote = { .client = NULL };
	int code = remote_open(&remote, d->arena, d->url);

	if (code == EXIT_OK)
		code = remote_call(&remote, &call);
	if (code == EXIT_OK) {
		const PB(ReflectionDescribeResponse) *response =
		    (const PB(ReflectionDescribeResponse) *)call.response;

		d->set = google__protobuf__file_descriptor_set__unpack(&d->arena->decoder,
		    response->file_descriptor_set.len, response->file_descriptor_set.data);
		if (d->set == NULL)
			code = command_fail(
			    EXIT_ERROR, "%s: the descriptors cannot be read", remote.url);
	}
	remote_call_free(&call);
	remote_close(&remote);
	return code;
}

/* --- the commands --- */

enum { OPTION_URL = 'u' };

static const struct argp_option options[] = {
	{ "url", OPTION_URL, "URL", 0, "The server (TITEN_RPC_URL; default tcp://127.0.0.1:8788)",
	    0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t
list_option(int key, char *arg, struct argp_state *state)
{
	struct describe *d = state->input;

	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is one argument too many", arg);
	if (key != OPTION_URL)
		return ARGP_ERR_UNKNOWN;
	d->url = arg;
	return 0;
}

static error_t
describe_option(int key, char *arg, struct argp_state *state)
{
	struct describe *d = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (d->name != NULL)
			argp_error(state, "'%s' is one argument too many", arg);
		d->name = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which METHOD or MESSAGE? see titen rpc list");
		return 0;
	default:
		return list_option(key, arg, state);
	}
}

int
describe_list_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, list_option, NULL,
		"List every call of a server.\v" EXIT_CODES_HELP, NULL, NULL, NULL };
	struct describe d = { .arena = arena };
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &d);
	code = set_fetch(&d);
	for (size_t i = 0; code == EXIT_OK && i < d.set->n_file; i++)
		methods_show(&d, d.set->file[i]);
	return code;
}

int
describe_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, describe_option, "METHOD|MESSAGE",
		"Show a call or a message of a server, as its .proto files have it.\v"
		"Examples:\n"
		"  titen rpc describe lease.acquire\n"
		"  titen rpc describe Handoff\n\n" EXIT_CODES_HELP,
		NULL, NULL, NULL };
	struct describe d = { .arena = arena };
	size_t shown = 0;
	int code;

	argp_parse(&argp, argc, argv, 0, NULL, &d);
	code = set_fetch(&d);
	for (size_t i = 0; code == EXIT_OK && i < d.set->n_file; i++)
		shown += methods_show(&d, d.set->file[i]);
	if (code == EXIT_OK && shown == 0 && !message_describe(&d, d.name))
		code =
		    command_fail(EXIT_NOT_FOUND, "the server has no call or message '%s'", d.name);
	return code;
}

/* SPDX-License-Identifier: MIT */
/*
 * Both work on the descriptors of everything there is, comments included: those of a server, which
 * may be another version, when one is named; else those of this program, which also has the table
 * with routes and scopes. First finding and printing, then where it all comes from.
 */
#include "cmd/describe.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "descriptors.h"
#include "reflection.pb-c.h"
#include "cmd/command.h"
#include "cmd/json_rpc.h"
#include "cmd/nearest.h"
#include "cmd/remote.h"
#include "gateway/comments.h"
#include "gateway/route.h"

#define FDP(name) Google__Protobuf__##name
#define SERVICE_SUFFIX "Service"

struct describe {
	struct arena *arena;
	const char *url;
	const char *name;       /* what to describe; NULL: list all */
	struct nearest nearest; /* to it */
	FDP(FileDescriptorSet) * set;
};

/* --- names */

/* ".titen.v1.Lease" without what FILE puts before its names. */
static const char *
type_text(const FDP(FileDescriptorProto) * file, const char *type)
{
	const char *package = file->package == NULL ? "" : file->package;
	size_t bytes = strlen(package);

	type += *type == '.';
	return strncmp(type, package, bytes) == 0 && type[bytes] == '.' ? type + bytes + 1 : type;
}

static char *
lower(char *text)
{
	for (char *p = text; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return text;
}

/* "lease.acquire" */
static const char *
short_name(struct describe *d, const FDP(ServiceDescriptorProto) * service,
    const FDP(MethodDescriptorProto) * method)
{
	size_t bytes = strlen(service->name), suffix = strlen(SERVICE_SUFFIX);

	if (bytes > suffix && strcmp(service->name + bytes - suffix, SERVICE_SUFFIX) == 0)
		bytes -= suffix;
	return lower(arena_printf(d->arena, "%.*s.%s", (int)bytes, service->name, method->name));
}

/* As people write it: titen.v1.LeaseService/Acquire, LeaseService/Acquire, lease.acquire. */
static bool
method_is(struct describe *d, const FDP(FileDescriptorProto) * file,
    const FDP(ServiceDescriptorProto) * service, const FDP(MethodDescriptorProto) * method)
{
	const char *name = arena_printf(d->arena, "%s/%s", service->name, method->name);
	const char *alias = short_name(d, service, method);

	nearest_offer(&d->nearest, alias);
	return strcmp(d->name, name) == 0 || strcasecmp(d->name, alias) == 0 ||
	       strcmp(d->name, arena_printf(d->arena, "%s.%s", file->package, name)) == 0;
}

/* --- printing */

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

	if (f->type_name != NULL)
		return type_text(file, f->type_name);
	return lower(arena_text(d->arena, value == NULL ? "?" : value->name + strlen("TYPE_")));
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

		nearest_offer(&d->nearest, type_text(file, full));
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

static void
method_row(struct describe *d, const FDP(FileDescriptorProto) * file,
    const FDP(ServiceDescriptorProto) * service, const FDP(MethodDescriptorProto) * method)
{
	printf("%-20s  ", short_name(d, service, method));
	method_print(file, service, method);
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
				method_row(d, file, service, service->method[j]);
			else if (method_is(d, file, service, service->method[j]))
				method_describe(d, file, service, service->method[j]);
			else
				continue;
			shown++;
		}
	}
	return shown;
}

/* --- where it comes from */

/* Gives an exit code. */
static int
set_unpack(struct describe *d, const uint8_t *bytes, size_t n)
{
	d->set = google__protobuf__file_descriptor_set__unpack(&d->arena->decoder, n, bytes);
	return d->set != NULL ? EXIT_OK
			      : command_fail(EXIT_ERROR, "the descriptors cannot be read");
}

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

		code = set_unpack(
		    d, response->file_descriptor_set.data, response->file_descriptor_set.len);
	}
	remote_call_free(&call);
	remote_close(&remote);
	return code;
}

static bool
server_named(const struct describe *d)
{
	return d->url != NULL || remote_named() != NULL;
}

static const char *
right_text(enum right right)
{
	switch (right) {
	case RIGHT_KEY:
		return "(any key)";
	case RIGHT_PUBLIC:
		return "(no key)";
	case RIGHT_LOCAL:
		return "(the owner)";
	default:
		return scope_text(right);
	}
}

static void
table_print(struct arena *arena)
{
	for (size_t i = 0; i < methods_count(); i++) {
		const struct method *m = method_at(i);
		const char *door = m->verb == VERB_NONE ? "-" : route_verb(m->verb);

		printf("%-20s  %-6s %-34s %-18s %s\n", json_rpc_short_name(arena, m), door, m->path,
		    right_text(m->right), m->summary);
	}
}

/* --- the commands */

enum { OPTION_URL = 'u' };

static const struct argp_option options[] = {
	{ "url", OPTION_URL, "URL", 0, "Ask this server (TITEN_RPC_URL)", 0 },
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
		"List every call: its name, its REST route, the scope it needs, what it does. Of a "
		"server, when one is named, what that says of itself.\v"
		"Examples:\n"
		"  titen rpc list\n"
		"  titen rpc list --url " CONFIG_RPC_DEFAULT "\n\n" EXIT_CODES_HELP,
		NULL, NULL, NULL };
	struct describe d = { .arena = arena };
	int code;

	command_parse(&argp, 0, argc, argv, &d);
	if (!server_named(&d)) {
		table_print(arena);
		return EXIT_OK;
	}
	code = set_fetch(&d);
	for (size_t i = 0; code == EXIT_OK && i < d.set->n_file; i++)
		methods_show(&d, d.set->file[i]);
	return code;
}

int
describe_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { options, describe_option, "METHOD|MESSAGE",
		"Show a call or a message, as the .proto files have it: those of this program, or "
		"of a server when one is named.\v"
		"Examples:\n"
		"  titen rpc describe lease.acquire\n"
		"  titen rpc describe Handoff\n\n" EXIT_CODES_HELP,
		NULL, NULL, NULL };
	struct describe d = { .arena = arena };
	size_t shown = 0;
	int code;

	command_parse(&argp, 0, argc, argv, &d);
	nearest_begin(&d.nearest, d.name);
	code = server_named(&d) ? set_fetch(&d)
				: set_unpack(&d, titen_descriptors, titen_descriptors_bytes);
	for (size_t i = 0; code == EXIT_OK && i < d.set->n_file; i++)
		shown += methods_show(&d, d.set->file[i]);
	if (code == EXIT_OK && shown == 0 && !message_describe(&d, d.name))
		code = command_fail(EXIT_NOT_FOUND, "there is no call or message '%s'%s", d.name,
		    nearest_hint(&d.nearest, arena));
	return code;
}

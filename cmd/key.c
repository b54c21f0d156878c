/* SPDX-License-Identifier: MIT */
/* `titen key`: make, list and revoke API keys, over nng with a key that may do so. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "key.pb-c.h"
#include "cmd/command.h"
#include "cmd/json_rpc.h"
#include "cmd/nearest.h"
#include "cmd/remote.h"
#include "gateway/field.h"

#define SCOPES_MAX 64 /* more than there are scopes */
#define NEEDS_A_KEY "Needs a key with the scope keys:manage in TITEN_API_KEY or TITEN_API_KEY_FILE."

struct key {
	struct arena *arena;
	struct remote remote;
	const char *url;
	bool json;
	const char *scopes[SCOPES_MAX];
	PB(KeyCreateRequest) create;
	PB(KeyListRequest) list;
	PB(KeyRevokeRequest) revoke;
};

enum {
	OPTION_LABEL = 'l',
	OPTION_SCOPE = 's',
	OPTION_PRINCIPAL = 'p',
	OPTION_KIND = 'k',
	OPTION_TRUST = 't',
	OPTION_URL = 'u',
	OPTION_OUTPUT = 'o'
};

static const struct argp_option common_options[] = {
	{ "url", OPTION_URL, "URL", 0, REMOTE_URL_HELP, 0 },
	{ "output", OPTION_OUTPUT, "json|table", 0,
	    "How to print (default: a table on a terminal, else json)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const struct argp_option create_options[] = {
	{ "label", OPTION_LABEL, "TEXT", 0, "What the key is for", 0 },
	{ "scope", OPTION_SCOPE, "SCOPE", 0,
	    "What it may do, such as leases:write; may be repeated", 0 },
	{ "principal", OPTION_PRINCIPAL, "ID", 0, "Whom it stands for (default: somebody new)", 0 },
	{ "kind", OPTION_KIND, "agent|human|service", 0, "What that is (default agent)", 0 },
	{ "max-trust", OPTION_TRUST, "TRUST", 0,
	    "unverified, asserted, verified or policy_approved (default asserted)", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

/* The number that an enum gives a name in lower case. */
static int
enum_read(const ProtobufCEnumDescriptor *type, const char *name, struct argp_state *state)
{
	char upper[32] = "";
	const ProtobufCEnumValue *value;

	for (size_t i = 0; i < sizeof(upper) - 1 && name[i] != '\0'; i++)
		upper[i] = (char)toupper((unsigned char)name[i]);
	value = protobuf_c_enum_descriptor_get_value_by_name(type, upper);
	if (value != NULL)
		return value->value;
	argp_error(state, "'%s' is not one of the values; see --help", name);
	return 0;
}

static error_t
common_option(int key, char *arg, struct argp_state *state)
{
	struct key *k = state->input;

	switch (key) {
	case OPTION_URL:
		k->url = arg;
		return 0;
	case OPTION_OUTPUT:
		if (strcmp(arg, "json") != 0 && strcmp(arg, "table") != 0)
			argp_error(state, "--output takes json or table");
		k->json = strcmp(arg, "json") == 0;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp common_argp = { common_options, common_option, NULL, NULL, NULL, NULL,
	NULL };
static const struct argp_child with_common[] = { { &common_argp, 0, NULL, 0 },
	{ NULL, 0, NULL, 0 } };

static void
scope_refuse(struct key *k, const char *scope, struct argp_state *state)
{
	struct nearest nearest;
	const char *all = "";

	nearest_begin(&nearest, scope);
	for (int i = 0; i < RIGHT_SCOPES; i++) {
		nearest_offer(&nearest, scope_text((enum right)i));
		all = arena_printf(k->arena, "%s %s", all, scope_text((enum right)i));
	}
	argp_error(state, "'%s' is not a scope; there are:%s%s", scope, all,
	    nearest_hint(&nearest, k->arena));
}

static void
scope_add(struct key *k, char *scope, struct argp_state *state)
{
	if (k->create.n_scopes == SCOPES_MAX)
		argp_error(state, "more than %d scopes", SCOPES_MAX);
	if (scope_find(scope) == RIGHT_SCOPES)
		scope_refuse(k, scope, state);
	k->create.scopes[k->create.n_scopes++] = scope;
}

static error_t
create_option(int key, char *arg, struct argp_state *state)
{
	struct key *k = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = k;
		return 0;
	case OPTION_LABEL:
		k->create.label = arg;
		return 0;
	case OPTION_SCOPE:
		scope_add(k, arg, state);
		return 0;
	case OPTION_PRINCIPAL:
		k->create.principal_id = arg;
		return 0;
	case OPTION_KIND:
		k->create.has_principal_kind = 1;
		k->create.principal_kind = (PB(Principal__Kind))enum_read(
		    &titen__v1__principal__kind__descriptor, arg, state);
		return 0;
	case OPTION_TRUST:
		k->create.has_max_trust = 1;
		k->create.max_trust =
		    (PB(Trust))enum_read(&titen__v1__trust__descriptor, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (k->create.label == NULL || k->create.n_scopes == 0)
			argp_error(state, "--label and at least one --scope are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t
list_option(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

static error_t
revoke_option(int key, char *arg, struct argp_state *state)
{
	struct key *k = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = k;
		return 0;
	case ARGP_KEY_ARG:
		if (k->revoke.key_id != NULL)
			argp_error(state, "'%s' is one argument too many", arg);
		k->revoke.key_id = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which KEY_ID?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void
key_init(struct key *k, struct arena *arena)
{
	*k = (struct key){ .arena = arena,
		.json = isatty(STDOUT_FILENO) == 0,
		.create = TITEN__V1__KEY_CREATE_REQUEST__INIT,
		.list = TITEN__V1__KEY_LIST_REQUEST__INIT,
		.revoke = TITEN__V1__KEY_REVOKE_REQUEST__INIT };
	k->create.scopes = (char **)k->scopes;
}

static const char *
enum_text(struct arena *arena, const ProtobufCEnumDescriptor *type, int value)
{
	const ProtobufCEnumValue *row = protobuf_c_enum_descriptor_get_value(type, value);

	return row == NULL ? "unknown" : field_enum_name(arena, row->name);
}

static const char *
text_or_dash(const char *text)
{
	return text == NULL ? "-" : text;
}

static const char *
scopes_text(struct arena *arena, char **scopes, size_t n)
{
	const char *text = n == 0 ? "-" : scopes[0];

	for (size_t i = 1; i < n; i++)
		text = arena_printf(arena, "%s,%s", text, scopes[i]);
	return text;
}

/* One call whose whole answer is printed by TABLE or as JSON. */
static int
key_call(struct key *k, const char *method, const ProtobufCMessage *request,
    void (*table)(struct arena *arena, const ProtobufCMessage *response))
{
	struct remote_call call = { .method = method_find(method), .request = request };
	int code = remote_open(&k->remote, k->arena, k->url);

	if (code == EXIT_OK)
		code = remote_call(&k->remote, &call);
	if (call.reply != NULL && k->json)
		printf("%s\n", json_rpc_answer(k->arena, call.reply, call.response));
	else if (code == EXIT_OK)
		table(k->arena, call.response);
	remote_call_free(&call);
	remote_close(&k->remote);
	return code;
}

static void
create_table(struct arena *arena, const ProtobufCMessage *response)
{
	const PB(KeyCreateResponse) *made = (const PB(KeyCreateResponse) *)response;

	printf("key_id        %s\n", text_or_dash(made->key_id));
	printf("principal_id  %s\n", text_or_dash(made->principal_id));
	printf("scopes        %s\n", scopes_text(arena, made->scopes, made->n_scopes));
	printf("api_key       %s\n", text_or_dash(made->api_key));
	printf("%s\n", made->warning == NULL ? "" : made->warning);
}

static int
create_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { create_options, create_option, NULL,
		"Make a key; it is shown this once. " NEEDS_A_KEY "\v"
		"Example:\n"
		"  titen key create --label coder --scope leases:write --scope events:read\n"
		"\n" EXIT_CODES_HELP,
		with_common, NULL, NULL };
	struct key k;

	key_init(&k, arena);
	command_parse(&argp, 0, argc, argv, &k);
	return key_call(&k, "titen.v1.KeyService/Create", &k.create.base, create_table);
}

static void
list_row(struct arena *arena, const PB(Key) *key)
{
	printf("%-37s  %-8s  %-38s  %-8s  %-20s  %s\n", text_or_dash(key->key_id),
	    enum_text(arena, &titen__v1__key__status__descriptor, (int)key->status),
	    text_or_dash(key->principal_id),
	    enum_text(arena, &titen__v1__principal__kind__descriptor, (int)key->principal_kind),
	    text_or_dash(key->label), scopes_text(arena, key->scopes, key->n_scopes));
}

static void
list_print(struct key *k, const struct remote_call *call)
{
	const PB(KeyListResponse) *page = (const PB(KeyListResponse) *)call->response;

	if (k->json)
		printf("%s\n", json_rpc_answer(k->arena, call->reply, call->response));
	for (size_t i = 0; page != NULL && !k->json && i < page->n_keys; i++)
		list_row(k->arena, page->keys[i]);
}

/* One page; AFTER becomes the cursor of the next, empty behind the last. Long lists do not pile up
 * in the arena. */
static int
list_page(struct key *k, char after[ID_TEXT_BYTES])
{
	struct arena_mark mark = arena_mark(k->arena);
	struct remote_call call = { .method = method_find("titen.v1.KeyService/List"),
		.request = &k->list.base };
	const PB(KeyListResponse) *page;
	int code;

	k->list.after = after[0] == '\0' ? NULL : after;
	code = remote_call(&k->remote, &call);
	if (call.reply != NULL)
		list_print(k, &call);
	page = (const PB(KeyListResponse) *)call.response;
	snprintf(
	    after, ID_TEXT_BYTES, "%s", page == NULL || page->cursor == NULL ? "" : page->cursor);
	remote_call_free(&call);
	arena_return(k->arena, mark);
	return code;
}

static int
list_pages(struct key *k)
{
	char after[ID_TEXT_BYTES] = "";
	int code;

	if (!k->json)
		printf("%-37s  %-8s  %-38s  %-8s  %-20s  %s\n", "KEY_ID", "STATUS", "PRINCIPAL_ID",
		    "KIND", "LABEL", "SCOPES");
	do
		code = list_page(k, after);
	while (code == EXIT_OK && after[0] != '\0');
	return code;
}

static int
list_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { NULL, list_option, NULL,
		"List the organization's keys; as JSON, each line is a page. " NEEDS_A_KEY "\v"
		"Example:\n"
		"  titen key list -o table\n\n" EXIT_CODES_HELP,
		with_common, NULL, NULL };
	struct key k;
	int code;

	key_init(&k, arena);
	command_parse(&argp, 0, argc, argv, &k);
	k.list.has_limit = 1;
	k.list.limit = 200;
	code = remote_open(&k.remote, arena, k.url);
	if (code == EXIT_OK)
		code = list_pages(&k);
	remote_close(&k.remote);
	return code;
}

static void
revoke_table(struct arena *arena, const ProtobufCMessage *response)
{
	const PB(KeyRevokeResponse) *gone = (const PB(KeyRevokeResponse) *)response;

	(void)arena;
	printf("revoked       %s\n", text_or_dash(gone->key_id));
}

static int
revoke_run(struct arena *arena, int argc, char **argv)
{
	static const struct argp argp = { NULL, revoke_option, "KEY_ID",
		"Revoke a key, from its next request on. " NEEDS_A_KEY "\v"
		"Example:\n"
		"  titen key revoke key_0190...\n\n" EXIT_CODES_HELP,
		with_common, NULL, NULL };
	struct key k;

	key_init(&k, arena);
	command_parse(&argp, 0, argc, argv, &k);
	return key_call(&k, "titen.v1.KeyService/Revoke", &k.revoke.base, revoke_table);
}

int
key_run(struct arena *arena, int argc, char **argv)
{
	static const struct command commands[] = {
		{ "create", "Make a key", create_run },
		{ "list", "List the keys of the organization", list_run },
		{ "revoke", "Revoke a key", revoke_run },
		{ NULL, NULL, NULL },
	};
	static const struct command_group group = {
		.doc = "API keys.",
		.examples = "Examples:\n"
			    "  titen key create --label coder --scope leases:write\n"
			    "  titen key list -o json\n"
			    "  titen key revoke key_0190...\n\n" EXIT_CODES_HELP,
		.commands = commands,
	};

	return command_dispatch(&group, arena, argc, argv);
}

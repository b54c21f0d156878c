/* SPDX-License-Identifier: MIT */
/* Settings: the table of them, the three places they come from, and what they must look like. */
#include "cmd/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/address.h"

static const struct setting {
	const char *name; /* in section [serve] of the file */
	const char *variable;
	const char *standard;
	bool list;
} settings[CONFIG_KEYS] = {
	[CONFIG_DB] = { "db", "TITEN_DB", CONFIG_DB_DEFAULT, false },
	[CONFIG_HTTP] = { "http", "TITEN_HTTP", CONFIG_HTTP_DEFAULT, false },
	[CONFIG_RPC] = { "rpc", "TITEN_RPC", CONFIG_RPC_DEFAULT, true },
	[CONFIG_EVENTS] = { "events", "TITEN_EVENTS", "off", true },
};

#define BLANKS " \t\r\n"

void
config_add(struct config_source *source, struct arena *arena, enum config_key key, const char *item)
{
	const char **text = &source->text[key];

	if (*text == NULL || !settings[key].list)
		*text = item;
	else
		*text = arena_printf(arena, "%s %s", *text, item);
}

/* --- the file */

struct file_reader {
	struct config_source *source;
	struct arena *arena;
	FILE *file;
	int line;            /* that was read last */
	int unknown_line;    /* the first that sets what we do not know; 0: none */
	const char *unknown; /* what that is */
};

/* The parser counts its lines in the same way, but tells only in the end. */
static char *
file_line(char *text, int bytes, void *user)
{
	struct file_reader *reader = user;

	reader->line++;
	return fgets(text, bytes, reader->file);
}

/* Zero makes the parser remember the line: a setting we do not know is a mistake, not a comment. */
static int
file_setting(void *user, const char *section, const char *name, const char *value)
{
	struct file_reader *reader = user;

	for (int key = 0; key < CONFIG_KEYS && strcmp(section, "serve") == 0; key++) {
		if (strcmp(settings[key].name, name) != 0)
			continue;
		config_add(reader->source, reader->arena, (enum config_key)key,
		    arena_text(reader->arena, value));
		return 1;
	}
	if (reader->unknown_line == 0) {
		reader->unknown_line = reader->line;
		reader->unknown = arena_printf(reader->arena, "[%s] %s", section, name);
	}
	return 0;
}

static const char *
file_fault(const struct file_reader *reader, const char *path, int line)
{
	if (line < 0)
		return arena_printf(reader->arena, "%s: cannot be read", path);
	if (line != reader->unknown_line)
		return arena_printf(reader->arena, "%s:%d: is not NAME = VALUE", path, line);
	return arena_printf(reader->arena,
	    "%s:%d: '%s' is no setting; there are db, http, rpc and events in [serve]", path, line,
	    reader->unknown);
}

static bool
file_read(
    struct config_source *source_r, struct arena *arena, const char *path, const char **error_r)
{
	struct file_reader reader = { .source = source_r, .arena = arena };
	int line;

	reader.file = fopen(path, "re");
	if (reader.file == NULL) {
		*error_r = arena_printf(arena, "%s: %s", path, strerror(errno));
		return false;
	}
	line = ini_parse_stream(file_line, &reader, file_setting, &reader);
	if (line == 0 && ferror(reader.file))
		line = -1;
	fclose(reader.file);
	if (line != 0)
		*error_r = file_fault(&reader, path, line);
	return line == 0;
}

/* --- who says what */

/* A setting's text, and by what name people know who said it. */
struct value {
	const char *text;
	const char *place;
};

static struct value
value_pick(struct arena *arena, enum config_key key, const struct config_source *flags,
    const char *file, const struct config_source *read)
{
	const struct setting *setting = &settings[key];
	const char *variable = getenv(setting->variable);

	if (flags->text[key] != NULL)
		return (
		    struct value){ flags->text[key], arena_printf(arena, "--%s", setting->name) };
	if (variable != NULL && variable[0] != '\0')
		return (struct value){ variable, setting->variable };
	if (read->text[key] != NULL)
		return (struct value){ read->text[key],
			arena_printf(arena, "%s: %s", file, setting->name) };
	return (struct value){ setting->standard, setting->name };
}

/* --- what it must look like */

static bool
value_fault(struct arena *arena, const struct value *value, const char *fault, const char **error_r)
{
	*error_r = arena_printf(arena, "%s: %s", value->place, fault);
	return false;
}

/* Only the port of the first tcp url can be told when the system chooses it. */
static bool
urls_split(const char *urls_r[CONFIG_URLS_MAX + 1], struct arena *arena, const struct value *value,
    const char **error_r)
{
	char *rest = arena_text(arena, value->text);
	const char *fault;
	int n = 0, tcp = 0;

	if (strcmp(value->text, "off") == 0)
		return true;
	for (char *url; (url = strtok_r(rest, BLANKS, &rest)) != NULL;) {
		if (!address_url(arena, url, &fault))
			return value_fault(arena, value, fault, error_r);
		if (strncmp(url, "tcp:", 4) == 0 && tcp++ > 0 && address_any_port(url))
			return value_fault(
			    arena, value, "only the first tcp url may have port 0", error_r);
		if (n == CONFIG_URLS_MAX)
			return value_fault(arena, value,
			    arena_printf(arena, "more than %d urls", CONFIG_URLS_MAX), error_r);
		urls_r[n++] = url;
	}
	return true;
}

static bool
config_fill(struct config *config_r, struct arena *arena, const struct value values[CONFIG_KEYS],
    const char **error_r)
{
	const struct value *http = &values[CONFIG_HTTP];
	const char *fault;

	memset(config_r, 0, sizeof(*config_r));
	config_r->db = values[CONFIG_DB].text;
	if (config_r->db[0] == '\0')
		return value_fault(
		    arena, &values[CONFIG_DB], "the name of the database is empty", error_r);
	if (strcmp(http->text, "off") != 0)
		config_r->http = http->text;
	if (config_r->http != NULL && !address_http(arena, config_r->http, &fault))
		return value_fault(arena, http, fault, error_r);
	return urls_split(config_r->rpc, arena, &values[CONFIG_RPC], error_r) &&
	       urls_split(config_r->events, arena, &values[CONFIG_EVENTS], error_r);
}

bool
config_resolve(struct config *config_r, struct arena *arena, const struct config_source *flags,
    const char *file, const char **error_r)
{
	struct config_source read = { { NULL } };
	struct value values[CONFIG_KEYS];

	if (file != NULL && !file_read(&read, arena, file, error_r))
		return false;
	for (int key = 0; key < CONFIG_KEYS; key++)
		values[key] = value_pick(arena, (enum config_key)key, flags, file, &read);
	return config_fill(config_r, arena, values, error_r);
}

/* SPDX-License-Identifier: MIT */
/* Settings: the table of them, the three places they come from, and what they must look like. */
#include "cmd/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct setting {
	const char *name; /* in section [serve] of the file */
	const char *variable;
	const char *standard;
	bool list;
} settings[CONFIG_KEYS] = {
	[CONFIG_DB] = { "db", "TITEN_DB", "titen.db", false },
	[CONFIG_HTTP] = { "http", "TITEN_HTTP", "127.0.0.1:8787", false },
	[CONFIG_RPC] = { "rpc", "TITEN_RPC", "tcp://127.0.0.1:8788", true },
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

struct file_reader {
	struct config_source *source;
	struct arena *arena;
};

/* Zero makes the parser remember the line: a setting we do not know is a mistake, not a comment. */
static int
file_setting(void *user, const char *section, const char *name, const char *value)
{
	struct file_reader *reader = user;

	if (strcmp(section, "serve") != 0)
		return 0;
	for (int key = 0; key < CONFIG_KEYS; key++) {
		if (strcmp(settings[key].name, name) != 0)
			continue;
		config_add(reader->source, reader->arena, (enum config_key)key,
		    arena_text(reader->arena, value));
		return 1;
	}
	return 0;
}

static const char *
file_read(struct config_source *source, struct arena *arena, const char *path)
{
	struct file_reader reader = { source, arena };
	FILE *file = fopen(path, "re");
	int line;

	if (file == NULL)
		return arena_printf(arena, "%s: %s", path, strerror(errno));
	line = ini_parse_file(file, file_setting, &reader);
	fclose(file);
	if (line > 0)
		return arena_printf(arena, "%s:%d: no setting of section [serve]", path, line);
	return line == 0 ? NULL : arena_printf(arena, "%s: cannot be read", path);
}

static void
environment_read(struct config_source *source)
{
	for (int key = 0; key < CONFIG_KEYS; key++) {
		const char *text = getenv(settings[key].variable);
		if (text != NULL && text[0] != '\0')
			source->text[key] = text;
	}
}

static bool
host_port_fits(const char *text, long port_min)
{
	const char *colon = strrchr(text, ':');
	size_t digits;
	long port;

	if (colon == NULL || colon == text || strpbrk(text, "/ ") != NULL)
		return false;
	digits = strspn(colon + 1, "0123456789");
	if (digits == 0 || digits > 5 || colon[1 + digits] != '\0')
		return false;
	port = strtol(colon + 1, NULL, 10);
	return port >= port_min && port <= 65535;
}

/* Port 0 is refused where nobody could learn the port in use. */
static const char *
url_fault(const char *url)
{
	if (strncmp(url, "tcp://", 6) == 0)
		return host_port_fits(url + 6, 1) ? NULL : "is not tcp://HOST:PORT";
	if (strncmp(url, "ipc:///", 7) != 0)
		return "is neither tcp://HOST:PORT nor ipc:///PATH";
	if (strlen(url + 6) > SOCKET_PATH_BYTES)
		return "has a path longer than the 107 bytes of a local socket";
	return NULL;
}

static const char *
urls_split(const char *urls[CONFIG_URLS_MAX + 1], struct arena *arena, const char *text)
{
	char *rest = arena_text(arena, text);
	int n = 0;

	if (strcmp(text, "off") == 0)
		return NULL;
	for (char *url; (url = strtok_r(rest, BLANKS, &rest)) != NULL;) {
		const char *fault = url_fault(url);
		if (fault != NULL)
			return arena_printf(arena, "%s %s", url, fault);
		if (n == CONFIG_URLS_MAX)
			return arena_printf(arena, "more than %d urls", CONFIG_URLS_MAX);
		urls[n++] = url;
	}
	return NULL;
}

/* NULL, or what does not fit. */
static const char *
config_fill(struct config *config, struct arena *arena, const char *const text[CONFIG_KEYS])
{
	const char *fault;

	memset(config, 0, sizeof *config);
	config->db = text[CONFIG_DB];
	if (config->db[0] == '\0')
		return "db: the name of the database is empty";
	if (strcmp(text[CONFIG_HTTP], "off") != 0)
		config->http = text[CONFIG_HTTP];
	if (config->http != NULL && !host_port_fits(config->http, 0))
		return arena_printf(arena, "http: %s is neither HOST:PORT nor 'off'", config->http);
	fault = urls_split(config->rpc, arena, text[CONFIG_RPC]);
	if (fault != NULL)
		return arena_printf(arena, "rpc: %s", fault);
	fault = urls_split(config->events, arena, text[CONFIG_EVENTS]);
	return fault == NULL ? NULL : arena_printf(arena, "events: %s", fault);
}

bool
config_resolve(struct config *config, struct arena *arena, const struct config_source *flags,
    const char *file, const char **error_r)
{
	struct config_source environment = { { NULL } };
	struct config_source read = { { NULL } };
	const char *text[CONFIG_KEYS];

	*error_r = file == NULL ? NULL : file_read(&read, arena, file);
	if (*error_r != NULL)
		return false;
	environment_read(&environment);
	for (int key = 0; key < CONFIG_KEYS; key++) {
		text[key] = flags->text[key];
		if (text[key] == NULL)
			text[key] = environment.text[key];
		if (text[key] == NULL)
			text[key] = read.text[key];
		if (text[key] == NULL)
			text[key] = settings[key].standard;
	}
	*error_r = config_fill(config, arena, text);
	return *error_r == NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * What `titen serve` is told, and by whom. Each setting has one text, from the first of these that
 * says something: flags, environment, file, default.
 */
#ifndef TITEN_CMD_CONFIG_H
#define TITEN_CMD_CONFIG_H

#include <stdbool.h>

#include "core/arena.h"

/* What is used, here and by the commands that call a server, when nobody says anything. */
#define CONFIG_DB_DEFAULT "titen.db"
#define CONFIG_HTTP_DEFAULT "127.0.0.1:8787"
#define CONFIG_RPC_DEFAULT "tcp://127.0.0.1:8788"

#define CONFIG_URLS_MAX 16 /* listeners of one kind: a machine has fewer addresses */

enum config_key { CONFIG_DB, CONFIG_HTTP, CONFIG_RPC, CONFIG_EVENTS, CONFIG_KEYS };

/* What one source says; NULL where it says nothing. Lists are separated by blanks. */
struct config_source {
	const char *text[CONFIG_KEYS];
};

struct config {
	const char *db;
	const char *http;                        /* HOST:PORT, or NULL: no REST */
	const char *rpc[CONFIG_URLS_MAX + 1];    /* NULL behind the last; port 0 in the first tcp
						    one at most */
	const char *events[CONFIG_URLS_MAX + 1]; /* likewise */
};

/* Another item for a setting that is a list; ITEM is kept. */
void config_add(
    struct config_source *source, struct arena *arena, enum config_key key, const char *item);

/* Read FILE (NULL: none) and the environment, decide, and check. False: *ERROR_R says what is
 * wrong and who said it. Texts live in ARENA or where FLAGS has them. */
bool config_resolve(struct config *config_r, struct arena *arena, const struct config_source *flags,
    const char *file, const char **error_r);

#endif

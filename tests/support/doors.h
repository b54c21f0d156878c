/* SPDX-License-Identifier: MIT */
/* A whole server in this process, with both doors open, and its database to look into. */
#ifndef TITEN_TESTS_DOORS_H
#define TITEN_TESTS_DOORS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdbool.h>

#define DOORS_START_MS INT64_C(1785409093829) /* where the hands of the clock stand at first */
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct core;
struct server;
struct gateway;

struct doors {
	struct core *core;
	struct server *server;
	struct gateway *gateway;
	sqlite3 *look; /* a second look at the database, past everything that is tested */
	_Atomic int64_t hands_ms;
	char directory[32];
	char path[64];
	char tcp[64]; /* urls */
	char ipc[64];
	char local[64];
	char web[64];
};

/* For a group of tests (stopping the web door takes two seconds): a server on a clock that only
 * doors_advance() moves, or on the system's. */
int doors_open(void **state);
int doors_open_in_real_time(void **state);
int doors_close(void **state);

void doors_advance(struct doors *d, int64_t ms);

/* The number that SQL gives, with TEXT for ?1. */
int64_t doors_count(const struct doors *d, const char *sql, const char *text);
/* Every row of every table but what the clock says; free() it. */
char *doors_dump(const struct doors *d);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The store: one database file, its lock, its schema, and the one connection that writes to it.
 */
#ifndef TITEN_CORE_STORE_H
#define TITEN_CORE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/db.h"

#define STORE_SCHEMA_VERSION 1

struct store;

/* Open PATH, taking its lock; make it when CREATE is set and nothing is there. NULL: ERROR is one
 * line for people. */
struct store *store_open(const char *path, bool create, char *error, size_t error_bytes);
/* Fold the write-ahead log into the file, release the lock, free. Readers are closed before. Clears
 * *STORE. */
void store_close(struct store **store);

/* Whether the file still has its name: what is written to one without is gone when the process ends.
 * Any thread. */
bool store_present(const struct store *store);

/* The connection that writes; it belongs to the store. Writer thread only. */
struct db *store_writer(struct store *store);
/* A new connection that reads. NULL when it cannot be opened (logged). */
struct db *store_open_reader(struct store *store);

#endif

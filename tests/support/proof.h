/* SPDX-License-Identifier: MIT */
/*
 * What must be true of a store, as a list of sentences with a query each that counts the rows for
 * which it is not. A sentence that fails ends the test. Main thread.
 */
#ifndef TITEN_TESTS_PROOF_H
#define TITEN_TESTS_PROOF_H

#include "tests/support/load.h"

/* The database FILE is sound, and nothing in it is half there. A server may be using it. */
void proof_of_store(const char *file);

/* Everything that RESULT says was acknowledged is in FILE as it was answered, and nothing that was
 * not asked for. The load was the only user of the database. */
void proof_of_acts(const char *file, const struct load_result *result);

/* The number that a query over FILE gives. */
int64_t proof_number(const char *file, const char *sql);

#endif

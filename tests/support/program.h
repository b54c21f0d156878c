/* SPDX-License-Identifier: MIT */
/*
 * The program itself, run as people run it: in a process of its own, on a database in a fresh
 * directory. Whatever goes wrong fails the test. Main thread.
 *
 * The environment variable TITEN names the program.
 */
#ifndef TITEN_TESTS_PROGRAM_H
#define TITEN_TESTS_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_PATIENCE_MS 20000 /* more than anything here takes on a busy machine */
#define PROGRAM_OUTPUT_BYTES 8192

struct program {
	char directory[64];
	char db[96];
	char err[96];       /* what the server logs */
	char owner_key[64]; /* from bootstrap */
	pid_t pid;          /* of the server; 0: none */
	int rpc_port;       /* free when looked for */
	char rpc[64];       /* tcp://127.0.0.1:PORT */
	char local[128];    /* ipc:///...: the owner's socket */
	char http[64];      /* http://127.0.0.1:PORT, as the server said */
};

/* What a command said. */
struct program_output {
	int code; /* of its exit, or minus the signal */
	char out[PROGRAM_OUTPUT_BYTES];
	char err[PROGRAM_OUTPUT_BYTES];
};

/* A fresh directory without a database; for setup and teardown of a test. */
int program_open(void **state);
int program_close(void **state);

/* Run `titen` with ARGUMENTS, NULL behind the last, to its end. */
struct program_output program_run(const char *const *arguments);
#define RUN(...) program_run((const char *const[]){ __VA_ARGS__, NULL })

/* Make the database and its owner. */
void program_bootstrap(struct program *p);
/* Start the server, doors on p->rpc and a port of the system's choice, and wait until it serves. */
void program_serve(struct program *p);
/* Send a signal. */
void program_signal(const struct program *p, int number);
/* How the server ended, as in program_output. How long that took into *MS_R, if not NULL. */
int program_await(struct program *p, int64_t *ms_r);

/* A TCP port that was free a moment ago. */
int program_free_port(void);
/* The text behind "NAME":" in JSON, which must be there. Into OUT. */
void program_member(const char *json, const char *name, char *out, size_t out_bytes);

#endif

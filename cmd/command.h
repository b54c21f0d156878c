/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands of `titen` share: the table they are found in, and how they fail. A command
 * is a function with the arguments behind its name; argv[0] is its whole name ("titen key list"),
 * which is what its help shows. Everything a command allocates comes from the ARENA it is given and
 * lives until the program ends.
 */
#ifndef TITEN_CMD_COMMAND_H
#define TITEN_CMD_COMMAND_H

#include <argp.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/status.h"

#define ERROR_BYTES 256 /* what other layers say is wrong, one line for people */

/* Exit codes that a script or an agent can branch on. */
enum command_exit {
	EXIT_OK = 0,
	EXIT_ERROR = 1,
	EXIT_USAGE = 2,
	EXIT_FORBIDDEN = 4, /* no key, an unknown key, or a missing scope */
	EXIT_NOT_FOUND = 5,
	EXIT_CONFLICT = 6,
	EXIT_UNREACHABLE = 8, /* no server, or one that cannot work now */
	EXIT_RATE_LIMITED = 9,
	EXIT_BUG = 70, /* the program contradicts itself (sysexits.h) */
	EXIT_TIMED_OUT = 124,
	EXIT_SIGNALLED = 130, /* stopped at once, as shells say it for SIGINT */
};

#define EXIT_CODES_HELP                                                                            \
	"Exit codes: 0 done, 1 error, 2 usage, 4 key or permission, 5 not found,\n"                \
	"6 conflict, 8 server unreachable, 9 rate limited, 70 a bug of this program,\n"            \
	"124 timed out, 130 stopped at once by a second signal.\n"

struct command {
	const char *name; /* NULL behind the last */
	const char *summary;
	int (*run)(struct arena *arena, int argc, char **argv);
};

/* The commands of the first level, one file each. */
int serve_run(struct arena *arena, int argc, char **argv);
int bootstrap_run(struct arena *arena, int argc, char **argv);
int key_run(struct arena *arena, int argc, char **argv);
int rpc_run(struct arena *arena, int argc, char **argv);
int gateway_run(struct arena *arena, int argc, char **argv);
int bench_run(struct arena *arena, int argc, char **argv);

struct command_group {
	const char *doc;      /* one line above the list of commands */
	const char *examples; /* below it */
	const struct command *commands;
};

/* Parse as argp_parse(3) does; -h is --help, too. Help, version and mistakes end the process. */
void command_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input);

/* Run the command that ARGV names; gives its exit code. "help NAME..." is "NAME... --help". */
int command_dispatch(const struct command_group *group, struct arena *arena, int argc, char **argv);

/* "titen: error: ..." on standard error; gives CODE back. */
__attribute__((format(printf, 2, 3))) int command_fail(
    enum command_exit code, const char *format, ...);

enum command_exit command_exit_of(enum status st);

#endif

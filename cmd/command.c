/* SPDX-License-Identifier: MIT */
/* Finding a subcommand in its table, and the ways to fail. */
#include "cmd/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/nearest.h"

/* --- options */

static error_t
help_option(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'h')
		return ARGP_ERR_UNKNOWN;
	argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
	return 0;
}

static error_t
input_hand_down(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

void
command_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input)
{
	static const struct argp_option options[] = { { NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0 },
		{ NULL, 0, NULL, 0, NULL, 0 } };
	static const struct argp help = { options, help_option, NULL, NULL, NULL, NULL, NULL };
	const struct argp_child children[] = { { argp, 0, NULL, 0 }, { &help, 0, NULL, 0 },
		{ NULL, 0, NULL, 0 } };
	const struct argp both = { NULL, input_hand_down, NULL, NULL, children, NULL, NULL };

	argp_parse(&both, argc, argv, flags, NULL, input);
}

/* --- commands */

struct choice {
	struct arena *arena;
	const struct command *commands;
	const struct command *picked;
	int argc;
	char **argv;
};

static const struct command *
command_find(const struct choice *choice, const char *name, struct argp_state *state)
{
	struct nearest nearest;

	nearest_begin(&nearest, name);
	for (const struct command *c = choice->commands; c->name != NULL; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
		nearest_offer(&nearest, c->name);
	}
	argp_error(
	    state, "there is no command '%s'%s", name, nearest_hint(&nearest, choice->arena));
	return NULL;
}

/* The first argument is the command, and everything behind it is the command's own. */
static error_t
choose(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		choice->picked = command_find(choice, arg, state);
		choice->argc = state->argc - state->next + 1;
		choice->argv = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which command?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *
group_help(const struct command_group *group, struct arena *arena)
{
	const char *text = arena_printf(arena, "%s\vCommands:\n", group->doc);

	for (const struct command *c = group->commands; c->name != NULL; c++)
		text = arena_printf(arena, "%s  %-10s %s\n", text, c->name, c->summary);
	return arena_printf(arena, "%s\n%s", text, group->examples);
}

static void
help_to_the_end(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "help") != 0)
		return;
	memmove(&argv[1], &argv[2], (size_t)(argc - 2) * sizeof(*argv));
	argv[argc - 1] = (char *)"--help";
}

int
command_dispatch(const struct command_group *group, struct arena *arena, int argc, char **argv)
{
	struct choice choice = { .arena = arena, .commands = group->commands };
	struct argp argp = { NULL, choose, "COMMAND [ARGUMENT...]", group_help(group, arena), NULL,
		NULL, NULL };

	help_to_the_end(argc, argv);
	command_parse(&argp, ARGP_IN_ORDER, argc, argv, &choice);
	choice.argv[0] = arena_printf(arena, "%s %s", argv[0], choice.picked->name);
	return choice.picked->run(arena, choice.argc, choice.argv);
}

/* --- failures */

int
command_fail(enum command_exit code, const char *format, ...)
{
	va_list args;

	fputs("titen: error: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return (int)code;
}

enum command_exit
command_exit_of(enum status st)
{
	switch (st) {
	case STATUS_OK:
		return EXIT_OK;
	case STATUS_UNAUTHENTICATED:
	case STATUS_FORBIDDEN:
		return EXIT_FORBIDDEN;
	case STATUS_NOT_FOUND:
	case STATUS_GONE:
		return EXIT_NOT_FOUND;
	case STATUS_CONFLICT:
	case STATUS_PRECONDITION_FAILED:
		return EXIT_CONFLICT;
	case STATUS_UNAVAILABLE:
		return EXIT_UNREACHABLE;
	case STATUS_RATE_LIMITED:
		return EXIT_RATE_LIMITED;
	case STATUS_DEADLINE_EXCEEDED:
		return EXIT_TIMED_OUT;
	default:
		return EXIT_ERROR;
	}
}

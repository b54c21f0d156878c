/* SPDX-License-Identifier: MIT */
/*
 * A line is put together in a buffer of its own and leaves in one write(2), so that lines of
 * several threads never mix. Nothing here allocates: it must work when memory is gone.
 */
#include "core/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"

#define MESSAGE_BYTES 1024 /* longer messages are cut; ours are sentences */
#define ESCAPE_BYTES 6     /* of one character at most: \u001f */
#define LINE_BYTES (MESSAGE_BYTES * ESCAPE_BYTES + 128) /* the frame around it takes about 80 */

static const struct {
	const char *name;
	const char *priority; /* sd-daemon(3) */
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", "<3>" },
	[LOG_LEVEL_WARNING] = { "warning", "<4>" },
	[LOG_LEVEL_INFO] = { "info", "<6>" },
};

/* TEXT as the inside of a JSON string. A cut or foreign text need not be UTF-8: then its bytes
 * outside ASCII are lost. */
static char *
escape(char *out, const char *text)
{
	bool utf8 = text_utf8(text, strlen(text));

	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '"' || c == '\\')
			out += sprintf(out, "\\u%04x", c);
		else
			*out++ = (char)(c < 0x80 || utf8 ? c : '?');
	}
	return out;
}

static bool
journal_reads(void)
{
	/* Nothing changes the environment while threads run. */
	return getenv("JOURNAL_STREAM") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

__attribute__((format(printf, 2, 0))) static void
write_line(enum log_level level, const char *format, va_list args)
{
	char message[MESSAGE_BYTES], line[LINE_BYTES], stamp[TIMESTAMP_BYTES];
	char *end;
	ssize_t written;

	vsnprintf(message, sizeof(message), format, args);
	timestamp_write(stamp, clock_wall_ms());
	end = line + sprintf(line, "%s{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"",
			 journal_reads() ? levels[level].priority : "", stamp, levels[level].name);
	end = escape(end, message);
	end = stpcpy(end, "\"}\n");
	written = write(STDERR_FILENO, line, (size_t)(end - line));
	(void)written; /* there is nowhere to say that the log cannot be written */
}

void
log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(level, format, args);
	va_end(args);
}

void
log_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(LOG_LEVEL_ERROR, format, args);
	va_end(args);
	_exit(EXIT_FAILURE);
}

/* SPDX-License-Identifier: MIT */
/*
 * One line of JSON per event on standard error, with the priority prefix of sd-daemon(3) when the
 * journal reads it. Never a key, a body, a purpose or a message: an operator's log is read by
 * people of other organizations.
 */
#ifndef TITEN_CORE_LOG_H
#define TITEN_CORE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };

/* One line; the text is a sentence without secrets. Any thread. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

/* Say why and end the process at once, cleaning nothing up: there is no memory, or the store can no
 * longer be trusted. */
__attribute__((format(printf, 1, 2), noreturn)) void log_die(const char *format, ...);

#endif

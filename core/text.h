/* SPDX-License-Identifier: MIT */
/* Unicode text from outside. */
#ifndef TITEN_CORE_TEXT_H
#define TITEN_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether BYTES are well-formed UTF-8 (RFC 3629) without NUL. */
bool text_utf8(const char *bytes, size_t length);

/* NULL when TEXT is fit to be a name or a sentence of at most MAX code points; otherwise what is
 * wrong with it
 * ("must not be blank"). Refused are C0 controls but tab and line feed, DEL, C1 controls and the
 * bidirectional controls; TEXT is NUL-terminated and may be malformed. */
const char *text_fault(const char *text, int64_t max, char fault[static 80]);

#endif

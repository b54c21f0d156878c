/* SPDX-License-Identifier: MIT */
/* One walk over the code points says everything there is to know about a text. */
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

#define FAULT_BYTES 80 /* of the caller's buffer, as text.h says */
#define BYTE_ORDER_MARK 0xfeff

struct survey {
	int64_t characters;
	bool visible; /* not only white space */
	bool control;
	bool bidi;
};

bool
text_utf8(const char *bytes, size_t length)
{
	if (length == 0)
		return true;
	return memchr(bytes, '\0', length) == NULL &&
	       u8_check((const uint8_t *)bytes, length) == NULL;
}

static bool
is_control(ucs4_t c)
{
	return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0);
}

/* Those that make a text look like another one. */
static bool
is_bidi(ucs4_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

static void
look_at(struct survey *s, ucs4_t c)
{
	s->characters++;
	s->control = s->control || is_control(c);
	if (c < 0x80) {
		s->visible = s->visible || !(c == ' ' || (c >= '\t' && c <= '\r'));
		return;
	}
	s->visible = s->visible || !(uc_is_property_white_space(c) || c == BYTE_ORDER_MARK);
	s->bidi = s->bidi || is_bidi(c);
}

/* TEXT is well-formed. */
static struct survey
survey(const uint8_t *text, size_t length)
{
	struct survey s = { 0 };
	ucs4_t c;
	int size;

	for (const uint8_t *end = text + length; text < end; text += size) {
		size = 1;
		c = *text;
		if (c >= 0x80)
			size = u8_mbtouc_unsafe(&c, text, (size_t)(end - text));
		look_at(&s, c);
	}
	return s;
}

const char *
text_fault(const char *text, int64_t max, char fault[static FAULT_BYTES])
{
	size_t length = strlen(text);
	struct survey s;

	if (!text_utf8(text, length))
		return "must be valid UTF-8";
	s = survey((const uint8_t *)text, length);
	if (!s.visible)
		return "must not be blank";
	if (s.characters > max) {
		snprintf(fault, FAULT_BYTES, "must be at most %" PRId64 " characters", max);
		return fault;
	}
	if (s.control)
		return "must not contain control characters";
	if (s.bidi)
		return "must not contain bidirectional controls";
	return NULL;
}

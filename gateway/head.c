/* SPDX-License-Identifier: MIT */
/* Headers, then framing. */
#include "gateway/head.h"

#include <string.h>
#include <strings.h>

#define HTTP_EXPECTATION_FAILED 417

int
head_find(const struct mg_request_info *info, const char *name, const char **value_r)
{
	int n = 0;

	*value_r = NULL;
	for (int i = 0; i < info->num_headers; i++)
		if (strcasecmp(info->http_headers[i].name, name) == 0 && n++ == 0)
			*value_r = info->http_headers[i].value;
	return n;
}

size_t
head_value_bytes(const char *value)
{
	size_t bytes = strlen(value);

	while (bytes > 0 && (value[bytes - 1] == ' ' || value[bytes - 1] == '\t'))
		bytes--;
	return bytes;
}

static bool
value_is(const char *value, const char *word)
{
	size_t bytes = head_value_bytes(value);

	return bytes == strlen(word) && strncasecmp(value, word, bytes) == 0;
}

/* Digits only (RFC 9110, section 8.6). A length beyond all sense stays at the largest number. */
static bool
length_parse(const char *value, long long *bytes_r)
{
	size_t digits = head_value_bytes(value);

	*bytes_r = 0;
	for (size_t i = 0; i < digits; i++) {
		if (value[i] < '0' || value[i] > '9')
			return false;
		if (*bytes_r < (long long)1 << 48)
			*bytes_r = *bytes_r * 10 + (value[i] - '0');
	}
	return digits > 0;
}

/* Whether a blank stood before the colon (RFC 9112, section 5.1, has servers refuse that): civetweb
 * then puts a NUL in the place of the blank, too, and not only of the colon. */
static bool
name_is_spaced(const struct mg_header *h)
{
	const char *end = h->name + strlen(h->name);

	return h->value != end + 1 && end[1] == '\0';
}

/* Whether civetweb has read the headers to their end. A line that it cannot read (a folded one, one
 * without a name) it takes for the end of all, and what stands behind it, a length or a condition,
 * would be body or be nothing. It works in the buffer: line ends have become NULs, and behind the
 * last one stands the empty line. */
static bool
headers_are_whole(const struct mg_request_info *info)
{
	const struct mg_header *last = &info->http_headers[info->num_headers - 1];
	const char *next = last->value + strlen(last->value) + 1;

	if (*next == '\0')
		next++;
	return *next == '\r' || *next == '\n';
}

static bool
headers_are_well_formed(const struct mg_request_info *info)
{
	for (int i = 0; i < info->num_headers; i++)
		if (name_is_spaced(&info->http_headers[i]))
			return false;
	return info->num_headers == 0 || headers_are_whole(info);
}

/* RFC 9112, sections 3.2 and 6; RFC 9110, section 10.1.1. */
void
head_framing(const struct mg_request_info *info, struct framing *f)
{
	const char *host, *length, *coding, *expect;
	int hosts = head_find(info, "Host", &host);
	int lengths = head_find(info, "Content-Length", &length);
	int codings = head_find(info, "Transfer-Encoding", &coding);
	int expects = head_find(info, "Expect", &expect);

	*f = (struct framing){ .chunked = codings > 0, .expects = expects > 0 };
	if (info->num_headers >= MG_MAX_HEADERS) {
		f->fault = "The request has too many headers.";
	} else if (!headers_are_well_formed(info)) {
		f->fault = "A header line is not well-formed.";
	} else if (hosts > 1 || (hosts == 0 && strcmp(info->http_version, "1.1") == 0)) {
		f->fault = "A request has exactly one Host header.";
	} else if (lengths + codings > 1) {
		f->fault = "The length of the body is stated more than once.";
	} else if (codings == 1 && !value_is(coding, "chunked")) {
		f->fault = "Transfer-Encoding must be chunked.";
	} else if (lengths == 1 && !length_parse(length, &f->bytes)) {
		f->fault = "Content-Length must be a number.";
	} else if (expects > 0 && !value_is(expect, "100-continue")) {
		f->fault = "Expect must be 100-continue.";
		f->fault_status = HTTP_EXPECTATION_FAILED;
	}
}

bool
head_client_stays(const struct mg_request_info *info)
{
	const char *connection, *upgrade;

	if (head_find(info, "Upgrade", &upgrade) > 0)
		return false;
	if (head_find(info, "Connection", &connection) > 0)
		return strcasestr(connection, "keep-alive") != NULL &&
		       strcasestr(connection, "close") == NULL;
	return strcmp(info->http_version, "1.1") == 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Whole HTTP exchanges on a real core, without a socket: this file stands in for the few functions
 * of civetweb that an exchange calls. An input is a request as it travels. Three words in headers
 * stand for what a fuzzer cannot guess: KEY and AGENT for credentials, LEN for the body's length.
 *
 * Every answer is one well-formed response with JSON in it, and never "500".
 */
#include "tests/fuzz.h"
#include "tests/support/fixture.h"

#include "core/text.h"
#include "gateway/head.h"
#include "gateway/http.h"
#include "gateway/patience.h"

struct mg_connection {
	struct mg_request_info info;
	char *lines[MG_MAX_HEADERS + 1]; /* what INFO points into */
	int lines_n;
	char *head; /* the headers, as civetweb leaves them */
	char length[24];
	struct fuzz_bytes body;
	char *answer; /* in ARENA */
	bool closing;
};

static struct http_door door;
static struct fixture *people;
static struct arena arena;

const struct mg_request_info *
mg_get_request_info(const struct mg_connection *conn)
{
	return &conn->info;
}

int
mg_read(struct mg_connection *conn, void *buf, size_t len)
{
	size_t bytes = conn->body.left < len ? conn->body.left : len;

	memcpy(buf, conn->body.at, bytes);
	conn->body.at += bytes;
	conn->body.left -= bytes;
	return (int)bytes;
}

int
mg_write(struct mg_connection *conn, const void *buf, size_t len)
{
	fuzz_hold(memchr(buf, '\0', len) == NULL, "no NUL is sent");
	conn->answer = arena_printf(&arena, "%s%s", conn->answer, arena_text_n(&arena, buf, len));
	return (int)len;
}

void
mg_disable_connection_keep_alive(struct mg_connection *conn)
{
	conn->closing = true;
}

const char *
mg_get_response_code_text(const struct mg_connection *conn, int response_code)
{
	(void)conn;
	(void)response_code;
	return "Reason";
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	void *state = NULL;

	(void)argc;
	(void)argv;
	fuzz_process_init();
	fuzz_hold(fixture_open(&state) == 0, "a core");
	people = state;
	door.backend = backend_of_core(people->core);
	door.patience = patience_open();
	fuzz_hold(door.patience != NULL, "there is a watcher");
	arena_init(&arena);
	return 0;
}

/* --- the request */

static char *
line_next(struct mg_connection *conn)
{
	char *line = fuzz_line(&conn->body);

	if (line == NULL)
		return NULL;
	line[strcspn(line, "\r")] = '\0';
	conn->lines[conn->lines_n++] = line;
	return line;
}

/* What stands behind the first SEPARATOR, which ends what stands before it. */
static char *
cut(char *text, char separator)
{
	char *at = strchr(text, separator);

	if (at == NULL)
		return NULL;
	*at = '\0';
	return at + 1;
}

static const char *
value_meant(struct mg_connection *conn, const char *value)
{
	if (strcmp(value, "KEY") == 0)
		return people->owner->authorization;
	if (strcmp(value, "AGENT") == 0)
		return people->alice->authorization;
	return strcmp(value, "LEN") == 0 ? conn->length : value;
}

static void
header_take(struct mg_connection *conn, char *line)
{
	char *value = cut(line, ':');

	if (value == NULL)
		return;
	value += strspn(value, " \t");
	conn->info.http_headers[conn->info.num_headers].name = line;
	conn->info.http_headers[conn->info.num_headers++].value = value;
}

static char *
text_put(char *at, const char **text)
{
	size_t bytes = strlen(*text) + 1;

	*text = memcpy(at, *text, bytes);
	return at + bytes;
}

/* As civetweb leaves them: in one buffer, with NULs in the place of colons and line ends, and the
 * empty line behind. */
static void
headers_lay_out(struct mg_connection *conn)
{
	size_t bytes = sizeof("\r\n");
	char *at;

	for (int i = 0; i < conn->info.num_headers; i++)
		bytes += strlen(conn->info.http_headers[i].name) + 3 +
			 strlen(value_meant(conn, conn->info.http_headers[i].value));
	conn->head = at = malloc(bytes);
	for (int i = 0; i < conn->info.num_headers; i++) {
		struct mg_header *h = &conn->info.http_headers[i];

		h->value = value_meant(conn, h->value);
		at = text_put(at, &h->name);
		at = text_put(at, &h->value);
		*at++ = '\0';
	}
	strcpy(at, "\r\n");
}

/* False: no request line, which civetweb would not have handed on. */
static bool
request_take(struct mg_connection *conn)
{
	char *verb = line_next(conn), *path, *version, *line;

	if (verb == NULL || (path = cut(verb, ' ')) == NULL || *path != '/' ||
	    (version = cut(path, ' ')) == NULL)
		return false;
	conn->info.request_method = verb;
	conn->info.query_string = cut(path, '?');
	conn->info.local_uri_raw = path;
	conn->info.http_version = strcmp(version, "HTTP/1.0") == 0 ? "1.0" : "1.1";
	while (conn->info.num_headers < MG_MAX_HEADERS && (line = line_next(conn)) != NULL &&
	       *line != '\0')
		header_take(conn, line);
	snprintf(conn->length, sizeof conn->length, "%zu", conn->body.left);
	headers_lay_out(conn);
	return true;
}

/* --- what must hold of it and its answer */

static void
framing_holds(const struct mg_request_info *info)
{
	const char *length, *coding;
	struct framing f;

	head_framing(info, &f);
	fuzz_hold(f.bytes >= 0, "a length is not negative");
	if (f.fault != NULL)
		return;
	fuzz_hold(head_find(info, "Content-Length", &length) +
			  head_find(info, "Transfer-Encoding", &coding) <=
		      1,
	    "the length is stated once");
	if (length != NULL && strlen(length) < 15)
		fuzz_hold(f.bytes == strtoll(length, NULL, 10), "and it is the one stated");
	fuzz_hold(f.chunked == (coding != NULL), "chunked when it says so");
}

static void
headers_hold(const char *head, size_t bytes)
{
	for (const char *end = head + bytes; head < end; head += strcspn(head, "\r") + 2) {
		size_t line = strcspn(head, "\r");

		fuzz_hold(head[line + 1] == '\n', "lines end with CR and LF");
		for (size_t i = 0; i < line; i++)
			fuzz_hold(head[i] >= ' ' && head[i] <= '~', "headers are plain text");
	}
}

static void
answer_holds(const struct mg_connection *conn, int status)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const char *answer = conn->answer, *body, *length, *error;
	json_t *json;

	if (strncmp(answer, go_on, strlen(go_on)) == 0)
		answer += strlen(go_on);
	body = strstr(answer, "\r\n\r\n");
	length = strstr(answer, "\r\nContent-Length: ");
	fuzz_hold(strncmp(answer, "HTTP/1.1 ", 9) == 0 && body != NULL, "it is an answer");
	fuzz_hold(strtol(answer + 9, NULL, 10) == status && status >= 200, "with its status");
	fuzz_hold(status != 500, "never 500");
	headers_hold(answer, (size_t)(body - answer));
	body += 4;
	if (strcmp(conn->info.request_method, "HEAD") == 0 || status == 204) {
		fuzz_hold(*body == '\0', "nothing behind the headers");
		return;
	}
	fuzz_hold(length != NULL && strtoul(length + 18, NULL, 10) == strlen(body), "its length");
	json = json_read(&arena, body, strlen(body), JSON_DEPTH_MAX + 8, &error);
	fuzz_hold(json_is_object(json), "a JSON object");
	fuzz_hold((json_object_get(json, "data") != NULL || json_object_get(json, "openapi")) ==
		      (status < 300),
	    "with the data, or a document");
	fuzz_hold((json_object_get(json, "error") != NULL) == (status >= 400), "or the error");
	json_done(json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mg_connection conn = { .body = { data, size }, .answer = NULL };

	arena_reset(&arena);
	conn.answer = arena_text(&arena, "");
	if (request_take(&conn)) {
		framing_holds(&conn.info);
		answer_holds(&conn, http_serve(&door, &conn));
		fuzz_hold(atomic_load(&door.outstanding) == 0, "the exchange is over");
	}
	for (int i = 0; i < conn.lines_n; i++)
		free(conn.lines[i]);
	free(conn.head);
	return 0;
}

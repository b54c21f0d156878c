/* SPDX-License-Identifier: MIT */
/*
 * Read it from the end: http_serve() is the exchange, exchange_take() its gates, exchange_answer()
 * the way out. Before them come the body and the binding of each part of the request to fields.
 */
#include "gateway/http.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "core/json_read.h"
#include "core/json_write.h"
#include "core/log.h"
#include "core/rpc.h"
#include "core/text.h"
#include "gateway/backend.h"
#include "gateway/head.h"
#include "gateway/patience.h"
#include "gateway/render.h"
#include "gateway/route.h"
#include "gateway/tags.h"
#include "gateway/transcode.h"

#define BODY_BYTES_FIRST ((size_t)4 << 10) /* most bodies fit; the rest grow as they arrive */
#define BODY_BYTES_MAX PAYLOAD_BYTES_MAX
/* Of a refused body, read so that the client, still sending, gets to see the answer. */
#define DISCARD_BYTES_MAX ((long long)4 << 20)
#define HTTP_NO_CONTENT 204

struct exchange {
	struct call call;
	struct arena arena;
	struct http_door *door;
	struct mg_connection *conn;
	const struct mg_request_info *info;
	struct framing framing;
	struct route_match route;
	sem_t answered;
	bool unread;         /* the body, or a part of it, is still on its way */
	bool closing;        /* the connection ends with the answer */
	int status;          /* of HTTP, where the outcome of the call does not tell it; else 0 */
	const char *headers; /* those that not every answer has, each with its line end */
};

struct body {
	char *text; /* malloc */
	size_t bytes;
	size_t room;
};

static void
header_add(struct exchange *x, const char *name, const char *value)
{
	x->headers = arena_printf(&x->arena, "%s%s: %s\r\n", x->headers, name, value);
}

/* --- the body */

static bool
body_grow(struct body *b)
{
	size_t room = b->room == 0 ? BODY_BYTES_FIRST : 2 * b->room;
	char *text;

	if (!arena_budget_take(room - b->room))
		return false;
	text = realloc(b->text, room);
	if (text == NULL)
		log_die("There is no memory for a body.");
	b->text = text;
	b->room = room;
	return true;
}

static enum status
body_too_large(struct call *c)
{
	return call_fail(
	    c, STATUS_PAYLOAD_TOO_LARGE, "A body may have %zu bytes.", (size_t)BODY_BYTES_MAX);
}

/* All of it, in memory that grows with what has really arrived. */
static enum status
body_receive(struct exchange *x, struct body *b)
{
	int n;

	do {
		if (b->bytes == b->room && !body_grow(b))
			return STATUS_UNAVAILABLE;
		n = mg_read(x->conn, b->text + b->bytes, b->room - b->bytes);
		b->bytes += n > 0 ? (size_t)n : 0;
		if (b->bytes > BODY_BYTES_MAX)
			return body_too_large(&x->call);
	} while (n > 0);
	x->unread = false;
	if (n < 0 || (!x->framing.chunked && (long long)b->bytes != x->framing.bytes)) {
		x->closing = true;
		return call_fail(
		    &x->call, STATUS_VALIDATION_ERROR, "The body is cut off or badly chunked.");
	}
	return STATUS_OK;
}

static enum status
body_read(struct exchange *x, struct body *b)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (x->framing.bytes > (long long)BODY_BYTES_MAX)
		return body_too_large(&x->call);
	if (x->framing.expects && x->unread)
		mg_write(x->conn, go_on, strlen(go_on));
	x->framing.expects = false;
	return body_receive(x, b);
}

/* Take what is left of a refused body, unless that is too much or will not come. */
static void
body_discard(struct exchange *x)
{
	char piece[4096];
	struct patience_wait wait;
	long long bytes = 0;
	int n = 1;

	if (!x->unread || x->framing.expects || x->framing.fault != NULL ||
	    x->framing.bytes > DISCARD_BYTES_MAX)
		return;
	patience_begin(x->door->patience, &wait, x->info, SHUT_RD);
	for (; n > 0 && bytes < DISCARD_BYTES_MAX; bytes += n)
		n = mg_read(x->conn, piece, sizeof(piece));
	patience_end(x->door->patience, &wait);
}

/* --- from the parts of the request to fields */

static bool
path_names(const struct route_match *route, const char *field)
{
	for (size_t i = 0; i < route->params_n; i++)
		if (strcmp(route->params[i].field, field) == 0)
			return true;
	return false;
}

/* The path wins over the body, so what the body says there is not even looked at. */
static enum status
bind_json(struct exchange *x, const struct body *b)
{
	struct call *c = &x->call;
	const char *error;
	json_t *json = json_read(c->arena, b->text, b->bytes, JSON_DEPTH_MAX, &error);
	enum status st;

	if (json == NULL)
		return call_fail(c,
		    error == json_no_memory ? STATUS_UNAVAILABLE : STATUS_VALIDATION_ERROR,
		    "The body %s.", error);
	for (size_t i = 0; json_is_object(json) && i < x->route.params_n; i++)
		json_object_del(json, x->route.params[i].field);
	if (json_is_object(json))
		st = transcode_object(c, json);
	else
		st = call_fail(c, STATUS_VALIDATION_ERROR, "The body must be a JSON object.");
	json_done(json);
	return st;
}

static enum status
bind_body(struct exchange *x)
{
	struct body b = { NULL, 0, 0 };
	struct patience_wait wait;
	enum status st;

	patience_begin(x->door->patience, &wait, x->info, SHUT_RD);
	st = body_read(x, &b);
	patience_end(x->door->patience, &wait);
	if (st == STATUS_OK)
		st = bind_json(x, &b);
	free(b.text);
	arena_budget_give(b.room);
	return st;
}

/* One "name=value" of BYTES. */
static enum status
bind_pair(struct exchange *x, const char *pair, size_t bytes)
{
	struct call *c = &x->call;
	const char *equals = memchr(pair, '=', bytes);
	size_t name_bytes = equals == NULL ? bytes : (size_t)(equals - pair);
	size_t value_bytes = equals == NULL ? 0 : bytes - name_bytes - 1;
	const char *name = route_decode(c->arena, pair, name_bytes, true);

	if (name == NULL)
		return call_fail(c, STATUS_VALIDATION_ERROR, "The query is not well-formed.");
	if (path_names(&x->route, name) ||
	    protobuf_c_message_descriptor_get_field_by_name(c->method->request, name) == NULL)
		return STATUS_OK;
	const char *value =
	    route_decode(c->arena, equals == NULL ? "" : equals + 1, value_bytes, true);
	if (value == NULL)
		return call_fail(
		    c, STATUS_VALIDATION_ERROR, "%s is not well-formed in the query.", name);
	return transcode_text(c, name, value);
}

static enum status
bind_query(struct exchange *x)
{
	const char *query = x->info->query_string == NULL ? "" : x->info->query_string;
	enum status st = STATUS_OK;

	for (query += strspn(query, "&"); st == STATUS_OK && *query != '\0';
	     query += strspn(query, "&")) {
		size_t bytes = strcspn(query, "&");
		st = bind_pair(x, query, bytes);
		query += bytes;
	}
	return st;
}

static enum status
bind_path(struct exchange *x)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; st == STATUS_OK && i < x->route.params_n; i++)
		st = transcode_text(&x->call, x->route.params[i].field, x->route.params[i].value);
	return st;
}

/* --- the way in */

static bool
exchange_head_only(const struct exchange *x)
{
	return x->info->request_method != NULL && strcmp(x->info->request_method, "HEAD") == 0;
}

static enum status
exchange_route(struct exchange *x)
{
	const char *verb = exchange_head_only(x) ? "GET" : x->info->request_method;
	enum status st = route_find(&x->call, verb, x->info->local_uri_raw, &x->route);

	if (x->route.allow != NULL) {
		header_add(x, "Allow", x->route.allow);
		if (strcmp(verb, "OPTIONS") == 0)
			x->status = HTTP_NO_CONTENT;
	}
	return st;
}

/* Two credentials are none: nobody can say which one the proxies on the way have looked at. */
static void
exchange_credentials(struct exchange *x)
{
	struct call *c = &x->call;
	const char *key;

	if (head_find(x->info, "Authorization", &c->authorization) > 1)
		c->authorization = "";
	if (head_find(x->info, "Idempotency-Key", &key) > 0 && head_value_bytes(key) > 0)
		c->idempotency_key = arena_text_n(&x->arena, key, head_value_bytes(key));
}

/* What the head of a request that may be made still leaves to refuse. */
static enum status
exchange_check(struct exchange *x)
{
	struct call *c = &x->call;

	x->status = x->framing.fault_status;
	if (x->framing.fault != NULL)
		return call_fail(c, STATUS_VALIDATION_ERROR, "%s", x->framing.fault);
	if (c->idempotency_key != NULL &&
	    !text_utf8(c->idempotency_key, strlen(c->idempotency_key)))
		return call_fail(c, STATUS_VALIDATION_ERROR, "Idempotency-Key must be UTF-8.");
	if (atomic_load(&x->door->draining) && c->method != NULL &&
	    strcmp(c->method->name, "titen.v1.HealthService/Ready") == 0)
		return call_fail(c, STATUS_UNAVAILABLE, "The server is about to stop.");
	return STATUS_OK;
}

static enum status
exchange_bind(struct exchange *x)
{
	enum verb verb = x->call.method->verb;
	enum status st = transcode_begin(&x->call);

	if (st == STATUS_OK && verb == VERB_POST)
		st = bind_body(x);
	if (st == STATUS_OK && verb == VERB_GET)
		st = bind_query(x);
	if (st == STATUS_OK)
		st = bind_path(x);
	return st == STATUS_OK ? tags_read(&x->call, x->info) : st;
}

static enum status
exchange_take(struct exchange *x)
{
	const struct backend *backend = &x->door->backend;
	enum status st;

	head_framing(x->info, &x->framing);
	x->unread = x->framing.chunked || x->framing.bytes > 0;
	x->closing = x->framing.fault != NULL || !head_client_stays(x->info);
	exchange_credentials(x);
	if ((st = exchange_route(x)) != STATUS_OK)
		return st;
	if (x->route.document != NULL)
		return exchange_check(x);
	if ((st = backend->admit(backend->self, &x->call)) != STATUS_OK)
		return st;
	if ((st = exchange_check(x)) != STATUS_OK)
		return st;
	return exchange_bind(x);
}

/* --- the way out */

static int
exchange_status(const struct exchange *x)
{
	const struct call *c = &x->call;

	if (x->status != 0)
		return x->status;
	if (c->status != STATUS_OK)
		return status_http(c->status);
	if (c->method == NULL)
		return 200;
	return c->method->result == RESULT_CREATED ||
		       (c->method->result == RESULT_UPSERT && c->created)
		   ? 201
		   : 200;
}

static void
data_write(struct json_writer *w, const struct call *c)
{
	const ProtobufCMessage *meta = render_message_in(c->response, "meta");

	json_write_open(w, '{');
	json_write_name(w, "data");
	json_write_open(w, '{');
	render_members(w, c->response, "meta");
	json_write_close(w, '}');
	json_write_name(w, "meta");
	json_write_open(w, '{');
	json_write_text_member(w, "request_id", c->request_id);
	if (c->replayed) {
		json_write_name(w, "replayed");
		json_write_bool(w, true);
	}
	if (meta != NULL)
		render_members(w, meta, NULL);
	json_write_close(w, '}');
	json_write_close(w, '}');
}

static void
error_write(struct json_writer *w, const struct call *c)
{
	json_write_open(w, '{');
	json_write_name(w, "error");
	json_write_open(w, '{');
	json_write_text_member(w, "code", status_reason(c->status));
	json_write_text_member(w, "message", c->message);
	json_write_close(w, '}');
	json_write_name(w, "meta");
	json_write_open(w, '{');
	json_write_text_member(w, "request_id", c->request_id);
	json_write_close(w, '}');
	json_write_close(w, '}');
}

/* The headers that depend on the outcome. */
static void
outcome_headers(struct exchange *x)
{
	const struct call *c = &x->call;
	const char *tag = c->response != NULL ? tags_answer(c) : NULL;

	if (tag != NULL)
		header_add(x, "ETag", tag);
	if (c->status == STATUS_UNAUTHENTICATED)
		header_add(x, "WWW-Authenticate", "Bearer");
	if (c->retry_after_ms > 0)
		header_add(x, "Retry-After",
		    arena_printf(&x->arena, "%lld", ((long long)c->retry_after_ms + 999) / 1000));
}

static const char *
date_text(struct arena *arena)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[40];

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	return arena_text(arena, text);
}

/* What was asked for, or why there is none of it. */
static const char *
body_text(struct exchange *x)
{
	struct json_writer w;

	if (x->call.status == STATUS_OK && x->route.document != NULL)
		return x->route.document();
	json_write_begin(&w, &x->arena);
	if (x->call.status == STATUS_OK)
		data_write(&w, &x->call);
	else
		error_write(&w, &x->call);
	return w.text;
}

/* The whole answer with BODY, which OPTIONS has none of and HEAD does not get. */
static const char *
answer_text(struct exchange *x, int status, const char *body)
{
	struct arena *a = &x->arena;

	if (status != HTTP_NO_CONTENT) {
		header_add(x, "Content-Type", "application/json; charset=utf-8");
		header_add(x, "Content-Length", arena_printf(a, "%zu", strlen(body)));
	}
	return arena_printf(a,
	    "HTTP/1.1 %d %s\r\n"
	    "Date: %s\r\n"
	    "Connection: %s\r\n"
	    "Cache-Control: no-store\r\n"
	    "X-Content-Type-Options: nosniff\r\n"
	    "X-Request-Id: %s\r\n"
	    "%s\r\n%s",
	    status, mg_get_response_code_text(x->conn, status), date_text(a),
	    x->closing ? "close" : "keep-alive", x->call.request_id, x->headers,
	    status == HTTP_NO_CONTENT || exchange_head_only(x) ? "" : body);
}

/* A body left unread costs the connection when reading it on is not worth it or would wait for a
 * client that waits for us. */
static bool
exchange_closes(const struct exchange *x)
{
	return x->closing || atomic_load(&x->door->draining) ||
	       (x->unread && (x->framing.chunked || x->framing.expects ||
				 x->framing.bytes > (long long)BODY_BYTES_MAX));
}

static int
exchange_answer(struct exchange *x)
{
	int status = exchange_status(x);
	struct patience_wait wait;

	x->closing = exchange_closes(x);
	if (x->closing)
		mg_disable_connection_keep_alive(x->conn);
	outcome_headers(x);
	const char *text = answer_text(x, status, body_text(x));
	patience_begin(x->door->patience, &wait, x->info, SHUT_RDWR);
	/* civetweb would go on to the next request of a client that takes no answers. */
	if (mg_write(x->conn, text, strlen(text)) < (int)strlen(text))
		mg_disable_connection_keep_alive(x->conn);
	patience_end(x->door->patience, &wait);
	return status;
}

/* --- the exchange */

static void
exchange_done(struct call *c)
{
	struct exchange *x = c->owner;

	sem_post(&x->answered);
}

static void
exchange_open(struct exchange *x, struct http_door *door, struct mg_connection *conn)
{
	*x = (struct exchange){
		.door = door,
		.conn = conn,
		.info = mg_get_request_info(conn),
		.headers = "",
	};
	arena_init(&x->arena);
	call_init(&x->call, &x->arena, exchange_done, x);
	sem_init(&x->answered, 0, 0);
}

/* Have the call answered: run, when it was taken with STATUS_OK. */
static void
exchange_run(struct exchange *x, enum status taken)
{
	const struct backend *backend = &x->door->backend;

	if (taken == STATUS_OK && atomic_load(&x->door->stopping))
		taken = call_fail(&x->call, STATUS_UNAVAILABLE, "The server is stopping.");
	if (taken != STATUS_OK)
		backend->refuse(backend->self, &x->call, taken);
	else if (x->route.document != NULL)
		call_answer(&x->call);
	else
		backend->submit(backend->self, &x->call);
	while (sem_wait(&x->answered) != 0 && errno == EINTR)
		;
}

static void
exchange_close(struct exchange *x)
{
	sem_destroy(&x->answered);
	arena_free(&x->arena);
}

int
http_serve(struct http_door *door, struct mg_connection *conn)
{
	struct exchange x;
	enum status taken;
	int status;

	exchange_open(&x, door, conn);
	taken = exchange_take(&x);
	/* From here on whoever stops the gateway waits for the answer, or is noticed. */
	atomic_fetch_add(&door->outstanding, 1);
	exchange_run(&x, taken);
	status = exchange_answer(&x);
	atomic_fetch_sub(&door->outstanding, 1);
	body_discard(&x);
	exchange_close(&x);
	return status;
}

void
http_reject(struct http_door *door, struct mg_connection *conn, int status)
{
	struct exchange x;

	exchange_open(&x, door, conn);
	x.closing = true;
	x.call.status = status == 500 ? STATUS_INTERNAL : STATUS_VALIDATION_ERROR;
	x.call.message = status == 500 ? "The server failed; nothing was changed."
				       : "This is not a request of HTTP/1.1 that can be read.";
	exchange_answer(&x);
	exchange_close(&x);
}

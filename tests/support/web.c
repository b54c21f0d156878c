/* SPDX-License-Identifier: MIT */
/* First the core that answers what it was asked, then the client. */
#include "tests/support/web.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checkpoint.pb-c.h"
#include "event.pb-c.h"
#include "health.pb-c.h"
#include "lease.pb-c.h"
#include "core/json_read.h"
#include "core/rpc.h"
#include "gateway/render.h"

/* --- a core --- */

static const struct method methods[] = {
	{ "titen.v1.HealthService/Check", .right = RIGHT_PUBLIC, .verb = VERB_GET,
	    .path = "/healthz", .request = &titen__v1__health_check_request__descriptor,
	    .response = &titen__v1__health_check_response__descriptor },
	{ "titen.v1.HealthService/Ready", .right = RIGHT_PUBLIC, .verb = VERB_GET,
	    .path = "/readyz", .request = &titen__v1__health_ready_request__descriptor,
	    .response = &titen__v1__health_ready_response__descriptor },
	{ "titen.v1.LeaseService/Acquire", .result = RESULT_CREATED, .verb = VERB_POST,
	    .path = "/v1/leases", .request = &titen__v1__lease_acquire_request__descriptor,
	    .response = &titen__v1__lease_acquire_response__descriptor },
	{ "titen.v1.LeaseService/Release", .verb = VERB_DELETE, .path = "/v1/leases/{lease_id}",
	    .request = &titen__v1__lease_release_request__descriptor,
	    .response = &titen__v1__lease_release_response__descriptor },
	{ "titen.v1.EventService/List", .verb = VERB_GET, .path = "/v1/events",
	    .request = &titen__v1__event_list_request__descriptor,
	    .response = &titen__v1__event_list_response__descriptor },
	{ "titen.v1.CheckpointService/Save", .result = RESULT_UPSERT, .verb = VERB_POST,
	    .path = "/v1/subjects/{subject_id}",
	    .request = &titen__v1__checkpoint_save_request__descriptor,
	    .response = &titen__v1__checkpoint_save_response__descriptor },
	{ "titen.v1.CheckpointService/Get", .path = "",
	    .request = &titen__v1__checkpoint_get_request__descriptor,
	    .response = &titen__v1__checkpoint__descriptor },
	{ "titen.v1.CheckpointService/Find", .path = "",
	    .request = &titen__v1__checkpoint_find_request__descriptor,
	    .response = &titen__v1__checkpoint__descriptor },
};

#define METHODS (sizeof(methods) / sizeof(methods[0]))

size_t
methods_count(void)
{
	return METHODS;
}

const struct method *
method_at(size_t i)
{
	return &methods[i];
}

const struct method *
method_find(const char *name)
{
	for (size_t i = 0; i < METHODS; i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

enum status
rpc_admit(struct core *core, struct call *c)
{
	(void)core;
	if (c->method->right == RIGHT_PUBLIC)
		return STATUS_OK;
	if (c->authorization != NULL && strcmp(c->authorization, "Bearer poor") == 0)
		return call_fail(c, STATUS_FORBIDDEN, "No scope.");
	if (c->authorization == NULL || strcmp(c->authorization, "Bearer good") != 0)
		return call_fail(c, STATUS_UNAUTHENTICATED, "No key.");
	return STATUS_OK;
}

void
rpc_refuse(struct call *c, enum status st)
{
	c->status = st;
	c->done(c);
}

atomic_bool web_hold;
sem_t web_go_on;

static void *
answer_later(void *arg)
{
	struct call *c = arg;

	if (web_hold)
		sem_wait(&web_go_on);
	c->done(c);
	return NULL;
}

/* The request as JSON, to be looked at in an answer. */
static char *
request_text(struct call *c)
{
	struct json_writer w;

	json_write_begin(&w, c->arena);
	json_write_open(&w, '{');
	render_members(&w, c->request, NULL);
	json_write_close(&w, '}');
	return w.text;
}

/* A lease is granted under the name of its resource; some purposes make it go otherwise. */
static void
lease_answer(struct call *c)
{
	const PB(LeaseAcquireRequest) *request = (const PB(LeaseAcquireRequest) *)c->request;
	const char *purpose = request->purpose == NULL ? "" : request->purpose;

	((PB(LeaseAcquireResponse) *)c->response)->lease_id = request->resource_id;
	c->replayed = strcmp(purpose, "replayed") == 0;
	if (strcmp(purpose, "key") == 0)
		((PB(LeaseAcquireResponse) *)c->response)->lease_id =
		    arena_printf(c->arena, "<%s>", c->idempotency_key);
	if (strcmp(purpose, "conflict") == 0)
		c->status = call_fail(c, STATUS_CONFLICT, "Taken.");
	if (strcmp(purpose, "busy") == 0) {
		c->retry_after_ms = 1001;
		c->status = call_fail(c, STATUS_UNAVAILABLE, "Busy.");
	}
}

static void
checkpoint_answer(struct call *c)
{
	PB(CheckpointSaveResponse) *response = (PB(CheckpointSaveResponse) *)c->response;

	response->subject_id = ((PB(CheckpointSaveRequest) *)c->request)->subject_id;
	response->checkpoint_id = request_text(c);
	response->state_hash = "abc";
	c->created = ((PB(CheckpointSaveRequest) *)c->request)->run_id != NULL;
}

void
rpc_submit(struct core *core, struct call *c)
{
	pthread_t thread;

	(void)core;
	c->response = arena_alloc(c->arena, c->method->response->sizeof_message);
	protobuf_c_message_init(c->method->response, c->response);
	if (strcmp(c->method->name, "titen.v1.LeaseService/Acquire") == 0)
		lease_answer(c);
	if (strcmp(c->method->name, "titen.v1.LeaseService/Release") == 0)
		((PB(LeaseReleaseResponse) *)c->response)->lease_id =
		    ((PB(LeaseReleaseRequest) *)c->request)->lease_id;
	if (strcmp(c->method->name, "titen.v1.EventService/List") == 0)
		((PB(EventListResponse) *)c->response)->cursor = request_text(c);
	if (strcmp(c->method->name, "titen.v1.CheckpointService/Save") == 0)
		checkpoint_answer(c);
	/* Often enough the answer comes on another thread. */
	if (pthread_create(&thread, NULL, answer_later, c) == 0)
		pthread_detach(thread);
}

/* --- a client --- */

struct gateway *web_gateway;
int web_sock = -1;
static char received[64 << 10];
static size_t received_n;

char web_head[8 << 10];
char web_body[64 << 10];

static void
hang_up(void)
{
	if (web_sock >= 0)
		close(web_sock);
	web_sock = -1;
	received_n = 0;
}

void
web_dial(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)gateway_port(web_gateway)),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct timeval patience = { 20, 0 };
	int on = 1;

	hang_up();
	web_sock = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(web_sock >= 0);
	setsockopt(web_sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(web_sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(connect(web_sock, (struct sockaddr *)&address, sizeof(address)), 0);
}

void
web_say_n(const char *bytes, size_t n)
{
	for (ssize_t sent; n > 0; bytes += sent, n -= (size_t)sent) {
		sent = send(web_sock, bytes, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
	}
}

void
web_say(const char *text)
{
	web_say_n(text, strlen(text));
}

/* False when the connection has ended. */
static bool
hear_more(void)
{
	ssize_t n = recv(web_sock, received + received_n, sizeof(received) - 1 - received_n, 0);

	if (n > 0)
		received_n += (size_t)n;
	received[received_n] = '\0';
	return n > 0;
}

static void
hear_off(char *out, size_t n)
{
	memcpy(out, received, n);
	out[n] = '\0';
	received_n -= n;
	memmove(received, received + n, received_n + 1);
}

/* The value of a header of the last answer, or "". */
const char *
web_header(const char *name)
{
	static char value[256];
	const char *line = web_head;

	while ((line = strstr(line, "\r\n")) != NULL) {
		line += 2;
		if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
			line += strlen(name) + 2;
			snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\r"), line);
			return value;
		}
	}
	return "";
}

/* The status of the next answer, which goes to head and, when it HAS_BODY, to body; 0 when the
 * connection ends instead. */
int
web_hear(bool has_body)
{
	received[received_n] = '\0';
	while (strstr(received, "\r\n\r\n") == NULL)
		if (!hear_more())
			return 0;
	hear_off(web_head, (size_t)(strstr(received, "\r\n\r\n") + 4 - received));
	size_t n = has_body ? strtoul(web_header("Content-Length"), NULL, 10) : 0;
	while (received_n < n)
		if (!hear_more())
			return 0;
	hear_off(web_body, n);
	return atoi(web_head + strlen("HTTP/1.1 "));
}

bool
web_ended(void)
{
	return received_n == 0 && !hear_more();
}

/* The status of the answer to RAW on a new connection. */
int
web_ask(const char *raw)
{
	web_dial();
	web_say(raw);
	return web_hear(strncmp(raw, "HEAD", 4) != 0);
}

const char *
web_post(const char *path, const char *more_head, const char *text)
{
	static char raw[8 << 10];

	snprintf(raw, sizeof(raw),
	    "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n%sContent-Length: %zu\r\n"
	    "\r\n%s",
	    path, more_head, strlen(text), text);
	return raw;
}

int
web_start(void **state)
{
	char error[256] = "";

	(void)state;
	json_init();
	sem_init(&web_go_on, 0, 0);
	web_gateway = gateway_start(
	    &(struct gateway_options){ .listen = "127.0.0.1:0" }, error, sizeof(error));
	if (web_gateway == NULL)
		fprintf(stderr, "%s\n", error);
	return web_gateway == NULL ? -1 : 0;
}

int
web_stop(void **state)
{
	(void)state;
	hang_up();
	if (web_gateway != NULL)
		gateway_stop(&web_gateway);
	return 0;
}

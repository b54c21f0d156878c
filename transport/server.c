/* SPDX-License-Identifier: MIT */
/*
 * One REP socket on all addresses, and CONTEXTS_MAX slots that each carry one request:
 *
 *	RECEIVING -> WORKING -> SENDING -> RECEIVING ...
 *	   nng's aio    the core    nng's aio
 *
 * slot_event() is the only callback of a slot; slot_answer() is how the core gives the call back.
 * Read them first, then the start and the stop at the end of the file. Callbacks run on the few
 * task threads of nng and never block.
 */
#include "transport/server.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>

#include "core/call.h"
#include "core/log.h"
#include "core/rpc.h"
#include "transport/frame.h"
#include "transport/pipes.h"

#define CONTEXTS_MAX 2048 /* requests under way in all; an idle slot costs about 2 KiB */
/* Room for the envelope, and for saying that a payload is somewhat too large. */
#define FRAME_BYTES_MAX (PAYLOAD_BYTES_MAX + ((size_t)64 << 10))
#define SEND_TIMEOUT_MS 2000      /* a peer that reads nothing for so long is cut off, */
#define SEND_TIMEOUT_SHORT_MS 250 /* and so soon when such peers may hold half of the slots */
/* Of answers that peers have not taken yet: slow readers of long pages cannot fill the memory. */
#define ANSWERS_BYTES_MAX ((size_t)64 << 20)
/* Goes out above that limit too: what writes answer is shorter. */
#define SHORT_ANSWER_BYTES ((size_t)64 << 10)
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

enum slot_state { RECEIVING, WORKING, SENDING };

struct slot {
	struct server *server;
	enum slot_state state;
	nng_ctx ctx;
	nng_aio *aio;
	nng_pipe pipe; /* where the request came from */
	size_t answer_bytes;
	struct arena arena;
	struct call call;
};

struct server {
	struct core *core;
	nng_socket socket;
	nng_listener local; /* of the owner's socket */
	int port;
	struct pipes *pipes;
	struct slot *slots;
	size_t slots_n;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t quiet; /* nothing is working */
	bool draining;
	int working;     /* slots between their receive and their send */
	int outstanding; /* those, and the ones that send */
	size_t answers_bytes;
};

/* --- counting */

/* A request has arrived. False: it must be refused, the server is stopping. */
static bool
begin_work(struct server *server)
{
	bool open;

	pthread_mutex_lock(&server->lock);
	server->working++;
	server->outstanding++;
	open = !server->draining;
	pthread_mutex_unlock(&server->lock);
	return open;
}

/* The slot has been handed to nng: whoever waits for quiet may stop its aio now. */
static void
end_work(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	assert(server->working > 0);
	if (--server->working == 0)
		pthread_cond_broadcast(&server->quiet);
	pthread_mutex_unlock(&server->lock);
}

/* Whether an answer of so many bytes may wait for its peer. */
static bool
begin_answer(struct server *server, size_t bytes)
{
	bool fits;

	pthread_mutex_lock(&server->lock);
	fits = bytes <= SHORT_ANSWER_BYTES || server->answers_bytes + bytes <= ANSWERS_BYTES_MAX;
	if (fits)
		server->answers_bytes += bytes;
	pthread_mutex_unlock(&server->lock);
	return fits;
}

/* The answer has left. False: receive no more, the server is stopping. */
static bool
end_answer(struct server *server, size_t bytes)
{
	bool open;

	pthread_mutex_lock(&server->lock);
	assert(server->outstanding > 0 && server->answers_bytes >= bytes);
	server->outstanding--;
	server->answers_bytes -= bytes;
	open = !server->draining;
	pthread_mutex_unlock(&server->lock);
	return open;
}

static bool
is_draining(struct server *server)
{
	bool draining;

	pthread_mutex_lock(&server->lock);
	draining = server->draining;
	pthread_mutex_unlock(&server->lock);
	return draining;
}

/* --- one request */

static void
slot_receive(struct slot *slot)
{
	slot->state = RECEIVING;
	nng_aio_set_timeout(slot->aio, NNG_DURATION_INFINITE);
	nng_ctx_recv(slot->ctx, slot->aio);
}

static enum status
refuse_for_now(struct call *c, enum status st, const char *why)
{
	c->retry_after_ms = RETRY_SOON_MS;
	return call_fail(c, st, "%s", why);
}

/* The answer of C as a message that may wait for its peer. */
static nng_msg *
answer_build(struct server *server, struct call *c)
{
	nng_msg *msg = frame_build(c, rpc_now_ms(server->core));

	if (begin_answer(server, nng_msg_len(msg)))
		return msg;
	nng_msg_free(msg);
	c->status =
	    refuse_for_now(c, STATUS_UNAVAILABLE, "Too many long answers are waiting to be read.");
	msg = frame_build(c, rpc_now_ms(server->core));
	(void)begin_answer(server, nng_msg_len(msg));
	return msg;
}

static nng_duration
send_timeout_ms(struct server *server)
{
	return server_outstanding(server) > CONTEXTS_MAX / 2 ? SEND_TIMEOUT_SHORT_MS
							     : SEND_TIMEOUT_MS;
}

/* call->done. nng_ctx_send() does not block; the slot may be receiving again before it returns. */
static void
slot_answer(struct call *c)
{
	struct slot *slot = c->owner;
	struct server *server = slot->server;
	nng_msg *msg = answer_build(server, c);

	assert(slot->state == WORKING);
	slot->answer_bytes = nng_msg_len(msg);
	arena_reset(&slot->arena);
	slot->state = SENDING;
	nng_aio_set_msg(slot->aio, msg);
	nng_aio_set_timeout(slot->aio, send_timeout_ms(server));
	nng_ctx_send(slot->ctx, slot->aio);
	end_work(server);
}

static enum status
slot_read(struct slot *slot, const nng_msg *msg)
{
	struct call *c = &slot->call;
	PB(Request) *request;
	enum status st;

	st = frame_parse(c, nng_msg_body((nng_msg *)msg), nng_msg_len(msg), &request);
	if (st != STATUS_OK)
		return st;
	if ((st = rpc_find(c, request->method)) != STATUS_OK)
		return st;
	return rpc_decode(c, request->payload.data, request->payload.len);
}

/* Every request is answered, also one that we do not want. */
static void
slot_work(struct slot *slot, nng_msg *msg)
{
	struct server *server = slot->server;
	struct call *c = &slot->call;
	bool open, below, local;
	enum status st;

	slot->state = WORKING;
	slot->pipe = nng_msg_get_pipe(msg);
	call_init(c, &slot->arena, slot_answer, slot);
	open = begin_work(server);
	below = pipes_begin(server->pipes, nng_pipe_id(slot->pipe), &local);
	c->local = local;
	if (!open)
		st = refuse_for_now(c, STATUS_UNAVAILABLE, "The server is stopping.");
	else if (!below)
		st = refuse_for_now(
		    c, STATUS_RATE_LIMITED, "Too many calls under way on this connection.");
	else
		st = slot_read(slot, msg);
	nng_msg_free(msg);
	if (st == STATUS_OK)
		rpc_submit(server->core, c);
	else
		rpc_refuse(c, st);
}

static void
slot_received(struct slot *slot)
{
	nng_msg *msg = nng_aio_get_msg(slot->aio);

	switch (nng_aio_result(slot->aio)) {
	case 0:
		nng_aio_set_msg(slot->aio, NULL);
		slot_work(slot, msg);
		break;
	case NNG_ECLOSED:
	case NNG_ECANCELED:
		break;
	default:
		slot_receive(slot);
	}
}

static void
slot_sent(struct slot *slot)
{
	int result = nng_aio_result(slot->aio);

	if (result != 0) {
		nng_msg_free(nng_aio_get_msg(slot->aio));
		nng_aio_set_msg(slot->aio, NULL);
	}
	if (result == NNG_ETIMEDOUT)
		nng_pipe_close(slot->pipe);
	pipes_end(slot->server->pipes, nng_pipe_id(slot->pipe));
	if (end_answer(slot->server, slot->answer_bytes))
		slot_receive(slot);
}

static void
slot_event(void *arg)
{
	struct slot *slot = arg;

	switch (slot->state) {
	case RECEIVING:
		slot_received(slot);
		break;
	case SENDING:
		slot_sent(slot);
		break;
	case WORKING:
		assert(false); /* nothing is asked of nng while the core works */
	}
}

/* --- connections */

/* The socket file is the owner's alone (0600); the kernel's word on the peer stands behind that. */
static bool
pipe_is_local(struct server *server, nng_pipe pipe)
{
	uint64_t uid;

	if (nng_listener_id(server->local) <= 0 ||
	    nng_listener_id(nng_pipe_listener(pipe)) != nng_listener_id(server->local))
		return false;
	if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid) != 0)
		return false;
	return uid == 0 || uid == geteuid();
}

static void
pipe_event(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct server *server = arg;
	int id = nng_pipe_id(pipe);

	if (event == NNG_PIPE_EV_REM_POST)
		pipes_remove(server->pipes, id);
	else if (is_draining(server) || !pipes_add(server->pipes, id, pipe_is_local(server, pipe)))
		nng_pipe_close(pipe);
}

/* --- addresses */

static bool
starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool
is_ipc(const char *url)
{
	return starts_with(url, "ipc:///");
}

static bool
url_check(const char *url, char *error, size_t error_bytes)
{
	if (is_ipc(url) && strlen(url + strlen("ipc://")) > SOCKET_PATH_MAX)
		snprintf(error, error_bytes, "the path of %s is longer than %zu bytes", url,
		    SOCKET_PATH_MAX);
	else if (!is_ipc(url) && !starts_with(url, "tcp://"))
		snprintf(error, error_bytes, "%s is neither tcp://HOST:PORT nor ipc:///PATH", url);
	else
		return true;
	return false;
}

static int
listener_set(nng_listener listener, const char *url)
{
	int rv;

	if (is_ipc(url))
		return nng_listener_set_int(listener, NNG_OPT_IPC_PERMISSIONS, 0600);
	if ((rv = nng_listener_set_bool(listener, NNG_OPT_TCP_NODELAY, true)) != 0)
		return rv;
	return nng_listener_set_bool(listener, NNG_OPT_TCP_KEEPALIVE, true);
}

/* *LISTENER is set before anybody can connect. */
static bool
listen_on(
    struct server *server, const char *url, nng_listener *listener, char *error, size_t error_bytes)
{
	int rv;

	if (!url_check(url, error, error_bytes))
		return false;
	if ((rv = nng_listener_create(listener, server->socket, url)) == 0 &&
	    (rv = listener_set(*listener, url)) == 0)
		rv = nng_listener_start(*listener, 0);
	if (rv == NNG_EADDRINUSE)
		snprintf(error, error_bytes, "%s is in use", url);
	else if (rv != 0)
		snprintf(error, error_bytes, "cannot listen on %s: %s", url, nng_strerror(rv));
	return rv == 0;
}

static bool
listen_all(
    struct server *server, const struct server_options *options, char *error, size_t error_bytes)
{
	nng_listener listener;

	if (options->local_url != NULL &&
	    !listen_on(server, options->local_url, &server->local, error, error_bytes))
		return false;
	for (const char *const *url = options->urls; *url != NULL; url++) {
		if (!listen_on(server, *url, &listener, error, error_bytes))
			return false;
		if (server->port == 0 && !is_ipc(*url))
			nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &server->port);
	}
	return true;
}

/* --- start and stop */

static int
slots_open(struct server *server)
{
	int rv;

	for (; server->slots_n < CONTEXTS_MAX; server->slots_n++) {
		struct slot *slot = &server->slots[server->slots_n];

		slot->server = server;
		arena_init(&slot->arena);
		if ((rv = nng_ctx_open(&slot->ctx, server->socket)) != 0)
			return rv;
		if ((rv = nng_aio_alloc(&slot->aio, slot_event, slot)) != 0) {
			nng_ctx_close(slot->ctx);
			return rv;
		}
		slot_receive(slot);
	}
	return 0;
}

static int
socket_open(struct server *server)
{
	int rv;

	if ((rv = nng_socket_set_size(server->socket, NNG_OPT_RECVMAXSZ, FRAME_BYTES_MAX)) != 0)
		return rv;
	rv = nng_pipe_notify(server->socket, NNG_PIPE_EV_ADD_PRE, pipe_event, server);
	if (rv != 0)
		return rv;
	rv = nng_pipe_notify(server->socket, NNG_PIPE_EV_REM_POST, pipe_event, server);
	if (rv != 0)
		return rv;
	return slots_open(server);
}

static struct server *
server_alloc(struct core *core)
{
	struct server *server = calloc(1, sizeof(*server));
	struct slot *slots = calloc(CONTEXTS_MAX, sizeof(*slots));

	if (server == NULL || slots == NULL)
		log_die("There is no memory left.");
	server->core = core;
	server->slots = slots;
	server->pipes = pipes_open();
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->quiet, NULL);
	return server;
}

static void
server_free(struct server *server)
{
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->lock);
	pipes_close(&server->pipes);
	free(server->slots);
	free(server);
}

struct server *
server_start(const struct server_options *options, char *error, size_t error_bytes)
{
	struct server *server = server_alloc(options->core);
	int rv = nng_rep0_open(&server->socket);

	if (rv != 0) {
		server_free(server);
		snprintf(error, error_bytes, "nng: %s", nng_strerror(rv));
		return NULL;
	}
	if ((rv = socket_open(server)) != 0)
		snprintf(error, error_bytes, "nng: %s", nng_strerror(rv));
	else if (listen_all(server, options, error, error_bytes))
		return server;
	server_stop(&server);
	return NULL;
}

int
server_port(const struct server *server)
{
	return server->port;
}

void
server_drain(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->draining = true;
	pthread_mutex_unlock(&server->lock);
}

int
server_outstanding(struct server *server)
{
	int outstanding;

	pthread_mutex_lock(&server->lock);
	outstanding = server->outstanding;
	pthread_mutex_unlock(&server->lock);
	return outstanding;
}

static void
wait_until_quiet(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	while (server->working > 0)
		pthread_cond_wait(&server->quiet, &server->lock);
	pthread_mutex_unlock(&server->lock);
}

/* A send that began after nng_aio_stop() has left its message where it was. */
static void
slot_free(struct slot *slot)
{
	nng_msg_free(nng_aio_get_msg(slot->aio));
	nng_aio_free(slot->aio);
	arena_free(&slot->arena);
}

/* The socket goes after the slots and takes its listeners along: nng 1.5 must not close a listener
 * and its socket at the same time. */
void
server_stop(struct server **server)
{
	struct server *s = *server;

	*server = NULL;
	server_drain(s);
	wait_until_quiet(s);
	for (size_t i = 0; i < s->slots_n; i++)
		nng_aio_stop(s->slots[i].aio);
	for (size_t i = 0; i < s->slots_n; i++)
		nng_ctx_close(s->slots[i].ctx);
	nng_close(s->socket);
	for (size_t i = 0; i < s->slots_n; i++)
		slot_free(&s->slots[i]);
	server_free(s);
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define NNG_VERSION_TEXT VERSION_TEXT(NNG_MAJOR_VERSION, NNG_MINOR_VERSION, NNG_PATCH_VERSION)

const char *
server_library(void)
{
#if NNG_MAJOR_VERSION == 1 && NNG_MINOR_VERSION < 6
	return "nng " NNG_VERSION_TEXT " with link-time repairs";
#else
	return "nng " NNG_VERSION_TEXT;
#endif
}

/* SPDX-License-Identifier: MIT */
/*
 * One REQ socket, and for every call under way a context of its own, kept for later calls:
 *
 *	SENDING -> RECEIVING -> done
 *
 * Read titen_relay_start(), then carry_event(), its only callback; all other calls are built on
 * them.
 */
#include "client/client.h"
#include "client/relay.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>

#include "envelope.pb-c.h"

/* What a server reads, less nng's request id; above that it hangs up. */
#define REQUEST_BYTES_MAX (((size_t)1 << 20) + ((size_t)64 << 10) - 4)
#define REPLY_BYTES_MAX ((size_t)8 << 20) /* a page ends at 512 KiB; there is room to grow */
#define CONNECT_TIMEOUT_MS 5000
#define CALL_TIMEOUT_MS 30000
#define RECONNECT_MIN_MS 100  /* a server that starts again is found soon, */
#define RECONNECT_MAX_MS 1000 /* also when it was away for long */

enum carry_state { SENDING, RECEIVING };

/* What carries one call at a time. */
struct carry {
	struct titen_client *client;
	enum carry_state state;
	nng_ctx ctx;
	nng_aio *aio;
	nng_time deadline;
	titen_done *done;
	void *arg;
	struct carry *next; /* of all */
	struct carry *next_idle;
};

struct titen_client {
	nng_socket socket;
	char *authorization; /* "Bearer ...", or NULL */
	int32_t wait_ms;     /* for a connection; 0: as long as the call may take */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t quiet; /* no carry is busy */
	struct carry *all;
	struct carry *idle;
	int busy;
	bool closing;
};

/* --- carries */

static struct carry *carry_open(struct titen_client *client);

/* A carry to use, or NULL when nng has none to give. */
static struct carry *
carry_take(struct titen_client *client)
{
	struct carry *carry;

	pthread_mutex_lock(&client->lock);
	carry = client->idle;
	if (carry != NULL)
		client->idle = carry->next_idle;
	else
		carry = carry_open(client);
	if (carry != NULL)
		client->busy++;
	pthread_mutex_unlock(&client->lock);
	return carry;
}

/* From here on another call may use the carry, even before the callback that gives it back ends. */
static void
carry_give_back(struct carry *carry)
{
	struct titen_client *client = carry->client;

	pthread_mutex_lock(&client->lock);
	carry->next_idle = client->idle;
	client->idle = carry;
	pthread_mutex_unlock(&client->lock);
}

/* titen_close() waits for this: after it nothing of the client is touched. */
static void
carry_end(struct titen_client *client)
{
	pthread_mutex_lock(&client->lock);
	assert(client->busy > 0);
	if (--client->busy == 0)
		pthread_cond_broadcast(&client->quiet);
	pthread_mutex_unlock(&client->lock);
}

static void
carry_finish(struct carry *carry, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	struct titen_client *client = carry->client;
	titen_done *done = carry->done;
	void *arg = carry->arg;

	carry_give_back(carry);
	done(arg, outcome, reply);
	carry_end(client);
}

static nng_msg *
carry_message(struct carry *carry)
{
	nng_msg *msg = nng_aio_get_msg(carry->aio);

	nng_aio_set_msg(carry->aio, NULL);
	return msg;
}

/* A call that has waited long enough for a connection may have time left, and is lost all the same.
 */
static void
carry_fail(struct carry *carry, int result)
{
	bool late = result == NNG_ETIMEDOUT &&
		    (carry->state == RECEIVING || nng_clock() >= carry->deadline);

	nng_msg_free(carry_message(carry));
	carry_finish(carry, late ? TITEN_TIMED_OUT : TITEN_LOST, NULL);
}

static nng_duration
time_left(const struct carry *carry)
{
	nng_time now = nng_clock();
	nng_duration left = now < carry->deadline ? (nng_duration)(carry->deadline - now) : 1;
	int32_t wait_ms = carry->client->wait_ms;

	return carry->state == SENDING && wait_ms > 0 && wait_ms < left ? wait_ms : left;
}

/* Under the lock, so that titen_close() knows: from now on no thread is inside a context. */
static void
carry_start(struct carry *carry, enum carry_state state)
{
	struct titen_client *client = carry->client;
	bool closing;

	pthread_mutex_lock(&client->lock);
	closing = client->closing;
	carry->state = state;
	nng_aio_set_timeout(carry->aio, time_left(carry));
	if (!closing && state == SENDING)
		nng_ctx_send(carry->ctx, carry->aio);
	else if (!closing)
		nng_ctx_recv(carry->ctx, carry->aio);
	pthread_mutex_unlock(&client->lock);
	if (closing)
		carry_fail(carry, NNG_ECLOSED);
}

static void
carry_received(struct carry *carry)
{
	nng_msg *msg = carry_message(carry);
	Titen__V1__Reply *reply;

	reply = titen__v1__reply__unpack(NULL, nng_msg_len(msg), nng_msg_body(msg));
	nng_msg_free(msg);
	carry_finish(carry, reply != NULL ? TITEN_ANSWERED : TITEN_GARBLED, reply);
}

/* Receiving starts only now: nng 1.5 may crash when a receive is canceled while its request is
 * still queued. */
static void
carry_event(void *arg)
{
	struct carry *carry = arg;
	int result = nng_aio_result(carry->aio);

	if (result != 0)
		carry_fail(carry, result);
	else if (carry->state == SENDING)
		carry_start(carry, RECEIVING);
	else
		carry_received(carry);
}

static struct carry *
carry_open(struct titen_client *client)
{
	struct carry *carry = calloc(1, sizeof(*carry));

	if (carry == NULL)
		return NULL;
	carry->client = client;
	if (nng_ctx_open(&carry->ctx, client->socket) != 0)
		goto free_carry;
	if (nng_aio_alloc(&carry->aio, carry_event, carry) != 0)
		goto close_ctx;
	carry->next = client->all;
	client->all = carry;
	return carry;
close_ctx:
	nng_ctx_close(carry->ctx);
free_carry:
	free(carry);
	return NULL;
}

/* --- calls */

/* NULL when there is no memory. */
static nng_msg *
request_pack(const Titen__V1__Request *request, size_t bytes)
{
	nng_msg *msg;

	if (nng_msg_alloc(&msg, bytes) != 0)
		return NULL;
	titen__v1__request__pack(request, nng_msg_body(msg));
	return msg;
}

static void
request_start(struct titen_client *client, const Titen__V1__Request *request, size_t bytes,
    titen_done *done, void *arg)
{
	nng_msg *msg = request_pack(request, bytes);
	struct carry *carry = msg != NULL ? carry_take(client) : NULL;

	if (carry == NULL) {
		nng_msg_free(msg);
		done(arg, TITEN_LOST, NULL);
		return;
	}
	carry->deadline = nng_clock() + (nng_time)request->timeout_ms;
	carry->done = done;
	carry->arg = arg;
	nng_aio_set_msg(carry->aio, msg);
	carry_start(carry, SENDING);
}

void
titen_relay_start(
    struct titen_client *client, const Titen__V1__Request *request, titen_done *done, void *arg)
{
	size_t packed = titen__v1__request__get_packed_size(request);

	if (packed > REQUEST_BYTES_MAX)
		done(arg, TITEN_TOO_LARGE, NULL);
	else
		request_start(client, request, packed, done, arg);
}

void
titen_call_start(struct titen_client *client, const struct titen_call *call, const uint8_t *payload,
    size_t bytes, titen_done *done, void *arg)
{
	Titen__V1__Request request = TITEN__V1__REQUEST__INIT;

	request.method = (char *)call->method;
	request.has_payload = true;
	request.payload.data = (uint8_t *)payload;
	request.payload.len = bytes;
	request.authorization = client->authorization;
	request.idempotency_key = (char *)call->idempotency_key;
	request.has_timeout_ms = true;
	request.timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : CALL_TIMEOUT_MS;
	titen_relay_start(client, &request, done, arg);
}

/* A thread that waits for its call. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool finished;
	enum titen_outcome outcome;
	Titen__V1__Reply *reply;
};

static void
waiter_done(void *arg, enum titen_outcome outcome, Titen__V1__Reply *reply)
{
	struct waiter *waiter = arg;

	pthread_mutex_lock(&waiter->lock);
	waiter->finished = true;
	waiter->outcome = outcome;
	waiter->reply = reply;
	pthread_cond_signal(&waiter->changed);
	pthread_mutex_unlock(&waiter->lock);
}

enum titen_outcome
titen_call_packed(struct titen_client *client, const struct titen_call *call,
    const uint8_t *payload, size_t bytes, Titen__V1__Reply **reply)
{
	struct waiter waiter = { .finished = false };

	pthread_mutex_init(&waiter.lock, NULL);
	pthread_cond_init(&waiter.changed, NULL);
	titen_call_start(client, call, payload, bytes, waiter_done, &waiter);
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.finished)
		pthread_cond_wait(&waiter.changed, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	pthread_cond_destroy(&waiter.changed);
	pthread_mutex_destroy(&waiter.lock);
	*reply = waiter.reply;
	return waiter.outcome;
}

enum titen_outcome
titen_call(struct titen_client *client, const struct titen_call *call, Titen__V1__Reply **reply)
{
	size_t bytes = protobuf_c_message_get_packed_size(call->request);
	uint8_t *payload = malloc(bytes + 1); /* an empty message has a payload too */
	enum titen_outcome outcome;

	*reply = NULL;
	if (payload == NULL)
		return TITEN_LOST;
	protobuf_c_message_pack(call->request, payload);
	outcome = titen_call_packed(client, call, payload, bytes, reply);
	free(payload);
	return outcome;
}

void
titen_reply_free(Titen__V1__Reply *reply)
{
	titen__v1__reply__free_unpacked(reply, NULL);
}

const char *
titen_outcome_text(enum titen_outcome outcome)
{
	static const char *const texts[] = {
		[TITEN_ANSWERED] = "answered",
		[TITEN_TIMED_OUT] = "timed out",
		[TITEN_LOST] = "connection lost",
		[TITEN_GARBLED] = "the answer is not one of a Titen server",
		[TITEN_TOO_LARGE] = "the request is larger than 1 MiB",
	};

	return texts[outcome];
}

/* --- the connection */

/* nng_dialer_start() waits as long as the kernel and the peer like, so a timer closes the dialer.
 */
struct patience {
	nng_dialer dialer;
	nng_aio *timer;
};

/* Called when the timer is stopped, too. */
static void
patience_ends(void *arg)
{
	struct patience *patience = arg;

	if (nng_aio_result(patience->timer) == 0)
		nng_dialer_close(patience->dialer);
}

static int
start_in_time(nng_dialer dialer, int32_t timeout_ms)
{
	struct patience patience = { .dialer = dialer };
	int rv = nng_aio_alloc(&patience.timer, patience_ends, &patience);

	if (rv != 0)
		return rv;
	nng_sleep_aio(timeout_ms, patience.timer);
	rv = nng_dialer_start(dialer, 0);
	nng_aio_stop(patience.timer);
	if (nng_aio_result(patience.timer) == 0)
		rv = NNG_ETIMEDOUT;
	nng_aio_free(patience.timer);
	return rv;
}

/* LATER: the server may be away now; nng goes on trying. */
static int
dial(nng_socket socket, const struct titen_options *options, bool later)
{
	int32_t timeout_ms = options->connect_timeout_ms;
	nng_dialer dialer;
	int rv;

	if ((rv = nng_dialer_create(&dialer, socket, options->url)) != 0)
		return rv;
	if (strncmp(options->url, "tcp", 3) == 0 &&
	    (rv = nng_dialer_set_bool(dialer, NNG_OPT_TCP_KEEPALIVE, true)) != 0)
		return rv;
	if (later)
		return nng_dialer_start(dialer, NNG_FLAG_NONBLOCK);
	return start_in_time(dialer, timeout_ms > 0 ? timeout_ms : CONNECT_TIMEOUT_MS);
}

/* Without a resend time nng would send a request again on its own, after a while and whenever the
 * connection breaks. */
static int
connect_socket(nng_socket socket, const struct titen_options *options, bool later)
{
	int rv;

	if ((rv = nng_socket_set_ms(socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE)) != 0 ||
	    (rv = nng_socket_set_ms(socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) != 0 ||
	    (rv = nng_socket_set_ms(socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) != 0 ||
	    (rv = nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, REPLY_BYTES_MAX)) != 0)
		return rv;
	return dial(socket, options, later);
}

static bool
authorization_set(struct titen_client *client, const char *key)
{
	if (key == NULL || asprintf(&client->authorization, "Bearer %s", key) >= 0)
		return true;
	client->authorization = NULL;
	return false;
}

static void
client_free(struct titen_client *client)
{
	pthread_cond_destroy(&client->quiet);
	pthread_mutex_destroy(&client->lock);
	free(client->authorization);
	free(client);
}

static struct titen_client *
client_open(const struct titen_options *options, int32_t wait_ms, char *error, size_t error_bytes)
{
	struct titen_client *client = calloc(1, sizeof(*client));
	int rv = NNG_ENOMEM;

	if (client == NULL)
		goto say_why;
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->quiet, NULL);
	client->wait_ms = wait_ms;
	if (!authorization_set(client, options->key))
		goto free_client;
	if ((rv = nng_req0_open(&client->socket)) != 0)
		goto free_client;
	if ((rv = connect_socket(client->socket, options, wait_ms > 0)) == 0)
		return client;
	nng_close(client->socket);
free_client:
	client_free(client);
say_why:
	snprintf(error, error_bytes, "cannot connect to %s: %s", options->url, nng_strerror(rv));
	return NULL;
}

struct titen_client *
titen_connect(const struct titen_options *options, char *error, size_t error_bytes)
{
	return client_open(options, 0, error, error_bytes);
}

struct titen_client *
titen_relay_open(const char *url, int32_t wait_ms, char *error, size_t error_bytes)
{
	assert(wait_ms > 0);
	return client_open(&(struct titen_options){ .url = url }, wait_ms, error, error_bytes);
}

/* Every call ends, then the callbacks, then the socket: nng 1.5 frees a socket even while another
 * thread is still inside one of its contexts. */
static void
end_calls(struct titen_client *client)
{
	struct carry *all;

	pthread_mutex_lock(&client->lock);
	client->closing = true;
	all = client->all;
	pthread_mutex_unlock(&client->lock);
	for (struct carry *carry = all; carry != NULL; carry = carry->next)
		nng_aio_cancel(carry->aio);
	pthread_mutex_lock(&client->lock);
	while (client->busy > 0)
		pthread_cond_wait(&client->quiet, &client->lock);
	pthread_mutex_unlock(&client->lock);
}

void
titen_close(struct titen_client **client)
{
	struct titen_client *c = *client;
	struct carry *next;

	end_calls(c); /* callbacks may still use *CLIENT */
	*client = NULL;
	for (struct carry *carry = c->all; carry != NULL; carry = carry->next) {
		nng_aio_stop(carry->aio);
		nng_ctx_close(carry->ctx);
	}
	nng_close(c->socket);
	for (struct carry *carry = c->all; carry != NULL; carry = next) {
		next = carry->next;
		nng_aio_free(carry->aio);
		free(carry);
	}
	client_free(c);
}

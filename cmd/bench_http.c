/* SPDX-License-Identifier: MIT */
/*
 * One thread, one epoll, and a slot for each connection; a slot sends its next request when its
 * answer is complete. This reads what a well-behaved server sends, and calls anything else garbled.
 *
 * Read http_calls(), then slot_readable().
 */
#include "cmd/bench_http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 64      /* of one look */
#define TIMEOUT_MS 30000   /* as long as a call over nng waits */
#define REQUEST_BYTES 1024 /* a key has 52 and a host name at most 253 */
#define ANSWER_BYTES 8192  /* an acquire is answered in a few hundred */

struct slot {
	struct bench_http *http;
	int number;
	int fd; /* -1: none */
	bool waiting;
	uint32_t round; /* makes names fresh */
	int64_t began_ns;
	size_t request_bytes;
	size_t answer_bytes; /* that have arrived */
	char answer[ANSWER_BYTES + 1];
};

struct bench_http {
	struct addrinfo *address;
	char *authority;     /* HOST:PORT */
	char *authorization; /* header line, or "" */
	int outstanding;
	uint32_t run; /* random: two runs on one database take different resources */
	int epoll;
	int waiting; /* slots that are */
	bool baseline;
	struct bench_load *load;
	struct slot *slots;
};

/* --- connections */

static bool
slot_connect(struct slot *slot)
{
	const struct addrinfo *to = slot->http->address;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = slot };
	int on = 1;

	slot->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (slot->fd < 0)
		return false;
	if (connect(slot->fd, to->ai_addr, to->ai_addrlen) == 0 &&
	    setsockopt(slot->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
	    epoll_ctl(slot->http->epoll, EPOLL_CTL_ADD, slot->fd, &event) == 0)
		return true;
	close(slot->fd);
	slot->fd = -1;
	return false;
}

static void
slot_disconnect(struct slot *slot)
{
	if (slot->fd >= 0)
		close(slot->fd);
	slot->fd = -1;
}

/* --- requests */

static size_t
request_write(struct slot *slot, char out[static REQUEST_BYTES])
{
	const struct bench_http *http = slot->http;
	char body[256];
	int bytes;

	if (http->baseline)
		return (size_t)snprintf(out, REQUEST_BYTES,
		    "GET /healthz HTTP/1.1\r\nHost: %s\r\n%s\r\n", http->authority,
		    http->authorization);
	bytes = snprintf(body, sizeof(body),
	    "{\"resource_type\":\"benchmark\",\"resource_id\":\"%08x-%04x-%08x\","
	    "\"purpose\":\"how fast is this\",\"ttl_seconds\":86400}",
	    http->run, (unsigned)slot->number, slot->round++);
	return (size_t)snprintf(out, REQUEST_BYTES,
	    "POST /v1/leases HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\n"
	    "Content-Length: %d\r\n\r\n%s",
	    http->authority, http->authorization, bytes, body);
}

/* A request is small, and the answer to the last one has come: it always fits the socket. */
static bool
slot_send(struct slot *slot)
{
	char request[REQUEST_BYTES];
	size_t bytes = request_write(slot, request);

	slot->request_bytes = bytes;
	slot->answer_bytes = 0;
	slot->began_ns = bench_load_now_ns();
	return slot->fd >= 0 &&
	       send(slot->fd, request, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

static void
slot_stop(struct slot *slot)
{
	slot->waiting = false;
	slot->http->waiting--;
	bench_load_leave(slot->http->load);
}

static void
slot_fail(struct slot *slot, enum titen_outcome outcome)
{
	const struct bench_end end = { .began_ns = slot->began_ns, .outcome = outcome };

	slot_disconnect(slot);
	bench_load_count(slot->http->load, &end);
	slot_stop(slot);
}

static void
slot_begin(struct slot *slot)
{
	if (!slot_send(slot))
		slot_fail(slot, TITEN_LOST);
}

/* --- answers */

enum progress { GARBLED, PARTIAL, COMPLETE };

/* The statuses of status.def are all different. */
static enum status
http_status(int number)
{
	if (number >= 200 && number < 300)
		return STATUS_OK;
	for (int st = STATUS_OK + 1; st < STATUS_COUNT; st++)
		if (status_http((enum status)st) == number)
			return (enum status)st;
	return STATUS_INTERNAL;
}

static enum progress
answer_look(const struct slot *slot, enum status *st_r)
{
	const char *end = strstr(slot->answer, "\r\n\r\n");
	const char *length;
	size_t bytes;
	int number;

	if (end == NULL)
		return slot->answer_bytes < ANSWER_BYTES ? PARTIAL : GARBLED;
	length = strcasestr(slot->answer, "\r\nContent-Length:");
	if (sscanf(slot->answer, "HTTP/1.1 %3d", &number) != 1 || length == NULL || length > end)
		return GARBLED;
	*st_r = http_status(number);
	bytes = (size_t)(end + 4 - slot->answer) +
		strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
	if (slot->answer_bytes < bytes)
		return bytes <= ANSWER_BYTES ? PARTIAL : GARBLED;
	return slot->answer_bytes == bytes ? COMPLETE : GARBLED;
}

static void
slot_answered(struct slot *slot, enum status st)
{
	const struct bench_end end = { .began_ns = slot->began_ns,
		.outcome = TITEN_ANSWERED,
		.st = st,
		.request_bytes = slot->request_bytes,
		.reply_bytes = slot->answer_bytes };

	if (bench_load_count(slot->http->load, &end))
		slot_begin(slot);
	else
		slot_stop(slot);
}

static void
slot_readable(struct slot *slot)
{
	enum status st = STATUS_OK;
	enum progress progress;
	ssize_t n = recv(slot->fd, slot->answer + slot->answer_bytes,
	    ANSWER_BYTES - slot->answer_bytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (!slot->waiting) { /* the server closes an idle connection, or speaks unasked */
		slot_disconnect(slot);
		return;
	}
	if (n <= 0) {
		slot_fail(slot, TITEN_LOST);
		return;
	}
	slot->answer_bytes += (size_t)n;
	slot->answer[slot->answer_bytes] = '\0';
	progress = answer_look(slot, &st);
	if (progress == COMPLETE)
		slot_answered(slot, st);
	else if (progress == GARBLED)
		slot_fail(slot, TITEN_GARBLED);
}

/* --- the door */

static void
http_await(struct bench_http *http)
{
	struct epoll_event events[EVENTS_MAX];

	while (http->waiting > 0) {
		int n = epoll_wait(http->epoll, events, EVENTS_MAX, TIMEOUT_MS);
		for (int i = 0; i < n; i++)
			slot_readable(events[i].data.ptr);
		if (n != 0)
			continue;
		for (int i = 0; i < http->outstanding; i++)
			if (http->slots[i].waiting)
				slot_fail(&http->slots[i], TITEN_TIMED_OUT);
	}
}

static void
http_calls(void *door, bool baseline, struct bench_load *load)
{
	struct bench_http *http = door;

	http->baseline = baseline;
	http->load = load;
	for (int i = 0; i < http->outstanding && bench_load_take(load); i++) {
		struct slot *slot = &http->slots[i];
		slot->waiting = true;
		http->waiting++;
		if (slot->fd < 0)
			slot_connect(slot);
		slot_begin(slot);
	}
	http_await(http);
}

struct bench_door
bench_http_door(struct bench_http *http)
{
	return (struct bench_door){ http, http_calls };
}

/* --- opening */

static bool
url_resolve(struct bench_http *http, struct arena *arena, const char *url, const char **error_r)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	static const char scheme[] = "http://";
	char *colon, *host;
	int rv;

	if (strncmp(url, scheme, strlen(scheme)) != 0 || strlen(url) > REQUEST_BYTES / 3) {
		*error_r = "the url is not http://HOST:PORT";
		return false;
	}
	http->authority = arena_text(arena, url + strlen(scheme));
	http->authority[strcspn(http->authority, "/")] = '\0';
	host = arena_text(arena, http->authority);
	colon = strrchr(host, ':');
	if (colon != NULL)
		*colon = '\0';
	rv = getaddrinfo(host, colon == NULL ? "80" : colon + 1, &hints, &http->address);
	if (rv != 0)
		*error_r = gai_strerror(rv);
	return rv == 0;
}

static bool
connect_all(struct bench_http *http, struct arena *arena, const char **error_r)
{
	http->slots = arena_alloc(arena, (size_t)http->outstanding * sizeof(*http->slots));
	for (int i = 0; i < http->outstanding; i++) {
		http->slots[i].http = http;
		http->slots[i].number = i;
		http->slots[i].fd = -1;
	}
	for (int i = 0; i < http->outstanding; i++)
		if (!slot_connect(&http->slots[i])) {
			*error_r = strerror(errno);
			return false;
		}
	return true;
}

struct bench_http *
bench_http_open(
    struct arena *arena, const char *url, const char *key, int outstanding, const char **error_r)
{
	struct bench_http *http = arena_alloc(arena, sizeof(*http));

	http->outstanding = outstanding;
	http->run = randombytes_random();
	http->authorization = key == NULL
				  ? arena_text(arena, "")
				  : arena_printf(arena, "Authorization: Bearer %.200s\r\n", key);
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (url_resolve(http, arena, url, error_r) && connect_all(http, arena, error_r))
		return http;
	bench_http_close(&http);
	return NULL;
}

void
bench_http_close(struct bench_http **http)
{
	struct bench_http *h = *http;

	*http = NULL;
	for (int i = 0; h->slots != NULL && i < h->outstanding; i++)
		slot_disconnect(&h->slots[i]);
	if (h->address != NULL)
		freeaddrinfo(h->address);
	close(h->epoll);
}

/* SPDX-License-Identifier: MIT */
/* civetweb, set up: its settings, its callbacks, start and stop. */
#include "gateway/gateway.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <civetweb.h>

#include "core/log.h"
#include "gateway/backend.h"
#include "gateway/http.h"
#include "gateway/patience.h"
#include "gateway/remote.h"
#include "gateway/route.h"
#include "gateway/sockets.h"
#include "gateway/tags.h"

#define WORKERS "512" /* one serves one connection, idle or not, and costs 40 KB when it waits */

struct gateway {
	struct http_door door;
	struct remote *remote; /* NULL: the core is in this process */
	struct mg_context *web;
	int port;
	struct sockaddr_in address; /* listened on */
	atomic_bool stopped;        /* the web server is gone */
};

static bool
backend_open(struct gateway *g, const struct gateway_options *options, char *error, size_t bytes)
{
	if (options->core_url == NULL) {
		g->door.backend = backend_of_core(options->core);
		return true;
	}
	g->remote = remote_start(options->core_url, options->revision, error, bytes);
	if (g->remote != NULL)
		g->door.backend = remote_backend(g->remote);
	return g->remote != NULL;
}

/* Every request ends here: what civetweb would do beyond HTTP itself (files, CORS, WebSocket) comes
 * later in its order. */
static int
on_request(struct mg_connection *conn)
{
	struct gateway *g = mg_get_user_data(mg_get_context(conn));

	return http_serve(&g->door, conn);
}

static int
on_error(struct mg_connection *conn, int status, const char *message)
{
	struct gateway *g = mg_get_user_data(mg_get_context(conn));

	(void)message; /* quotes the client */
	http_reject(&g->door, conn, status);
	return 0;
}

static int
on_log(const struct mg_connection *conn, const char *message)
{
	/* About a connection it may quote the client. */
	if (conn == NULL)
		log_line(LOG_LEVEL_WARNING, "The web server says: %s", message);
	return 1;
}

/* HOST:PORT and nothing else: civetweb would take a list, and an "s" behind the port for TLS. */
static bool
listen_fit(const char *listen)
{
	const char *colon = strchr(listen, ':');
	size_t digits = colon == NULL ? 0 : strspn(colon + 1, "0123456789");

	return colon != NULL && colon != listen && strchr(listen, ',') == NULL && digits > 0 &&
	       digits <= 5 && colon[1 + digits] == '\0' && atoi(colon + 1) <= 65535;
}

static struct sockaddr_in
listen_address(const char *listen, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	char host[INET_ADDRSTRLEN];

	snprintf(host, sizeof(host), "%.*s", (int)strcspn(listen, ":"), listen);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

/* Paths are decoded by our own rules, OPTIONS is answered by us, and there is no document root. */
static struct mg_context *
web_start(struct gateway *g, const char *listen, char *fault, size_t fault_bytes)
{
	/* clang-format off */
	const char *settings[] = {
		"listening_ports", listen,
		"num_threads", WORKERS,
		"enable_keep_alive", "yes",
		"keep_alive_timeout_ms", "10000",
		"request_timeout_ms", "5000",
		"tcp_nodelay", "1",
		"listen_backlog", "1024",
		"connection_queue", WORKERS,
		"max_request_size", "16384",
		"decode_url", "no",
		"decode_query_string", "no",
		"access_control_allow_methods", "",
		"access_control_allow_origin", "",
		"enable_directory_listing", "no",
		NULL,
	};
	/* clang-format on */
	const struct mg_callbacks callbacks = {
		.begin_request = on_request,
		.http_error = on_error,
		.log_message = on_log,
	};
	struct mg_init_data init = { &callbacks, g, settings };
	unsigned code = 0;
	struct mg_error_data data = { &code, fault, fault_bytes };

	return mg_start2(&init, &data);
}

struct gateway *
gateway_start(const struct gateway_options *options, char *error, size_t error_bytes)
{
	struct mg_server_port ports[1];
	char web_fault[160] = "";
	const char *fault;

	if (!route_check(&fault) || !tags_check(&fault)) {
		snprintf(error, error_bytes, "The table of routes is wrong: %s.", fault);
		return NULL;
	}
	if (!listen_fit(options->listen)) {
		snprintf(error, error_bytes, "%s is not HOST:PORT.", options->listen);
		return NULL;
	}
	struct gateway *g = calloc(1, sizeof(*g));
	if (g == NULL || (g->door.patience = patience_open()) == NULL)
		log_die("There is no memory for the gateway.");
	mg_init_library(MG_FEATURES_DEFAULT);
	if (!backend_open(g, options, error, error_bytes)) {
		gateway_stop(&g);
		return NULL;
	}
	g->web = web_start(g, options->listen, web_fault, sizeof(web_fault));
	if (g->web == NULL || mg_get_server_ports(g->web, 1, ports) != 1) {
		snprintf(error, error_bytes, "http://%s cannot be opened: %s", options->listen,
		    web_fault);
		gateway_stop(&g);
		return NULL;
	}
	g->port = ports[0].port;
	g->address = listen_address(options->listen, g->port);
	return g;
}

int
gateway_port(const struct gateway *gateway)
{
	return gateway->port;
}

int
gateway_outstanding(struct gateway *gateway)
{
	return atomic_load(&gateway->door.outstanding);
}

void
gateway_drain(struct gateway *gateway)
{
	atomic_store(&gateway->door.draining, true);
}

/* civetweb looks whether it shall stop when somebody connects or a connection ends, else every two
 * seconds. Nobody is being answered any more. */
static void *
wake_main(void *arg)
{
	const struct timespec moment = { 0, 10000000 };
	struct gateway *g = arg;

	while (!atomic_load(&g->stopped)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd < 0)
			break;
		sockets_shut(g->port, NULL, SHUT_RD);
		(void)connect(fd, (const struct sockaddr *)&g->address, sizeof(g->address));
		nanosleep(&moment, NULL);
		close(fd);
	}
	return NULL;
}

static void
web_stop(struct gateway *g)
{
	pthread_t waker;
	bool waking = pthread_create(&waker, NULL, wake_main, g) == 0;

	mg_stop(g->web);
	atomic_store(&g->stopped, true);
	if (waking)
		pthread_join(waker, NULL);
}

void
gateway_stop(struct gateway **gateway)
{
	const struct timespec moment = { 0, 1000000 };
	struct gateway *g = *gateway;

	/* Once it stops, civetweb writes nothing any more. */
	gateway_drain(g);
	atomic_store(&g->door.stopping, true);
	while (gateway_outstanding(g) > 0)
		nanosleep(&moment, NULL);
	if (g->web != NULL)
		web_stop(g);
	if (g->remote != NULL)
		remote_stop(&g->remote);
	patience_close(&g->door.patience);
	mg_exit_library();
	free(g);
	*gateway = NULL;
}

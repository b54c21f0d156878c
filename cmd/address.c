/* SPDX-License-Identifier: MIT */
/* Addresses are looked at here so that people read what is wrong instead of what a library says. */
#include "cmd/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP "tcp://"
#define IPC "ipc://"

static bool
starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* The port of HOST:PORT, or -1 when TEXT is none. */
static int
port_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits;
	long port;

	if (colon == NULL || colon == text || strpbrk(text, "/ ") != NULL)
		return -1;
	digits = strspn(colon + 1, "0123456789");
	if (digits == 0 || digits > 5 || colon[1 + digits] != '\0')
		return -1;
	port = strtol(colon + 1, NULL, 10);
	return port <= 65535 ? (int)port : -1;
}

static const char *
host_of(struct arena *arena, const char *text)
{
	return arena_text_n(arena, text, (size_t)(strrchr(text, ':') - text));
}

bool
address_http(struct arena *arena, const char *text, const char **error_r)
{
	struct in_addr address;
	const char *host;

	if (port_of(text) < 0) {
		*error_r = arena_printf(arena, "%s is not HOST:PORT", text);
		return false;
	}
	host = host_of(arena, text);
	if (inet_pton(AF_INET, host, &address) == 1)
		return true;
	*error_r = strpbrk(host, ":[") != NULL
		       ? "IPv6 is not supported; put a proxy in front"
		       : arena_printf(arena, "%s: give an IPv4 address", host);
	return false;
}

bool
address_url(struct arena *arena, const char *url, const char **error_r)
{
	if (starts_with(url, TCP) && port_of(url + strlen(TCP)) >= 0)
		return true;
	if (!starts_with(url, IPC "/"))
		*error_r =
		    arena_printf(arena, "%s is neither tcp://HOST:PORT nor ipc:///PATH", url);
	else if (strlen(url + strlen(IPC)) > SOCKET_PATH_BYTES)
		*error_r =
		    arena_printf(arena, "%s has a path longer than the %d bytes of a local socket",
			url, SOCKET_PATH_BYTES);
	else
		return true;
	return false;
}

bool
address_any_port(const char *url)
{
	return starts_with(url, TCP) && port_of(url + strlen(TCP)) == 0;
}

/* As the HTTP library binds: a port that only remembers old connections is free. */
bool
address_free(struct arena *arena, const char *text, const char **error_r)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port_of(text)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;
	bool bound;

	inet_pton(AF_INET, host_of(arena, text), &address.sin_addr);
	bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
		bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (!bound && errno == EADDRINUSE)
		*error_r =
		    arena_printf(arena, "http://%s is in use; choose another with --http", text);
	else if (!bound)
		*error_r = arena_printf(arena, "http://%s: %s", text, strerror(errno));
	if (fd >= 0)
		close(fd);
	return bound;
}

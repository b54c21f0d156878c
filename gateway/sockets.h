/* SPDX-License-Identifier: MIT */
/* The sockets behind civetweb's connections. It shows none, so they are found among the descriptors
 * of the process by where they lead. */
#ifndef TITEN_GATEWAY_SOCKETS_H
#define TITEN_GATEWAY_SOCKETS_H

#include <netinet/in.h>

/* shutdown(2), in the direction HOW, every TCP connection that was accepted on PORT and comes from
 * PEER; NULL: from anybody. A connection meant by PEER must not be closed meanwhile. Any thread. */
void sockets_shut(int port, const struct sockaddr_in *peer, int how);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the server knows about its connections: how many there are, how many requests of each are
 * under way, and which came through the owner's local socket. Any thread.
 */
#ifndef TITEN_TRANSPORT_PIPES_H
#define TITEN_TRANSPORT_PIPES_H

#include <stdbool.h>

/* Connections. Each may hold one frame that is not complete yet, 1.06 MiB, before anybody has said
 * who it is; and agents share connections. */
#define PIPES_MAX 1024
/* Requests under way on one connection: it cannot take every context of the server. */
#define PIPE_OUTSTANDING_MAX 1024

struct pipes;

/* At most PIPES_MAX connections, and less when the process may not have so many descriptors. */
struct pipes *pipes_open(void);
void pipes_close(struct pipes **pipes);

/* A new connection. False: there are enough already, and it is not known afterwards. */
bool pipes_add(struct pipes *pipes, int id, bool local);
/* It is gone. One that is not known is no mistake. */
void pipes_remove(struct pipes *pipes, int id);

/* A request came in on ID; pipes_end() it when it is answered, whatever this returns. False: more
 * than PIPE_OUTSTANDING_MAX are under way there. *LOCAL: whether the connection is the owner's; not
 * so when it is gone already. */
bool pipes_begin(struct pipes *pipes, int id, bool *local);
void pipes_end(struct pipes *pipes, int id);

#endif

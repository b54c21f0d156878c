/* SPDX-License-Identifier: MIT */
/*
 * How a command that serves comes to its end: the first SIGTERM or SIGINT lets it answer what is
 * under way, a second one ends it at once. Main thread.
 */
#ifndef TITEN_CMD_STOP_H
#define TITEN_CMD_STOP_H

/* Before any library starts a thread, so that none of them takes the signals. */
void stop_block(void);

/* Until the first signal. */
void stop_wait(void);

/* Until OUTSTANDING(ARG), the calls under way, is 0; 10 seconds at most. */
void stop_drain(int (*outstanding)(void *arg), void *arg);

#endif

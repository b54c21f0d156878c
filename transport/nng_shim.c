/* SPDX-License-Identifier: MIT */
/*
 * Repairs for nng before 1.6, made where the program is linked: --wrap sends the calls inside
 * libnng.a through the functions below. They use internal symbols that only the static library
 * has. nng 1.6 contains both fixes, so with it this file is not built.
 *
 * 1. A receive or send that is started on a stopped aio is dropped without a completion
 *    (github.com/nanomsg/nng, #1636). The transport that started it waits for ever, and with it
 *    the one thread that reaps connections: descriptors leak from then on and nng_close() hangs.
 *    A peer that dies with requests under way is enough. Here such an operation is completed with
 *    an error.
 *
 *    This is sound because the transports start their operations with the lock of the pipe held
 *    and mark the pipe closed under that lock before they stop its aios. An aio that comes back
 *    neither queued nor finished, with the result "canceled", can only have been refused.
 *
 * 2. A peer that goes away during the handshake makes sendmsg() fail with EPIPE, which nng takes
 *    for a closed listener, and it stops accepting (#1518). ECONNRESET it takes for what it is: a
 *    lost connection.
 *
 * 3. nng starts two threads for every processor and lets nobody say otherwise. They all
 *    contend for the lock of the one socket: with a single pair a call costs the server a fifth less
 *    processor time, and no rate that we could measure suffers.
 */
#include <errno.h>
#include <sys/socket.h>
#include <nng/nng.h>

/* Names of nng and of the linker, not ours to choose. */
int nni_aio_list_active(nng_aio *aio);
int nni_aio_result(nng_aio *aio);
void nni_aio_finish_error(nng_aio *aio, int error);

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
void __real_nng_stream_recv(nng_stream *stream, nng_aio *aio);
void __wrap_nng_stream_recv(nng_stream *stream, nng_aio *aio);
void __real_nng_stream_send(nng_stream *stream, nng_aio *aio);
void __wrap_nng_stream_send(nng_stream *stream, nng_aio *aio);

int __wrap_nni_plat_ncpu(void);

static void
finish_if_refused(nng_aio *aio)
{
	if (!nni_aio_list_active(aio) && nni_aio_result(aio) == NNG_ECANCELED)
		nni_aio_finish_error(aio, NNG_ECONNSHUT);
}

void
__wrap_nng_stream_recv(nng_stream *stream, nng_aio *aio)
{
	__real_nng_stream_recv(stream, aio);
	finish_if_refused(aio);
}

void
__wrap_nng_stream_send(nng_stream *stream, nng_aio *aio)
{
	__real_nng_stream_send(stream, aio);
	finish_if_refused(aio);
}

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = __real_sendmsg(fd, message, flags);

	if (sent < 0 && errno == EPIPE)
		errno = ECONNRESET;
	return sent;
}

int
__wrap_nni_plat_ncpu(void)
{
	return 1;
}

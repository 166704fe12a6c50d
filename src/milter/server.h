/* The socket's side of the milter floor: one epoll set with all connections,
 * and a pool of threads that take turns to serve what is ready, oldest first.
 *
 * A connection is armed for one event at a time, so that one thread has it.
 * That thread reads what is there in one call, takes whole packets, and sends
 * all replies in one call. The rest of a packet that is not whole is kept
 * with the connection; buffers are the threads'. An idle connection costs a
 * few hundred bytes and no thread.
 *
 * Few threads run at a time; more would only disturb each other. But for each
 * one that waits (base/blocking.h: for DNS, the signer, the disk) another may
 * run. */
#ifndef MILTER_SERVER_H
#define MILTER_SERVER_H

#include "milter/connection.h"

#define SERVER_MAX_THREADS 4096
#define SERVER_SEND_MS     60000 /* for an MTA that does not take its reply */
#define SERVER_SPARE_MS    10000 /* then an idle thread more than needed ends */
#define SERVER_SILENCE_US  7200000000 /* then a connection is hung up */

/* Begin to serve `m->options.listen_fd`, which listens. Signals should be
 * blocked: its threads are made with the caller's mask. */
HN_CHECK enum res server_start(struct milter *m);

#endif

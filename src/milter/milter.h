/* The MTA's side of flow: what an MTA says in the milter protocol becomes
 * calls of flow, and flow's decisions become replies. One per process.
 *
 *   server.c      the socket: who is ready, threads, reading and writing
 *   command.c     one packet of the MTA
 *   reply.c       one decision
 *   connection.c  what is kept of a connection, and counted
 *   macros.c      what the MTA tells beside its commands
 *   wire.c        the protocol's bytes
 *   guard.c       which message was under way when a process died
 *
 * The protocol is spoken here and not by libmilter, which reads each packet
 * with four system calls: of 125 that a message of 20 header fields took, 105
 * were these.
 *
 * A session keeps the environment of the moment it began; after the caller
 * swaps it, only new sessions see the new one. Different threads work on one
 * session, never two at once.
 *
 * Stopping: milter_drain() lets no message begin any more,
 * milter_wait_idle() waits until those under way are answered; then the
 * process leaves with _exit. */
#ifndef MILTER_MILTER_H
#define MILTER_MILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/res.h"
#include "flow/env.h"
#include "milter/guard.h"

/* "Still at it" for the MTA while an answer takes longer: its patience is
 * 300 s with Postfix and is then renewed. */
#define MILTER_PROGRESS_US 20000000
#define MILTER_BACKLOG     1024

struct milter_options {
	int listen_fd; /* bound */
	/* The environment of now, to be given back when the session ends; may
	 * be called by any thread. */
	const struct flow_env *(*env_take)(void *context);
	void (*env_give)(void *context, const struct flow_env *env);
	void *context;
	int64_t progress_us; /* 0: MILTER_PROGRESS_US */
	struct guard *guard; /* NULL: no marks of messages under way */
};

/* Listen, start the threads (with signals blocked). To be called once. RES_IO with a line in `err`. */
HN_CHECK enum res milter_start(const struct milter_options *o, struct err *err);

struct milter_counts {
	unsigned sessions;     /* connections of the MTA */
	unsigned transactions; /* messages between MAIL and their answer */
	bool running;          /* false: the socket was lost */
};
void milter_counts(struct milter_counts *out);

void milter_drain(void);
/* RES_TIMEOUT when a message is still under way at `deadline_us`. */
HN_CHECK enum res milter_wait_idle(int64_t deadline_us);

#endif

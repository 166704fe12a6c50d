/* The MTA's side of flow: libmilter's callbacks, a few lines each, and an
 * MTA's answers made from decisions. libmilter allows one per process.
 *
 * A session keeps the environment of the moment it began; after the caller
 * swaps it, only new sessions see the new one. libmilter runs the callbacks
 * of one session on different threads, never two at once.
 *
 * Stopping: milter_drain() lets no message begin any more,
 * milter_wait_idle() waits until those under way are answered; then the
 * process leaves with _exit (libmilter's own stop takes up to 5 s). */
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
/* An answer just made needs this long to be on its way. */
#define MILTER_REPLY_GRACE_US 200000

struct milter_options {
	int listen_fd; /* bound; libmilter listens on it */
	/* The environment of now, to be given back when the session ends; may
	 * be called by any thread. */
	const struct flow_env *(*env_take)(void *context);
	void (*env_give)(void *context, const struct flow_env *env);
	void *context;
	int64_t progress_us; /* 0: MILTER_PROGRESS_US */
	struct guard *guard; /* NULL: no marks of messages under way */
};

/* Register, open the socket, start the threads (with signals blocked). To be
 * called once. RES_IO with a line in `err`. */
HN_CHECK enum res milter_start(const struct milter_options *o, struct err *err);

struct milter_counts {
	unsigned sessions;     /* connections of the MTA */
	unsigned transactions; /* messages between MAIL and their answer */
	bool running;          /* false: libmilter gave up */
};
void milter_counts(struct milter_counts *out);

void milter_drain(void);
/* RES_TIMEOUT when a message is still under way at `deadline_us`. */
HN_CHECK enum res milter_wait_idle(int64_t deadline_us);

#endif

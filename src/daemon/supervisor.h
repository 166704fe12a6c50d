/* The first process: single-threaded, the only one that may be root. It reads
 * the configuration, opens keys and socket, starts signer and milter process,
 * starts them again when they die, and owns the signals:
 *
 *   HUP   read configuration and keys again; the old ones stay on any error
 *   TERM, INT   let messages under way be answered, then leave; a second one
 *               leaves at once
 *
 * While no milter process is there, connections of the MTA are accepted and
 * closed, so that its clients get a 4xx at once instead of a timeout. */
#ifndef DAEMON_SUPERVISOR_H
#define DAEMON_SUPERVISOR_H

#include "base/res.h"

#define SUPERVISOR_DRAIN_US 30000000 /* for messages under way at TERM */
#define SUPERVISOR_START_US 90000000 /* for a role to get ready */

struct supervisor_options {
	const char *path;   /* of the configuration */
	void (*started)(void); /* called once when all work; may be NULL */
};

/* Until told to stop; returns the exit status (sysexits). */
int supervisor_run(const struct supervisor_options *o);

/* `hanaperd -t`: print what is wrong, one line each; 0 or EX_CONFIG. */
int supervisor_test(const char *path);

#endif

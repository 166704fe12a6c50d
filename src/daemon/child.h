/* One role's process as the supervisor sees it: started by fork and exec of
 * our own program, spoken to over a control socket, started again with a
 * growing pause when it dies. */
#ifndef DAEMON_CHILD_H
#define DAEMON_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/res.h"
#include "base/account.h"
#include "daemon/ipc.h"

#define CHILD_FIRST_PAUSE_US 100000
#define CHILD_MAX_PAUSE_US   30000000
#define CHILD_CALM_US        60000000 /* lived so long: pauses begin anew */

struct child {
	const char *role;    /* "signer", "milter" */
	pid_t pid;           /* 0: not running */
	int control;         /* -1: not running, or it closed it */
	bool ready;          /* does its work */
	bool answered;       /* a reply is in `reply` */
	bool parted;         /* IPC_PARTED came */
	bool good;           /* that reply was IPC_DONE */
	char reply[1024];    /* text of IPC_ERROR */
	int64_t started_us, start_at_us, pause_us;
};

/* RES_IO: no process could be made. `log` is "stderr" or "syslog". */
HN_CHECK enum res child_start(
    struct child *c, const struct account *account, const char *log);
/* It is gone: close what is ours, plan the next start. */
void child_gone(struct child *c, int64_t now_us);
/* Something can be read from its control socket: keep a reply, or notice that
 * it closed. */
void child_read(struct child *c);
/* Kill it and wait; nothing to do when it is gone. */
void child_kill(struct child *c);

#endif

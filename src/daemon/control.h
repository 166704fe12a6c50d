/* The control socket: STATE_DIR/control.sock, where `hanaper` asks the running
 * daemon for what only it can do or tell. Served by threads of the milter
 * process, which owns the archive; mail never waits for them.
 *
 * A client connects, sends one record (base/fields.h) with `command` and what
 * the command wants, and reads records until the connection ends; the last
 * one has `result#` (an enum res) and, when that is not 0, `error`.
 *
 * The socket has mode 0660, owner and group of the daemon. Root and the
 * daemon's user may do everything, members of the group what readers of the
 * archive may; who it is tells the kernel (SO_PEERCRED, SO_PEERGROUPS).
 * Everything is bounded: clients at a time, bytes of a request and an answer,
 * and the time a client takes to say it or to read it. */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/fields.h"
#include "flow/env.h"

#define CONTROL_FILE        "control.sock" /* in state_dir */
#define CONTROL_PROTOCOL    1
#define CONTROL_MAX_CLIENTS 16
#define CONTROL_MAX_REQUEST ((size_t)1 << 20)
#define CONTROL_MAX_ANSWER  ((size_t)64 << 20)
#define CONTROL_TALK_US     10000000 /* to say it, and to read the answer */

struct control;

struct control_options {
	struct str state_dir;
	/* The environment of now, to be given back; any thread. */
	const struct flow_env *(*env_take)(void *context);
	void (*env_give)(void *context, const struct flow_env *env);
	void *context;
};

/* Bind and serve. RES_EXISTS: another daemon answers there; else a line in
 * `err`. Mail does not depend on it. */
HN_CHECK enum res control_start(
    const struct control_options *o, struct err *err, struct control **out);
/* No further clients; wait for those there are until `deadline_us`. False:
 * one is still at work and uses what the environment holds (`*c` is left as
 * it is then: only the end of the process frees it). */
bool control_stop(struct control **c, int64_t deadline_us);
/* The folder it was started with. */
struct str control_state_dir(const struct control *c);

/* One request, as a command sees it. */
struct control_call {
	const struct flow_env *env;
	struct arena *arena;
	struct fields request;
	bool owner; /* root or the daemon's user */
	uid_t uid;
	struct str login;   /* of uid; "" without a name */
	int64_t started_us; /* of the process: wall clock */
	const atomic_bool *stop; /* the process is about to end */
	struct buf *answer; /* whole records */
};
/* What goes wrong is said in `err`. */
typedef enum res control_command(struct control_call *call, struct err *err);

/* --- the commands, one file each --- */
control_command control_checkpoint;
control_command control_status;
/* What the daemon does by itself once a day. */
void control_daily(const struct flow_env *env, const atomic_bool *stop);
control_command control_erase, control_expire, control_hold_add,
    control_hold_release, control_event;

#endif

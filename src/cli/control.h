/* Asking the running daemon (daemon/control.h has the rules of its socket). */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "base/fields.h"
#include "cli/cli.h"

#define CONTROL_WAIT_US ((int64_t)15000000)
/* For work that rebuilds an index. */
#define CONTROL_LONG_US ((int64_t)6 * 3600 * 1000000)

/* Begin a request in `b`; add fields, then call. */
void control_begin(struct buf *b, const char *command);

struct control_answer {
	size_t count;
	struct fields *records; /* without the one that has the result */
};
/* Send the request to the daemon that uses `state_dir`; its answer is in `a`.
 * RES_NOTFOUND with no line in `err`: no daemon is there. Any other result is
 * the daemon's, with its line; RES_DENIED also when we may not speak to it,
 * RES_TIMEOUT after `wait_us` without an answer. */
HN_CHECK enum res control_call(struct str state_dir, struct buf *request,
    int64_t wait_us, struct arena *a, struct err *err,
    struct control_answer *out);
/* The records of a whole answer, its result last. */
HN_CHECK enum res control_read(struct str bytes, struct arena *a,
    struct err *err, struct control_answer *out);

#endif

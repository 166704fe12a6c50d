/* Reading and writing of a client's socket with a deadline, for the threads
 * that serve one. */
#ifndef DAEMON_TALK_H
#define DAEMON_TALK_H

#include <stdint.h>

#include "base/res.h"
#include "base/str.h"

/* Wait for `what` (POLLIN, POLLOUT) until the monotonic `deadline_us`.
 * `stop_fd` may be -1; RES_AGAIN: it was written to. RES_TIMEOUT, RES_IO. */
HN_CHECK enum res talk_await(
    int fd, short what, int stop_fd, int64_t deadline_us);
/* Write all of it; what the client does not take in time is dropped. */
void talk_send(int fd, struct str s, int64_t deadline_us);

#endif

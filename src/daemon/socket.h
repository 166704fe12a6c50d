/* The MTA's socket: made and removed by the supervisor. */
#ifndef DAEMON_SOCKET_H
#define DAEMON_SOCKET_H

#include "base/err.h"
#include "base/res.h"
#include "config/config.h"
#include "base/account.h"

/* Bound and listening. A unix socket gets the configured mode and group; its
 * folder is made when missing (2750, the same group); a socket that a daemon
 * left behind is replaced, one that is in use for 3 seconds is RES_EXISTS. As a normal user
 * a group that we are not in is passed over. Each failure has a line in
 * `err`. */
HN_CHECK enum res socket_open(const struct listen_address *l,
    const struct account *owner, struct err *err, int *out_fd);
/* Remove a unix socket's name if it is still that of `fd`; close. */
void socket_close(const struct listen_address *l, int fd);

/* Make a folder (and what is above it) for `owner`, mode 0750, unless it is
 * there. */
HN_CHECK enum res folder_make(
    struct str path, const struct account *owner, struct err *err);

#endif

/* As root, preflight may do everything; the daemon's user may not. This looks
 * with that user's eyes, in a process of its own, before mail comes. */
#ifndef DAEMON_USERVIEW_H
#define DAEMON_USERVIEW_H

#include "config/config.h"
#include "daemon/account.h"

/* False, with a line on stderr each, for a folder that the user cannot write
 * or a file that it cannot read. True when no other user is involved. */
bool userview_ok(const struct config *c, const struct account *a);

#endif

/* Telling systemd how we are: one datagram to $NOTIFY_SOCKET (sd_notify(3)
 * describes the protocol). Without that variable nothing happens. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include "base/res.h"

/* `state` is "READY=1", "STOPPING=1", "STATUS=…" or several, separated by LF. */
void notify_send(const char *state);
/* RELOADING=1 with the time it wants. */
void notify_reloading(void);

#endif

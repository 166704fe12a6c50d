/* As root, preflight may do everything; the daemon's user may not. This looks
 * with that user's eyes, in a process of its own, before mail comes. */
#ifndef FLOW_USERVIEW_H
#define FLOW_USERVIEW_H

#include "base/account.h"
#include "config/config.h"

#define USERVIEW_PATHS 4

/* One path of the configuration: `error` is the errno of reading or writing
 * it, 0 when that is allowed or what is missing can still be made. */
struct userview {
	const char *option;
	struct str path;
	bool written;
	int error;
};

/* All 0 when no other user is involved. RES_IO: there was no looking. */
HN_CHECK enum res userview_look(const struct config *c,
    const struct account *a, struct userview out[USERVIEW_PATHS]);

#endif

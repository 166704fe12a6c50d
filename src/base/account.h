/* Who the roles run as: the configured user when we are root, else whoever
 * started us. */
#ifndef BASE_ACCOUNT_H
#define BASE_ACCOUNT_H

#include <sys/types.h>

#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

struct account {
	bool drop;      /* we are root and become this user */
	uid_t uid;
	gid_t gid;
	char name[256]; /* for initgroups */
};

/* RES_NOTFOUND with a line in `err`: no such user, or it is root. */
HN_CHECK enum res account_find(
    struct str user, struct err *err, struct account *out);
/* Become it, for good. Nothing to do without `drop`. */
HN_CHECK enum res account_become(const struct account *a);

#endif

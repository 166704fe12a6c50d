#include "base/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum res
account_find(struct str user, struct err *err, struct account *out)
{
	*out = (struct account){ .uid = geteuid(), .gid = getegid() };
	if (geteuid() != 0)
		return RES_OK;
	if (user.len >= sizeof out->name)
		return RES_LIMIT;
	snprintf(out->name, sizeof out->name, "%.*s", STR_ARG(user));
	errno = 0;
	const struct passwd *p = getpwnam(out->name);
	if (p == NULL) {
		err_set(err, "user = %s: no such user; make it with: adduser "
			     "--system --group %s", out->name, out->name);
		return RES_NOTFOUND;
	}
	if (p->pw_uid == 0) {
		err_set(err, "user = %s: the daemon does not run as root",
		    out->name);
		return RES_NOTFOUND;
	}
	out->drop = true;
	out->uid = p->pw_uid;
	out->gid = p->pw_gid;
	return RES_OK;
}

enum res
account_become(const struct account *a)
{
	if (!a->drop)
		return RES_OK;
	if (initgroups(a->name, a->gid) != 0 ||
	    setresgid(a->gid, a->gid, a->gid) != 0 ||
	    setresuid(a->uid, a->uid, a->uid) != 0)
		return RES_DENIED;
	/* there must be no way back */
	return setuid(0) == 0 ? RES_DENIED : RES_OK;
}

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"

int
cli_become_owner(const char *dir)
{
	struct stat st;
	if (geteuid() != 0)
		return EX_OK;
	if (stat(dir, &st) != 0)
		return cli_fail(errno == ENOENT ? EX_NOINPUT : EX_IOERR,
		    "%s: %s", dir, strerror(errno));
	if (st.st_uid == 0)
		return EX_OK;
	if (setgroups(1, &st.st_gid) != 0 ||
	    setresgid(st.st_gid, st.st_gid, st.st_gid) != 0 ||
	    setresuid(st.st_uid, st.st_uid, st.st_uid) != 0)
		return cli_fail(EX_OSERR,
		    "cannot go on as the user with the number %lu, to whom %s "
		    "belongs: %s", (unsigned long)st.st_uid, dir,
		    strerror(errno));
	return EX_OK;
}

#include "daemon/userview.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool
look(const struct account *a, const char *option, struct str path, int mode)
{
	if (path.len == 0 || access(path.ptr, mode) == 0)
		return true;
	/* what is missing is made at start, or preflight complains */
	if (errno == ENOENT && mode != R_OK)
		return true;
	fprintf(stderr, "hanaperd: %s %.*s: user %s may not %s it: %s\n",
	    option, STR_ARG(path), a->name, mode == R_OK ? "read" : "write to",
	    strerror(errno));
	return false;
}

static bool
look_at_all(const struct config *c, const struct account *a)
{
	bool good = look(a, "state_dir", c->state_dir, W_OK | X_OK);
	if (c->archive)
		good = look(a, "archive_dir", c->archive_dir, W_OK | X_OK) &&
		    good;
	good = look(a, "zone_file", c->zone_file, R_OK) && good;
	return look(a, "sign_table", c->sign_table, R_OK) && good;
}

bool
userview_ok(const struct config *c, const struct account *a)
{
	int status = 0;
	if (!a->drop)
		return true;
	pid_t pid = fork();
	if (pid == 0)
		_exit(account_become(a) == RES_OK && look_at_all(c, a) ? 0 :
									 1);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

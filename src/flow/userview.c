#include "flow/userview.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int
look(const struct userview *v)
{
	int mode = v->written ? W_OK | X_OK : R_OK;
	if (v->path.len == 0 || access(v->path.ptr, mode) == 0)
		return 0;
	/* what is missing is made at start, or preflight complains */
	return errno == ENOENT && v->written ? 0 : errno;
}

/* Errors are answered in one write: less than PIPE_BUF. */
_Noreturn static void
look_as(const struct account *a, const struct userview *views, int fd)
{
	int errors[USERVIEW_PATHS];
	if (account_become(a) != RES_OK)
		_exit(1);
	for (size_t i = 0; i < USERVIEW_PATHS; i++)
		errors[i] = look(&views[i]);
	_exit(write(fd, errors, sizeof errors) == (ssize_t)sizeof errors ? 0 :
									   1);
}

static enum res
ask(const struct account *a, const struct userview *views,
    int errors[USERVIEW_PATHS])
{
	int pipes[2], status = 0;
	ssize_t n = -1;
	if (pipe(pipes) != 0)
		return RES_IO;
	pid_t pid = fork();
	if (pid == 0)
		look_as(a, views, pipes[1]);
	close(pipes[1]);
	if (pid > 0)
		n = read(pipes[0], errors, USERVIEW_PATHS * sizeof *errors);
	close(pipes[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return n == (ssize_t)(USERVIEW_PATHS * sizeof *errors) ? RES_OK :
								 RES_IO;
}

enum res
userview_look(const struct config *c, const struct account *a,
    struct userview out[USERVIEW_PATHS])
{
	int errors[USERVIEW_PATHS] = { 0 };
	const struct userview views[USERVIEW_PATHS] = {
		{ "state_dir", c->state_dir, true, 0 },
		{ "archive_dir", c->archive ? c->archive_dir : STR_EMPTY,
		    true, 0 },
		{ "zone_file", c->zone_file, false, 0 },
		{ "sign_table", c->sign_table, false, 0 },
	};
	enum res r = a->drop ? ask(a, views, errors) : RES_OK;
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < USERVIEW_PATHS; i++) {
		out[i] = views[i];
		out[i].error = errors[i];
	}
	return RES_OK;
}

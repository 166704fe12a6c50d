#include "cli/sendmail.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/spawn.h"

#define POLL_NS 20000000 /* between looks whether it has ended */

/* A file, not a pipe: a child that does not read cannot make us wait. */
static FILE *
file_of(struct str message)
{
	FILE *f = tmpfile();
	if (f != NULL &&
	    (fwrite(message.ptr, 1, message.len, f) != message.len ||
		fflush(f) != 0 || fseek(f, 0, SEEK_SET) != 0)) {
		fclose(f);
		f = NULL;
	}
	return f;
}

static int
wait_for(pid_t child)
{
	int64_t deadline =
	    clock_mono_us() + (int64_t)SENDMAIL_WAIT_S * 1000000;
	struct timespec nap = { 0, POLL_NS };
	int status;
	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);
		if (ended == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) :
						   EX_TEMPFAIL;
		if (ended < 0 || clock_mono_us() > deadline)
			break;
		nanosleep(&nap, NULL);
	}
	kill(child, SIGKILL);
	(void)waitpid(child, &status, 0);
	return EX_TEMPFAIL;
}

static int
run(const char *path, char *const *argv, FILE *input)
{
	pid_t child;
	int rc = spawn_program(path, argv, fileno(input), -1, &child);
	return rc == 0 ? wait_for(child) : EX_UNAVAILABLE;
}

int
sendmail_run(const char *path, const char *from, struct str message)
{
	char t[] = "-t", i[] = "-i", f[] = "-f", sender[512], name[4096];
	char *const argv[] = { name, t, i, f, sender, NULL };
	if ((size_t)snprintf(sender, sizeof sender, "%s", from) >=
		sizeof sender ||
	    (size_t)snprintf(name, sizeof name, "%s", path) >= sizeof name)
		return EX_UNAVAILABLE;
	FILE *input = file_of(message);
	if (input == NULL)
		return EX_OSERR;
	int status = run(path, argv, input);
	fclose(input);
	return status;
}

int
sendmail_run_to(const char *path, const char *from, char *const *rcpts,
    size_t count, FILE *message)
{
	char i[] = "-i", f[] = "-f", end[] = "--", sender[512], name[4096];
	char *argv[SENDMAIL_MAX_RCPTS + 6] = { name, i, f, sender, end };
	if (count == 0 || count > SENDMAIL_MAX_RCPTS ||
	    (size_t)snprintf(sender, sizeof sender, "%s", from) >=
		sizeof sender ||
	    (size_t)snprintf(name, sizeof name, "%s", path) >= sizeof name)
		return EX_UNAVAILABLE;
	for (size_t n = 0; n < count; n++)
		argv[5 + n] = rcpts[n];
	/* the child reads from where the descriptor stands */
	if (fflush(message) != 0 ||
	    lseek(fileno(message), 0, SEEK_SET) != 0)
		return EX_OSERR;
	return run(path, argv, message);
}

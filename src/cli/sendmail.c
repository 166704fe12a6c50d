#include "cli/sendmail.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

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

/* We ignore SIGPIPE; an MTA must not inherit that. */
static int
as_from_a_shell(posix_spawnattr_t *a)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	int rc = posix_spawnattr_setsigdefault(a, &signals);
	return rc == 0 ? posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGDEF) :
			 rc;
}

int
sendmail_run(const char *path, const char *from, struct str message)
{
	char t[] = "-t", i[] = "-i", f[] = "-f", sender[512], name[4096];
	char *const argv[] = { name, t, i, f, sender, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t child;
	if ((size_t)snprintf(sender, sizeof sender, "%s", from) >=
		sizeof sender ||
	    (size_t)snprintf(name, sizeof name, "%s", path) >= sizeof name)
		return EX_UNAVAILABLE;
	FILE *input = file_of(message);
	if (input == NULL)
		return EX_OSERR;
	if (posix_spawn_file_actions_init(&actions) != 0) {
		fclose(input);
		return EX_OSERR;
	}
	(void)posix_spawnattr_init(&attributes); /* cannot fail with glibc */
	int rc = posix_spawn_file_actions_adddup2(
	    &actions, fileno(input), STDIN_FILENO);
	if (rc == 0)
		rc = as_from_a_shell(&attributes);
	if (rc == 0)
		rc = posix_spawn(
		    &child, path, &actions, &attributes, argv, environ);
	int status = rc == 0 ? wait_for(child) : EX_UNAVAILABLE;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	fclose(input);
	return status;
}

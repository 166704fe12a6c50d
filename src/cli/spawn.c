#include "cli/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

/* We ignore SIGPIPE; another program must not inherit that. */
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
spawn_program(const char *program, char *const *argv, int in, int out,
    pid_t *out_child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc != 0)
		return rc;
	(void)posix_spawnattr_init(&attributes); /* cannot fail with glibc */
	rc = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (rc == 0 && out >= 0)
		rc = posix_spawn_file_actions_adddup2(
		    &actions, out, STDOUT_FILENO);
	if (rc == 0)
		rc = as_from_a_shell(&attributes);
	if (rc == 0)
		rc = posix_spawnp(
		    out_child, program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

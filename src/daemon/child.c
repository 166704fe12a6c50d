#include "daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define SEND_SECONDS 10 /* a role that does not read that long is broken */

/* In the new process: only calls that are safe after fork. */
_Noreturn static void
become_role(const struct child *c, const struct account *account,
    const char *log, int control, pid_t supervisor)
{
	char role[32];
	sigset_t none;
	snprintf(role, sizeof role, "--role=%s", c->role);
	char name[] = "hanaperd";
	char *const argv[] = { name, role, (char *)(uintptr_t)log,
		NULL };
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (control == IPC_CHILD_FD)
		(void)fcntl(control, F_SETFD, 0);
	else if (dup2(control, IPC_CHILD_FD) < 0)
		_exit(71);
	if (account_become(account) != RES_OK)
		_exit(77);
	/* a change of user clears it: so it comes after */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (getppid() != supervisor)
		_exit(0); /* died before the line above */
	execv("/proc/self/exe", argv);
	_exit(72);
}

enum res
child_start(struct child *c, const struct account *account, const char *log)
{
	struct timeval limit = { SEND_SECONDS, 0 };
	pid_t supervisor = getpid();
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return RES_IO;
	(void)setsockopt(
	    pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	pid_t pid = fork();
	if (pid == 0)
		become_role(c, account, log, pair[1], supervisor);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return RES_IO;
	}
	c->pid = pid;
	c->control = pair[0];
	c->ready = c->answered = c->parted = false;
	c->started_us = clock_mono_us();
	return RES_OK;
}

void
child_gone(struct child *c, int64_t now_us)
{
	if (c->control >= 0)
		close(c->control);
	c->control = -1;
	c->pid = 0;
	c->ready = c->answered = c->parted = false;
	if (now_us - c->started_us >= CHILD_CALM_US || c->pause_us == 0)
		c->pause_us = CHILD_FIRST_PAUSE_US;
	else if (c->pause_us < CHILD_MAX_PAUSE_US / 2)
		c->pause_us *= 2;
	else
		c->pause_us = CHILD_MAX_PAUSE_US;
	c->start_at_us = now_us + c->pause_us;
}

void
child_read(struct child *c)
{
	static struct ipc_packet p; /* the supervisor has one thread */
	if (ipc_receive(c->control, &p) != RES_OK) {
		close(c->control);
		c->control = -1;
		return;
	}
	if (p.fd >= 0)
		close(p.fd);
	if (p.type == IPC_PARTED) {
		c->parted = true;
		return;
	}
	c->answered = true;
	c->good = p.type == IPC_DONE;
	snprintf(c->reply, sizeof c->reply, "%.*s", STR_ARG(p.payload));
}

void
child_kill(struct child *c)
{
	if (c->pid == 0)
		return; /* dead already, and its pause is set */
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	child_gone(c, clock_mono_us());
}

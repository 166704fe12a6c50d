#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "daemon/ipc.h"
#include "daemon/roles.h"
#include "daemon/supervisor.h"

static int parent_fd = -1; /* of the process that was called, without -f */

static int
usage(void)
{
	fputs("usage: hanaperd [-f] [-t] [-c FILE]\n"
	      "  -f       stay in the foreground\n"
	      "  -t       test the configuration and exit\n"
	      "  -c FILE  read FILE instead of " CONFIG_DEFAULT_PATH "\n",
	    stderr);
	return EX_USAGE;
}

/* The supervisor calls itself so, with its end of a socket. */
static int
run_role(const char *role, const char *log)
{
	int type = 0;
	socklen_t len = sizeof type;
	if (getsockopt(IPC_CHILD_FD, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
	    type != SOCK_SEQPACKET)
		return usage();
	unsetenv("NOTIFY_SOCKET"); /* only the supervisor speaks there */
	(void)fcntl(IPC_CHILD_FD, F_SETFD, FD_CLOEXEC);
	(void)prctl(PR_SET_NAME, "hanaperd"); /* it was started as "exe" */
	log_open(strncmp(log, "syslog", 6) == 0 ? LOG_TO_SYSLOG :
						   LOG_TO_STDERR,
	    "hanaperd", LOG_LEVEL_INFO);
	log_set_json(strstr(log, "-json") != NULL);
	if (strcmp(role, "signer") == 0)
		signer_role();
	if (strcmp(role, "milter") == 0)
		milter_role();
	return usage();
}

/* Let the caller go, away from its terminal. */
static void
started(void)
{
	char done = 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	(void)!write(parent_fd, &done, 1);
	close(parent_fd);
}

/* The caller waits until all works, or has failed with a message. */
static int
run_in_background(struct supervisor_options *o)
{
	int pipes[2];
	char byte;
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return EX_OSERR;
	pid_t pid = fork();
	if (pid < 0)
		return EX_OSERR;
	if (pid > 0) {
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) != 1)
			return EX_UNAVAILABLE;
		/* started (1), or how it failed */
		return byte == 1 ? EX_OK : (unsigned char)byte;
	}
	close(pipes[0]);
	setsid();
	if (chdir("/") != 0)
		return EX_OSERR;
	parent_fd = pipes[1];
	o->started = started;
	int status = supervisor_run(o);
	byte = (char)status;
	(void)!write(parent_fd, &byte, status != EX_OK ? 1 : 0);
	return status;
}

/* The daemon may be anywhere when it reads the file again. */
static char *
absolute(const char *path)
{
	char *found = realpath(path, NULL);
	return found != NULL ? found : strdup(path);
}

int
main(int argc, char **argv)
{
	struct supervisor_options o = { .path = CONFIG_DEFAULT_PATH };
	bool foreground = false, test = false;
	int c;
	if (argc == 3 && strncmp(argv[1], "--role=", 7) == 0)
		return run_role(argv[1] + 7, argv[2]);
	while ((c = getopt(argc, argv, "c:ft")) != -1) {
		switch (c) {
		case 'c':
			o.path = absolute(optarg);
			break;
		case 'f':
			foreground = true;
			break;
		case 't':
			test = true;
			break;
		default:
			return usage();
		}
	}
	if (optind != argc || o.path == NULL)
		return usage();
	log_open(LOG_TO_STDERR, "hanaperd", LOG_LEVEL_INFO);
	if (test)
		return supervisor_test(o.path);
	return foreground ? supervisor_run(&o) : run_in_background(&o);
}

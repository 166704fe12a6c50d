#include "daemon/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/account.h"
#include "daemon/child.h"
#include "daemon/loaded.h"
#include "daemon/notify.h"
#include "daemon/socket.h"
#include "flow/preflight.h"
#include "milter/guard.h"

#define WANTED_FILES 65536   /* descriptors, as root; else what is allowed */
#define DEATH_US     1000000 /* until a dead process is seen to be dead */
#define PATIENCE_US  10000000 /* of clients with a start that is under way */

struct supervisor {
	const struct supervisor_options *options;
	struct account account;
	struct loaded *now;
	struct config *first; /* listen, user and log are its */
	int listen_fd, signal_fd, marks_fd;
	struct child signer, milter;
	int64_t patient_until_us; /* until then clients wait in the backlog */
	unsigned stop_requests;
	bool reload_wanted;
};

/* --- waiting --- */

static const char *
how_it_ended(int status, char *to, size_t room)
{
	if (WIFSIGNALED(status))
		snprintf(to, room, "was killed by signal %d (%s)",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(to, room, "ended with status %d",
		    WEXITSTATUS(status));
	return to;
}

static void
reap(struct supervisor *s)
{
	struct child *all[] = { &s->signer, &s->milter };
	char how[128];
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < 2; i++) {
			struct child *c = all[i];
			if (c->pid != pid)
				continue;
			bool expected = s->stop_requests > 0 &&
			    WIFEXITED(status) && WEXITSTATUS(status) == 0;
			child_gone(c, clock_mono_us());
			if (c == &s->milter)
				s->patient_until_us = 0;
			if (!expected)
				log_error("the %s process %s", c->role,
				    how_it_ended(status, how, sizeof how));
		}
}

static void
read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof info) ==
	    (ssize_t)sizeof info) {
		switch (info.ssi_signo) {
		case SIGHUP:
			s->reload_wanted = true;
			break;
		case SIGTERM:
		case SIGINT:
			s->stop_requests++;
			break;
		case SIGCHLD:
			reap(s);
			break;
		}
	}
}

/* The MTA learns at once that nobody is there; but while the milter process
 * is being started, it is served a moment later. */
static void
turn_away(struct supervisor *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/* One round: until something happens or `until_us`. */
static void
pump(struct supervisor *s, int64_t until_us)
{
	int64_t now_us = clock_mono_us();
	bool patient = now_us < s->patient_until_us && s->stop_requests == 0;
	if (patient && s->patient_until_us < until_us)
		until_us = s->patient_until_us;
	int64_t left_us = until_us - now_us;
	int timeout_ms = left_us <= 0 ? 0 :
	    left_us > 3600000000	? 3600000 :
					  (int)(left_us / 1000) + 1;
	struct pollfd fds[] = {
		{ s->signal_fd, POLLIN, 0 },
		{ s->milter.ready || patient ? -1 : s->listen_fd, POLLIN, 0 },
		{ s->signer.control, POLLIN, 0 },
		{ s->milter.control, POLLIN, 0 },
	};
	if (poll(fds, 4, timeout_ms) <= 0)
		return;
	/* replies before deaths: a last word may explain one */
	if (fds[2].revents != 0)
		child_read(&s->signer);
	if (fds[3].revents != 0)
		child_read(&s->milter);
	if (fds[0].revents != 0)
		read_signals(s);
	if (fds[1].revents != 0)
		turn_away(s);
}

/* Wait for the answer of `c`: RES_OK when it was good, RES_SYNTAX with its
 * text in `err`, RES_IO when it died, RES_AGAIN when we are to stop. */
static enum res
answer(struct supervisor *s, struct child *c, struct err *err)
{
	int64_t until_us = clock_mono_us() + SUPERVISOR_START_US;
	c->answered = false;
	while (!c->answered && c->pid != 0 && c->control >= 0 &&
	    s->stop_requests == 0 && clock_mono_us() < until_us)
		pump(s, until_us);
	if (c->answered && c->good)
		return RES_OK;
	if (c->answered) {
		err_set(err, "%s", c->reply);
		return RES_SYNTAX;
	}
	if (s->stop_requests > 0)
		return RES_AGAIN;
	err_set(err, "the %s process %s", c->role,
	    clock_mono_us() < until_us ? "died" : "does not answer");
	return RES_IO;
}

/* --- roles --- */

static enum res
send_key(struct child *c, const struct keyfile *f)
{
	struct buf b;
	buf_init(&b, IPC_MAX_PACKET);
	buf_add_char(&b, (char)((unsigned)f->state |
	    (f->by_rule ? IPC_BY_RULE : 0u) | (f->notes ? IPC_NOTES : 0u)));
	buf_add_le16(&b, (uint16_t)f->domain.len);
	buf_add_le16(&b, (uint16_t)f->selector.len);
	buf_add_le16(&b, (uint16_t)f->path.len);
	buf_add_str(&b, f->domain);
	buf_add_str(&b, f->selector);
	buf_add_str(&b, f->path);
	enum res r = b.error == RES_OK ?
	    ipc_send(c->control, IPC_KEY, buf_str(&b), f->fd) : b.error;
	buf_done(&b);
	return r;
}

static enum res
give_keys(struct supervisor *s, const struct loaded *l, struct err *err)
{
	struct child *c = &s->signer;
	enum res r = RES_OK;
	for (size_t i = 0; i < l->keys.count && r == RES_OK; i++)
		r = send_key(c, &l->keys.files[i]);
	for (size_t i = 0; i < l->notes.count && r == RES_OK; i++)
		r = send_key(c, &l->notes.files[i]);
	if (r == RES_OK)
		r = ipc_send(c->control, IPC_LOAD, STR_EMPTY, -1);
	if (r != RES_OK) {
		err_set(err, "the signer does not take keys: %s", res_text(r));
		return r;
	}
	return answer(s, c, err);
}

/* Whenever one of them is new or has lost the other, they get a new connection
 * to each other. */
static enum res
introduce(struct supervisor *s)
{
	int pair[2];
	s->milter.parted = false;
	if (s->signer.pid == 0 || s->milter.pid == 0)
		return RES_OK;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return RES_IO;
	enum res r = ipc_send(
	    s->signer.control, IPC_PEER, STR_EMPTY, pair[0]);
	if (r == RES_OK)
		r = ipc_send(
		    s->milter.control, IPC_SIGNER, STR_EMPTY, pair[1]);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static const char *
log_word(const struct supervisor *s)
{
	static const char *const words[][2] = { { "stderr", "stderr-json" },
		{ "syslog", "syslog-json" } };
	return words[s->first->log == LOG_SETTING_SYSLOG]
		    [s->now->config->log_format == LOG_FORMAT_JSON];
}

static enum res
start_signer(struct supervisor *s, const struct loaded *l, struct err *err)
{
	enum res r = child_start(&s->signer, &s->account, log_word(s));
	if (r != RES_OK) {
		err_set(err, "cannot start the signer: %s", strerror(errno));
		child_gone(&s->signer, clock_mono_us());
		return r;
	}
	r = give_keys(s, l, err);
	if (r == RES_OK)
		r = introduce(s);
	s->signer.ready = r == RES_OK;
	if (r != RES_OK)
		child_kill(&s->signer);
	return r;
}

static enum res
give_config(struct supervisor *s, const struct loaded *l, struct err *err)
{
	enum res r = ipc_send(s->milter.control, IPC_CONFIG,
	    l->config->path, l->text_fd);
	if (r == RES_OK)
		r = answer(s, &s->milter, err);
	return r;
}

static enum res
commit_config(struct supervisor *s, struct err *err)
{
	enum res r =
	    ipc_send(s->milter.control, IPC_COMMIT, STR_EMPTY, -1);
	return r == RES_OK ? answer(s, &s->milter, err) : r;
}

static enum res
start_milter(struct supervisor *s, const struct loaded *l, struct err *err)
{
	struct child *c = &s->milter;
	s->patient_until_us = clock_mono_us() + PATIENCE_US;
	enum res r = child_start(c, &s->account, log_word(s));
	if (r != RES_OK) {
		err_set(err, "cannot start the milter process: %s",
		    strerror(errno));
		child_gone(c, clock_mono_us());
		return r;
	}
	r = ipc_send(c->control, IPC_LISTEN, STR_EMPTY, s->listen_fd);
	if (r == RES_OK)
		r = ipc_send(c->control, IPC_MARKS, STR_EMPTY, s->marks_fd);
	if (r == RES_OK)
		r = introduce(s);
	if (r == RES_OK)
		r = give_config(s, l, err);
	if (r == RES_OK)
		r = commit_config(s, err);
	c->ready = r == RES_OK;
	if (r != RES_OK)
		child_kill(c);
	return r;
}

/* Both live; the milter process says so again when this does not help. */
static void
reunite(struct supervisor *s)
{
	if (!s->milter.parted || !s->milter.ready || !s->signer.ready)
		return;
	if (introduce(s) == RES_OK)
		log_warning("signer and milter process had lost each other and "
			    "have a new connection");
}

static void
start_due(struct supervisor *s)
{
	struct err err = { "" };
	int64_t now_us = clock_mono_us();
	enum res r = RES_OK;
	if (s->now->signs && s->signer.pid == 0 &&
	    now_us >= s->signer.start_at_us)
		r = start_signer(s, s->now, &err);
	if (r != RES_OK && r != RES_AGAIN)
		log_error("the signer did not start: %s", err.text);
	r = RES_OK;
	err_clear(&err);
	if (s->milter.pid == 0 && now_us >= s->milter.start_at_us) {
		r = start_milter(s, s->now, &err);
		if (r == RES_OK)
			log_info("the milter process was started again");
	}
	if (r != RES_OK && r != RES_AGAIN)
		log_error("the milter process did not start: %s", err.text);
}

/* --- reload --- */

static bool
same_address(const struct listen_address *a, const struct listen_address *b)
{
	return a->is_unix == b->is_unix && a->port == b->port &&
	    a->mode == b->mode && str_eq(a->path, b->path) &&
	    str_eq(a->host, b->host) && str_eq(a->group, b->group);
}

/* These hold from start to end. */
static void
warn_fixed(const struct config *first, const struct config *new)
{
	if (!same_address(&first->listen, &new->listen))
		log_warning("a change of listen needs a restart");
	if (!str_eq(first->user, new->user))
		log_warning("a change of user needs a restart");
	if (first->log != new->log)
		log_warning("a change of log needs a restart");
}

/* A role that is down is started with the new state. */
static enum res
reload_keys(struct supervisor *s, const struct loaded *new, struct err *err)
{
	if (!new->signs)
		return RES_OK;
	return s->signer.ready ? give_keys(s, new, err) :
				 start_signer(s, new, err);
}

/* First the milter process makes all of it ready, then the signer loads the
 * keys, then the milter process switches: whoever fails leaves the old state
 * in both. */
static enum res
reload_roles(struct supervisor *s, const struct loaded *new, struct err *err)
{
	bool running = s->milter.ready;
	enum res r = running ? give_config(s, new, err) : RES_OK;
	if (r != RES_OK)
		return r;
	r = reload_keys(s, new, err);
	if (r == RES_OK)
		r = running ? commit_config(s, err) :
			      start_milter(s, new, err);
	else if (running && s->milter.control >= 0)
		(void)!ipc_send(s->milter.control, IPC_CANCEL, STR_EMPTY, -1);
	struct err ignored = { "" };
	if (r != RES_OK && s->now->signs && s->signer.ready)
		(void)!give_keys(s, s->now, &ignored);
	return r;
}

/* A role did not take what it was sent: has it died? */
static bool
await_death(struct supervisor *s)
{
	int64_t until_us = clock_mono_us() + DEATH_US;
	while (s->milter.pid != 0 && (s->signer.pid != 0 || !s->now->signs)) {
		if (clock_mono_us() >= until_us || s->stop_requests > 0)
			return false;
		pump(s, until_us);
	}
	return true;
}

static void
reload(struct supervisor *s)
{
	struct err err = { "" };
	struct loaded *new = NULL;
	s->reload_wanted = false;
	notify_reloading();
	enum res r = loaded_read(s->options->path, &err, &new);
	if (r == RES_OK) {
		warn_fixed(s->first, new->config);
		r = reload_roles(s, new, &err);
		if (r == RES_IO && await_death(s)) {
			err_clear(&err);
			r = reload_roles(s, new, &err);
		}
	}
	if (r == RES_OK) {
		loaded_free(&s->now);
		s->now = new;
		log_set_json(new->config->log_format == LOG_FORMAT_JSON);
		log_info("configuration and keys were read again");
		notify_send("READY=1\nSTATUS=reloaded");
		return;
	}
	loaded_free(&new);
	log_error("%s; the old configuration stays in use",
	    err.text[0] != '\0' ? err.text : res_text(r));
	notify_send("READY=1\nSTATUS=reload failed, the old configuration "
		    "stays in use");
}

/* --- start and stop --- */

static void
raise_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (geteuid() == 0 && limit.rlim_max < WANTED_FILES)
		limit.rlim_max = WANTED_FILES;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int
complain(const char *text)
{
	fprintf(stderr, "hanaperd: %s\n", text);
	return EX_CONFIG;
}

static void
print_finding(void *context, enum finding level, const char *line)
{
	bool *all = context;
	if (level == FINDING_BAD)
		fprintf(stderr, "hanaperd: %s\n", line);
	else if (level == FINDING_WARNING && *all)
		log_warning("%s", line);
}

/* Folders of the daemon's user: as root we can make them for it. */
static enum res
make_folders(struct supervisor *s, struct err *err)
{
	const struct config *c = s->now->config;
	enum res r = folder_make(c->state_dir, &s->account, err);
	if (r == RES_OK && c->archive)
		r = folder_make(c->archive_dir, &s->account, err);
	return r;
}

static int
open_all(struct supervisor *s)
{
	struct err err = { "" };
	bool warnings = true;
	if (loaded_read(s->options->path, &err, &s->now) != RES_OK ||
	    account_find(s->now->config->user, &err, &s->account) != RES_OK)
		return complain(err.text);
	log_set_json(s->now->config->log_format == LOG_FORMAT_JSON);
	if (make_folders(s, &err) != RES_OK)
		return complain(err.text);
	/* the signer is about to load the keys, and says what is wrong */
	if (preflight_run(s->now->config, &s->now->keys, print_finding,
		&warnings) == FINDING_BAD)
		return EX_CONFIG;
	s->first = config_ref(s->now->config);
	if (socket_open(&s->first->listen, &s->account, &err, &s->listen_fd) !=
	    RES_OK)
		return complain(err.text);
	s->patient_until_us = clock_mono_us() + PATIENCE_US;
	return EX_OK;
}

static int
own_signals(void)
{
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
start_all(struct supervisor *s)
{
	struct err err = { "" };
	enum res r = RES_OK;
	if (s->now->signs)
		r = start_signer(s, s->now, &err);
	if (r == RES_OK)
		r = start_milter(s, s->now, &err);
	if (r == RES_OK)
		return EX_OK;
	if (r == RES_AGAIN) /* told to stop meanwhile */
		return EX_OK;
	complain(err.text[0] != '\0' ? err.text : res_text(r));
	return r == RES_SYNTAX ? EX_CONFIG : EX_OSERR;
}

/* The milter process finishes what is under way, and needs the signer for
 * that. */
static void
stop_all(struct supervisor *s)
{
	int64_t until_us = clock_mono_us() + SUPERVISOR_DRAIN_US;
	notify_send("STOPPING=1");
	if (s->milter.pid != 0 && s->milter.control >= 0)
		(void)!ipc_send(s->milter.control, IPC_DRAIN, STR_EMPTY, -1);
	while (s->milter.pid != 0 && s->stop_requests < 2 &&
	    clock_mono_us() < until_us)
		pump(s, until_us);
	if (s->milter.pid != 0)
		child_kill(&s->milter);
	if (s->signer.control >= 0) {
		close(s->signer.control); /* tells it to leave */
		s->signer.control = -1;
	}
	until_us = clock_mono_us() + SUPERVISOR_DRAIN_US / 10;
	while (s->signer.pid != 0 && s->stop_requests < 2 &&
	    clock_mono_us() < until_us)
		pump(s, until_us);
	if (s->signer.pid != 0)
		child_kill(&s->signer);
	socket_close(&s->first->listen, s->listen_fd);
	config_unref(&s->first);
	loaded_free(&s->now);
}

static int64_t
next_start_us(const struct supervisor *s)
{
	int64_t at_us = INT64_MAX;
	if (s->milter.pid == 0)
		at_us = s->milter.start_at_us;
	if (s->now->signs && s->signer.pid == 0 &&
	    s->signer.start_at_us < at_us)
		at_us = s->signer.start_at_us;
	return at_us;
}

static void
run(struct supervisor *s)
{
	const struct listen_address *l = &s->first->listen;
	log_info("started, listening on %.*s",
	    STR_ARG(l->is_unix ? l->path : l->host));
	notify_send("READY=1");
	if (s->options->started != NULL)
		s->options->started();
	while (s->stop_requests == 0) {
		start_due(s);
		reunite(s);
		if (s->reload_wanted)
			reload(s);
		if (s->stop_requests == 0 && !s->reload_wanted)
			pump(s, next_start_us(s));
	}
	log_info("stopping");
}

int
supervisor_run(const struct supervisor_options *o)
{
	static struct supervisor s = {
		.listen_fd = -1,
		.signer = { .role = "signer", .control = -1 },
		.milter = { .role = "milter", .control = -1 },
	};
	s.options = o;
	raise_limit();
	s.signal_fd = own_signals();
	if (s.signal_fd < 0 || guard_create(&s.marks_fd) != RES_OK)
		return EX_OSERR;
	int status = open_all(&s);
	if (status != EX_OK)
		return status;
	log_open(s.first->log == LOG_SETTING_SYSLOG ? LOG_TO_SYSLOG :
							    LOG_TO_STDERR,
	    "hanaperd", LOG_LEVEL_INFO);
	status = start_all(&s);
	if (status == EX_OK)
		run(&s);
	stop_all(&s);
	return status;
}

int
supervisor_test(const char *path)
{
	struct err err = { "" };
	struct loaded *l = NULL;
	bool warnings = true;
	if (loaded_read(path, &err, &l) != RES_OK)
		return complain(err.text);
	enum finding worst =
	    preflight_run(l->config, NULL, print_finding, &warnings);
	loaded_free(&l);
	return worst == FINDING_BAD ? EX_CONFIG : EX_OK;
}

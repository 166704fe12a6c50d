#include "daemon/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/talk.h"

#define BACKLOG    32
#define MAX_GROUPS 4096
#define PIECE      ((size_t)4096)

enum who {
	READERS,
	OWNER
};

static const struct {
	const char *name;
	enum who who;
	control_command *run;
} commands[] = {
	{ "checkpoint", OWNER, control_checkpoint },
	{ "status", READERS, control_status },
	{ "archive.erase", OWNER, control_erase },
	{ "archive.event", READERS, control_event },
	{ "archive.expire", OWNER, control_expire },
	{ "archive.hold_add", OWNER, control_hold_add },
	{ "archive.hold_release", OWNER, control_hold_release },
};

struct control {
	struct control_options options;
	char *state_dir;
	struct sockaddr_un address;
	int listen_fd, stop_fd;
	pthread_t thread;
	int64_t started_us;
	atomic_bool stop;
	int64_t next_daily_us; /* monotonic: no try before */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t gone;
	unsigned clients;
};

struct client {
	struct control *control;
	int fd;
};

/* --- who is it --- */

static bool
in_group(int fd, gid_t group)
{
	gid_t *groups = calloc(MAX_GROUPS, sizeof *groups);
	socklen_t len = MAX_GROUPS * sizeof *groups;
	bool found = false;
	if (groups != NULL &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		for (size_t i = 0; i < len / sizeof *groups; i++)
			found = found || groups[i] == group;
	free(groups);
	return found;
}

/* The store's group, or ours when there is none. */
static gid_t
readers_group(const struct flow_env *env)
{
	struct stat st;
	const struct config *c = env->config;
	if (c->archive && stat(c->archive_dir.ptr, &st) == 0)
		return st.st_gid;
	return getegid();
}

static struct str
login_name(struct arena *a, uid_t uid)
{
	struct passwd pw, *found = NULL;
	const size_t room = 16384;
	char *text = arena_alloc_raw(a, room);
	if (text == NULL || getpwuid_r(uid, &pw, text, room, &found) != 0 ||
	    found == NULL)
		return STR_EMPTY;
	return str_c(pw.pw_name);
}

/* RES_DENIED: a stranger. */
static enum res
recognize(int fd, struct control_call *call, struct err *err)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return RES_IO;
	gid_t group = readers_group(call->env);
	call->uid = peer.uid;
	call->owner = peer.uid == 0 || peer.uid == geteuid();
	call->login = login_name(call->arena, peer.uid);
	if (call->owner || peer.gid == group || in_group(fd, group))
		return RES_OK;
	err_set(err, "user %u is no member of the archive's group",
	    (unsigned)peer.uid);
	return RES_DENIED;
}

/* --- one client --- */

static bool
is_complete(const struct buf *b)
{
	return b->len >= 2 && b->ptr[b->len - 1] == '\n' &&
	    b->ptr[b->len - 2] == '\n';
}

static enum res
receive(int fd, int stop_fd, struct buf *request)
{
	int64_t deadline_us = clock_mono_us() + CONTROL_TALK_US;
	while (!is_complete(request)) {
		enum res r = talk_await(fd, POLLIN, stop_fd, deadline_us);
		if (r != RES_OK)
			return r;
		char *to = buf_reserve(request, PIECE);
		if (to == NULL)
			return request->error;
		ssize_t n = recv(fd, to, PIECE, MSG_DONTWAIT);
		if (n == 0)
			return RES_SYNTAX;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return RES_IO;
		if (n > 0)
			request->len += (size_t)n;
	}
	return RES_OK;
}

static enum res
run_command(struct control_call *call, struct err *err)
{
	struct str name = fields_get(&call->request, "command");
	if (fields_get_number(&call->request, "protocol") != CONTROL_PROTOCOL) {
		err_set(err,
		    "hanaper and the running hanaperd are of "
		    "different versions: restart hanaperd");
		return RES_UNSUPPORTED;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (!str_eq(name, str_c(commands[i].name)))
			continue;
		if (commands[i].who == READERS || call->owner)
			return commands[i].run(call, err);
		err_set(err, "%s: only root and the daemon's user may",
		    commands[i].name);
		return RES_DENIED;
	}
	err_set(err, "hanaperd knows no command \"%.*s\"", STR_ARG(name));
	return RES_UNSUPPORTED;
}

static enum res
answer(struct control *c, struct control_call *call, int fd, struct err *err)
{
	struct buf request;
	buf_init(&request, CONTROL_MAX_REQUEST);
	enum res r = recognize(fd, call, err);
	if (r == RES_OK)
		r = receive(fd, c->stop_fd, &request);
	struct str rest = buf_str(&request);
	if (r == RES_OK)
		r = fields_read(&rest, call->arena, &call->request);
	buf_done(&request); /* the texts are in the arena */
	if (r == RES_OK)
		r = run_command(call, err);
	if (r == RES_OK)
		r = call->answer->error;
	return r;
}

static void
serve(struct control *c, int fd)
{
	struct err err = { "" };
	struct buf out;
	struct control_call call = { .arena = arena_new(0),
		.answer = &out,
		.started_us = c->started_us,
		.stop = &c->stop };
	buf_init(&out, CONTROL_MAX_ANSWER);
	call.env = c->options.env_take(c->options.context);
	enum res r = RES_NOMEM;
	if (call.arena != NULL)
		r = answer(c, &call, fd, &err);
	c->options.env_give(c->options.context, call.env);
	if (r != RES_OK)
		buf_reset(&out); /* half of it says nothing */
	fields_number(&out, "result", (uint64_t)r);
	if (r != RES_OK)
		fields_text(&out, "error",
		    str_c(err.text[0] != '\0' ? err.text : res_text(r)));
	fields_end(&out);
	talk_send(fd, buf_str(&out), clock_mono_us() + CONTROL_TALK_US);
	buf_done(&out);
	arena_free(&call.arena);
}

static void
client_gone(struct control *c)
{
	pthread_mutex_lock(&c->lock);
	c->clients--;
	pthread_cond_signal(&c->gone);
	pthread_mutex_unlock(&c->lock);
}

static void *
client_main(void *arg)
{
	struct client *client = arg;
	struct control *c = client->control;
	serve(c, client->fd);
	close(client->fd);
	free(client);
	client_gone(c);
	return NULL;
}

/* --- all of them --- */

/* A client too many finds the connection closed and says so. */
static void
start_client(struct control *c, int fd)
{
	pthread_t thread;
	struct client *client = malloc(sizeof *client);
	pthread_mutex_lock(&c->lock);
	bool room = c->clients < CONTROL_MAX_CLIENTS && client != NULL;
	c->clients += room;
	pthread_mutex_unlock(&c->lock);
	if (room) {
		*client = (struct client){ c, fd };
		if (thread_start(&thread, client_main, client) == RES_OK) {
			pthread_detach(thread);
			return;
		}
		pthread_mutex_lock(&c->lock);
		c->clients--;
		pthread_mutex_unlock(&c->lock);
	}
	free(client);
	close(fd);
}

/* --- once a day --- */

/* The time of this file is that of the last run: restarts do not count. */
#define DAILY_FILE  "expired"
#define DAILY_S     86400
#define DAILY_TRY_MS 60000
#define DAILY_PAUSE_US ((int64_t)3600 * 1000000) /* should that file fail */

static void
daily_path(const struct control *c, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/" DAILY_FILE, c->state_dir);
	if (n < 0 || n >= PATH_MAX)
		out[0] = '\0';
}

static bool
daily_is_due(const struct control *c)
{
	struct clock now = CLOCK_SYSTEM;
	char path[PATH_MAX];
	struct stat st;
	daily_path(c, path);
	return stat(path, &st) != 0 ||
	    clock_now_s(&now) - st.st_mtime >= DAILY_S ||
	    st.st_mtime > clock_now_s(&now);
}

static void
daily_done(const struct control *c)
{
	char path[PATH_MAX];
	daily_path(c, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0 || futimens(fd, NULL) != 0)
		log_warning("%s: %s: the archive is expired again at the next "
			    "start", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void *
daily_main(void *arg)
{
	struct control *c = arg;
	const struct flow_env *env =
	    c->options.env_take(c->options.context);
	daily_done(c); /* one try a day, whatever comes of it */
	control_daily(env, &c->stop);
	c->options.env_give(c->options.context, env);
	client_gone(c);
	return NULL;
}

/* Counted as a client: a stop waits for it. */
static void
start_daily(struct control *c)
{
	pthread_t thread;
	pthread_mutex_lock(&c->lock);
	c->clients++;
	pthread_mutex_unlock(&c->lock);
	if (thread_start(&thread, daily_main, c) == RES_OK)
		pthread_detach(thread);
	else
		client_gone(c);
}

static void *
control_main(void *arg)
{
	struct control *c = arg;
	struct pollfd fds[] = { { c->listen_fd, POLLIN, 0 },
		{ c->stop_fd, POLLIN, 0 } };
	const struct timespec pause = { 0, 100000000 };
	for (;;) {
		if (clock_mono_us() >= c->next_daily_us && daily_is_due(c)) {
			c->next_daily_us = clock_mono_us() + DAILY_PAUSE_US;
			start_daily(c);
		}
		if (poll(fds, 2, DAILY_TRY_MS) <= 0)
			continue;
		if (fds[1].revents != 0)
			return NULL;
		int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			start_client(c, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			nanosleep(&pause, NULL);
	}
}

/* A socket that a dead daemon left is nobody's; one that answers is not. */
static enum res
make_way(const struct sockaddr_un *address, struct err *err)
{
	struct stat st;
	if (lstat(address->sun_path, &st) != 0)
		return RES_OK;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return RES_IO;
	bool answered = connect(fd, (const struct sockaddr *)address,
			    sizeof *address) == 0 ||
	    errno == EAGAIN;
	close(fd);
	if (answered || !S_ISSOCK(st.st_mode)) {
		err_set(err, "%s: %s", address->sun_path,
		    answered ? "another hanaperd answers there"
			     : "is there already and is no socket");
		return RES_EXISTS;
	}
	(void)unlink(address->sun_path);
	return RES_OK;
}

static enum res
open_socket(struct control *c, struct err *err)
{
	struct sockaddr_un *a = &c->address;
	a->sun_family = AF_UNIX;
	int n = snprintf(
	    a->sun_path, sizeof a->sun_path, "%s/" CONTROL_FILE, c->state_dir);
	if (n < 0 || (size_t)n >= sizeof a->sun_path) {
		err_set(err,
		    "%s/" CONTROL_FILE ": longer than the name of a "
		    "socket can be",
		    c->state_dir);
		a->sun_path[0] = '\0';
		return RES_LIMIT;
	}
	enum res r = make_way(a, err);
	if (r != RES_OK) {
		a->sun_path[0] = '\0';
		return r;
	}
	c->listen_fd =
	    socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd >= 0 &&
	    bind(c->listen_fd, (const struct sockaddr *)a, sizeof *a) == 0 &&
	    chmod(a->sun_path, 0660) == 0 && listen(c->listen_fd, BACKLOG) == 0)
		return RES_OK;
	err_set(err, "%s: %s", a->sun_path, strerror(errno));
	return RES_IO;
}

static void
free_control(struct control *c)
{
	if (c->listen_fd >= 0) {
		close(c->listen_fd);
		if (c->address.sun_path[0] != '\0')
			(void)unlink(c->address.sun_path);
	}
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	pthread_cond_destroy(&c->gone);
	pthread_mutex_destroy(&c->lock);
	free(c->state_dir);
	free(c);
}

enum res
control_start(
    const struct control_options *o, struct err *err, struct control **out)
{
	struct clock now = CLOCK_SYSTEM;
	struct control *c = calloc(1, sizeof *c);
	if (c == NULL)
		return RES_NOMEM;
	c->options = *o;
	c->listen_fd = -1;
	c->started_us = clock_now_us(&now);
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	c->state_dir = strndup(o->state_dir.ptr, o->state_dir.len);
	thread_cond_init(&c->gone);
	pthread_mutex_init(&c->lock, NULL);
	enum res r =
	    c->state_dir != NULL && c->stop_fd >= 0 ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = open_socket(c, err);
	if (r == RES_OK)
		r = thread_start(&c->thread, control_main, c);
	if (r != RES_OK) {
		free_control(c);
		return r;
	}
	*out = c;
	return RES_OK;
}

bool
control_stop(struct control **control, int64_t deadline_us)
{
	struct control *c = *control;
	const uint64_t one = 1;
	bool late = false;
	if (c == NULL)
		return true;
	atomic_store(&c->stop, true);
	(void)!write(c->stop_fd, &one, sizeof one);
	pthread_join(c->thread, NULL);
	(void)unlink(c->address.sun_path);
	c->address.sun_path[0] = '\0';
	pthread_mutex_lock(&c->lock);
	while (c->clients > 0 && !late)
		late = !thread_wait(&c->gone, &c->lock, deadline_us);
	bool idle = c->clients == 0;
	pthread_mutex_unlock(&c->lock);
	if (idle) {
		free_control(c);
		*control = NULL;
	}
	return idle;
}

struct str
control_state_dir(const struct control *c)
{
	return str_c(c->state_dir);
}

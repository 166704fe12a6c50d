#include "daemon/socket.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MAX_PATH_LEN 4096
#define BACKLOG      1024
#define NO_GROUP     ((gid_t)-1)
#define SOCKET_WAIT_US 3000000

/* --- folders --- */

static bool
make_parents(char *path)
{
	for (char *p = path + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
		*p = '/';
		if (!made)
			return false;
	}
	return true;
}

static enum res
make(struct str path, mode_t mode, uid_t uid, gid_t gid, bool must_chown,
    struct err *err)
{
	char text[MAX_PATH_LEN];
	struct stat st;
	if (path.len == 0 || path.len >= sizeof text)
		return RES_LIMIT;
	memcpy(text, path.ptr, path.len);
	text[path.len] = '\0';
	if (stat(text, &st) == 0)
		return RES_OK; /* preflight looked at it */
	if (!make_parents(text) || mkdir(text, 0700) != 0) {
		err_set(err, "%s: cannot make the folder: %s", text,
		    strerror(errno));
		return RES_IO;
	}
	if ((chown(text, uid, gid) != 0 && must_chown) ||
	    chmod(text, mode) != 0) {
		err_set(err, "%s: cannot set owner and mode: %s", text,
		    strerror(errno));
		return RES_IO;
	}
	return RES_OK;
}

enum res
folder_make(struct str path, const struct account *owner, struct err *err)
{
	return make(path, 0750, owner->uid, owner->gid, owner->drop, err);
}

/* --- unix --- */

static enum res
find_group(const struct listen_address *l, const struct account *owner,
    struct err *err, gid_t *out)
{
	char name[256];
	*out = NO_GROUP;
	if (l->group.len == 0)
		return RES_OK;
	if (l->group.len >= sizeof name)
		return RES_LIMIT;
	snprintf(name, sizeof name, "%.*s", STR_ARG(l->group));
	const struct group *g = getgrnam(name);
	if (g != NULL) {
		*out = g->gr_gid;
		return RES_OK;
	}
	if (!owner->drop)
		return RES_OK;
	err_set(err, "listen: no group \"%s\"; name the MTA's group with: "
		     "listen = unix:PATH group=NAME", name);
	return RES_NOTFOUND;
}

/* True when somebody answers there. */
static bool
in_use(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	bool answered =
	    connect(fd, (const struct sockaddr *)address, sizeof *address) ==
		0 || errno == EAGAIN;
	close(fd);
	return answered;
}

static enum res
make_way(const struct sockaddr_un *address, struct err *err)
{
	struct stat st;
	if (lstat(address->sun_path, &st) != 0)
		return RES_OK;
	if (!S_ISSOCK(st.st_mode)) {
		err_set(err, "%s: is there already and is no socket; remove "
			     "it or change listen", address->sun_path);
		return RES_EXISTS;
	}
	if (in_use(address)) {
		err_set(err, "%s: another process listens there",
		    address->sun_path);
		return RES_EXISTS;
	}
	if (unlink(address->sun_path) != 0) {
		err_set(err, "%s: cannot remove the old socket: %s",
		    address->sun_path, strerror(errno));
		return RES_IO;
	}
	return RES_OK;
}

static enum res
bind_unix(int fd, const struct sockaddr_un *address, gid_t group,
    const struct listen_address *l, const struct account *owner,
    struct err *err)
{
	/* nobody connects before owner and mode are right */
	mode_t old = umask(0177);
	int failed =
	    bind(fd, (const struct sockaddr *)address, sizeof *address);
	umask(old);
	if (failed != 0) {
		err_set(err, "%s: cannot make the socket: %s",
		    address->sun_path, strerror(errno));
		return RES_IO;
	}
	uid_t uid = owner->drop ? owner->uid : (uid_t)-1;
	if ((chown(address->sun_path, uid, group) != 0 && owner->drop) ||
	    chmod(address->sun_path, l->mode) != 0) {
		err_set(err, "%s: cannot set group and mode: %s",
		    address->sun_path, strerror(errno));
		return RES_IO;
	}
	return RES_OK;
}

static enum res
open_unix(const struct listen_address *l, const struct account *owner,
    struct err *err, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	gid_t group;
	if (l->path.len >= sizeof address.sun_path) {
		err_set(err, "listen: the path has %zu bytes, a socket's may "
			     "have %zu", l->path.len,
		    sizeof address.sun_path - 1);
		return RES_LIMIT;
	}
	memcpy(address.sun_path, l->path.ptr, l->path.len);
	enum res r = find_group(l, owner, err, &group);
	size_t slash = str_rchr(l->path, '/');
	if (r == RES_OK && slash != SIZE_MAX && slash > 0)
		r = make(str_sub(l->path, 0, slash), 02750,
		    owner->drop ? owner->uid : (uid_t)-1, group, owner->drop,
		    err);
	if (r == RES_OK)
		r = make_way(&address, err);
	if (r == RES_OK)
		r = bind_unix(fd, &address, group, l, owner, err);
	return r;
}

/* --- inet --- */

static enum res
open_inet(const struct listen_address *l, struct err *err, int *out_fd)
{
	char host[256], port[8];
	struct addrinfo *found = NULL, hints = { .ai_flags = AI_PASSIVE |
			AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	int on = 1, fd = -1;
	if (l->host.len >= sizeof host)
		return RES_LIMIT;
	snprintf(host, sizeof host, "%.*s", STR_ARG(l->host));
	snprintf(port, sizeof port, "%u", (unsigned)l->port);
	int e = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints,
	    &found);
	if (e != 0) {
		err_set(err, "listen: %s: %s", host, gai_strerror(e));
		return RES_NOTFOUND;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(fd, found->ai_addr, found->ai_addrlen) != 0) {
			int saved = errno;
			close(fd);
			errno = saved;
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0) {
		err_set(err, "listen: port %s of %s: %s", port, host,
		    strerror(errno));
		return errno == EADDRINUSE ? RES_EXISTS : RES_IO;
	}
	*out_fd = fd;
	return RES_OK;
}

static enum res
open_once(const struct listen_address *l, const struct account *owner,
    struct err *err, int *out_fd)
{
	int fd = -1;
	enum res r;
	if (l->is_unix) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd >= 0 ? open_unix(l, owner, err, fd) : RES_IO;
	} else {
		r = open_inet(l, err, &fd);
	}
	if (r == RES_OK && listen(fd, BACKLOG) != 0)
		r = RES_IO;
	if (r != RES_OK) {
		err_set(err, "listen: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return r;
	}
	*out_fd = fd;
	return RES_OK;
}

/* After a supervisor was killed its children end a moment later: a successor
 * that is started at once waits for them. */
enum res
socket_open(const struct listen_address *l, const struct account *owner,
    struct err *err, int *out_fd)
{
	static const struct timespec pause = { 0, 50 * 1000 * 1000 };
	int64_t deadline_us = clock_mono_us() + SOCKET_WAIT_US;
	for (;;) {
		struct err why = { "" };
		enum res r = open_once(l, owner, &why, out_fd);
		if (r != RES_EXISTS || clock_mono_us() >= deadline_us) {
			if (r != RES_OK)
				err_set(err, "%s", why.text);
			return r;
		}
		nanosleep(&pause, NULL);
	}
}

void
socket_close(const struct listen_address *l, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	close(fd);
	if (!l->is_unix || l->path.len >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, l->path.ptr, l->path.len);
	/* not the one of a successor */
	if (!in_use(&address))
		(void)unlink(address.sun_path);
}

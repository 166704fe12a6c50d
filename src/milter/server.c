#include "milter/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/blocking.h"
#include "base/clock.h"
#include "base/log.h"
#include "milter/command.h"

#define READ_BYTES   ((size_t)128 << 10) /* at a time: more than one packet */
#define MAX_READS    16 /* of one connection before others get their turn */
#define MAX_ACCEPTS  64
#define ACCEPT_PAUSE_NS 20000000 /* when there are no descriptors */

static struct {
	struct milter *milter;
	int epoll;
	int wanted; /* threads that should be able to run */
	atomic_int threads, waiting;
} server;

static _Thread_local bool is_worker;

/* What a thread works with. */
struct worker {
	char *in;
	size_t cap, len;
	struct buf out;
};

/* --- arming --- */

static bool
arm(int fd, void *what, int operation)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
		.data.ptr = what };
	return epoll_ctl(server.epoll, operation, fd, &e) == 0;
}

/* --- sending --- */

/* False: the MTA is gone, or does not read. */
static bool
send_all(int fd, const struct buf *out)
{
	size_t done = 0;
	while (done < out->len) {
		ssize_t n = send(fd, out->ptr + done, out->len - done,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return false;
		struct pollfd p = { fd, POLLOUT, 0 };
		blocking_begin();
		int ready = poll(&p, 1, SERVER_SEND_MS);
		blocking_end();
		if (ready <= 0)
			return false;
	}
	return true;
}

static bool
flush(struct worker *w, struct connection *c)
{
	bool sent = w->out.error == RES_OK && send_all(c->fd, &w->out);
	buf_reset(&w->out);
	return sent;
}

/* --- receiving --- */

/* Room for that much; large packets are rare. */
static bool
make_room(struct worker *w, size_t size)
{
	if (size <= w->cap)
		return true;
	char *more = realloc(w->in, size);
	if (more == NULL)
		return false;
	w->in = more;
	w->cap = size;
	return true;
}

/* The rest of the last time to the front of the buffer. */
static bool
load_partial(struct worker *w, struct connection *c)
{
	w->len = 0;
	if (c->partial == NULL)
		return true;
	if (!make_room(w, c->partial_len + READ_BYTES))
		return false;
	memcpy(w->in, c->partial, c->partial_len);
	w->len = c->partial_len;
	free(c->partial);
	c->partial = NULL;
	return true;
}

static bool
save_partial(const struct worker *w, struct connection *c)
{
	if (w->len == 0)
		return true;
	c->partial = malloc(w->len);
	if (c->partial == NULL)
		return false;
	c->partial_len = w->len;
	memcpy(c->partial, w->in, w->len);
	return true;
}

/* Take the whole packets; *at ends behind the last one. False: hang up. */
static bool
take_packets(struct worker *w, struct connection *c, size_t *at)
{
	while (w->len - *at > WIRE_HEAD) {
		size_t size = wire_get32(w->in + *at);
		if (size < 1 || size > WIRE_MAX_PACKET)
			return false;
		if (w->len - *at - WIRE_HEAD < size)
			return make_room(w, size + WIRE_HEAD);
		const char *p = w->in + *at + WIRE_HEAD;
		*at += WIRE_HEAD + size;
		enum command_after after = command_take(server.milter, c, p[0],
		    str_of(p + 1, size - 1), &w->out);
		if (after == COMMAND_CLOSE)
			return false;
		if (after == COMMAND_ANSWERED) {
			bool sent = flush(w, c);
			transaction_end(server.milter, c);
			if (!sent)
				return false;
		}
	}
	return true;
}

/* False: the connection is over. */
static bool
read_some(struct worker *w, struct connection *c)
{
	for (int i = 0; i < MAX_READS; i++) {
		size_t at = 0, room = w->cap - w->len;
		ssize_t n = recv(c->fd, w->in + w->len, room, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		if (n == 0)
			return false;
		w->len += (size_t)n;
		if (!take_packets(w, c, &at))
			return false;
		w->len -= at;
		memmove(w->in, w->in + at, w->len);
		if ((size_t)n < room)
			break; /* that was all */
	}
	return true;
}

static void
serve(struct worker *w, struct connection *c)
{
	struct milter *m = server.milter;
	/* what the thread before left, the kernel has passed on; said again
	 * for those who look for races */
	(void)atomic_load_explicit(&c->active_us, memory_order_acquire);
	int64_t now_us = clock_mono_us();
	bool goes_on = load_partial(w, c) && read_some(w, c);
	/* what was answered before the end is sent, too */
	goes_on = flush(w, c) && goes_on;
	goes_on = goes_on && save_partial(w, c);
	atomic_store_explicit(&c->active_us, now_us, memory_order_release);
	if (!goes_on || !arm(c->fd, c, EPOLL_CTL_MOD))
		connection_free(m, &c);
}

/* --- accepting --- */

static void
complain_accept(void)
{
	static const struct timespec pause = { 0, ACCEPT_PAUSE_NS };
	static atomic_llong told_us;
	int64_t now_us = clock_mono_us();
	int error = errno;
	nanosleep(&pause, NULL);
	if (now_us - atomic_load(&told_us) < 60000000 &&
	    atomic_load(&told_us) != 0)
		return;
	atomic_store(&told_us, now_us);
	log_error("connections of the MTA cannot be taken: %s",
	    strerror(error));
}

static void
accept_some(int listen_fd)
{
	for (int i = 0; i < MAX_ACCEPTS; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 &&
		    (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				complain_accept();
			break;
		}
		struct connection *c = connection_new(server.milter, fd);
		if (c != NULL && !arm(fd, c, EPOLL_CTL_ADD))
			connection_free(server.milter, &c);
	}
	if (!arm(listen_fd, NULL, EPOLL_CTL_MOD)) {
		log_error("the listening socket is lost: %s", strerror(errno));
		atomic_store(&server.milter->running, false);
	}
}

/* --- the pool --- */

static void *run_worker(void *arg);

static bool
add_thread(void)
{
	pthread_t thread;
	if (atomic_fetch_add(&server.threads, 1) >= SERVER_MAX_THREADS ||
	    pthread_create(&thread, NULL, run_worker, NULL) != 0) {
		atomic_fetch_sub(&server.threads, 1);
		return false;
	}
	pthread_detach(thread);
	return true;
}

static void
blocking_changed(int by)
{
	if (!is_worker)
		return;
	int waiting = atomic_fetch_add(&server.waiting, by) + by;
	/* without memory for one, those that wait come back some time */
	if (by > 0 && atomic_load(&server.threads) - waiting < server.wanted)
		(void)add_thread();
}

/* More threads than are needed were there for some time. */
static bool
may_leave(void)
{
	int threads = atomic_load(&server.threads);
	while (threads - atomic_load(&server.waiting) > server.wanted)
		if (atomic_compare_exchange_weak(
			&server.threads, &threads, threads - 1))
			return true;
	return false;
}

static void *
run_worker(void *arg)
{
	struct worker w = { .cap = READ_BYTES };
	(void)arg;
	is_worker = true;
	buf_init(&w.out, WIRE_MAX_ANSWER);
	w.in = malloc(w.cap);
	while (w.in != NULL) {
		struct epoll_event e;
		int n = epoll_wait(server.epoll, &e, 1, SERVER_SPARE_MS);
		if (n == 0 && may_leave())
			break;
		if (n <= 0)
			continue;
		if (e.data.ptr == NULL)
			accept_some(server.milter->options.listen_fd);
		else
			serve(&w, e.data.ptr);
	}
	if (w.in == NULL)
		atomic_fetch_sub(&server.threads, 1);
	free(w.in);
	buf_done(&w.out);
	return NULL;
}

enum res
server_start(struct milter *m)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	server.milter = m;
	server.wanted = processors > 1 ? (int)processors : 2;
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server.epoll < 0 ||
	    !arm(m->options.listen_fd, NULL, EPOLL_CTL_ADD))
		return RES_IO;
	blocking_listen(blocking_changed);
	for (int i = 0; i < server.wanted; i++)
		if (!add_thread())
			return RES_NOMEM;
	return RES_OK;
}

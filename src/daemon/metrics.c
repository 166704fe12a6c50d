#include "daemon/metrics.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "config/value.h"
#include "daemon/control.h"
#include "daemon/talk.h"

#define BACKLOG 8

struct metrics {
	struct metrics_options options;
	char *address;
	int listen_fd, stop_fd;
	pthread_t thread;
};

/* --- the text --- */

/* Numbers of control_status.c that go up and down; all others only count. */
static const struct {
	const char *field, *name;
} gauges[] = {
	{ "uptime_s", "uptime_seconds" },
	{ "sessions", "sessions" },
	{ "under_way", "messages_under_way" },
	{ "keys.loaded", "keys_loaded" },
	{ "keys.domains", "keys_domains" },
	{ "archive.shards", "archive_shards" },
	{ "archive.offline_shards", "archive_offline_shards" },
	{ "archive.unindexed", "archive_unindexed_messages" },
	{ "archive.free_bytes", "archive_free_bytes" },
};

/* "spf.pass" and its like are one metric with labels. */
static bool
is_result(struct str field)
{
	return value_word("spf dkim dmarc arc",
		   str_sub(field, 0, str_chr(field, '.'))) >= 0;
}

static void
put_head(struct buf *out, const char *name, const char *type)
{
	buf_addf(out, "# TYPE hanaper_%s %s\n", name, type);
}

static void
put_result(struct buf *out, const struct field_value *f)
{
	size_t dot = str_chr(f->name, '.');
	buf_addf(out,
	    "hanaper_results_total{method=\"%.*s\",result=\"%.*s\"} %llu\n",
	    STR_ARG(str_sub(f->name, 0, dot)),
	    STR_ARG(str_skip(f->name, dot + 1)),
	    (unsigned long long)f->number);
}

static void
put_number(struct buf *out, const struct field_value *f)
{
	char name[64];
	const char *type = "counter";
	snprintf(name, sizeof name, "%.*s_total", STR_ARG(f->name));
	for (char *dot = name; (dot = strchr(dot, '.')) != NULL;)
		*dot = '_';
	for (size_t i = 0; i < sizeof gauges / sizeof gauges[0]; i++)
		if (str_eq(f->name, str_c(gauges[i].field))) {
			snprintf(name, sizeof name, "%s", gauges[i].name);
			type = "gauge";
		}
	put_head(out, name, type);
	buf_addf(out, "hanaper_%s %llu\n", name, (unsigned long long)f->number);
}

/* A metric's lines must stand together. */
static void
put_all(struct buf *out, const struct fields *f)
{
	put_head(out, "info", "gauge");
	buf_addf(out, "hanaper_info{version=\"%.*s\"} 1\n",
	    STR_ARG(fields_get(f, "version")));
	put_head(out, "results_total", "counter");
	for (size_t i = 0; i < f->count; i++)
		if (f->items[i].is_number && is_result(f->items[i].name))
			put_result(out, &f->items[i]);
	for (size_t i = 0; i < f->count; i++)
		if (f->items[i].is_number && !is_result(f->items[i].name) &&
		    !str_eq(f->items[i].name, STR("pid")))
			put_number(out, &f->items[i]);
}

static enum res
render(struct metrics *m, struct buf *out)
{
	struct err err = { "" };
	struct buf answer;
	struct control_call call = { .arena = arena_new(0),
		.answer = &answer,
		.started_us = m->options.started_us };
	struct fields f;
	buf_init(&answer, METRICS_MAX_ANSWER);
	call.env = m->options.env_take(m->options.context);
	enum res r =
	    call.arena != NULL ? control_status(&call, &err) : RES_NOMEM;
	m->options.env_give(m->options.context, call.env);
	struct str rest = buf_str(&answer);
	if (r == RES_OK)
		r = answer.error;
	if (r == RES_OK)
		r = fields_read(&rest, call.arena, &f);
	if (r == RES_OK)
		put_all(out, &f);
	buf_done(&answer);
	arena_free(&call.arena);
	return r == RES_OK ? out->error : r;
}

/* --- HTTP, as little of it as a scraper needs --- */

static bool
is_whole(struct str request)
{
	return str_find(request, STR("\r\n\r\n")) != SIZE_MAX ||
	    str_find(request, STR("\n\n")) != SIZE_MAX;
}

static enum res
receive(struct metrics *m, int fd, int64_t deadline_us, struct buf *request)
{
	while (!is_whole(buf_str(request))) {
		enum res r = talk_await(fd, POLLIN, m->stop_fd, deadline_us);
		char *to = r == RES_OK ? buf_reserve(request, 1024) : NULL;
		if (to == NULL)
			return r != RES_OK ? r : request->error;
		ssize_t n = recv(fd, to, 1024, MSG_DONTWAIT);
		if (n == 0)
			return RES_SYNTAX;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return RES_IO;
		if (n > 0)
			request->len += (size_t)n;
	}
	return RES_OK;
}

/* What stands behind "HTTP/1.1 ". */
static const char *
judge(struct str request, bool *out_head)
{
	struct str line = str_sub(request, 0, str_chr(request, '\n'));
	struct str method, path;
	if (!str_split(&line, ' ', &method) || !str_split(&line, ' ', &path) ||
	    !str_starts(line, STR("HTTP/1.")))
		return "400 Bad Request";
	*out_head = str_eq(method, STR("HEAD"));
	if (!*out_head && !str_eq(method, STR("GET")))
		return "405 Method Not Allowed";
	path = str_sub(path, 0, str_chr(path, '?'));
	return str_eq(path, STR("/metrics")) ? "200 OK" : "404 Not Found";
}

static void
serve(struct metrics *m, int fd)
{
	int64_t deadline_us = clock_mono_us() + METRICS_TALK_US;
	struct buf request, text, answer;
	bool head = false;
	buf_init(&request, METRICS_MAX_REQUEST);
	buf_init(&text, METRICS_MAX_ANSWER);
	buf_init(&answer, 2 * METRICS_MAX_ANSWER);
	enum res r = receive(m, fd, deadline_us, &request);
	if (r == RES_OK || r == RES_LIMIT) {
		const char *status = r == RES_LIMIT
		    ? "431 Request Header Fields Too Large"
		    : judge(buf_str(&request), &head);
		if (status[0] != '2')
			buf_addf(&text, "%s\nThere is /metrics.\n", status);
		else if (render(m, &text) != RES_OK) {
			status = "503 Service Unavailable";
			buf_reset(&text);
		}
		buf_addf(&answer,
		    "HTTP/1.1 %s\r\n"
		    "Content-Type: text/plain; version=0.0.4\r\n"
		    "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		    status, text.len);
		if (!head)
			buf_add_str(&answer, buf_str(&text));
		talk_send(fd, buf_str(&answer), deadline_us);
		shutdown(fd, SHUT_WR);
	}
	buf_done(&request);
	buf_done(&text);
	buf_done(&answer);
}

static void *
metrics_main(void *arg)
{
	struct metrics *m = arg;
	struct pollfd fds[] = { { m->listen_fd, POLLIN, 0 },
		{ m->stop_fd, POLLIN, 0 } };
	const struct timespec pause = { 0, 100000000 };
	for (;;) {
		if (poll(fds, 2, -1) <= 0)
			continue;
		if (fds[1].revents != 0)
			return NULL;
		int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			serve(m, fd);
			close(fd);
		} else if (errno == EMFILE || errno == ENFILE ||
		    errno == ENOMEM) {
			nanosleep(&pause, NULL);
		}
	}
}

/* --- start and stop --- */

static enum res
bind_one(struct metrics *m, const struct addrinfo *a)
{
	const int on = 1;
	m->listen_fd = socket(
	    a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->listen_fd < 0)
		return RES_IO;
	(void)setsockopt(
	    m->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(m->listen_fd, a->ai_addr, a->ai_addrlen) == 0 &&
	    listen(m->listen_fd, BACKLOG) == 0)
		return RES_OK;
	return RES_IO;
}

static enum res
open_socket(struct metrics *m, struct err *err)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
			.ai_socktype = SOCK_STREAM },
			*found = NULL;
	struct str host;
	uint16_t number;
	char name[256], port[8];
	if (!value_parse_port_host(
		str_skip(str_c(m->address), strlen("inet:")), &number, &host) ||
	    host.len >= sizeof name)
		return RES_INVALID;
	memcpy(name, host.ptr, host.len);
	name[host.len] = '\0';
	snprintf(port, sizeof port, "%u", (unsigned)number);
	int e = getaddrinfo(name, port, &hints, &found);
	if (e != 0) {
		err_set(err, "%s: %s", name, gai_strerror(e));
		return RES_IO;
	}
	enum res r = bind_one(m, found);
	if (r != RES_OK)
		err_set(err, "port %s of %s: %s", port, name, strerror(errno));
	freeaddrinfo(found);
	return r;
}

static void
free_metrics(struct metrics *m)
{
	if (m->listen_fd >= 0)
		close(m->listen_fd);
	if (m->stop_fd >= 0)
		close(m->stop_fd);
	free(m->address);
	free(m);
}

enum res
metrics_start(
    const struct metrics_options *o, struct err *err, struct metrics **out)
{
	struct metrics *m = calloc(1, sizeof *m);
	if (m == NULL)
		return RES_NOMEM;
	m->options = *o;
	m->listen_fd = -1;
	m->stop_fd = eventfd(0, EFD_CLOEXEC);
	m->address = strndup(o->address.ptr, o->address.len);
	enum res r = m->address != NULL && m->stop_fd >= 0 ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = open_socket(m, err);
	if (r == RES_OK)
		r = thread_start(&m->thread, metrics_main, m);
	if (r != RES_OK) {
		free_metrics(m);
		return r;
	}
	*out = m;
	return RES_OK;
}

void
metrics_stop(struct metrics **metrics)
{
	struct metrics *m = *metrics;
	const uint64_t one = 1;
	if (m == NULL)
		return;
	(void)!write(m->stop_fd, &one, sizeof one);
	pthread_join(m->thread, NULL);
	free_metrics(m);
	*metrics = NULL;
}

struct str
metrics_address(const struct metrics *m)
{
	return str_c(m->address);
}

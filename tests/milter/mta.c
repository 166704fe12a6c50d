/* An MTA's side of the milter protocol (version 6) over many connections at
 * once, in one thread: for tests of the daemon under load, and for measuring.
 *
 *   mta -s unix:PATH | inet:PORT@HOST [-c CONNECTIONS] [-n MESSAGES]
 *       [-k MESSAGES_A_CONNECTION] [-x CLIENT_ADDRESS] [-f SENDER]
 *       [-e FIELD[:TEXT]]... [-w FOLDER] [-t SECONDS] FILE...
 *   mta -i ...   connections that say HELO and no more; prints "idle" when
 *                all stand, ends with its input
 *
 * Each message must be accepted with each FIELD inserted (holding TEXT), else
 * it is counted as wrong and the exit status is 1. What comes of a message is
 * written to FOLDER/NUMBER.eml. One JSON object on stdout tells what was
 * measured; latency is from MAIL to the final answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "mta_mail.h"

#define ACTIONS_ALL 0x1ffu
#define STEPS_ALL   0x1fffffu
#define NODATA      0x200u
#define NR_HDR      0x80u
#define NR_CONN     0x1000u
#define NR_HELO     0x2000u
#define NR_MAIL     0x4000u
#define NR_RCPT     0x8000u
#define NR_DATA     0x10000u
#define NR_EOH      0x40000u
#define NR_BODY     0x80000u

#define CHUNK      65535
#define MAX_EXPECT 16
#define MAX_FILES  64
#define MAX_PACKET (1u << 20)
#define SHOWN      8 /* faults told on stderr; the others are counted */

/* What is sent next. NEGOTIATE to HELO once a connection, MAIL to END once a
 * message. */
enum step {
	STEP_NEGOTIATE,
	STEP_CONNECT,
	STEP_HELO,
	STEP_MAIL,
	STEP_RCPT,
	STEP_DATA,
	STEP_HEADER,
	STEP_END_OF_HEADER,
	STEP_BODY,
	STEP_END,
};

struct bytes {
	char *p;
	size_t len, cap, at; /* `at` was read or sent already */
};

struct conn {
	int fd;
	enum step step, asked; /* the one whose answer is awaited */
	bool waiting;
	uint32_t steps;        /* negotiated */
	size_t field, body_at, done;
	unsigned long number;
	struct mail mail;      /* as edited */
	const struct mail *original;
	unsigned seen;         /* bit: this FIELD came */
	double mail_s;
	struct bytes in, out;
};

static struct {
	const char *socket, *client, *sender, *folder;
	const char *expect[MAX_EXPECT];
	size_t expect_count, file_count;
	unsigned long connections, messages, per_connection;
	double limit_s;
	bool idle;
	struct mail files[MAX_FILES];
} o = { .client = "203.0.113.10", .sender = "bounce@sender.example",
	.connections = 1, .messages = 100, .limit_s = 60 };

static struct {
	int epoll;
	unsigned long begun, done, wrong, opened, ready, closed;
	uint32_t *latency_us;
} run;

_Noreturn static void
die(const char *what)
{
	fprintf(stderr, "mta: %s: %s\n", what, strerror(errno));
	exit(2);
}

static double
now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
add(struct bytes *b, const void *p, size_t len)
{
	while (b->len + len > b->cap) {
		b->cap = b->cap != 0 ? 2 * b->cap : 1024;
		b->p = realloc(b->p, b->cap);
		if (b->p == NULL)
			die("memory");
	}
	memcpy(b->p + b->len, p, len);
	b->len += len;
}

static void
add_text(struct bytes *b, const char *text)
{
	add(b, text, strlen(text) + 1);
}

static void
add_number(struct bytes *b, uint32_t n)
{
	n = htonl(n);
	add(b, &n, sizeof n);
}

static size_t
open_packet(struct conn *c, char command)
{
	size_t mark = c->out.len;
	add_number(&c->out, 0);
	add(&c->out, &command, 1);
	return mark;
}

static void
close_packet(struct conn *c, size_t mark)
{
	uint32_t n = htonl((uint32_t)(c->out.len - mark - 4));
	memcpy(c->out.p + mark, &n, sizeof n);
}

static void
macros(struct conn *c, char command, const char *name, const char *value)
{
	size_t mark = open_packet(c, 'D');
	add(&c->out, &command, 1);
	add_text(&c->out, name);
	add_text(&c->out, value);
	close_packet(c, mark);
}

/* --- what is sent --- */

static void
send_connect(struct conn *c)
{
	uint16_t port = htons(2525);
	bool six = strchr(o.client, ':') != NULL;
	macros(c, 'C', "j", "mx.example");
	size_t mark = open_packet(c, 'C');
	add_text(&c->out, "mail.client.example");
	add(&c->out, six ? "6" : "4", 1);
	add(&c->out, &port, sizeof port);
	add_text(&c->out, o.client);
	close_packet(c, mark);
}

static void
send_text(struct conn *c, char command, const char *text)
{
	size_t mark = open_packet(c, command);
	if (text != NULL)
		add_text(&c->out, text);
	close_packet(c, mark);
}

static void
begin_message(struct conn *c)
{
	char sender[300];
	c->number = run.begun++;
	c->original = &o.files[c->number % o.file_count];
	c->mail = *c->original;
	c->field = c->body_at = 0;
	c->seen = 0;
	c->mail_s = now_s();
	snprintf(sender, sizeof sender, "<%s>", o.sender);
	send_text(c, 'M', sender);
}

static void
send_header(struct conn *c)
{
	const struct mail_field *f = &c->original->fields[c->field++];
	size_t mark = open_packet(c, 'L');
	add_text(&c->out, f->name);
	add_text(&c->out, f->value);
	close_packet(c, mark);
}

static void
send_body(struct conn *c)
{
	size_t left = c->original->body_len - c->body_at;
	size_t n = left < CHUNK ? left : CHUNK;
	size_t mark = open_packet(c, 'B');
	add(&c->out, c->original->body + c->body_at, n);
	close_packet(c, mark);
	c->body_at += n;
}

/* Send the next step; whether its answer has to be waited for. */
static bool
take_step(struct conn *c)
{
	char id[32];
	c->asked = c->step++;
	switch (c->asked) {
	case STEP_NEGOTIATE: {
		size_t mark = open_packet(c, 'O');
		add_number(&c->out, 6);
		add_number(&c->out, ACTIONS_ALL);
		add_number(&c->out, STEPS_ALL);
		close_packet(c, mark);
		return true;
	}
	case STEP_CONNECT:
		send_connect(c);
		return (c->steps & NR_CONN) == 0;
	case STEP_HELO:
		send_text(c, 'H', "mail.client.example");
		return (c->steps & NR_HELO) == 0;
	case STEP_MAIL:
		begin_message(c);
		return (c->steps & NR_MAIL) == 0;
	case STEP_RCPT:
		send_text(c, 'R', "<user@rcpt.example>");
		return (c->steps & NR_RCPT) == 0;
	case STEP_DATA:
		if ((c->steps & NODATA) != 0)
			return false;
		send_text(c, 'T', NULL);
		return (c->steps & NR_DATA) == 0;
	case STEP_HEADER:
		if (c->field == c->original->field_count)
			return false;
		send_header(c);
		c->step = STEP_HEADER;
		return (c->steps & NR_HDR) == 0;
	case STEP_END_OF_HEADER:
		send_text(c, 'N', NULL);
		return (c->steps & NR_EOH) == 0;
	case STEP_BODY:
		if (c->body_at == c->original->body_len)
			return false;
		send_body(c);
		c->step = STEP_BODY;
		return (c->steps & NR_BODY) == 0;
	case STEP_END:
		snprintf(id, sizeof id, "4X%06lu", c->number);
		macros(c, 'E', "i", id);
		send_text(c, 'E', NULL);
		return true;
	}
	return true;
}

static void
watch(struct conn *c, int operation, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };
	if (epoll_ctl(run.epoll, operation, c->fd, &e) != 0)
		die("epoll_ctl");
}

/* False: the connection is broken. */
static bool
flush(struct conn *c)
{
	while (c->out.at < c->out.len) {
		ssize_t n = send(c->fd, c->out.p + c->out.at,
		    c->out.len - c->out.at, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
			return true;
		}
		if (n < 0)
			return false;
		c->out.at += (size_t)n;
		if (c->out.at == c->out.len && n > 0)
			watch(c, EPOLL_CTL_MOD, EPOLLIN);
	}
	c->out.at = c->out.len = 0;
	return true;
}

/* --- connections --- */

static bool
more_messages(const struct conn *c)
{
	return run.begun < o.messages &&
	    (o.per_connection == 0 || c->done < o.per_connection);
}

static void
fault(const struct conn *c, const char *what)
{
	if (run.wrong++ < SHOWN)
		fprintf(stderr, "mta: message %lu: %s\n", c->number, what);
}

static int
connect_to(const char *where)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET };
	bool is_unix = strncmp(where, "unix:", 5) == 0;
	const char *at = strchr(where, '@');
	int on = 1, fd = socket(is_unix ? AF_UNIX : AF_INET,
	    SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	if (is_unix) {
		snprintf(un.sun_path, sizeof un.sun_path, "%s", where + 5);
		return connect(fd, (struct sockaddr *)&un, sizeof un) == 0 ?
		    fd : -1;
	}
	in.sin_port = htons((uint16_t)strtoul(where + 5, NULL, 10));
	if (at == NULL || inet_pton(AF_INET, at + 1, &in.sin_addr) != 1)
		die(where);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return connect(fd, (struct sockaddr *)&in, sizeof in) == 0 ? fd : -1;
}

static void
go_on(struct conn *c);

static void
conn_open(struct conn *c)
{
	c->fd = connect_to(o.socket);
	if (c->fd < 0)
		die(o.socket);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
		die("fcntl");
	run.opened++;
	c->step = STEP_NEGOTIATE;
	c->done = 0;
	c->in.len = c->in.at = c->out.len = c->out.at = 0;
	watch(c, EPOLL_CTL_ADD, EPOLLIN);
	go_on(c);
}

static void
conn_close(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	run.closed++;
	if (!o.idle && run.begun < o.messages)
		conn_open(c);
}

/* The daemon hung up where it should not have. */
static void
conn_lost(struct conn *c)
{
	fault(c, "the connection was closed");
	if (c->asked >= STEP_MAIL)
		run.done++;
	/* without an end to it there would be no end to the run */
	if (run.wrong > o.messages)
		exit(1);
	conn_close(c);
}

/* Send until an answer is needed. */
static void
go_on(struct conn *c)
{
	c->waiting = false;
	while (!c->waiting) {
		if (c->step == STEP_MAIL && o.idle) {
			run.ready++;
			break;
		}
		if (c->step == STEP_MAIL && !more_messages(c)) {
			send_text(c, 'Q', NULL);
			(void)flush(c);
			conn_close(c);
			return;
		}
		c->waiting = take_step(c);
	}
	if (!flush(c))
		conn_lost(c);
}

/* --- what comes back --- */

static bool
matches(const char *expect, const char *name, const char *value)
{
	const char *colon = strchr(expect, ':');
	size_t len = colon != NULL ? (size_t)(colon - expect) : strlen(expect);
	return strlen(name) == len && strncasecmp(name, expect, len) == 0 &&
	    (colon == NULL || strstr(value, colon + 1) != NULL);
}

static void
edit(struct conn *c, char code, const char *data, size_t len)
{
	const char *name, *value;
	if (!mail_edit(&c->mail, code, data, len, &name, &value)) {
		fault(c, "a change that is none");
		return;
	}
	for (size_t i = 0; i < o.expect_count; i++)
		if (matches(o.expect[i], name, value))
			c->seen |= 1u << i;
}

static void
message_done(struct conn *c, char code)
{
	char path[512];
	run.latency_us[run.done++] = (uint32_t)((now_s() - c->mail_s) * 1e6);
	if (code != 'c' && code != 'a')
		fault(c, "was not accepted");
	else if (c->seen != (1u << o.expect_count) - 1)
		fault(c, "lacks a field that was to come");
	if (o.folder != NULL) {
		snprintf(path, sizeof path, "%s/%06lu.eml", o.folder,
		    c->number);
		mail_write(&c->mail, path);
	}
	mail_forget(&c->mail);
	c->done++;
	c->step = STEP_MAIL;
}

static uint32_t
number_at(const char *p)
{
	uint32_t n;
	memcpy(&n, p, sizeof n);
	return ntohl(n);
}

/* One packet. False: what we waited for is not over. */
static bool
packet(struct conn *c, char code, const char *data, size_t len)
{
	if (c->asked == STEP_NEGOTIATE) {
		if (code != 'O' || len < 12)
			fault(c, "no negotiation");
		else
			c->steps = number_at(data + 8);
		return true;
	}
	if (code == 'p')
		return false;
	if (c->asked != STEP_END) {
		if (code != 'c')
			fault(c, "an early answer");
		return true;
	}
	if (strchr("imh", code) != NULL) {
		edit(c, code, data, len);
		return false;
	}
	message_done(c, code);
	return true;
}

static void
conn_read(struct conn *c)
{
	char bytes[16384];
	ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_lost(c);
		return;
	}
	add(&c->in, bytes, (size_t)n);
	while (c->in.len - c->in.at >= 5) {
		const char *p = c->in.p + c->in.at;
		uint32_t size = number_at(p);
		if (size < 1 || size > MAX_PACKET) {
			conn_lost(c);
			return;
		}
		if (c->in.len - c->in.at - 4 < size)
			break;
		c->in.at += 4 + size;
		if (c->in.at == c->in.len)
			c->in.at = c->in.len = 0; /* `p` stays good */
		if (!c->waiting)
			fault(c, "an answer to nothing");
		else if (packet(c, p[4], p + 5, size - 1)) {
			go_on(c);
			return; /* nothing else can be there */
		}
	}
}

/* --- a run --- */

static void
serve(int timeout_ms)
{
	struct epoll_event events[256];
	int n = epoll_wait(run.epoll, events, 256, timeout_ms);
	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;
		if ((events[i].events & EPOLLOUT) != 0 && !flush(c))
			conn_lost(c);
		else if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
			conn_read(c);
	}
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static double
percentile_ms(double q)
{
	return run.done == 0 ? 0 :
	    run.latency_us[(size_t)((double)(run.done - 1) * q)] / 1000.0;
}

static int
report(double seconds)
{
	qsort(run.latency_us, run.done, sizeof *run.latency_us, by_value);
	printf("{\"connections\": %lu, \"messages\": %lu, \"wrong\": %lu, "
	       "\"seconds\": %.4f, \"per_s\": %.1f, \"p50_ms\": %.3f, "
	       "\"p90_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, "
	       "\"opened\": %lu}\n", o.connections, run.done, run.wrong,
	    seconds, (double)run.done / seconds, percentile_ms(0.5),
	    percentile_ms(0.9), percentile_ms(0.99), percentile_ms(1),
	    run.opened);
	return run.wrong != 0 || run.done != o.messages;
}

static int
hold(void)
{
	char c;
	while (run.ready < o.connections && run.closed == 0)
		serve(1000);
	printf("idle\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return run.closed != 0;
}

static void
options(int argc, char **argv)
{
	int opt;
	while ((opt = getopt(argc, argv, "s:c:n:k:x:f:e:w:t:i")) != -1)
		switch (opt) {
		case 's': o.socket = optarg; break;
		case 'c': o.connections = strtoul(optarg, NULL, 10); break;
		case 'n': o.messages = strtoul(optarg, NULL, 10); break;
		case 'k': o.per_connection = strtoul(optarg, NULL, 10); break;
		case 'x': o.client = optarg; break;
		case 'f': o.sender = optarg; break;
		case 'w': o.folder = optarg; break;
		case 't': o.limit_s = strtod(optarg, NULL); break;
		case 'i': o.idle = true; break;
		case 'e':
			if (o.expect_count == MAX_EXPECT)
				die("too many -e");
			o.expect[o.expect_count++] = optarg;
			break;
		default: exit(64);
		}
	for (int i = optind; i < argc && o.file_count < MAX_FILES; i++)
		mail_read(argv[i], &o.files[o.file_count++]);
	if (o.socket == NULL || (!o.idle && o.file_count == 0))
		exit(64);
}

/* Still reachable at the end, when leaks are looked for. */
static struct conn *conns;

int
main(int argc, char **argv)
{
	struct rlimit files;
	options(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	conns = calloc(o.connections, sizeof *conns);
	run.latency_us = calloc(o.messages + 1, sizeof *run.latency_us);
	run.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (conns == NULL || run.latency_us == NULL || run.epoll < 0)
		die("start");
	double began = now_s();
	for (unsigned long i = 0; i < o.connections; i++) {
		conn_open(&conns[i]);
		serve(0); /* the listener's queue has an end */
	}
	if (o.idle)
		return hold();
	while (run.closed < run.opened && now_s() < began + o.limit_s)
		serve(100);
	return report(now_s() - began);
}

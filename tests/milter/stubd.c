/* The milter floor over a flow that only writes down what it is called with:
 * one line per call to stdout. The sender's local part says what to decide.
 *
 *   stubd SOCKET-PATH|PORT MAX-SESSIONS PROGRESS-MS [MARKS-FILE]
 *
 * "<crash@" dies in the header field "Crash", "<crash-end@" at the end.
 *
 * Lines on stdin: "drain" begins to drain and ends the process when idle (or
 * after a second, with "busy"); "counts" prints the counters; "swap" changes
 * the environment of sessions to come. End of input ends the process. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "milter/milter.h"
#include "flow/message.h"

struct session {
	const struct flow_env *env;
	char label[64];
};

struct message {
	struct session *session;
	char sender[256];
	char stage; /* m r h e b f: the last call */
	unsigned long headers, body;
	struct decision decision;
	struct flow_edit edits[4];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned sessions_alive, messages_alive, envs_taken;
static struct config config;
static struct flow_env envs[2] = { { .config = &config },
	{ .config = &config } };
static unsigned env_now;

static void
trace(const char *what, struct str a, struct str b)
{
	char line[4096];
	size_t n = (size_t)snprintf(line, 64, "%s", what);
	struct str texts[] = { a, b };
	for (size_t t = 0; t < 2; t++) {
		line[n++] = '|';
		for (size_t i = 0; i < texts[t].len && n < 4000; i++) {
			char c = texts[t].ptr[i];
			if (c == '\n' || c == '\r' || c == '|')
				n += (size_t)snprintf(line + n, 8, "\\%02x",
				    (unsigned char)c);
			else
				line[n++] = c;
		}
	}
	line[n++] = '\n';
	pthread_mutex_lock(&lock);
	(void)!write(STDOUT_FILENO, line, n);
	pthread_mutex_unlock(&lock);
}

static void
count(unsigned *which, int by)
{
	pthread_mutex_lock(&lock);
	*which += (unsigned)by;
	pthread_mutex_unlock(&lock);
}

struct session *
session_new(const struct flow_env *env)
{
	struct session *s = calloc(1, sizeof *s);
	s->env = env;
	count(&sessions_alive, 1);
	return s;
}

void
session_free(struct session **s)
{
	if (*s == NULL)
		return;
	trace("session_free", STR_EMPTY, STR_EMPTY);
	count(&sessions_alive, -1);
	free(*s);
	*s = NULL;
}

void
session_set_facts(struct session *s, const struct session_facts *f)
{
	struct buf b;
	buf_init(&b, 4096);
	buf_add_c(&b, "ip=");
	ip_format(&b, &f->client);
	buf_addf(&b, " name=%.*s ptr=%.*s helo=%.*s daemon=%.*s j=%.*s "
		     "space=%d lacks=%d%d%d env=%d", STR_ARG(f->client_name),
	    STR_ARG(f->client_ptr), STR_ARG(f->helo),
	    STR_ARG(f->daemon_name), STR_ARG(f->hostname), f->leading_space,
	    f->no_insert, f->no_change, f->no_hold,
	    s->env == &envs[1]);
	trace("facts", buf_str(&b), STR_EMPTY);
	buf_done(&b);
}

void
session_set_helo(struct session *s, struct str helo)
{
	trace("helo", helo, STR_EMPTY);
}

enum res
message_begin(
    struct session *s, const struct envelope *e, struct message **out)
{
	struct buf b;
	buf_init(&b, 4096);
	buf_addf(&b, "auth=%.*s type=%.*s tls=%.*s", STR_ARG(e->auth),
	    STR_ARG(e->auth_type), STR_ARG(e->tls));
	for (size_t i = 0; i < e->arg_count; i++)
		buf_addf(&b, " %.*s", STR_ARG(e->args[i]));
	trace("mail", e->mail_from, buf_str(&b));
	buf_done(&b);
	if (str_starts(e->mail_from, STR("<nomem@")))
		return RES_NOMEM;
	struct message *m = calloc(1, sizeof *m);
	m->session = s;
	m->stage = 'm';
	snprintf(m->sender, sizeof m->sender, "%.*s", STR_ARG(e->mail_from));
	count(&messages_alive, 1);
	*out = m;
	return RES_OK;
}

/* flow wants its calls in order, which libmilter must give us */
static void
enter(struct message *m, const char *from, char to)
{
	if (strchr(from, m->stage) == NULL)
		trace("OUT OF ORDER", str_of(&m->stage, 1), str_of(&to, 1));
	m->stage = to;
}

void
message_rcpt(struct message *m, struct str rcpt)
{
	enter(m, "mr", 'r');
	trace("rcpt", rcpt, STR_EMPTY);
}

void
message_header(struct message *m, struct str name, struct str value)
{
	enter(m, "rh", 'h');
	m->headers++;
	if (strncmp(m->sender, "<crash@", 7) == 0 &&
	    str_eq(name, STR("Crash")))
		_exit(99);
	trace("header", name, value);
}

void
message_end_of_header(struct message *m)
{
	enter(m, "rh", 'e');
	trace("eoh", STR_EMPTY, STR_EMPTY);
}

void
message_body(struct message *m, const char *bytes, size_t len)
{
	enter(m, "eb", 'b');
	m->body += len;
	trace("body", len < 100 ? str_of(bytes, len) : STR("..."), STR_EMPTY);
}

static const struct {
	const char *sender;
	struct decision decision;
	struct flow_edit edits[4];
} rules[] = {
	{ "<edits@", { .reply = REPLY_ACCEPT, .edit_count = 4 },
	    { { EDIT_KIND_DELETE, 2, "Authentication-Results", NULL },
		{ EDIT_KIND_CHANGE, 1, "Subject", " new" },
		{ EDIT_KIND_INSERT, 1, "DKIM-Signature", " v=1;\n\ta=b" },
		{ EDIT_KIND_INSERT, 0, "Authentication-Results", " mx; x" } } },
	{ "<reject@", { .reply = REPLY_REJECT, .code = "550",
			  .enhanced = "5.7.1", .text = "No, id=7" }, { { 0 } } },
	{ "<later@", { .reply = REPLY_TEMPFAIL, .code = "451",
			 .enhanced = "4.3.0", .text = "Later" }, { { 0 } } },
	{ "<hold@", { .reply = REPLY_ACCEPT, .quarantine = "dmarc=fail" },
	    { { 0 } } },
	{ "<norcode@", { .reply = REPLY_TEMPFAIL }, { { 0 } } },
};

const struct decision *
message_finish(struct message *m, struct str queue_id)
{
	char sizes[64];
	enter(m, "rheb", 'f');
	snprintf(sizes, sizeof sizes, "%lu %lu", m->headers, m->body);
	trace("finish", queue_id, str_c(sizes));
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (strncmp(m->sender, rules[i].sender,
			strlen(rules[i].sender)) == 0) {
			m->decision = rules[i].decision;
			memcpy(m->edits, rules[i].edits, sizeof m->edits);
			m->decision.edits = m->edits;
		}
	if (strncmp(m->sender, "<slow@", 6) == 0)
		usleep(700000);
	if (strncmp(m->sender, "<crash-end@", 11) == 0)
		_exit(99);
	if (strncmp(m->sender, "<never@", 7) == 0)
		sleep(60);
	return &m->decision;
}

void
message_withdrawn(struct message *m, const char *why)
{
	trace("withdrawn", str_c(m->sender), str_c(why));
}

void
message_free(struct message **m)
{
	if (*m == NULL)
		return;
	trace("message_free", str_of(&(*m)->stage, 1), STR_EMPTY);
	count(&messages_alive, -1);
	free(*m);
	*m = NULL;
}

static const struct flow_env *
take(void *context)
{
	pthread_mutex_lock(&lock);
	envs_taken++;
	const struct flow_env *env = &envs[env_now];
	pthread_mutex_unlock(&lock);
	return env;
}

static void
give(void *context, const struct flow_env *env)
{
	count(&envs_taken, -1);
}

static int
listening(const char *where)
{
	if (strchr(where, '/') != NULL) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };
		snprintf(un.sun_path, sizeof un.sun_path, "%s", where);
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		return bind(fd, (void *)&un, sizeof un) == 0 ? fd : -1;
	}
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, (void *)&in, sizeof in) != 0)
		return -1;
	socklen_t len = sizeof in;
	getsockname(fd, (void *)&in, &len);
	printf("port|%d|\n", ntohs(in.sin_port));
	fflush(stdout);
	return fd;
}

static void
print_counts(void)
{
	struct milter_counts c;
	char text[128];
	milter_counts(&c);
	pthread_mutex_lock(&lock);
	snprintf(text, sizeof text, "%u %u %u %u %u %d", c.sessions,
	    c.transactions, sessions_alive, messages_alive, envs_taken,
	    c.running);
	pthread_mutex_unlock(&lock);
	trace("counts", str_c(text), STR_EMPTY);
}

/* A plain file stands for the supervisor's memory. */
static struct guard *
marks(const char *path)
{
	struct guard *g = NULL;
	int memory, fd = open(path, O_RDWR);
	if (fd < 0) {
		char bytes[65536];
		ssize_t n;
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (guard_create(&memory) != RES_OK)
			return NULL;
		while ((n = read(memory, bytes, sizeof bytes)) > 0)
			(void)!write(fd, bytes, (size_t)n);
		close(memory);
	}
	unsigned found = 99;
	if (guard_open(fd, &g, &found) != RES_OK)
		return NULL;
	char text[16];
	snprintf(text, sizeof text, "%u", found);
	trace("found", str_c(text), STR_EMPTY);
	close(fd);
	return g;
}

int
main(int argc, char **argv)
{
	struct err err = { "" };
	char line[64];
	uint64_t max, progress_ms;
	if (argc < 4 || argc > 5 ||
	    str_to_u64(str_c(argv[2]), 10000, &max) != RES_OK ||
	    str_to_u64(str_c(argv[3]), 100000, &progress_ms) != RES_OK)
		return 64;
	config.max_sessions = max;
	log_open(LOG_TO_STDERR, "stubd", LOG_LEVEL_INFO);
	int fd = listening(argv[1]);
	struct milter_options o = { .listen_fd = fd, .env_take = take,
		.env_give = give, .progress_us = (int64_t)progress_ms * 1000 };
	if (argc == 5)
		o.guard = marks(argv[4]);
	if (fd < 0 || milter_start(&o, &err) != RES_OK) {
		fprintf(stderr, "stubd: %s\n", err.text);
		return 1;
	}
	int nodelay = 0;
	socklen_t len = sizeof nodelay;
	if (getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len) != 0)
		nodelay = 0;
	trace("ready", nodelay != 0 ? STR("nodelay") : STR(""), STR_EMPTY);
	while (fgets(line, sizeof line, stdin) != NULL) {
		if (strcmp(line, "counts\n") == 0)
			print_counts();
		if (strcmp(line, "swap\n") == 0) {
			pthread_mutex_lock(&lock);
			env_now = 1;
			pthread_mutex_unlock(&lock);
			trace("swapped", STR_EMPTY, STR_EMPTY);
		}
		if (strcmp(line, "drain\n") == 0) {
			milter_drain();
			trace("draining", STR_EMPTY, STR_EMPTY);
			enum res r =
			    milter_wait_idle(clock_mono_us() + 3000000);
			trace(r == RES_OK ? "idle" : "busy", STR_EMPTY,
			    STR_EMPTY);
			_exit(0);
		}
	}
	_exit(0);
}

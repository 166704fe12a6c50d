#include "tests/dns/authority.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec.h"

#define MAX_TCP     64
#define MAX_LATE    64
#define MAX_SEEN    4096
#define LATE_US     300000
#define MAX_MESSAGE 65535

/* A message being written; it must not get longer than MAX_MESSAGE. */
struct out {
	unsigned char p[MAX_MESSAGE];
	size_t len;
};

struct question {
	unsigned char id[2];
	char name[256]; /* text, as asked */
	unsigned char wire[256];
	size_t wire_len; /* name, type, class */
	struct authority *server;
	unsigned type;
	bool tcp;
};

struct late {
	int64_t due_us;
	struct sockaddr_in to;
	size_t len;
	unsigned char p[512];
};

struct authority {
	pthread_t thread;
	int udp, tcp, stop[2];
	char address[32];
	EVP_PKEY *key;                /* NULL: nothing is signed */
	unsigned char dnskey[4 + 32]; /* its record's data */
	int conns[MAX_TCP];
	struct late late[MAX_LATE];
	size_t late_count;
	struct out out;
	pthread_mutex_t lock;
	size_t seen_count;
	char seen[MAX_SEEN][32];
};

static void
put(struct out *o, const void *p, size_t n)
{
	if (o->len + n > MAX_MESSAGE)
		abort();
	memcpy(o->p + o->len, p, n);
	o->len += n;
}

static void
put16(struct out *o, unsigned v)
{
	put(o, (unsigned char[]){ (unsigned char)(v >> 8), (unsigned char)v },
	    2);
}

static void
put32(struct out *o, unsigned long v)
{
	put16(o, (unsigned)(v >> 16));
	put16(o, (unsigned)(v & 0xffff));
}

static void
put_name(struct out *o, const char *name)
{
	while (*name != '\0') {
		size_t n = strcspn(name, ".");
		put(o, (unsigned char[]){ (unsigned char)n }, 1);
		put(o, name, n);
		name += n + (name[n] == '.');
	}
	put(o, "", 1);
}

static void
put_rr(struct out *o, const char *owner, unsigned type, unsigned long ttl,
    size_t rdlen)
{
	if (owner == NULL)
		put(o, "\xc0\x0c", 2); /* the question's name */
	else
		put_name(o, owner);
	put16(o, type);
	put16(o, 1);
	put32(o, ttl);
	put16(o, (unsigned)rdlen);
	o->p[7]++; /* ANCOUNT; more than 255 set it themselves */
}

static void
put_txt(struct out *o, const char *owner, const char *text)
{
	size_t n = strlen(text);
	put_rr(o, owner, 16, 300, n + 1);
	put(o, (unsigned char[]){ (unsigned char)n }, 1);
	put(o, text, n);
}

static void
put_cname(struct out *o, const char *owner, const char *to)
{
	put_rr(o, owner, 5, 300, strlen(to) + 2);
	put_name(o, to);
}

static void
put_soa(struct out *o)
{
	put_name(o, "example");
	put16(o, 6);
	put16(o, 1);
	put32(o, 60);
	put16(o, 22);
	put(o, "\0\0", 2);
	for (int i = 0; i < 4; i++)
		put32(o, 1);
	put32(o, 30);
	o->p[9]++;
}

static void
begin(struct out *o, const struct question *q, unsigned rcode)
{
	o->len = 0;
	put(o, q->id, 2);
	put16(o, 0x8580 | rcode); /* QR AA RD RA */
	put16(o, 1);
	put16(o, 0);
	put32(o, 0);
	put(o, q->wire, q->wire_len);
}

static void
big_txt(struct out *o)
{
	/* 240 strings of 255 and what else fits in one message */
	put_rr(o, NULL, 16, 300, 240 * 256);
	char text[256];
	memset(text, 'x', sizeof(text));
	text[0] = (char)255;
	for (int i = 0; i < 240; i++)
		put(o, text, 256);
}

static void
many_mx(struct out *o)
{
	for (unsigned i = 0; i < 1000; i++) {
		char host[32];
		int n = snprintf(host, sizeof(host), "mx%u.example", i);
		put_rr(o, NULL, 15, 300, (size_t)n + 4);
		put16(o, i);
		put_name(o, host);
	}
	o->p[6] = 1000 >> 8;
	o->p[7] = 1000 & 255;
}

static bool
is(const struct question *q, const char *label)
{
	size_t n = strlen(label);
	return strncasecmp(q->name, label, n) == 0 && q->name[n] == '.';
}

/* ---- signing (RFC 4034 §3.1, RFC 8080) -------------------------------- */

static unsigned
key_tag(const unsigned char *p, size_t n)
{
	unsigned long sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += i & 1 ? p[i] : (unsigned long)p[i] << 8;
	return (unsigned)((sum + (sum >> 16)) & 0xffff);
}

/* The record (owner, type, rdata) and its RRSIG by the root's key. */
static void
put_signed(struct out *o, const struct question *q, unsigned type,
    const void *rdata, size_t rdlen)
{
	static struct out head, data;
	const struct authority *a = q->server;
	size_t owner_len = q->wire_len - 4;
	put_rr(o, NULL, type, 300, rdlen);
	put(o, rdata, rdlen);
	head.len = data.len = 0;
	put16(&head, type);
	put(&head, "\x0f", 1);                      /* Ed25519 */
	put(&head, owner_len > 1 ? "\1" : "\0", 1); /* labels */
	put32(&head, 300);
	unsigned long now = (unsigned long)time(NULL);
	put32(&head, now + 86400);
	put32(&head, now - 86400);
	put16(&head, key_tag(a->dnskey, sizeof(a->dnskey)));
	put(&head, "", 1); /* signed by the root */
	put(&data, head.p, head.len);
	put(&data, q->wire, owner_len);
	put16(&data, type);
	put16(&data, 1);
	put32(&data, 300);
	put16(&data, (unsigned)rdlen);
	put(&data, rdata, rdlen);
	unsigned char sig[64];
	size_t sig_len = sizeof(sig);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	if (ctx == NULL ||
	    EVP_DigestSignInit(ctx, NULL, NULL, NULL, a->key) != 1 ||
	    EVP_DigestSign(ctx, sig, &sig_len, data.p, data.len) != 1)
		abort();
	EVP_MD_CTX_free(ctx);
	if (strncasecmp(q->name, "forged", 6) == 0)
		sig[7] ^= 1;
	put_rr(o, NULL, 46, 300, head.len + sig_len);
	put(o, head.p, head.len);
	put(o, sig, sig_len);
	put(o, "\0\0\x29\x04\xd0\0\0\x80\0\0\0", 11); /* OPT with DO */
	o->p[11]++;
}

static int
sign_root(struct authority *a, const char *anchor)
{
	size_t len = 32;
	a->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	if (a->key == NULL ||
	    EVP_PKEY_get_raw_public_key(a->key, a->dnskey + 4, &len) != 1)
		return -1;
	memcpy(a->dnskey, "\1\1\3\x0f", 4); /* 257 3 15 */
	struct buf b;
	buf_init(&b, 256);
	buf_add_c(&b, ". IN DNSKEY 257 3 15 ");
	base64_encode(&b, a->dnskey + 4, 32);
	buf_add_char(&b, '\n');
	FILE *f = fopen(anchor, "w");
	int r = f != NULL && fwrite(b.ptr, 1, b.len, f) == b.len ? 0 : -1;
	if (f != NULL && fclose(f) != 0)
		r = -1;
	buf_done(&b);
	return r;
}

static void
chain(struct out *o, const struct question *q)
{
	put_cname(o, NULL, "chain2.example");
	put_cname(o, "CHAIN2.example", "chain3.example");
	put_cname(o, "chain3.example", "txt.example");
	put_txt(o, "txt.example", "v=spf1 -all");
}

/* False: say nothing. */
static bool
answer(struct out *o, const struct question *q)
{
	begin(o, q, 0);
	if (q->server->key != NULL && q->name[0] == '\0' && q->type == 48) {
		put_signed(
		    o, q, 48, q->server->dnskey, sizeof(q->server->dnskey));
	} else if (q->server->key != NULL && q->type == 16 &&
	    (is(q, "signed") || is(q, "forged"))) {
		put_signed(o, q, 16, "\4text", 5);
	} else if (is(q, "txt")) {
		if (q->type == 16)
			put_txt(o, NULL, "v=spf1 -all");
		else
			put_soa(o);
	} else if (is(q, "nx")) {
		begin(o, q, 3);
		put_soa(o);
	} else if (is(q, "nodata")) {
		put_soa(o);
	} else if (is(q, "servfail")) {
		begin(o, q, 2);
	} else if (is(q, "refused")) {
		begin(o, q, 5);
	} else if (is(q, "silent")) {
		return false;
	} else if (is(q, "late")) {
		put_txt(o, NULL, "late");
	} else if (is(q, "short")) {
		put_rr(o, NULL, 1, 1, 4);
		put(o, "\x7f\0\0\1", 4);
	} else if (is(q, "tc") || is(q, "big") || is(q, "mx1000")) {
		if (!q->tcp)
			o->p[2] |= 2;
		else if (is(q, "tc"))
			put_txt(o, NULL, "by tcp");
		else if (is(q, "big"))
			big_txt(o);
		else
			many_mx(o);
	} else if (is(q, "wrongid")) {
		put_txt(o, NULL, "forged");
		o->p[1]++;
	} else if (is(q, "wrongq")) {
		put_txt(o, NULL, "forged");
		o->p[13] = 'X';
	} else if (is(q, "wrongowner")) {
		put_txt(o, "other.example", "forged");
	} else if (is(q, "chain")) {
		chain(o, q);
	} else if (is(q, "chain2")) {
		put_cname(o, NULL, "chain3.example");
	} else if (is(q, "chain3")) {
		put_cname(o, NULL, "txt.example");
	} else if (is(q, "loop2")) {
		put_cname(o, NULL, "loop.example");
	} else if (is(q, "loop")) {
		put_cname(o, NULL, "loop2.example");
		put_cname(o, "loop2.example", "loop.example");
	} else if (is(q, "garbage")) {
		put_rr(o, NULL, q->type, 300, 5000);
	} else if (q->type == 1) {
		put_rr(o, NULL, 1, 300, 4);
		put(o, "\x0a\0\0\1", 4);
	} else {
		put_soa(o);
	}
	return true;
}

static bool
parse(const unsigned char *p, size_t len, struct question *q)
{
	size_t at = 12, n = 0;
	if (len < 17)
		return false;
	memcpy(q->id, p, 2);
	while (at < len && p[at] != 0 && p[at] < 64 && n + p[at] < 250) {
		if (at + 1 + p[at] >= len)
			return false;
		memcpy(q->name + n, p + at + 1, p[at]);
		n += p[at];
		q->name[n++] = '.';
		at += 1 + (size_t)p[at];
	}
	q->name[n] = '\0';
	if (at + 5 > len || at + 5 - 12 > sizeof(q->wire))
		return false;
	q->wire_len = at + 5 - 12;
	memcpy(q->wire, p + 12, q->wire_len);
	q->type = (unsigned)(p[at + 1] << 8 | p[at + 2]);
	return true;
}

static bool
reply(struct authority *a, const unsigned char *p, size_t len, bool tcp,
    bool *out_late)
{
	struct question q = { .tcp = tcp, .server = a };
	if (!parse(p, len, &q))
		return false;
	pthread_mutex_lock(&a->lock);
	if (a->seen_count < MAX_SEEN)
		snprintf(a->seen[a->seen_count++], sizeof(a->seen[0]), "%.31s",
		    q.name);
	pthread_mutex_unlock(&a->lock);
	*out_late = is(&q, "late");
	return answer(&a->out, &q);
}

static void
on_udp(struct authority *a)
{
	unsigned char p[1500];
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(a->udp, p, sizeof(p), MSG_DONTWAIT,
	    (struct sockaddr *)&from, &from_len);
	bool late = false;
	if (n <= 0 || !reply(a, p, (size_t)n, false, &late))
		return;
	if (late && a->late_count < MAX_LATE && a->out.len <= 512) {
		struct late *l = &a->late[a->late_count++];
		l->due_us = clock_mono_us() + LATE_US;
		l->to = from;
		l->len = a->out.len;
		memcpy(l->p, a->out.p, l->len);
		return;
	}
	(void)!sendto(a->udp, a->out.p, a->out.len, 0, (struct sockaddr *)&from,
	    from_len);
}

static void
send_late(struct authority *a)
{
	for (size_t i = 0; i < a->late_count;) {
		struct late *l = &a->late[i];
		if (l->due_us > clock_mono_us()) {
			i++;
			continue;
		}
		(void)!sendto(a->udp, l->p, l->len, 0,
		    (struct sockaddr *)&l->to, sizeof(l->to));
		*l = a->late[--a->late_count];
	}
}

static bool
read_all(int fd, unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t got = read(fd, p, n);
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool
on_conn(struct authority *a, int fd)
{
	unsigned char head[2], p[1500];
	bool late;
	if (!read_all(fd, head, 2))
		return false;
	size_t n = (size_t)(head[0] << 8 | head[1]);
	if (n > sizeof(p) || !read_all(fd, p, n) ||
	    !reply(a, p, n, true, &late))
		return false;
	head[0] = (unsigned char)(a->out.len >> 8);
	head[1] = (unsigned char)a->out.len;
	size_t at = 0;
	(void)!send(fd, head, 2, MSG_NOSIGNAL);
	while (at < a->out.len) {
		ssize_t sent =
		    send(fd, a->out.p + at, a->out.len - at, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		at += (size_t)sent;
	}
	return true;
}

static void
on_accept(struct authority *a)
{
	int fd = accept(a->tcp, NULL, NULL);
	for (size_t i = 0; fd >= 0 && i < MAX_TCP; i++) {
		if (a->conns[i] < 0) {
			a->conns[i] = fd;
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

static void *
run(void *arg)
{
	struct authority *a = arg;
	for (;;) {
		struct pollfd p[3 + MAX_TCP] = { { a->stop[0], POLLIN, 0 },
			{ a->udp, POLLIN, 0 }, { a->tcp, POLLIN, 0 } };
		for (size_t i = 0; i < MAX_TCP; i++)
			p[3 + i] = (struct pollfd){ a->conns[i], POLLIN, 0 };
		poll(p, 3 + MAX_TCP, a->late_count > 0 ? 10 : -1);
		if (p[0].revents != 0)
			return NULL;
		if (p[1].revents != 0)
			on_udp(a);
		for (size_t i = 0; i < MAX_TCP; i++) {
			if (a->conns[i] >= 0 && p[3 + i].revents != 0 &&
			    !on_conn(a, a->conns[i])) {
				close(a->conns[i]);
				a->conns[i] = -1;
			}
		}
		if (p[2].revents != 0)
			on_accept(a);
		send_late(a);
	}
}

/* The same port for both: TCP takes any, UDP that one; again when taken. */
static bool
bind_both(struct authority *a)
{
	for (int tries = 0; tries < 50; tries++) {
		struct sockaddr_in sin = { .sin_family = AF_INET,
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t len = sizeof(sin);
		a->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		a->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int big = 4 << 20;
		setsockopt(a->udp, SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
		if (bind(a->tcp, (struct sockaddr *)&sin, len) == 0 &&
		    getsockname(a->tcp, (struct sockaddr *)&sin, &len) == 0 &&
		    bind(a->udp, (struct sockaddr *)&sin, len) == 0 &&
		    listen(a->tcp, 64) == 0) {
			snprintf(a->address, sizeof(a->address), "127.0.0.1@%u",
			    ntohs(sin.sin_port));
			return true;
		}
		close(a->tcp);
		close(a->udp);
	}
	return false;
}

struct authority *
authority_new(const char *anchor)
{
	struct authority *a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	for (size_t i = 0; i < MAX_TCP; i++)
		a->conns[i] = -1;
	pthread_mutex_init(&a->lock, NULL);
	if ((anchor != NULL && sign_root(a, anchor) != 0) || !bind_both(a) ||
	    pipe(a->stop) != 0 ||
	    pthread_create(&a->thread, NULL, run, a) != 0) {
		free(a);
		return NULL;
	}
	return a;
}

void
authority_free(struct authority **authority)
{
	struct authority *a = *authority;
	*authority = NULL;
	if (a == NULL)
		return;
	close(a->stop[1]);
	pthread_join(a->thread, NULL);
	close(a->stop[0]);
	close(a->udp);
	close(a->tcp);
	for (size_t i = 0; i < MAX_TCP; i++) {
		if (a->conns[i] >= 0)
			close(a->conns[i]);
	}
	EVP_PKEY_free(a->key);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

const char *
authority_address(const struct authority *a)
{
	return a->address;
}

unsigned
authority_seen(struct authority *a, const char *label)
{
	unsigned n = 0;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->seen_count; i++)
		n += strncasecmp(a->seen[i], label, strlen(label)) == 0;
	pthread_mutex_unlock(&a->lock);
	return n;
}

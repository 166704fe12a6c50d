#include "keys/remote.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/packet.h"
#include "key_test.h"
#include "keys/keyring.h"

#define SECOND 1000000

/* A pair of which the client has one end; the other one. */
static int
attach(struct signer *client)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			     pair), 0);
	assert_ok(remote_attach(client, pair[0]));
	return pair[1];
}

static struct keyfile
file_of(const char *domain, const char *selector)
{
	return (struct keyfile){ .domain = str_c(domain),
		.selector = str_c(selector),
		.state = KEY_STATE_ACTIVE,
		.fd = test_key_fd(KEY_ED25519),
		.path = str_c(selector) };
}

/* RES_OK only when the signature is by the key that was asked for. */
static enum res
try_sign(struct signer *s, const struct signing_key *key)
{
	uint8_t digest[32] = { 3 };
	struct buf out;
	struct pubkey *pub = NULL;
	bool fits = false;
	buf_init(&out, 2048);
	enum res r = s->sign(s, key, digest, &out);
	if (r == RES_OK) {
		if (pubkey_from_ed25519(key->public_der, &pub) != RES_OK ||
		    pubkey_verify(pub, digest, buf_str(&out), &fits) !=
			RES_OK || !fits)
			r = RES_CORRUPT;
		pubkey_unref(&pub);
	}
	buf_done(&out);
	return r;
}

static enum res
sign_for(struct signer *s, const char *domain)
{
	size_t n;
	struct manifest *m = s->manifest(s);
	const struct signing_key *k = manifest_find(m, str_c(domain), &n);
	enum res r = k != NULL ? try_sign(s, k) : RES_SYNTAX;
	manifest_unref(&m);
	return r;
}

/* Both processes in one: two domains, one client, one server. */
struct fixture {
	struct keyfile files[2];
	struct signer *ring, *client;
	struct remote_server *server;
};

static void
connect_them(struct fixture *f)
{
	assert_ok(
	    remote_server_new(f->ring, attach(f->client), &f->server));
}

static int
begin(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->files[0] = file_of("a.example", "k");
	f->files[1] = file_of("b.example", "k");
	struct keydir d = { 2, f->files };
	assert_ok(keyring_from_keydir(&d, NULL, &f->ring));
	assert_ok(remote_new(0, &f->client));
	*state = f;
	return 0;
}

static int
end(void **state)
{
	struct fixture *f = *state;
	remote_server_free(&f->server);
	signer_free(&f->client);
	signer_free(&f->ring);
	close(f->files[0].fd);
	close(f->files[1].fd);
	free(f);
	return 0;
}

static void
wait_ready(struct fixture *f)
{
	assert_ok(remote_wait_ready(f->client, clock_mono_us() + 20 * SECOND));
}

/* Until the connection is known to be lost, or a new one is there. */
static void
wait_for(struct fixture *f, const char *domain, enum res want)
{
	int64_t limit = clock_mono_us() + 20 * SECOND;
	while (sign_for(f->client, domain) != want) {
		assert_true(clock_mono_us() < limit);
		usleep(1000);
	}
}

static void
before_a_connection(void **state)
{
	struct fixture *f = *state;
	struct signing_key k = { .domain = STR("a.example") };
	assert_null(f->client->manifest(f->client));
	assert_int_equal(try_sign(f->client, &k), RES_AGAIN);
	assert_int_equal(
	    remote_wait_ready(f->client, clock_mono_us() + 1000), RES_TIMEOUT);
}

static void
list_and_sign(void **state)
{
	struct fixture *f = *state;
	connect_them(f);
	wait_ready(f);
	struct manifest *there = f->ring->manifest(f->ring);
	struct manifest *here = f->client->manifest(f->client);
	assert_int_equal(manifest_count(here), 2);
	for (size_t i = 0; i < 2; i++) {
		const struct signing_key *a = manifest_at(here, i),
					 *b = manifest_at(there, i);
		assert_true(str_eq(a->domain, b->domain));
		assert_true(str_eq(a->selector, b->selector));
		assert_true(str_eq(a->public_der, b->public_der));
		assert_int_equal(a->type, b->type);
		assert_int_equal(a->bits, b->bits);
		assert_ok(try_sign(f->client, a));
	}
	manifest_unref(&here);
	manifest_unref(&there);
}

static void
reload(void **state)
{
	struct fixture *f = *state;
	connect_them(f);
	wait_ready(f);
	struct manifest *old = f->client->manifest(f->client);
	/* b alone: it gets a's id. Not told yet: the client's list is stale,
	 * it must wait for the new one, never sign with the wrong key. */
	struct keydir d = { 1, f->files + 1 };
	assert_ok(keyring_reload(f->ring, &d, NULL));
	assert_ok(remote_server_push(f->server));
	wait_for(f, "a.example", RES_SYNTAX); /* gone from the list */
	assert_ok(sign_for(f->client, "b.example"));
	/* a message that began before */
	assert_int_equal(
	    try_sign(f->client, manifest_at(old, 0)), RES_NOTFOUND);
	assert_ok(try_sign(f->client, manifest_at(old, 1)));
	manifest_unref(&old);
}

static void *
push_later(void *arg)
{
	struct fixture *f = arg;
	usleep(20000);
	return remote_server_push(f->server) == RES_OK ? f : NULL;
}

static void
stale_request_waits_for_the_list(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	void *pushed;
	connect_them(f);
	wait_ready(f);
	struct manifest *old = f->client->manifest(f->client);
	struct keydir d = { 1, f->files + 1 };
	assert_ok(keyring_reload(f->ring, &d, NULL));
	assert_int_equal(pthread_create(&thread, NULL, push_later, f), 0);
	/* both have id 0 in one of the generations */
	assert_ok(try_sign(f->client, manifest_at(old, 1)));
	assert_int_equal(
	    try_sign(f->client, manifest_at(old, 0)), RES_NOTFOUND);
	pthread_join(thread, &pushed);
	assert_non_null(pushed);
	manifest_unref(&old);
}

static void
signer_gone_and_back(void **state)
{
	struct fixture *f = *state;
	connect_them(f);
	wait_ready(f);
	struct manifest *old = f->client->manifest(f->client);
	remote_server_free(&f->server);
	wait_for(f, "a.example", RES_AGAIN);
	/* the domains are still known: no mail leaves unsigned */
	struct manifest *kept = f->client->manifest(f->client);
	assert_int_equal(manifest_count(kept), 2);
	manifest_unref(&kept);

	/* a new process counts from 1 again and has swapped the keys' ids */
	struct keyfile swapped[2] = { f->files[1], f->files[0] };
	struct keydir d = { 2, swapped };
	signer_free(&f->ring);
	assert_ok(keyring_from_keydir(&d, NULL, &f->ring));
	connect_them(f);
	wait_ready(f);
	assert_ok(sign_for(f->client, "a.example"));
	assert_ok(try_sign(f->client, manifest_at(old, 0)));
	assert_ok(try_sign(f->client, manifest_at(old, 1)));
	manifest_unref(&old);
}

static void
replaced_while_connected(void **state)
{
	struct fixture *f = *state;
	connect_them(f);
	wait_ready(f);
	struct remote_server *first = f->server;
	connect_them(f);
	wait_ready(f);
	assert_ok(sign_for(f->client, "a.example"));
	assert_int_equal(remote_server_push(first), RES_IO);
	remote_server_free(&first);
	assert_ok(sign_for(f->client, "b.example"));
}

struct worker {
	struct fixture *f;
	pthread_t thread;
	size_t good, again, bad;
};
static atomic_bool stop;

static void *
work(void *arg)
{
	struct worker *w = arg;
	while (!atomic_load(&stop)) {
		switch (sign_for(w->f->client, "b.example")) {
		case RES_OK:
			w->good++;
			break;
		case RES_AGAIN:
			w->again++;
			break;
		default:
			w->bad++;
			break;
		}
	}
	return NULL;
}

/* Reloads that move ids, and restarts, under load: every answer is a good
 * signature or "not now". */
static void
under_load(void **state)
{
	struct fixture *f = *state;
	struct worker workers[6] = { 0 };
	size_t good = 0;
	connect_them(f);
	wait_ready(f);
	atomic_store(&stop, false);
	for (size_t i = 0; i < 6; i++) {
		workers[i].f = f;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work,
				     &workers[i]), 0);
	}
	for (int i = 0; i < 60; i++) {
		struct keydir d = { i % 2 == 0 ? 1 : 2,
			i % 2 == 0 ? f->files + 1 : f->files };
		usleep(2000);
		assert_ok(keyring_reload(f->ring, &d, NULL));
		assert_ok(remote_server_push(f->server));
		if (i % 10 == 9) {
			remote_server_free(&f->server);
			connect_them(f);
		}
	}
	wait_ready(f);
	wait_for(f, "b.example", RES_OK);
	usleep(20000);
	atomic_store(&stop, true);
	for (size_t i = 0; i < 6; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].bad, 0);
		good += workers[i].good;
	}
	assert_true(good > 0);
}

/* --- a peer that misbehaves --- */

/* One lane; our end of it. */
static int
send_lane(int fd)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_ok(packet_send(fd, STR("L"), STR_EMPTY, pair, 1));
	close(pair[0]);
	return pair[1];
}

/* What a server sends first. */
static void
receive_lanes(int fd, int lanes[REMOTE_LANES])
{
	size_t len, count;
	char byte;
	assert_ok(
	    packet_receive(fd, &byte, 1, &len, lanes, REMOTE_LANES, &count));
	assert_int_equal(byte, 'L');
	assert_int_equal(count, REMOTE_LANES);
}

static void
close_lanes(const int lanes[REMOTE_LANES])
{
	for (size_t i = 0; i < REMOTE_LANES; i++)
		close(lanes[i]);
}

static void
send_list(int fd, const char *domain)
{
	uint8_t packet[128] = { 'M' };
	size_t n = strlen(domain);
	put_le32(packet + 1, 7);
	put_le32(packet + 5, 1);
	assert_int_equal(send(fd, packet, 9, 0), 9);
	memset(packet, 0, sizeof packet);
	packet[0] = 'K';
	packet[5] = 1; /* Ed25519 */
	put_le16(packet + 8, (uint16_t)n);
	put_le16(packet + 10, 1);
	memcpy(packet + 14, domain, n);
	packet[14 + n] = 's';
	assert_int_equal(send(fd, packet, 15 + n, 0), (ssize_t)(15 + n));
	packet[0] = 'E';
	put_le32(packet + 1, 7);
	assert_int_equal(send(fd, packet, 5, 0), 5);
}

static void
silent_signer(void **state)
{
	struct signer *s = NULL;
	assert_ok(remote_new(50000, &s));
	int peer = attach(s);
	int lane = send_lane(peer);
	send_list(peer, "a.example");
	assert_ok(remote_wait_ready(s, clock_mono_us() + 20 * SECOND));
	assert_int_equal(sign_for(s, "a.example"), RES_AGAIN);
	/* the late answer to it, and answers to nobody */
	uint8_t request[64];
	assert_int_equal(recv(lane, request, sizeof request, 0), 45);
	uint8_t reply[7] = { 'R', 0, 0, 0, 0, 0, 'x' };
	memcpy(reply + 1, request + 1, 4);
	assert_int_equal(send(lane, reply, 7, 0), 7);
	reply[1] ^= 0x55;
	reply[5] = 99;
	assert_int_equal(send(lane, reply, 7, 0), 7);
	assert_int_equal(sign_for(s, "a.example"), RES_AGAIN);
	close(lane);
	close(peer);
	signer_free(&s);
}

struct answerer {
	int lane;
	const char *reply; /* its number is put in */
	size_t len;
};

static void *
answer_once(void *arg)
{
	struct answerer *a = arg;
	uint8_t request[64], reply[16];
	if (recv(a->lane, request, sizeof request, 0) != 45)
		return NULL;
	memcpy(reply, a->reply, a->len);
	if (a->len > 5)
		memcpy(reply + 1, request + 1, 4);
	return send(a->lane, reply, a->len, 0) == (ssize_t)a->len ? a : NULL;
}

static void
bad_answers(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum res want;
	} rows[] = {
		{ "R\0\0\0\0\143x", 7, RES_IO }, /* unknown outcome */
		{ "R\0\0\0\0", 5, RES_AGAIN },
		{ "X\0\0\0\0\0x", 7, RES_AGAIN },
		{ "R\0\0\0\0\2", 6, RES_NOTFOUND },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct signer *s = NULL;
		pthread_t thread;
		void *sent;
		assert_ok(remote_new(0, &s));
		int peer = attach(s);
		struct answerer a = { send_lane(peer), rows[i].bytes,
			rows[i].len };
		send_list(peer, "a.example");
		assert_ok(remote_wait_ready(s, clock_mono_us() + 20 * SECOND));
		assert_int_equal(
		    pthread_create(&thread, NULL, answer_once, &a), 0);
		assert_int_equal(sign_for(s, "a.example"), rows[i].want);
		pthread_join(thread, &sent);
		assert_non_null(sent);
		close(a.lane);
		close(peer);
		signer_free(&s);
	}
}

/* More threads than lanes: each waits for its turn, none for ever. */
static void *
ask_once(void *arg)
{
	return sign_for(arg, "a.example") == RES_AGAIN ? arg : NULL;
}

static void
one_lane_for_many(void **state)
{
	struct signer *s = NULL;
	pthread_t threads[8];
	assert_ok(remote_new(50000, &s));
	int peer = attach(s);
	int lane = send_lane(peer);
	send_list(peer, "a.example");
	assert_ok(remote_wait_ready(s, clock_mono_us() + 20 * SECOND));
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, ask_once, s), 0);
	for (size_t i = 0; i < 8; i++) {
		void *again;
		pthread_join(threads[i], &again);
		assert_non_null(again);
	}
	close(lane);
	close(peer);
	signer_free(&s);
}

/* A writer of the archive waits for it, and mail for the writer. */
static void
silent_signer_of_notes(void **state)
{
	struct signer *s = NULL;
	const struct signing_key key = { .notes = true };
	struct buf out;
	(void)state;
	buf_init(&out, 256);
	assert_ok(remote_new(0, &s));
	int peer = attach(s);
	int64_t began = clock_mono_us();
	assert_int_equal(
	    s->sign_note(s, &key, STR("note\n"), &out), RES_AGAIN);
	assert_true(clock_mono_us() - began < REMOTE_TIMEOUT_US / 2);
	close(peer);
	signer_free(&s);
	buf_done(&out);
}

/* Each of these ends the connection and nothing else. */
static void
bad_lists(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {
		{ "X", 1 },
		{ "M\1\0\0\0\1\0\0", 8 },
		{ "M\1\0\0\0\377\377\377\377", 9 }, /* too many keys */
		{ "K", 1 },                         /* before a beginning */
		{ "E\1\0\0\0", 5 },
		{ "R\1\0\0\0\0x", 7 }, /* answers come in lanes */
		{ "L", 1 },             /* without any */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct signer *s = NULL;
		uint8_t byte;
		assert_ok(remote_new(50000, &s));
		int peer = attach(s);
		assert_int_equal(send(peer, rows[i].bytes, rows[i].len, 0),
		    (ssize_t)rows[i].len);
		assert_int_equal(recv(peer, &byte, 1, 0), 0); /* closed */
		assert_int_equal(remote_wait_ready(s, clock_mono_us()),
		    RES_TIMEOUT);
		close(peer);
		signer_free(&s);
	}
}

static void
bad_keys(void **state)
{
	/* after a good beginning that promises one key: cut short, lengths
	 * past the end, an unknown type, one key too many */
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {
		{ "K\0\0\0\0\1\0\0\1\0\1\0\0", 13 },
		{ "K\0\0\0\0\1\0\0\1\0\1\0\0\0d", 15 },
		{ "K\0\0\0\0\2\0\0\0\0\0\0\0\0", 14 },
		{ "K\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0",
		    27 },
		{ "E\7\0\0\0", 5 }, /* too few */
		{ "E\10\0\0\0", 5 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct signer *s = NULL;
		uint8_t byte;
		assert_ok(remote_new(50000, &s));
		int peer = attach(s);
		int lane = send_lane(peer);
		assert_int_equal(send(peer, "M\7\0\0\0\1\0\0\0", 9, 0), 9);
		assert_int_equal(send(peer, rows[i].bytes, rows[i].len, 0),
		    (ssize_t)rows[i].len);
		assert_int_equal(recv(peer, &byte, 1, 0), 0);
		assert_int_equal(recv(lane, &byte, 1, 0), 0);
		close(lane);
		close(peer);
		signer_free(&s);
	}
}

/* A list is of no use without lanes, and lanes come once. */
static void
bad_lanes(void **state)
{
	struct signer *s = NULL;
	char byte;
	for (int twice = 0; twice < 2; twice++) {
		assert_ok(remote_new(50000, &s));
		int peer = attach(s);
		int lanes[2] = { -1, -1 };
		for (int i = 0; twice && i < 2; i++)
			lanes[i] = send_lane(peer);
		if (!twice)
			send_list(peer, "a.example");
		assert_int_equal(recv(peer, &byte, 1, 0), 0);
		for (int i = 0; twice && i < 2; i++) {
			assert_int_equal(recv(lanes[i], &byte, 1, 0), 0);
			close(lanes[i]);
		}
		assert_int_equal(remote_wait_ready(s, clock_mono_us()),
		    RES_TIMEOUT);
		close(peer);
		signer_free(&s);
	}
}

/* Each ends the whole service, not its lane alone. */
static void
bad_requests(void **state)
{
	struct fixture *f = *state;
	static const size_t lengths[] = { 1, 44, 46, 4000 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		int pair[2];
		uint8_t bytes[4000] = { 'S' };
		assert_int_equal(
		    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_ok(remote_server_new(f->ring, pair[1], &f->server));
		int lanes[REMOTE_LANES];
		receive_lanes(pair[0], lanes);
		assert_int_equal(send(lanes[i], bytes, lengths[i], 0),
		    (ssize_t)lengths[i]);
		for (size_t k = 0; k < REMOTE_LANES; k++)
			assert_int_equal(
			    recv(lanes[k], bytes, sizeof bytes, 0), 0);
		while (recv(pair[0], bytes, sizeof bytes, 0) > 0)
			;
		remote_server_free(&f->server);
		close_lanes(lanes);
		close(pair[0]);
	}
}

static void
unknown_id(void **state)
{
	struct fixture *f = *state;
	int pair[2];
	uint8_t bytes[4000], request[45] = { 'S', 1, 2, 3, 4 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_ok(remote_server_new(f->ring, pair[1], &f->server));
	int lanes[REMOTE_LANES], lane;
	receive_lanes(pair[0], lanes);
	lane = lanes[0];
	put_le32(request + 5, 1);
	put_le32(request + 9, 2); /* ids are 0 and 1 */
	assert_int_equal(send(lane, request, sizeof request, 0), 45);
	assert_int_equal(recv(lane, bytes, sizeof bytes, 0), 6);
	assert_int_equal(bytes[0], 'R');
	assert_memory_equal(bytes + 1, request + 1, 4);
	assert_int_equal(bytes[5], 2);
	put_le32(request + 5, 9); /* no such generation */
	assert_int_equal(send(lane, request, sizeof request, 0), 45);
	assert_int_equal(recv(lane, bytes, sizeof bytes, 0), 6);
	assert_int_equal(bytes[5], 1);
	close_lanes(lanes);
	close(pair[0]);
}

/* More keys than a packet holds, in an order that is not the ids'. */
static void
many_keys(void **state)
{
	enum { COUNT = 300 };
	static struct keyfile files[COUNT];
	static char names[COUNT][32];
	struct fixture *f = *state;
	for (size_t i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof names[i], "d%zu.example",
		    COUNT - i);
		files[i] = file_of(names[i], "a-selector");
	}
	struct keydir d = { COUNT, files };
	assert_ok(keyring_reload(f->ring, &d, NULL));
	connect_them(f);
	wait_ready(f);
	struct manifest *m = f->client->manifest(f->client);
	assert_int_equal(manifest_count(m), COUNT);
	for (size_t i = 0; i < COUNT; i++)
		assert_ok(sign_for(f->client, names[i]));
	manifest_unref(&m);
	for (size_t i = 0; i < COUNT; i++)
		close(files[i].fd);
}

/* A key of the archive signs notes, no other key does, and it nothing else. */
static void
notes(void **state)
{
	struct fixture *f = *state;
	struct str text = STR("a/1/2\n3\nAAAA\n");
	struct keyfile files[] = { f->files[0], file_of(".archive", "100") };
	struct keydir d = { 2, files };
	struct buf out;
	bool fits = false;
	size_t n;
	struct pubkey *pub = NULL;
	files[1].notes = true;
	buf_init(&out, 2048);
	assert_ok(keyring_reload(f->ring, &d, NULL));
	connect_them(f);
	wait_ready(f);
	struct manifest *m = f->client->manifest(f->client);
	const struct signing_key *k = manifest_find(m, SIGNER_NOTES, &n);
	assert_int_equal(n, 1);
	assert_true(k->notes);
	assert_ok(f->client->sign_note(f->client, k, text, &out));
	assert_ok(pubkey_from_ed25519(k->public_der, &pub));
	assert_ok(pubkey_verify_text(pub, text, buf_str(&out), &fits));
	assert_true(fits);
	out.ptr[5] ^= 1;
	assert_ok(pubkey_verify_text(pub, text, buf_str(&out), &fits));
	assert_false(fits);
	pubkey_unref(&pub);
	buf_reset(&out);
	assert_int_equal(try_sign(f->client, k), RES_NOTFOUND);
	const struct signing_key *a = manifest_find(m, STR("a.example"), &n);
	assert_false(a->notes);
	assert_ok(try_sign(f->client, a));
	assert_int_equal(
	    f->client->sign_note(f->client, a, text, &out), RES_NOTFOUND);
	static const struct str bad[] = { { "", 0 }, { "\n", 1 },
		{ "no end", 6 }, { "a\n\nb\n", 5 }, { "\na\n", 3 },
		{ "caf\xc3\xa9\n", 6 }, { "nul\0\n", 5 } };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(f->client->sign_note(
				     f->client, k, bad[i], &out), RES_INVALID);
	assert_int_equal(out.len, 0);
	char *more = malloc(SIGNER_MAX_NOTE + 1);
	assert_non_null(more);
	memset(more, 'x', SIGNER_MAX_NOTE + 1);
	more[SIGNER_MAX_NOTE] = more[SIGNER_MAX_NOTE - 1] = '\n';
	assert_ok(f->client->sign_note(
	    f->client, k, str_of(more, SIGNER_MAX_NOTE), &out));
	more[SIGNER_MAX_NOTE - 1] = 'x';
	assert_int_equal(f->client->sign_note(f->client, k,
			     str_of(more, SIGNER_MAX_NOTE + 1), &out),
	    RES_INVALID);
	free(more);
	manifest_unref(&m);
	buf_done(&out);
	close(files[1].fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(before_a_connection),
		TEST(list_and_sign),
		TEST(reload),
		TEST(stale_request_waits_for_the_list),
		TEST(signer_gone_and_back),
		TEST(replaced_while_connected),
		TEST(under_load),
		cmocka_unit_test(silent_signer),
		cmocka_unit_test(bad_answers),
		cmocka_unit_test(one_lane_for_many),
		cmocka_unit_test(silent_signer_of_notes),
		cmocka_unit_test(bad_lists),
		cmocka_unit_test(bad_keys),
		cmocka_unit_test(bad_lanes),
		TEST(bad_requests),
		TEST(unknown_id),
		TEST(many_keys),
		TEST(notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

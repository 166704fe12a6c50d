#include "keys/remote.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "keys/manifest.h"
#include "keys/wire.h"

#define MAX_ARENA ((size_t)1 << 30)
#define MAX_TRIES 3 /* of a request that meets reloads */

/* One connection; open as long as a thread sends on it. */
struct channel {
	atomic_uint refs;
	int fd;
};

/* One request, on the stack of the thread that waits. */
struct request {
	struct request *next;
	pthread_cond_t done_cond;
	uint32_t number;
	bool done;
	enum res result;   /* RES_AGAIN: connection lost */
	bool stale;
	struct buf *out;
};

/* A key list while it arrives. */
struct incoming {
	struct arena *arena;
	struct signing_key *keys;
	size_t count, expected;
	uint32_t wire_generation;
};

/* `lock` guards all below it. Invariants:
 * 1. `channel` is NULL exactly when there is no usable connection.
 * 2. `ready` means that `manifest` came over `channel`, as its generation
 *    `wire_generation`; only then are requests sent.
 * 3. `generation` grows with each list, whatever the other side counts: after
 *    a restart it may begin again at 1 with other keys. */
struct remote {
	struct signer signer;
	pthread_t reader;
	int64_t timeout_us;
	pthread_condattr_t monotonic;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* channel, ready, stop */
	struct channel *channel;
	bool ready, stop;
	struct manifest *manifest; /* NULL before the first list */
	uint32_t generation, wire_generation, last_request;
	struct request *pending;
	size_t pending_count;
};

static void
channel_unref(struct channel *c)
{
	if (c == NULL || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	close(c->fd);
	free(c);
}

static struct timespec
timespec_of(int64_t us)
{
	return (struct timespec){ us / 1000000, us % 1000000 * 1000 };
}

/* --- the reader's part --- */

static void
finish(struct request *q, enum res result)
{
	q->result = result;
	q->done = true;
	pthread_cond_signal(&q->done_cond);
}

static void
fail_all(struct remote *r)
{
	for (struct request *q = r->pending; q != NULL; q = q->next)
		if (!q->done)
			finish(q, RES_AGAIN);
}

static void
incoming_done(struct incoming *in)
{
	arena_free(&in->arena);
	*in = (struct incoming){ 0 };
}

static bool
list_begin(struct incoming *in, const uint8_t *p, size_t len)
{
	incoming_done(in);
	if (len != WIRE_LIST_BEGIN_LEN)
		return false;
	in->wire_generation = get_le32(p + 1);
	in->expected = get_le32(p + 5);
	if (in->expected > REMOTE_MAX_KEYS)
		return false;
	in->arena = arena_new(MAX_ARENA);
	if (in->arena != NULL)
		in->keys = arena_array(
		    in->arena, in->expected + 1, sizeof *in->keys);
	return in->keys != NULL;
}

static size_t
list_key(struct incoming *in, const uint8_t *p, size_t len)
{
	if (in->count == in->expected || len < WIRE_KEY_HEAD ||
	    (p[4] & ~(WIRE_BY_RULE | WIRE_NOTES)) > 1)
		return 0;
	size_t domain = get_le16(p + 7), selector = get_le16(p + 9),
	       public = get_le16(p + 11);
	if (domain + selector + public > len - WIRE_KEY_HEAD)
		return 0;
	const uint8_t *text = p + WIRE_KEY_HEAD;
	struct signing_key *k = &in->keys[in->count];
	k->id = get_le32(p);
	k->type = (p[4] & 1) == 0 ? KEY_RSA : KEY_ED25519;
	k->notes = (p[4] & WIRE_NOTES) != 0;
	k->by_rule = (p[4] & WIRE_BY_RULE) != 0;
	k->bits = get_le16(p + 5);
	k->domain = arena_dup(in->arena, str_of(text, domain));
	k->selector = arena_dup(in->arena, str_of(text + domain, selector));
	k->public_der = arena_dup(
	    in->arena, str_of(text + domain + selector, public));
	if (k->domain.ptr == NULL || k->selector.ptr == NULL ||
	    k->public_der.ptr == NULL)
		return 0;
	in->count++;
	return WIRE_KEY_HEAD + domain + selector + public;
}

static bool
list_keys(struct incoming *in, const uint8_t *p, size_t len)
{
	if (in->arena == NULL)
		return false;
	for (size_t at = 1; at < len;) {
		size_t used = list_key(in, p + at, len - at);
		if (used == 0)
			return false;
		at += used;
	}
	return true;
}

/* The list is complete: it becomes the key set of now. */
static bool
list_end(struct remote *r, const struct channel *c, struct incoming *in,
    const uint8_t *p, size_t len)
{
	struct manifest *m = NULL, *old;
	if (len != WIRE_LIST_END_LEN || in->arena == NULL ||
	    get_le32(p + 1) != in->wire_generation ||
	    in->count != in->expected)
		return false;
	pthread_mutex_lock(&r->lock);
	uint32_t generation = r->generation + 1;
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < in->count; i++)
		in->keys[i].generation = generation;
	if (manifest_new(&in->arena, in->keys, in->count, &m) != RES_OK)
		return false;
	pthread_mutex_lock(&r->lock);
	bool current = r->channel == c;
	old = current ? r->manifest : m;
	if (current) {
		r->manifest = m;
		r->generation = generation;
		r->wire_generation = in->wire_generation;
		r->ready = true;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	manifest_unref(&old);
	incoming_done(in);
	return true;
}

static bool
result(struct remote *r, const uint8_t *p, size_t len)
{
	if (len < WIRE_RESULT_HEAD)
		return false;
	uint32_t number = get_le32(p + 1);
	pthread_mutex_lock(&r->lock);
	struct request *q = r->pending;
	while (q != NULL && q->number != number)
		q = q->next;
	if (q != NULL && !q->done) {
		switch ((enum wire_outcome)p[5]) {
		case WIRE_SIGNED:
			buf_add(q->out, p + WIRE_RESULT_HEAD,
			    len - WIRE_RESULT_HEAD);
			finish(q, q->out->error);
			break;
		case WIRE_STALE:
			q->stale = true;
			finish(q, RES_AGAIN);
			break;
		case WIRE_UNKNOWN:
			finish(q, RES_NOTFOUND);
			break;
		case WIRE_FAILED:
		default:
			finish(q, RES_IO);
			break;
		}
	}
	pthread_mutex_unlock(&r->lock);
	return true;
}

static bool
packet(struct remote *r, const struct channel *c, struct incoming *in,
    const uint8_t *p, size_t len)
{
	switch (p[0]) {
	case WIRE_LIST_BEGIN:
		return list_begin(in, p, len);
	case WIRE_LIST_KEYS:
		return list_keys(in, p, len);
	case WIRE_LIST_END:
		return list_end(r, c, in, p, len);
	case WIRE_RESULT:
		return result(r, p, len);
	default:
		return false;
	}
}

static void
read_channel(struct remote *r, struct channel *c)
{
	struct incoming in = { 0 };
	uint8_t *bytes = malloc(REMOTE_MAX_PACKET);
	bool good = bytes != NULL;
	while (good) {
		ssize_t n = recv(c->fd, bytes, REMOTE_MAX_PACKET, 0);
		if (n < 0 && errno == EINTR)
			continue;
		good = n > 0 && packet(r, c, &in, bytes, (size_t)n);
	}
	incoming_done(&in);
	free(bytes);
}

static void *
reader(void *arg)
{
	struct remote *r = arg;
	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		struct channel *c = r->channel;
		if (c == NULL) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		atomic_fetch_add(&c->refs, 1);
		pthread_mutex_unlock(&r->lock);
		read_channel(r, c);
		pthread_mutex_lock(&r->lock);
		if (r->channel == c) { /* not replaced meanwhile */
			r->channel = NULL;
			r->ready = false;
			channel_unref(c);
			fail_all(r);
			pthread_cond_broadcast(&r->changed);
		}
		channel_unref(c);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- the asking threads' part --- */

static void
unlink_request(struct remote *r, struct request *q)
{
	struct request **at = &r->pending;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	r->pending_count--;
}

static bool
send_request(struct channel *c, const struct request *q, uint32_t generation,
    uint32_t id, enum wire_type type, struct str what)
{
	uint8_t bytes[WIRE_SIGN_HEAD + SIGNER_MAX_NOTE] = { (uint8_t)type };
	size_t len = WIRE_SIGN_HEAD + what.len;
	put_le32(bytes + 1, q->number);
	put_le32(bytes + 5, generation);
	put_le32(bytes + 9, id);
	memcpy(bytes + WIRE_SIGN_HEAD, what.ptr, what.len);
	ssize_t n;
	do
		n = send(c->fd, bytes, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

/* With the lock held: send, wait, take off the list. */
static enum res
ask(struct remote *r, struct request *q, const struct signing_key *key,
    enum wire_type type, struct str what, int64_t deadline_us)
{
	struct timespec until = timespec_of(deadline_us);
	struct channel *c = r->channel;
	uint32_t generation = r->wire_generation, id = key->id;
	if (r->pending_count == REMOTE_MAX_PENDING)
		return RES_AGAIN;
	q->number = ++r->last_request;
	q->next = r->pending;
	r->pending = q;
	r->pending_count++;
	atomic_fetch_add(&c->refs, 1);
	pthread_mutex_unlock(&r->lock);
	bool sent = send_request(c, q, generation, id, type, what);
	channel_unref(c);
	pthread_mutex_lock(&r->lock);
	while (sent && !q->done)
		if (pthread_cond_timedwait(&q->done_cond, &r->lock, &until) ==
		    ETIMEDOUT)
			break;
	unlink_request(r, q);
	return q->done ? q->result : RES_AGAIN;
}

/* With the lock held: until there is a usable list of another generation
 * than `not_this`, or none can come. */
static enum res
wait_list(struct remote *r, uint32_t not_this, int64_t deadline_us)
{
	struct timespec until = timespec_of(deadline_us);
	while (r->channel != NULL &&
	    (!r->ready || r->generation == not_this))
		if (pthread_cond_timedwait(&r->changed, &r->lock, &until) ==
		    ETIMEDOUT)
			return RES_AGAIN;
	return r->channel != NULL ? RES_OK : RES_AGAIN;
}

static enum res
request(struct remote *r, const struct signing_key *key, enum wire_type type,
    struct str what, struct buf *out)
{
	int64_t wait_us = r->timeout_us;
	if (type == WIRE_NOTE && wait_us > REMOTE_NOTE_TIMEOUT_US)
		wait_us = REMOTE_NOTE_TIMEOUT_US;
	int64_t deadline_us = clock_mono_us() + wait_us;
	uint32_t stale = 0; /* no list has this generation */
	enum res result = RES_AGAIN;
	struct request q = { .out = out };
	if (pthread_cond_init(&q.done_cond, &r->monotonic) != 0)
		return RES_NOMEM;
	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < MAX_TRIES; i++) {
		result = wait_list(r, stale, deadline_us);
		if (result != RES_OK)
			break;
		const struct signing_key *now =
		    key->generation == r->generation ?
		    key : manifest_same(r->manifest, key);
		if (now == NULL) {
			result = RES_NOTFOUND;
			break;
		}
		stale = r->generation;
		q.done = q.stale = false;
		result = ask(r, &q, now, type, what, deadline_us);
		if (!q.stale)
			break;
	}
	pthread_mutex_unlock(&r->lock);
	pthread_cond_destroy(&q.done_cond);
	return result;
}

static enum res
remote_sign(struct signer *signer, const struct signing_key *key,
    const uint8_t digest[32], struct buf *out)
{
	return request((struct remote *)signer, key, WIRE_SIGN,
	    str_of(digest, 32), out);
}

static enum res
remote_sign_note(struct signer *signer, const struct signing_key *key,
    struct str text, struct buf *out)
{
	/* also asked here: the buffer of a request has an end */
	if (!signer_note_ok(text))
		return RES_INVALID;
	return request((struct remote *)signer, key, WIRE_NOTE, text, out);
}

static struct manifest *
remote_manifest(struct signer *signer)
{
	struct remote *r = (struct remote *)signer;
	pthread_mutex_lock(&r->lock);
	struct manifest *m =
	    r->manifest != NULL ? manifest_ref(r->manifest) : NULL;
	pthread_mutex_unlock(&r->lock);
	return m;
}

static void
remote_free(struct signer *signer)
{
	struct remote *r = (struct remote *)signer;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	if (r->channel != NULL)
		shutdown(r->channel->fd, SHUT_RDWR);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->reader, NULL);
	channel_unref(r->channel);
	manifest_unref(&r->manifest);
	pthread_cond_destroy(&r->changed);
	pthread_condattr_destroy(&r->monotonic);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

enum res
remote_new(int64_t timeout_us, struct signer **out)
{
	struct remote *r = calloc(1, sizeof *r);
	sigset_t all, old;
	if (r == NULL)
		return RES_NOMEM;
	r->signer = (struct signer){ remote_manifest, remote_sign,
		remote_sign_note, remote_free };
	r->timeout_us = timeout_us > 0 ? timeout_us : REMOTE_TIMEOUT_US;
	pthread_condattr_init(&r->monotonic);
	pthread_condattr_setclock(&r->monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, &r->monotonic);
	/* signals are for the process's main thread */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = pthread_create(&r->reader, NULL, reader, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed != 0) {
		pthread_cond_destroy(&r->changed);
		pthread_condattr_destroy(&r->monotonic);
		pthread_mutex_destroy(&r->lock);
		free(r);
		return RES_NOMEM;
	}
	*out = &r->signer;
	return RES_OK;
}

enum res
remote_attach(struct signer *signer, int fd)
{
	struct remote *r = (struct remote *)signer;
	struct timeval limit = { r->timeout_us / 1000000,
		r->timeout_us % 1000000 };
	struct channel *c = calloc(1, sizeof *c);
	if (c == NULL) {
		close(fd);
		return RES_NOMEM;
	}
	atomic_init(&c->refs, 1);
	c->fd = fd;
	/* a stopped signer must not hold a sender for ever */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	pthread_mutex_lock(&r->lock);
	struct channel *old = r->channel;
	if (old != NULL)
		shutdown(old->fd, SHUT_RDWR); /* wakes the reader */
	r->channel = c;
	r->ready = false;
	fail_all(r);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	channel_unref(old);
	return RES_OK;
}

enum res
remote_wait_ready(struct signer *signer, int64_t deadline_us)
{
	struct remote *r = (struct remote *)signer;
	struct timespec until = timespec_of(deadline_us);
	int failed = 0;
	pthread_mutex_lock(&r->lock);
	while (!r->ready && failed == 0)
		failed =
		    pthread_cond_timedwait(&r->changed, &r->lock, &until);
	bool ready = r->ready;
	pthread_mutex_unlock(&r->lock);
	return ready ? RES_OK : RES_TIMEOUT;
}

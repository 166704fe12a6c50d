#include "keys/remote.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/packet.h"
#include "base/thread.h"
#include "keys/manifest.h"
#include "keys/remote_list.h"
#include "keys/wire.h"

#define MAX_TRIES 3 /* of a request that meets reloads */

/* One connection; open as long as a thread uses it. `idle` is guarded by the
 * lock of the remote, as are `lanes` until there are any. */
struct channel {
	atomic_uint refs;
	int fd;                    /* key lists come here */
	int lanes[REMOTE_LANES];   /* one request at a time in each */
	size_t lane_count;
	int idle[REMOTE_LANES];    /* the last one used is the next one used */
	size_t idle_count;
};

/* `lock` guards all below it. Invariants:
 * 1. `channel` is NULL exactly when there is no usable connection.
 * 2. `ready` means that `manifest` came over `channel`, as its generation
 *    `wire_generation`, and that it has lanes; only then are requests sent.
 * 3. `generation` grows with each list, whatever the other side counts: after
 *    a restart it may begin again at 1 with other keys. */
struct remote {
	struct signer signer;
	pthread_t reader;
	int64_t timeout_us;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* channel, ready, stop */
	pthread_cond_t lane_idle;
	struct channel *channel;
	bool ready, stop;
	struct manifest *manifest; /* NULL before the first list */
	uint32_t generation, wire_generation, last_request;
};

static void
channel_unref(struct channel *c)
{
	if (c == NULL || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	for (size_t i = 0; i < c->lane_count; i++)
		close(c->lanes[i]);
	close(c->fd);
	free(c);
}

/* With the lock held: whoever waits on it is woken and gets nothing. */
static void
channel_end(const struct channel *c)
{
	shutdown(c->fd, SHUT_RDWR);
	for (size_t i = 0; i < c->lane_count; i++)
		shutdown(c->lanes[i], SHUT_RDWR);
}

/* With the lock held. */
static void
tell_all(struct remote *r)
{
	pthread_cond_broadcast(&r->changed);
	pthread_cond_broadcast(&r->lane_idle);
}

/* --- the reader's part --- */

/* `fds` becomes the channel's, or is closed. */
static bool
take_lanes(struct remote *r, struct channel *c, const int *fds, size_t count)
{
	struct timeval limit = { r->timeout_us / 1000000,
		r->timeout_us % 1000000 };
	pthread_mutex_lock(&r->lock);
	bool first = c->lane_count == 0;
	for (size_t i = 0; i < count; i++) {
		if (!first) {
			close(fds[i]);
			continue;
		}
		/* a stopped signer must not hold a sender for ever */
		(void)setsockopt(fds[i], SOL_SOCKET, SO_SNDTIMEO, &limit,
		    sizeof limit);
		c->lanes[c->lane_count++] = c->idle[c->idle_count++] = fds[i];
	}
	pthread_mutex_unlock(&r->lock);
	return first && count > 0;
}

/* The list is complete: it becomes the key set of now. */
static bool
use_list(struct remote *r, const struct channel *c, struct remote_list *in,
    const uint8_t *p, size_t len)
{
	struct manifest *m = NULL, *old;
	pthread_mutex_lock(&r->lock);
	uint32_t generation = r->generation + 1;
	pthread_mutex_unlock(&r->lock);
	if (!remote_list_end(in, p, len, generation, &m))
		return false;
	pthread_mutex_lock(&r->lock);
	bool current = r->channel == c, served = c->lane_count > 0;
	old = current && served ? r->manifest : m;
	if (current && served) {
		r->manifest = m;
		r->generation = generation;
		r->wire_generation = in->wire_generation;
		r->ready = true;
		tell_all(r);
	}
	pthread_mutex_unlock(&r->lock);
	manifest_unref(&old);
	remote_list_drop(in);
	return served;
}

static bool
packet(struct remote *r, const struct channel *c, struct remote_list *in,
    const uint8_t *p, size_t len)
{
	switch (p[0]) {
	case WIRE_LIST_BEGIN:
		return remote_list_begin(in, p, len);
	case WIRE_LIST_KEYS:
		return remote_list_keys(in, p, len);
	case WIRE_LIST_END:
		return use_list(r, c, in, p, len);
	default:
		return false;
	}
}

static void
read_channel(struct remote *r, struct channel *c)
{
	struct remote_list in = { 0 };
	uint8_t *bytes = malloc(REMOTE_MAX_PACKET);
	bool good = bytes != NULL;
	while (good) {
		int fds[REMOTE_LANES];
		size_t len, count;
		good = packet_receive(c->fd, bytes, REMOTE_MAX_PACKET, &len,
			   fds, REMOTE_LANES, &count) == RES_OK;
		if (good && (count > 0 || bytes[0] == WIRE_LANES))
			good = take_lanes(r, c, fds, count) &&
			    bytes[0] == WIRE_LANES;
		else if (good)
			good = packet(r, c, &in, bytes, len);
	}
	remote_list_drop(&in);
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
		channel_end(c);
		if (r->channel == c) { /* not replaced meanwhile */
			r->channel = NULL;
			r->ready = false;
			channel_unref(c);
			tell_all(r);
		}
		channel_unref(c);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* --- the asking threads' part --- */

/* What is asked, and what came of it. */
struct request {
	enum wire_type type;
	struct str what;
	int64_t deadline_us;
	uint32_t number, generation, id;
	struct buf *out;
	bool stale;
};

static bool
send_request(int lane, const struct request *q)
{
	uint8_t bytes[WIRE_SIGN_HEAD + SIGNER_MAX_NOTE] = { (uint8_t)q->type };
	size_t len = WIRE_SIGN_HEAD + q->what.len;
	put_le32(bytes + 1, q->number);
	put_le32(bytes + 5, q->generation);
	put_le32(bytes + 9, q->id);
	memcpy(bytes + WIRE_SIGN_HEAD, q->what.ptr, q->what.len);
	ssize_t n;
	do
		n = send(lane, bytes, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

/* The length of the next packet; 0: none before the deadline, or never. */
static size_t
receive_answer(int lane, int64_t deadline_us, uint8_t *bytes, size_t room)
{
	for (;;) {
		struct pollfd p = { .fd = lane, .events = POLLIN };
		int64_t left_us = deadline_us - clock_mono_us();
		int ready = poll(
		    &p, 1, left_us > 0 ? (int)((left_us + 999) / 1000) : 0);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return 0;
		ssize_t n = recv(lane, bytes, room, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		return n > 0 ? (size_t)n : 0;
	}
}

static enum res
outcome(struct request *q, const uint8_t *p, size_t len)
{
	switch ((enum wire_outcome)p[5]) {
	case WIRE_SIGNED:
		buf_add(q->out, p + WIRE_RESULT_HEAD, len - WIRE_RESULT_HEAD);
		return q->out->error;
	case WIRE_STALE:
		q->stale = true;
		return RES_AGAIN;
	case WIRE_UNKNOWN:
		return RES_NOTFOUND;
	case WIRE_FAILED:
	default:
		return RES_IO;
	}
}

/* Answers of requests that were given up may still be in the lane. */
static enum res
exchange(int lane, struct request *q)
{
	uint8_t bytes[WIRE_MAX_RESULT];
	if (!send_request(lane, q))
		return RES_AGAIN;
	for (;;) {
		size_t len = receive_answer(
		    lane, q->deadline_us, bytes, sizeof bytes);
		if (len < WIRE_RESULT_HEAD || bytes[0] != WIRE_RESULT)
			return RES_AGAIN;
		if (get_le32(bytes + 1) == q->number)
			return outcome(q, bytes, len);
	}
}

/* With the lock held: until there is a usable list of another generation
 * than `not_this` and an idle lane, or none can come. */
static enum res
wait_turn(struct remote *r, uint32_t not_this, int64_t deadline_us)
{
	bool late = false;
	while (r->channel != NULL) {
		bool listed = r->ready && r->generation != not_this;
		if (listed && r->channel->idle_count > 0)
			return RES_OK;
		if (late)
			break;
		late = !thread_wait(listed ? &r->lane_idle : &r->changed,
		    &r->lock, deadline_us);
	}
	return RES_AGAIN;
}

/* With the lock held, which is let go meanwhile. */
static enum res
ask(struct remote *r, struct request *q)
{
	struct channel *c = r->channel;
	int lane = c->idle[--c->idle_count];
	q->number = ++r->last_request;
	q->generation = r->wire_generation;
	q->stale = false;
	atomic_fetch_add(&c->refs, 1);
	pthread_mutex_unlock(&r->lock);
	enum res result = exchange(lane, q);
	pthread_mutex_lock(&r->lock);
	c->idle[c->idle_count++] = lane;
	pthread_cond_signal(&r->lane_idle);
	channel_unref(c);
	return result;
}

static enum res
request(struct remote *r, const struct signing_key *key, enum wire_type type,
    struct str what, struct buf *out)
{
	int64_t wait_us = r->timeout_us;
	if (type == WIRE_NOTE && wait_us > REMOTE_NOTE_TIMEOUT_US)
		wait_us = REMOTE_NOTE_TIMEOUT_US;
	struct request q = { .type = type, .what = what, .out = out,
		.deadline_us = clock_mono_us() + wait_us };
	uint32_t stale = 0; /* no list has this generation */
	enum res result = RES_AGAIN;
	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < MAX_TRIES; i++) {
		result = wait_turn(r, stale, q.deadline_us);
		if (result != RES_OK)
			break;
		const struct signing_key *now =
		    key->generation == r->generation ?
		    key : manifest_same(r->manifest, key);
		if (now == NULL) {
			/* a lane was idle, and still is */
			pthread_cond_signal(&r->lane_idle);
			result = RES_NOTFOUND;
			break;
		}
		stale = r->generation;
		q.id = now->id;
		result = ask(r, &q);
		if (!q.stale)
			break;
	}
	pthread_mutex_unlock(&r->lock);
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
		channel_end(r->channel);
	tell_all(r);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->reader, NULL);
	channel_unref(r->channel);
	manifest_unref(&r->manifest);
	pthread_cond_destroy(&r->changed);
	pthread_cond_destroy(&r->lane_idle);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

enum res
remote_new(int64_t timeout_us, struct signer **out)
{
	struct remote *r = calloc(1, sizeof *r);
	if (r == NULL)
		return RES_NOMEM;
	r->signer = (struct signer){ remote_manifest, remote_sign,
		remote_sign_note, remote_free };
	r->timeout_us = timeout_us > 0 ? timeout_us : REMOTE_TIMEOUT_US;
	pthread_mutex_init(&r->lock, NULL);
	thread_cond_init(&r->changed);
	thread_cond_init(&r->lane_idle);
	if (thread_start(&r->reader, reader, r) != RES_OK) {
		pthread_cond_destroy(&r->changed);
		pthread_cond_destroy(&r->lane_idle);
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
	struct channel *c = calloc(1, sizeof *c);
	if (c == NULL) {
		close(fd);
		return RES_NOMEM;
	}
	atomic_init(&c->refs, 1);
	c->fd = fd;
	pthread_mutex_lock(&r->lock);
	struct channel *old = r->channel;
	if (old != NULL)
		channel_end(old); /* wakes the reader */
	r->channel = c;
	r->ready = false;
	tell_all(r);
	pthread_mutex_unlock(&r->lock);
	channel_unref(old);
	return RES_OK;
}

bool
remote_connected(struct signer *signer)
{
	struct remote *r = (struct remote *)signer;
	pthread_mutex_lock(&r->lock);
	bool connected = r->channel != NULL;
	pthread_mutex_unlock(&r->lock);
	return connected;
}

enum res
remote_wait_ready(struct signer *signer, int64_t deadline_us)
{
	struct remote *r = (struct remote *)signer;
	bool late = false;
	pthread_mutex_lock(&r->lock);
	while (!r->ready && !late)
		late = !thread_wait(&r->changed, &r->lock, deadline_us);
	bool ready = r->ready;
	pthread_mutex_unlock(&r->lock);
	return ready ? RES_OK : RES_TIMEOUT;
}

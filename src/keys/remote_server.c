#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/packet.h"
#include "base/thread.h"
#include "keys/remote.h"
#include "keys/wire.h"

struct lane {
	struct remote_server *server;
	int fd;
	pthread_t thread;
};

struct remote_server {
	struct signer *ring;
	int fd;
	struct lane lanes[REMOTE_LANES];
	size_t lane_count, thread_count;
};

static bool
send_packet(int fd, const void *bytes, size_t len)
{
	ssize_t n;
	do
		n = send(fd, bytes, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

/* --- the key list --- */

static uint32_t
generation_of(const struct manifest *m)
{
	const struct signing_key *first = manifest_at(m, 0);
	return first != NULL ? first->generation : 0;
}

static void
add_key(struct buf *b, const struct signing_key *k)
{
	buf_add_le32(b, k->id);
	buf_add_char(b, (char)((k->type == KEY_RSA ? 0 : 1) |
	    (k->by_rule ? WIRE_BY_RULE : 0) | (k->notes ? WIRE_NOTES : 0)));
	buf_add_le16(b, (uint16_t)k->bits);
	buf_add_le16(b, (uint16_t)k->domain.len);
	buf_add_le16(b, (uint16_t)k->selector.len);
	buf_add_le16(b, (uint16_t)k->public_der.len);
	buf_add_str(b, k->domain);
	buf_add_str(b, k->selector);
	buf_add_str(b, k->public_der);
}

static bool
send_keys(int fd, const struct manifest *m)
{
	struct buf b;
	bool good = true;
	buf_init(&b, REMOTE_MAX_PACKET);
	for (size_t i = 0; good && i < manifest_count(m);) {
		buf_reset(&b);
		buf_add_char(&b, WIRE_LIST_KEYS);
		/* as many as fit; one always does */
		size_t fits = 0, end = i;
		for (; end < manifest_count(m); end++) {
			fits = b.len;
			add_key(&b, manifest_at(m, end));
			if (b.error != RES_OK)
				break;
		}
		if (b.error == RES_NOMEM || (b.error != RES_OK && end == i))
			good = false;
		else if (b.error == RES_OK)
			fits = b.len;
		good = good && send_packet(fd, b.ptr, fits);
		i = end;
	}
	buf_done(&b);
	return good;
}

enum res
remote_server_push(struct remote_server *v)
{
	struct manifest *m = v->ring->manifest(v->ring);
	uint8_t begin[WIRE_LIST_BEGIN_LEN] = { WIRE_LIST_BEGIN };
	uint8_t end[WIRE_LIST_END_LEN] = { WIRE_LIST_END };
	enum res r = RES_OK;
	put_le32(begin + 1, generation_of(m));
	put_le32(begin + 5, (uint32_t)manifest_count(m));
	put_le32(end + 1, generation_of(m));
	if (manifest_count(m) > REMOTE_MAX_KEYS)
		r = RES_LIMIT;
	else if (!send_packet(v->fd, begin, sizeof begin) ||
	    !send_keys(v->fd, m) || !send_packet(v->fd, end, sizeof end))
		r = RES_IO;
	manifest_unref(&m);
	return r;
}

/* --- requests --- */

static enum wire_outcome
outcome(struct remote_server *v, enum res r, uint32_t generation)
{
	if (r == RES_OK)
		return WIRE_SIGNED;
	if (r != RES_NOTFOUND)
		return WIRE_FAILED;
	struct manifest *m = v->ring->manifest(v->ring);
	bool current = generation_of(m) == generation;
	manifest_unref(&m);
	return current ? WIRE_UNKNOWN : WIRE_STALE;
}

static bool
answer(const struct lane *l, const uint8_t *p, size_t len, struct buf *out)
{
	struct remote_server *v = l->server;
	/* without a name the ring only finds ids of its own generation */
	struct signing_key key = { .id = get_le32(p + 9),
		.generation = get_le32(p + 5) };
	buf_reset(out);
	buf_add_char(out, WIRE_RESULT);
	buf_add(out, p + 1, 4);
	buf_add_char(out, WIRE_SIGNED);
	const uint8_t *what = p + WIRE_SIGN_HEAD;
	enum res r = p[0] == WIRE_NOTE ?
	    v->ring->sign_note(
		v->ring, &key, str_of(what, len - WIRE_SIGN_HEAD), out) :
	    v->ring->sign(v->ring, &key, what, out);
	if (out->len < WIRE_RESULT_HEAD) { /* no memory: nobody hangs up */
		uint8_t failed[WIRE_RESULT_HEAD] = { WIRE_RESULT };
		memcpy(failed + 1, p + 1, 4);
		failed[5] = WIRE_FAILED;
		return send_packet(l->fd, failed, sizeof failed);
	}
	out->ptr[5] = (char)outcome(v, r, key.generation);
	return send_packet(l->fd, out->ptr,
	    r == RES_OK ? out->len : WIRE_RESULT_HEAD);
}

static bool
is_request(const uint8_t *p, ssize_t n)
{
	return n == WIRE_SIGN_LEN && p[0] == WIRE_SIGN ? true :
	    n > WIRE_SIGN_HEAD && n <= WIRE_SIGN_HEAD + SIGNER_MAX_NOTE &&
		p[0] == WIRE_NOTE;
}

/* No half service: all threads end, and the peer sees it. */
static void
hang_up(const struct remote_server *v)
{
	shutdown(v->fd, SHUT_RDWR);
	for (size_t i = 0; i < v->lane_count; i++)
		shutdown(v->lanes[i].fd, SHUT_RDWR);
}

static void *
serve(void *arg)
{
	const struct lane *l = arg;
	uint8_t bytes[WIRE_SIGN_HEAD + SIGNER_MAX_NOTE + 1];
	struct buf out;
	buf_init(&out, REMOTE_MAX_PACKET);
	for (;;) {
		ssize_t n = recv(l->fd, bytes, sizeof bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (!is_request(bytes, n) ||
		    !answer(l, bytes, (size_t)n, &out))
			break;
	}
	hang_up(l->server);
	buf_done(&out);
	return NULL;
}

/* Make the lanes and send the other ends. */
static enum res
open_lanes(struct remote_server *v)
{
	int theirs[REMOTE_LANES];
	const char type = WIRE_LANES;
	int pair[2];
	while (v->lane_count < REMOTE_LANES &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		theirs[v->lane_count] = pair[1];
		v->lanes[v->lane_count++] =
		    (struct lane){ .server = v, .fd = pair[0] };
	}
	enum res r = v->lane_count < REMOTE_LANES ? RES_IO :
	    packet_send(v->fd, str_of(&type, 1), STR_EMPTY, theirs,
		v->lane_count);
	for (size_t i = 0; i < v->lane_count; i++)
		close(theirs[i]);
	return r;
}

static enum res
start_threads(struct remote_server *v)
{
	enum res r = RES_OK;
	while (r == RES_OK && v->thread_count < v->lane_count) {
		struct lane *l = &v->lanes[v->thread_count];
		r = thread_start(&l->thread, serve, l);
		v->thread_count += r == RES_OK;
	}
	return r;
}

enum res
remote_server_new(struct signer *ring, int fd, struct remote_server **out)
{
	struct remote_server *v = calloc(1, sizeof *v);
	if (v == NULL) {
		close(fd);
		return RES_NOMEM;
	}
	v->ring = ring;
	v->fd = fd;
	/* a stopped peer must not hold the thread that reloads */
	struct timeval limit = { REMOTE_TIMEOUT_US / 1000000, 0 };
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	enum res r = open_lanes(v);
	if (r == RES_OK)
		r = remote_server_push(v);
	if (r == RES_OK)
		r = start_threads(v);
	if (r != RES_OK) {
		remote_server_free(&v);
		return r;
	}
	*out = v;
	return RES_OK;
}

void
remote_server_free(struct remote_server **vp)
{
	struct remote_server *v = *vp;
	*vp = NULL;
	if (v == NULL)
		return;
	hang_up(v);
	for (size_t i = 0; i < v->thread_count; i++)
		pthread_join(v->lanes[i].thread, NULL);
	for (size_t i = 0; i < v->lane_count; i++)
		close(v->lanes[i].fd);
	close(v->fd);
	free(v);
}

#include "auth/bodyhash.h"

#include "keys/digest.h"

/* One stream per canonicalization in use:
 *
 *     canon_body -> stream: tail held back -> feed -> digest
 *
 * The tail is held back for two reasons: short pieces reach the hash in large
 * ones, and a failing signature can be told why (bodyhash_find_cut). All l=
 * values of one canonicalization are points of the same hash: it is peeked at
 * when the stream gets there, so that many signatures cost one hash. */
struct want {
	enum canon canon;
	uint64_t length;
	bool done; /* `digest` holds the result */
	uint8_t digest[DIGEST_LEN];
};

struct stream {
	struct sink sink;
	struct bodyhash_set *set;
	enum canon canon;
	struct sink *digest;
	uint8_t whole[DIGEST_LEN];
	uint64_t fed;  /* octets the digest has seen */
	uint64_t stop; /* the next l= to look at, BODYHASH_WHOLE for none */
	struct sink *at_tail; /* the digest's state before the tail */
	uint64_t total;
	/* a ring of BODYHASH_TAIL_MAX bytes, in one piece at the end */
	size_t start, kept;
	char *tail;
};

struct bodyhash_set {
	struct arena *arena;
	struct sink *sink; /* once made */
	enum res error;
	size_t count;
	struct want wants[BODYHASH_MAX];
	struct stream *streams[2]; /* by canonicalization */
};

struct bodyhash_set *
bodyhash_new(struct arena *a)
{
	struct bodyhash_set *s = ARENA_NEW(a, struct bodyhash_set);
	if (s != NULL)
		s->arena = a;
	return s;
}

enum res
bodyhash_want(
    struct bodyhash_set *s, enum canon c, uint64_t length, size_t *out_index)
{
	if (s->sink != NULL)
		return RES_INVALID;
	for (size_t i = 0; i < s->count; i++)
		if (s->wants[i].canon == c && s->wants[i].length == length) {
			*out_index = i;
			return RES_OK;
		}
	if (s->count == BODYHASH_MAX)
		return RES_LIMIT;
	s->wants[s->count] = (struct want){ .canon = c, .length = length };
	*out_index = s->count++;
	return RES_OK;
}

/* --- streams -------------------------------------------------------------- */
static void
keep_error(struct stream *st, enum res r)
{
	if (st->set->error == RES_OK)
		st->set->error = r;
}

/* The wants that end where the digest stands now, and where the next ends. */
static void
look(struct stream *st)
{
	struct bodyhash_set *s = st->set;
	st->stop = BODYHASH_WHOLE;
	for (size_t i = 0; i < s->count; i++) {
		struct want *w = &s->wants[i];
		if (w->canon != st->canon || w->done)
			continue;
		if (w->length == st->fed) {
			keep_error(st, digest_peek(st->digest, w->digest));
			w->done = true;
		} else if (w->length < st->stop) {
			st->stop = w->length;
		}
	}
}

static void
feed(struct stream *st, const char *bytes, size_t len)
{
	while (len >= st->stop - st->fed) {
		size_t n = (size_t)(st->stop - st->fed);
		sink_push(st->digest, bytes, n);
		st->fed += n;
		bytes += n;
		len -= n;
		look(st);
	}
	sink_push(st->digest, bytes, len);
	st->fed += len;
}

/* The oldest `len` bytes of the ring go on. */
static void
feed_tail(struct stream *st, size_t len)
{
	while (len > 0) {
		size_t n = BODYHASH_TAIL_MAX - st->start;
		if (n > len)
			n = len;
		feed(st, st->tail + st->start, n);
		st->start = (st->start + n) % BODYHASH_TAIL_MAX;
		st->kept -= n;
		len -= n;
	}
}

static void
keep_tail(struct stream *st, const char *bytes, size_t len)
{
	size_t at = (st->start + st->kept) % BODYHASH_TAIL_MAX;
	size_t n = BODYHASH_TAIL_MAX - at;
	if (n > len)
		n = len;
	memcpy(st->tail + at, bytes, n);
	memcpy(st->tail, bytes + n, len - n);
	st->kept += len;
}

static void
stream_push(struct sink *sink, const char *bytes, size_t len)
{
	struct stream *st = (struct stream *)sink;
	st->total += len;
	if (len > BODYHASH_TAIL_MAX - st->kept) {
		/* All but the last BODYHASH_TAIL_MIN octets go on. */
		size_t on = st->kept + len - BODYHASH_TAIL_MIN;
		size_t old = on < st->kept ? on : st->kept;
		feed_tail(st, old);
		feed(st, bytes, on - old);
		bytes += on - old;
		len -= on - old;
	}
	keep_tail(st, bytes, len);
}

/* Lay the ring out from its start. */
static enum res
straighten(struct stream *st)
{
	size_t first = BODYHASH_TAIL_MAX - st->start;
	if (st->start == 0)
		return RES_OK;
	char *line = arena_alloc_raw(st->set->arena, BODYHASH_TAIL_MAX);
	if (line == NULL)
		return RES_NOMEM;
	memcpy(line, st->tail + st->start, first);
	memcpy(line + first, st->tail, st->start);
	st->tail = line;
	st->start = 0;
	return RES_OK;
}

static enum res
stream_finish(struct sink *sink)
{
	struct stream *st = (struct stream *)sink;
	struct bodyhash_set *s = st->set;
	enum res r = straighten(st);
	if (r != RES_OK)
		return r;
	if (st->fed != 0) {
		st->at_tail = digest_fork(s->arena, st->digest);
		if (st->at_tail == NULL)
			keep_error(st, RES_NOMEM);
	}
	feed(st, st->tail, st->kept);
	keep_error(st, sink_finish(st->digest));
	/* What asks for the whole body, or for more than there is. */
	for (size_t i = 0; i < s->count; i++)
		if (s->wants[i].canon == st->canon && !s->wants[i].done) {
			memcpy(s->wants[i].digest, st->whole, DIGEST_LEN);
			s->wants[i].done = true;
		}
	return s->error;
}

static struct stream *
stream_new(struct bodyhash_set *s, enum canon c)
{
	struct stream *st = ARENA_NEW(s->arena, struct stream);
	if (st == NULL)
		return NULL;
	st->sink = (struct sink){ stream_push, stream_finish };
	st->set = s;
	st->canon = c;
	st->tail = arena_alloc_raw(s->arena, BODYHASH_TAIL_MAX);
	st->digest = digest_sink(s->arena, st->whole);
	if (st->tail == NULL || st->digest == NULL)
		return NULL;
	look(st); /* l=0 ends before it begins */
	return st;
}

struct sink *
bodyhash_sink(struct bodyhash_set *s)
{
	struct sink *sinks[2];
	size_t count = 0;
	if (s->sink != NULL)
		return s->sink;
	for (size_t i = 0; i < s->count; i++) {
		enum canon c = s->wants[i].canon;
		if (s->streams[c] != NULL)
			continue;
		s->streams[c] = stream_new(s, c);
		if (s->streams[c] == NULL)
			return NULL;
		sinks[count] = canon_body(s->arena, c, &s->streams[c]->sink);
		if (sinks[count++] == NULL)
			return NULL;
	}
	s->sink = count == 0 ? sink_null() : sink_tee(s->arena, sinks, count);
	return s->sink;
}

const uint8_t *
bodyhash_digest(const struct bodyhash_set *s, size_t index)
{
	return s->wants[index].digest;
}

uint64_t
bodyhash_canonical_length(const struct bodyhash_set *s, size_t index)
{
	return s->streams[s->wants[index].canon]->total;
}

/* --- diagnosis ------------------------------------------------------------ */
/* Where a canonical body could end: behind the CRLF of a line that is not
 * empty. `at` is the offset behind it. */
static bool
is_cut(struct str t, size_t at)
{
	return at >= 2 && t.ptr[at - 2] == '\r' && t.ptr[at - 1] == '\n' &&
	    (at < 4 || t.ptr[at - 4] != '\r' || t.ptr[at - 3] != '\n') &&
	    at != 2;
}

/* The offset of the first of the last BODYHASH_MAX_CUTS cuts. */
static size_t
first_cut(struct str t)
{
	size_t cuts = 0, first = t.len;
	for (size_t at = t.len; at > 0 && cuts < BODYHASH_MAX_CUTS; at--)
		if (is_cut(t, at - 1)) {
			first = at - 1;
			cuts++;
		}
	return first;
}

static enum res
try_cuts(struct sink *digest, struct str t, const uint8_t want[DIGEST_LEN],
    size_t *out_at)
{
	enum res found = RES_NOTFOUND;
	size_t from = 0;
	for (size_t at = first_cut(t); at < t.len; at++) {
		uint8_t got[DIGEST_LEN];
		if (!is_cut(t, at))
			continue;
		sink_push(digest, t.ptr + from, at - from);
		from = at;
		enum res r = digest_peek(digest, got);
		if (r != RES_OK)
			return r;
		if (memcmp(got, want, DIGEST_LEN) == 0) {
			*out_at = at;
			found = RES_OK;
		}
	}
	return found;
}

enum res
bodyhash_find_cut(struct bodyhash_set *s, size_t index, const uint8_t want[32],
    uint64_t *out_length)
{
	struct stream *st = s->streams[s->wants[index].canon];
	uint8_t unused[DIGEST_LEN];
	size_t at;
	if (s->wants[index].length != BODYHASH_WHOLE)
		return RES_NOTFOUND;
	struct sink *digest = st->at_tail != NULL
	    ? digest_fork(s->arena, st->at_tail)
	    : digest_sink(s->arena, unused);
	if (digest == NULL)
		return RES_NOMEM;
	enum res r = try_cuts(digest, str_of(st->tail, st->kept), want, &at);
	enum res end = sink_finish(digest);
	if (r == RES_OK)
		r = end;
	if (r == RES_OK)
		*out_length = st->total - st->kept + at;
	return r;
}

enum res
bodyhash_text(const struct bodyhash_set *s, size_t index, struct str *out)
{
	const struct stream *st = s->streams[s->wants[index].canon];
	if (st->kept != st->total)
		return RES_NOTFOUND;
	*out = str_of(st->tail, st->kept);
	return RES_OK;
}

/* What a frame holds: its blocks, decoded and checked, and its body. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "archive/store/segment_inside.h"
#include "base/codec.h"
#include "keys/digest.h"

/* Decode one of the small blocks and compute its commitment. */
static enum res
open_small(struct segment_reader *r, struct arena *a, enum frame_block b,
    struct str stored, const struct unpack_dictionary *dictionary,
    uint8_t commitment[LEAF_HASH_BYTES], struct str *out)
{
	uint8_t hash[DIGEST_LEN];
	enum res res = unpacker_whole(r->unpacker,
	    str_skip(stored, FRAME_SALT_BYTES), dictionary, SEGMENT_MAX_RECORD,
	    a, out);
	if (res == RES_OK)
		res = digest_sha256(out->ptr, out->len, hash);
	if (res == RES_OK)
		res = leaf_commit(
		    b, (const uint8_t *)stored.ptr, hash, commitment);
	return res;
}

static enum res
open_body(const struct frame_header *h, struct str stored,
    uint8_t commitment[LEAF_HASH_BYTES], struct frame_body *out)
{
	enum res res = frame_body_decode(
	    h, (const uint8_t *)stored.ptr, stored.len, out);
	if (res == RES_OK)
		res = leaf_commit(
		    BLOCK_BODY, out->salt, out->sha256, commitment);
	return res;
}

static enum res
damaged(struct err *err, const struct segment_reader *r,
    const struct segment_frame *f, const char *what)
{
	err_set(err, "%s/segment: frame %llu at %llu: %s is damaged", r->dir,
	    (unsigned long long)f->header.number,
	    (unsigned long long)f->offset, what);
	return RES_CORRUPT;
}

static enum res
load_block(struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, enum frame_block b,
    const struct unpack_dictionary *dictionary,
    uint8_t commitment[LEAF_HASH_BYTES], struct segment_content *c)
{
	struct str s;
	struct str *const plain[] = { &c->meta, &c->evidence, &c->edits };
	size_t padded = (size_t)frame_padded(f->header.stored[b]);
	if (padded == 0)
		return RES_OK;
	enum res res = window_view(&r->window,
	    f->offset + frame_block_offset(&f->header, b), padded, &s);
	if (res != RES_OK)
		return res;
	c->state[b] = s.len == padded ?
	    frame_block_check(&f->header, b, s.ptr) : BLOCK_DAMAGED;
	if (c->state[b] == BLOCK_ERASED)
		return RES_OK;
	if (c->state[b] == BLOCK_DAMAGED)
		return RES_CORRUPT;
	s.len = (size_t)f->header.stored[b];
	res = b == BLOCK_BODY ?
	    open_body(&f->header, s, commitment, &c->body) :
	    open_small(r, a, b, s, dictionary, commitment, plain[b]);
	if (res == RES_CORRUPT)
		c->state[b] = BLOCK_DAMAGED;
	return res;
}

static enum res
load(struct segment_reader *r, struct arena *a, const struct segment_frame *f,
    const struct unpack_dictionary *dictionary, struct err *err,
    struct segment_content *c)
{
	uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES] = { 0 };
	uint8_t leaf[LEAF_HASH_BYTES];
	enum res first = RES_OK;
	bool erased = false;
	*c = (struct segment_content){ .body.frame = UINT64_MAX };
	for (int b = 0; b < FRAME_BLOCKS; b++) {
		enum res res = load_block(r, a, f, (enum frame_block)b,
		    dictionary, commitments[b], c);
		if (res == RES_CORRUPT)
			damaged(err, r, f, frame_block_name(b));
		if (first == RES_OK)
			first = res;
		erased = erased || c->state[b] == BLOCK_ERASED;
	}
	if (first != RES_OK || erased || r->trust != SEGMENT_WHOLE)
		return first; /* a commitment or the shard's number is gone */
	enum res res = leaf_hash(&r->shard, &f->header, commitments, leaf);
	if (res != RES_OK)
		return res;
	if (memcmp(leaf, f->header.leaf, sizeof leaf) != 0)
		return damaged(err, r, f, "leaf hash");
	return RES_OK;
}

static bool
has_erased(const struct segment_content *c)
{
	for (int b = 0; b < FRAME_BLOCKS; b++)
		if (c->state[b] == BLOCK_ERASED)
			return true;
	return false;
}

enum res
segment_reader_load(struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, struct err *err,
    struct segment_content *out)
{
	const struct unpack_dictionary *dictionary;
	enum res res = segment_dictionary(r, f, BLOCK_META, err, &dictionary);
	if (res != RES_OK)
		return res;
	res = load(r, a, f, dictionary, NULL, out);
	if (res == RES_CORRUPT || (res == RES_OK && has_erased(out))) {
		/* Once more from the file, before it is called damage, or
		 * erased: the window may be of a time when the frame was being
		 * written. */
		window_drop(&r->window);
		res = load(r, a, f, dictionary, err, out);
	}
	return res;
}

enum res
segment_reader_check(struct segment_reader *r, const struct segment_frame *f)
{
	struct segment_content c;
	struct arena *a = arena_new(SEGMENT_LOAD_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res res = segment_reader_load(r, a, f, NULL, &c);
	arena_free(&a);
	return res;
}

/* The beginning of a block. Zeros are believed when the file says so now. */
static enum res
view_block(struct segment_reader *r, const struct segment_frame *f,
    enum frame_block b, size_t len, struct str *out)
{
	uint64_t at = f->offset + frame_block_offset(&f->header, b);
	enum res res = window_view(&r->window, at, len, out);
	if (res == RES_OK && r->window.from_cache && window_all_zero(*out)) {
		window_drop(&r->window);
		res = window_view(&r->window, at, len, out);
	}
	return res;
}

enum res
segment_reader_salt(struct segment_reader *r, const struct segment_frame *f,
    enum frame_block b, uint8_t out[FRAME_SALT_BYTES])
{
	struct str s;
	enum res res = view_block(r, f, b, FRAME_SALT_BYTES, &s);
	if (res == RES_OK && s.len < FRAME_SALT_BYTES)
		res = RES_CORRUPT;
	if (res == RES_OK)
		memcpy(out, s.ptr, FRAME_SALT_BYTES);
	return res;
}

enum res
segment_reader_peek_body(struct segment_reader *r,
    const struct segment_frame *f, struct frame_body *out)
{
	struct str s;
	enum res res =
	    view_block(r, f, BLOCK_BODY, FRAME_BODY_FILE_BYTES, &s);
	if (res != RES_OK)
		return res;
	return frame_body_decode(
	    &f->header, (const uint8_t *)s.ptr, s.len, out);
}

bool
segment_body_file_ok(const char *dir, const struct frame_body *b)
{
	char path[PATH_MAX], name[FRAME_BODY_NAME];
	struct stat st;
	frame_body_name(b, name);
	return io_path(path, "%s/bodies/%s", dir, name) == RES_OK &&
	    stat(path, &st) == 0 && (uint64_t)st.st_size == b->file_bytes;
}

/* A body kept in a file of its own. */
static enum res
push_file(struct segment_reader *r, const struct frame_body *b,
    struct err *err, struct sink *out)
{
	char path[PATH_MAX], name[FRAME_BODY_NAME];
	frame_body_name(b, name);
	enum res res = io_path(path, "%s/bodies/%s", r->dir, name);
	if (res != RES_OK)
		return res;
	int fd = r->io->open(r->io, path, O_RDONLY, 0);
	if (fd < 0) {
		res = io_error(errno);
		err_set(err, "%s: %s", path, res_text(res));
		return res == RES_NOTFOUND ? RES_CORRUPT : res;
	}
	uint64_t at = 0;
	uint32_t crc = 0;
	while (res == RES_OK && at < b->file_bytes) {
		char bytes[32768];
		uint64_t left = b->file_bytes - at;
		size_t want = left < sizeof bytes ? (size_t)left : sizeof bytes;
		res = io_read(r->io, fd, bytes, want, at);
		if (res != RES_OK)
			break;
		crc = crc32c(crc, bytes, want);
		at += want;
		res = unpacker_push(r->unpacker, str_of(bytes, want), out);
	}
	r->io->close(r->io, fd);
	if (res == RES_OK && crc != b->file_crc)
		res = RES_CORRUPT;
	if (res == RES_CORRUPT)
		err_set(err, "%s: damaged", path);
	return res;
}

/* The frame that holds the body of `f`, with its own body block. */
static enum res
body_frame(struct segment_reader *r, const struct segment_frame *f,
    struct segment_frame *out, struct frame_body *out_body, struct str *out_s)
{
	size_t padded = (size_t)frame_padded(f->header.stored[BLOCK_BODY]);
	enum res res = view_block(r, f, BLOCK_BODY, padded, out_s);
	if (res != RES_OK)
		return res;
	if (padded == 0)
		return RES_NOTFOUND;
	if (out_s->len != padded)
		return RES_CORRUPT;
	switch (frame_block_check(&f->header, BLOCK_BODY, out_s->ptr)) {
	case BLOCK_ABSENT:
	case BLOCK_ERASED:
		return RES_NOTFOUND;
	case BLOCK_DAMAGED:
		return RES_CORRUPT;
	case BLOCK_WHOLE:
		break;
	}
	out_s->len = (size_t)f->header.stored[BLOCK_BODY];
	*out = *f;
	return frame_body_decode(&f->header, (const uint8_t *)out_s->ptr,
	    out_s->len, out_body);
}

static enum res
push_body(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct sink *out)
{
	struct segment_frame holder;
	struct frame_body b;
	struct str s;
	enum res res = body_frame(r, f, &holder, &b, &s);
	if (res == RES_OK && (f->header.flags & FRAME_BODY_IN_FRAME)) {
		struct frame_body first = b;
		struct segment_frame message;
		res = segment_reader_at(r, first.offset, &message);
		if (res == RES_OK &&
		    (message.header.number != first.frame ||
			(message.header.flags & FRAME_BODY_IN_FRAME)))
			res = RES_CORRUPT;
		if (res == RES_OK)
			res = body_frame(r, &message, &holder, &b, &s);
		if (res == RES_OK &&
		    memcmp(b.sha256, first.sha256, sizeof b.sha256) != 0)
			res = RES_CORRUPT;
	}
	const struct unpack_dictionary *dictionary = NULL;
	if (res == RES_OK && holder.header.dictionary != 0) {
		res = segment_dictionary(
		    r, &holder, BLOCK_BODY, err, &dictionary);
		if (res == RES_OK) /* the view may be gone */
			res = body_frame(r, &holder, &holder, &b, &s);
	}
	if (res == RES_OK)
		res = unpacker_begin(r->unpacker, dictionary);
	if (res != RES_OK)
		return res;
	res = holder.header.flags & FRAME_BODY_IN_FILE ?
	    push_file(r, &b, err, out) :
	    unpacker_push(r->unpacker, str_skip(s, FRAME_BODY_HEAD), out);
	return res == RES_OK ? unpacker_finish(r->unpacker) : res;
}

enum res
segment_reader_body(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct sink *out)
{
	struct segment_frame same;
	struct frame_body b;
	struct str s;
	uint8_t hash[DIGEST_LEN];
	uint64_t count = 0;
	enum res res = body_frame(r, f, &same, &b, &s);
	if (res == RES_CORRUPT && r->window.from_cache) {
		window_drop(&r->window);
		res = body_frame(r, f, &same, &b, &s);
	}
	if (res == RES_CORRUPT)
		return damaged(err, r, f, "BODY");
	if (res != RES_OK)
		return res;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	struct sink *digest = digest_sink(a, hash);
	struct sink *both[] = { digest, out };
	struct sink *tee = digest != NULL ? sink_tee(a, both, 2) : NULL;
	/* no more than the header says, whatever is in the frame */
	struct sink *limit = tee != NULL ?
	    sink_limit(a, f->header.body_plain, &count, tee) : NULL;
	res = limit != NULL ? push_body(r, f, err, limit) : RES_NOMEM;
	if (digest != NULL) {
		enum res d = sink_finish(digest);
		if (res == RES_OK)
			res = d;
	}
	if (res == RES_OK && (count != f->header.body_plain ||
				 memcmp(hash, b.sha256, sizeof hash) != 0))
		res = RES_CORRUPT;
	if (res == RES_CORRUPT)
		damaged(err, r, f, "BODY");
	arena_free(&a);
	return res;
}

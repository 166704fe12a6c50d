#include "archive/store/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/format/compress.h"
#include "archive/store/dictionary.h"
#include "base/codec.h"
#include "keys/digest.h"

/* Read ahead: little for a single frame, more when it goes on behind. */
#define WINDOW_SMALL 16384
#define WINDOW_LARGE 262144
/* A mark (number and offset) is kept about every so many frames. */
#define MARK_EVERY   256
#define LOAD_MEMORY ((size_t)20 << 20)

struct mark {
	uint64_t number, offset;
};

struct segment_reader {
	const struct archive_io *io;
	char dir[PATH_MAX];
	int fd;
	struct shard_header shard;
	enum segment_trust trust;
	uint64_t known_size;
	/* bytes [window_at, window_at + window_len) of the file */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len;
	bool from_cache; /* the last view needed no reading */
	/* one block larger than the window */
	uint8_t *large;
	size_t large_cap;
	struct unpacker *unpacker;
	struct mark *marks;
	size_t mark_count, mark_cap;
	struct {
		uint32_t number;
		struct unpack_dictionary *dictionary;
	} dictionaries[SEGMENT_MAX_DICTIONARIES];
	size_t dictionary_count;
};

static enum res
read_header(struct segment_reader *r, struct err *err)
{
	uint8_t bytes[SHARD_HEADER_BYTES];
	enum res res = io_read(r->io, r->fd, bytes, sizeof bytes, 0);
	if (res == RES_OK)
		res = shard_header_decode(bytes, &r->shard);
	if (res != RES_OK)
		err_set(err, "%s/segment: cannot use its header: %s", r->dir,
		    res_text(res));
	return res;
}

static enum res
open_file(const char *path, const char *dir, const struct archive_io *io,
    struct err *err, struct segment_reader **out)
{
	enum res res = RES_OK;
	struct segment_reader *r = calloc(1, sizeof *r);
	if (r == NULL)
		return RES_NOMEM;
	r->io = io != NULL ? io : &archive_io_system;
	r->fd = -1;
	r->window = malloc(WINDOW_LARGE);
	r->unpacker = unpacker_new();
	if (r->window == NULL || r->unpacker == NULL)
		res = RES_NOMEM;
	if (res == RES_OK)
		res = io_path(r->dir, "%s", dir);
	if (res == RES_OK) {
		r->fd = r->io->open(r->io, path, O_RDONLY, 0);
		if (r->fd < 0) {
			res = io_error(errno);
			err_set(err, "%s: %s", path, res_text(res));
		}
	}
	if (res == RES_OK)
		*out = r;
	else
		segment_reader_close(&r);
	return res;
}

enum res
segment_reader_open(const char *dir, const struct archive_io *io,
    struct err *err, struct segment_reader **out)
{
	char path[PATH_MAX];
	struct segment_reader *r;
	enum res res = io_path(path, "%s/segment", dir);
	if (res == RES_OK)
		res = open_file(path, dir, io, err, &r);
	if (res != RES_OK)
		return res;
	res = read_header(r, err);
	if (res == RES_OK)
		*out = r;
	else
		segment_reader_close(&r);
	return res;
}

/* A damaged header may still have the nonce: then frames bear its tag. */
static enum res
try_nonce(struct segment_reader *r)
{
	uint8_t bytes[SHARD_HEADER_BYTES];
	struct segment_frame f;
	enum res res = io_read(r->io, r->fd, bytes, sizeof bytes, 0);
	if (res != RES_OK)
		return res;
	shard_header_guess(bytes, &r->shard);
	res = segment_reader_resync(r, SHARD_HEADER_BYTES, 0, &f);
	if (res == RES_OK)
		r->trust = SEGMENT_NONCE;
	else if (res == RES_NOTFOUND)
		r->trust = SEGMENT_NO_NONCE;
	else
		return res;
	return RES_OK;
}

enum res
segment_reader_open_damaged(const char *file, const char *dir,
    const struct archive_io *io, struct err *err, struct segment_reader **out)
{
	struct segment_reader *r;
	struct err unused = { "" };
	enum res res = open_file(file, dir, io, err, &r);
	if (res != RES_OK)
		return res;
	res = read_header(r, &unused);
	if (res == RES_CORRUPT)
		res = try_nonce(r);
	if (res == RES_CORRUPT)
		err_set(err, "%s: shorter than the header of a segment", file);
	else if (res == RES_UNSUPPORTED)
		err_set(err, "%s: a segment of a later version", file);
	else if (res != RES_OK)
		err_set(err, "%s: %s", file, res_text(res));
	if (res == RES_OK)
		*out = r;
	else
		segment_reader_close(&r);
	return res;
}

enum segment_trust
segment_reader_trust(const struct segment_reader *r)
{
	return r->trust;
}

void
segment_reader_close(struct segment_reader **reader)
{
	struct segment_reader *r = *reader;
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->dictionary_count; i++)
		unpack_dictionary_free(&r->dictionaries[i].dictionary);
	if (r->fd >= 0)
		r->io->close(r->io, r->fd);
	unpacker_free(&r->unpacker);
	free(r->window);
	free(r->large);
	free(r->marks);
	free(r);
	*reader = NULL;
}

const struct shard_header *
segment_reader_shard(const struct segment_reader *r)
{
	return &r->shard;
}

const char *
segment_reader_dir(const struct segment_reader *r)
{
	return r->dir;
}

enum res
segment_reader_size(const struct segment_reader *r, uint64_t *out)
{
	return io_size(r->fd, out);
}

enum res
segment_reader_sync(const struct segment_reader *r, struct err *err)
{
	if (r->io->fdatasync(r->io, r->fd) == 0)
		return RES_OK;
	err_set(err, "%s/segment: cannot be synced: %s", r->dir,
	    strerror(errno));
	return RES_IO;
}

static enum res
fill_window(struct segment_reader *r, uint64_t offset, size_t len)
{
	uint64_t end = r->window_at + r->window_len;
	bool onward = r->window_len > 0 && offset > r->window_at &&
	    offset <= end + WINDOW_SMALL;
	size_t want = onward ? WINDOW_LARGE : WINDOW_SMALL;
	if (want < len)
		want = WINDOW_LARGE;
	r->window_len = 0;
	r->window_at = offset;
	return io_read_some(
	    r->io, r->fd, r->window, want, offset, &r->window_len);
}

/* A view of file bytes, valid until the next view of the same kind (small
 * or large). Fewer bytes than asked for only at the end of the file. */
static enum res
view(struct segment_reader *r, uint64_t offset, size_t len, struct str *out)
{
	uint64_t end = r->window_at + r->window_len;
	r->from_cache = offset >= r->window_at && offset <= end &&
	    len <= end - offset;
	if (!r->from_cache && len <= WINDOW_LARGE) {
		enum res res = fill_window(r, offset, len);
		if (res != RES_OK)
			return res;
	}
	if (len <= WINDOW_LARGE) {
		*out = str_sub(str_of(r->window, r->window_len),
		    (size_t)(offset - r->window_at), len);
		return RES_OK;
	}
	if (r->large_cap < len) {
		free(r->large);
		r->large = malloc(len);
		r->large_cap = r->large != NULL ? len : 0;
		if (r->large == NULL)
			return RES_NOMEM;
	}
	size_t got;
	enum res res = io_read_some(r->io, r->fd, r->large, len, offset, &got);
	if (res == RES_OK)
		*out = str_of(r->large, got);
	return res;
}

static bool
all_zero(struct str s)
{
	return s.len == 0 ||
	    (s.ptr[0] == 0 && memcmp(s.ptr, s.ptr + 1, s.len - 1) == 0);
}

/* The next offset at or behind `offset` where bytes were ever written: space
 * reserved by fallocate is passed over at once. */
static uint64_t
next_data(const struct segment_reader *r, uint64_t offset)
{
	off_t at = lseek(r->fd, (off_t)offset, SEEK_DATA);
	if (at >= 0 && (uint64_t)at > offset)
		return (uint64_t)at;
	return at < 0 && errno == ENXIO ? UINT64_MAX : offset;
}

/* Nothing but zeros from `offset` to the end? */
static enum res
zeros_to_end(struct segment_reader *r, uint64_t offset, bool *out)
{
	for (;;) {
		struct str s;
		offset = next_data(r, offset);
		if (offset == UINT64_MAX) {
			*out = true;
			return RES_OK;
		}
		enum res res = view(r, offset, WINDOW_LARGE, &s);
		if (res != RES_OK)
			return res;
		if (s.len == 0 || !all_zero(s)) {
			*out = s.len == 0;
			return RES_OK;
		}
		offset += s.len;
	}
}

/* Frames seen in order make find faster. */
static void
remember(struct segment_reader *r, const struct segment_frame *f)
{
	if (r->mark_count > 0 &&
	    f->header.number < r->marks[r->mark_count - 1].number + MARK_EVERY)
		return;
	if (r->mark_count == r->mark_cap) {
		size_t cap = r->mark_cap == 0 ? 64 : r->mark_cap * 2;
		struct mark *m = realloc(r->marks, cap * sizeof *m);
		if (m == NULL)
			return; /* only slower */
		r->marks = m;
		r->mark_cap = cap;
	}
	r->marks[r->mark_count++] =
	    (struct mark){ f->header.number, f->offset };
}

static enum res
decode_header(
    const struct segment_reader *r, const void *bytes, struct frame_header *out)
{
	return r->trust == SEGMENT_NO_NONCE ?
	    frame_header_decode_untagged(bytes, out) :
	    frame_header_decode(bytes, r->shard.nonce, out);
}

static enum res
header_at(struct segment_reader *r, uint64_t offset, struct segment_frame *out)
{
	struct str s;
	struct segment_frame f = { .offset = offset };
	enum res res = view(r, offset, FRAME_HEADER_BYTES, &s);
	if (res != RES_OK)
		return res;
	if (s.len < FRAME_HEADER_BYTES)
		return all_zero(s) ? RES_NOTFOUND : RES_CORRUPT;
	res = decode_header(r, s.ptr, &f.header);
	if (res == RES_CORRUPT && all_zero(s))
		return RES_NOTFOUND; /* still to be told from a hole */
	if (res != RES_OK)
		return res;
	if (segment_frame_end(&f) > r->known_size) {
		res = io_size(r->fd, &r->known_size);
		if (res != RES_OK)
			return res;
		if (segment_frame_end(&f) > r->known_size)
			return RES_CORRUPT;
	}
	*out = f;
	return RES_OK;
}

enum res
segment_reader_at(
    struct segment_reader *r, uint64_t offset, struct segment_frame *out)
{
	enum res res = header_at(r, offset, out);
	if (res != RES_OK && r->from_cache) {
		/* perhaps written since the window was read */
		r->window_len = 0;
		res = header_at(r, offset, out);
	}
	if (res == RES_OK)
		remember(r, out);
	if (res != RES_NOTFOUND)
		return res;
	bool zeros;
	enum res z = zeros_to_end(r, offset, &zeros);
	if (z != RES_OK)
		return z;
	return zeros ? RES_NOTFOUND : RES_CORRUPT;
}

enum res
segment_reader_resync(struct segment_reader *r, uint64_t offset,
    uint64_t least, struct segment_frame *out)
{
	static const char magic[] = { '\xF5', 'H', 'N', 'F' };
	offset = frame_padded(offset);
	if (r->trust == SEGMENT_NO_NONCE)
		return RES_NOTFOUND;
	for (;;) {
		struct str s;
		uint64_t data = next_data(r, offset);
		if (data == UINT64_MAX)
			return RES_NOTFOUND;
		offset = data & ~(uint64_t)7;
		r->window_len = 0;
		enum res res = view(r, offset, WINDOW_LARGE, &s);
		if (res != RES_OK)
			return res;
		if (s.len < FRAME_HEADER_BYTES)
			return RES_NOTFOUND;
		size_t at = 0;
		for (; at + FRAME_HEADER_BYTES <= s.len; at += 8) {
			struct segment_frame f = { .offset = offset + at };
			const uint8_t *p = (const uint8_t *)s.ptr + at;
			if (memcmp(p, magic, sizeof magic) != 0 ||
			    frame_header_decode(
				p, r->shard.nonce, &f.header) != RES_OK ||
			    f.header.number < least)
				continue;
			*out = f;
			return RES_OK;
		}
		offset += at; /* the rest is shorter than a header */
	}
}

/* The last mark at or before `number`. */
static uint64_t
nearest(const struct segment_reader *r, uint64_t number)
{
	size_t low = 0, high = r->mark_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (r->marks[middle].number <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? r->marks[low - 1].offset : SHARD_HEADER_BYTES;
}

enum res
segment_reader_find(
    struct segment_reader *r, uint64_t number, struct segment_frame *out)
{
	uint64_t offset = nearest(r, number), least = 0;
	for (;;) {
		struct segment_frame f;
		enum res res = segment_reader_at(r, offset, &f);
		if (res == RES_CORRUPT || res == RES_UNSUPPORTED)
			res = segment_reader_resync(r, offset + 8, least, &f);
		if (res != RES_OK)
			return res;
		if (f.header.number == number) {
			*out = f;
			return RES_OK;
		}
		if (f.header.number > number)
			return RES_NOTFOUND; /* lost to damage */
		offset = segment_frame_end(&f);
		least = f.header.number + 1;
	}
}

/* The plain dictionary in frame `number`. */
static enum res
read_dictionary(
    struct segment_reader *r, uint64_t number, struct buf *content)
{
	struct segment_frame f;
	enum res res = segment_reader_find(r, number, &f);
	if (res == RES_OK && (f.header.type != FRAME_DICTIONARY ||
				 f.header.dictionary != 0))
		res = RES_CORRUPT;
	struct arena *a = arena_new(LOAD_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	struct sink *sink = sink_buf(a, content);
	if (res == RES_OK)
		res = sink != NULL ? segment_reader_body(r, &f, NULL, sink) :
				     RES_NOMEM;
	arena_free(&a);
	return res == RES_OK ? content->error : res;
}

/* What the frame's blocks say they were packed with. */
static uint32_t
wanted_dictionary(struct segment_reader *r, const struct segment_frame *f)
{
	for (int b = 0; b < FRAME_BLOCKS; b++) {
		struct str s;
		size_t head = b == BLOCK_BODY ? FRAME_BODY_HEAD :
						FRAME_SALT_BYTES;
		if (f->header.stored[b] < head ||
		    view(r, f->offset +
			frame_block_offset(&f->header, (enum frame_block)b),
			(size_t)f->header.stored[b], &s) != RES_OK)
			continue;
		uint32_t id = packed_dictionary_id(str_skip(s, head));
		if (id != 0)
			return id;
	}
	return 0;
}

/* Get dictionary `number` from its frame or, when that is damaged, from the
 * copy in a shard beside this one. */
static enum res
fetch_dictionary(struct segment_reader *r, const struct segment_frame *f,
    uint64_t number, struct unpack_dictionary **out)
{
	struct buf content;
	buf_init(&content, SEGMENT_MAX_DICTIONARY);
	enum res res = read_dictionary(r, number, &content);
	if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		uint32_t id = wanted_dictionary(r, f);
		buf_reset(&content);
		res = id != 0 ?
		    dictionary_find_copy(r->dir, r->io, id, &content) :
		    RES_NOTFOUND;
	}
	if (res == RES_OK) {
		*out = unpack_dictionary_new(buf_str(&content));
		res = *out != NULL ? RES_OK : RES_NOMEM;
	}
	buf_done(&content);
	return res == RES_NOTFOUND ? RES_CORRUPT : res;
}

/* The dictionary a frame names, kept by the reader; also that it cannot be
 * had, so that it is not looked for again for each frame. */
static enum res
get_dictionary(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, const struct unpack_dictionary **out)
{
	uint32_t number = f->header.dictionary;
	struct unpack_dictionary *d = NULL;
	enum res res = RES_NOTFOUND;
	*out = NULL;
	if (number == 0)
		return RES_OK;
	for (size_t i = 0; i < r->dictionary_count; i++)
		if (r->dictionaries[i].number == number) {
			d = r->dictionaries[i].dictionary;
			res = d != NULL ? RES_OK : RES_CORRUPT;
		}
	if (res == RES_NOTFOUND)
		res = r->dictionary_count < SEGMENT_MAX_DICTIONARIES ?
		    fetch_dictionary(r, f, number - 1, &d) : RES_LIMIT;
	else if (res == RES_OK) {
		*out = d;
		return RES_OK;
	}
	if (res == RES_CORRUPT)
		err_set(err, "%s/segment: frame %llu needs the dictionary in "
		    "frame %llu, which is missing or damaged", r->dir,
		    (unsigned long long)f->header.number,
		    (unsigned long long)number - 1);
	if (res == RES_LIMIT) {
		err_set(err, "%s/segment: frame %llu needs one dictionary more "
		    "than there may be", r->dir,
		    (unsigned long long)f->header.number);
		return RES_CORRUPT;
	}
	if (res == RES_OK || res == RES_CORRUPT) {
		r->dictionaries[r->dictionary_count].number = number;
		r->dictionaries[r->dictionary_count++].dictionary = d;
		*out = d;
	}
	return res;
}

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
	enum res res = view(
	    r, f->offset + frame_block_offset(&f->header, b), padded, &s);
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

enum res
segment_reader_load(struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, struct err *err,
    struct segment_content *out)
{
	const struct unpack_dictionary *dictionary;
	enum res res = get_dictionary(r, f, err, &dictionary);
	if (res != RES_OK)
		return res;
	res = load(r, a, f, dictionary, NULL, out);
	if (res == RES_CORRUPT) {
		/* once more from the file, before it is called damage */
		r->window_len = 0;
		res = load(r, a, f, dictionary, err, out);
	}
	return res;
}

enum res
segment_reader_check(struct segment_reader *r, const struct segment_frame *f)
{
	struct segment_content c;
	struct arena *a = arena_new(LOAD_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res res = segment_reader_load(r, a, f, NULL, &c);
	arena_free(&a);
	return res;
}

enum res
segment_reader_salt(struct segment_reader *r, const struct segment_frame *f,
    enum frame_block b, uint8_t out[FRAME_SALT_BYTES])
{
	struct str s;
	enum res res = view(r, f->offset + frame_block_offset(&f->header, b),
	    FRAME_SALT_BYTES, &s);
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
	enum res res = view(r,
	    f->offset + frame_block_offset(&f->header, BLOCK_BODY),
	    FRAME_BODY_FILE_BYTES, &s);
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
	enum res res = view(r,
	    f->offset + frame_block_offset(&f->header, BLOCK_BODY), padded,
	    out_s);
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
		res = get_dictionary(r, &holder, err, &dictionary);
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
	if (res == RES_CORRUPT && r->from_cache) {
		r->window_len = 0;
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

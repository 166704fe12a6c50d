#include "archive/keeping/backup_shard.h"
#include "archive/keeping/erasures.h"
#include "archive/proof/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/index/index.h"
#include "archive/store/segment_reader.h"
#include "base/codec.h"

#define PIECE_BYTES ((uint64_t)64 << 20) /* lost when interrupted */
#define CHUNK       ((size_t)1 << 20)
#define FRAME_MEMORY ((size_t)20 << 20)
#define MAX_SAID    1024

void
backup_say(const struct backup_options *o, const char *fmt, ...)
{
	char line[MAX_SAID];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	o->say(o->context, line);
}

/* --- how far --------------------------------------------------------------- */

struct copy {
	struct backup_shard *b;
	struct segment_reader *src, *dst;
	int in, out;
	char *chunk;
	struct backup_state state;
	struct err *err;
};

/* What the index has taken in was durable before. */
static uint64_t
applied_offset(const struct copy *c)
{
	struct index_view v = { .db = NULL };
	struct err unused = { "" };
	struct index_position p = { .offset = 0 };
	if (index_open_read(c->b->from, segment_reader_shard(c->src), &unused,
		&v) == RES_OK &&
	    index_read_position(&v, &p) != RES_OK)
		p.offset = 0;
	index_view_close(&v);
	return p.offset;
}

/* The end of what is known to be durable, at the end of a frame: as frames
 * themselves, the index and the next shard say. A seal is the last frame. */
static enum res
durable_end(struct copy *c, uint64_t *out)
{
	struct segment_frame f;
	struct segment_walk w = { .next = c->state.frames,
		.at = c->state.bytes > 0 ? c->state.bytes :
					   SHARD_HEADER_BYTES };
	uint64_t known = applied_offset(c), end = w.at, before = w.at;
	enum res r;
	if (c->b->successor > known)
		known = c->b->successor;
	while ((r = segment_reader_next(c->src, &w, &f)) == RES_OK) {
		if (f.header.durable_upto > known)
			known = f.header.durable_upto;
		/* a frame speaks of those before it */
		if (before <= known)
			end = before;
		if (w.at <= known)
			end = w.at;
		before = w.at;
	}
	if (r != RES_NOTFOUND)
		return r;
	if (known > w.at) { /* the last frame is not whole, or cut off */
		c->b->counts->damaged++;
		backup_say(c->b->o,
		    "%s/segment: damaged at %" PRIu64 " to %" PRIu64,
		    c->b->from, w.at, known);
	}
	c->b->complete = end == w.at;
	c->b->counts->waiting += w.at - end;
	*out = end;
	return RES_OK;
}

/* The end of the last frame that begins before `at` + PIECE_BYTES. */
static enum res
piece_end(struct copy *c, uint64_t at, uint64_t end, uint64_t *out)
{
	uint64_t stop = at + PIECE_BYTES, next = c->state.frames;
	while (at < end && at < stop) {
		struct segment_frame f;
		enum res r = segment_reader_at(c->src, at, &f);
		if (r == RES_CORRUPT || r == RES_NOTFOUND) {
			r = segment_reader_resync(c->src, at + 8, next, &f);
			/* up to the frame behind the damage */
			at = r == RES_OK && f.offset < end ? f.offset : end;
			if (r == RES_OK || r == RES_NOTFOUND)
				continue;
		}
		if (r != RES_OK)
			return r;
		at = segment_frame_end(&f);
		next = f.header.number + 1;
	}
	*out = at < end ? at : end;
	return RES_OK;
}

/* --- bytes ----------------------------------------------------------------- */

static enum res
copy_bytes(struct copy *c, uint64_t from, uint64_t to)
{
	const struct archive_io *io = c->b->o->io;
	enum res r = RES_OK;
	for (uint64_t at = from; r == RES_OK && at < to;) {
		size_t n = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
		r = io_read(&archive_io_system, c->in, c->chunk, n, at);
		if (r == RES_OK)
			r = io_write(io, c->out, c->chunk, n, at);
		at += n;
	}
	if (r == RES_OK && io->fdatasync(io, c->out) < 0)
		r = io_error(errno);
	/* read back what the disk has, not what memory has */
	(void)posix_fadvise(c->out, (off_t)from, (off_t)(to - from),
	    POSIX_FADV_DONTNEED);
	if (r == RES_CORRUPT)
		err_set(c->err, "%s/segment: shorter than it was", c->b->from);
	else if (r != RES_OK)
		err_set(c->err, "%s/segment: %s", c->b->to, res_text(r));
	return r;
}

/* Are [from, to) of both files the same? Anything unreadable is not. */
static bool
same_bytes(struct copy *c, uint64_t from, uint64_t to)
{
	size_t half = CHUNK / 2;
	for (uint64_t at = from; at < to;) {
		size_t n = to - at < half ? (size_t)(to - at) : half;
		if (io_read(&archive_io_system, c->in, c->chunk, n, at) !=
			RES_OK ||
		    io_read(&archive_io_system, c->out, c->chunk + half, n,
			at) != RES_OK ||
		    memcmp(c->chunk, c->chunk + half, n) != 0)
			return false;
		at += n;
	}
	return true;
}

/* --- bodies in files of their own ------------------------------------------ */

/* Is the whole file there, with the right bytes? */
static bool
body_good(struct copy *c, const char *path, const struct frame_body *body)
{
	uint32_t crc = 0;
	uint64_t at = 0;
	size_t n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (io_read_some(&archive_io_system, fd, c->chunk, CHUNK, at, &n) ==
		RES_OK &&
	    n > 0) {
		crc = crc32c(crc, c->chunk, n);
		at += n;
	}
	close(fd);
	return n == 0 && at == body->file_bytes && crc == body->file_crc;
}

static enum res
write_body(struct copy *c, const char *from, const char *to)
{
	const struct archive_io *io = c->b->o->io;
	uint64_t at = 0;
	size_t n;
	enum res r = RES_OK;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return RES_NOTFOUND;
	int out = io->open(
	    io, to, O_RDWR | O_CREAT | O_TRUNC, ARCHIVE_FILE_MODE);
	if (out < 0)
		r = io_error(errno);
	while (r == RES_OK) {
		r = io_read_some(
		    &archive_io_system, in, c->chunk, CHUNK, at, &n);
		if (r != RES_OK || n == 0)
			break;
		r = io_write(io, out, c->chunk, n, at);
		at += n;
	}
	if (r == RES_OK && io->fsync(io, out) < 0)
		r = io_error(errno);
	if (out >= 0)
		io->close(io, out);
	close(in);
	return r;
}

static enum res
copy_body(struct copy *c, const struct frame_body *body)
{
	const struct archive_io *io = c->b->o->io;
	char from[PATH_MAX], to[PATH_MAX], part[PATH_MAX], dir[PATH_MAX],
	    name[FRAME_BODY_NAME];
	frame_body_name(body, name);
	enum res r = io_path(from, "%s/bodies/%s", c->b->from, name);
	if (r == RES_OK)
		r = io_path(dir, "%s/bodies", c->b->to);
	if (r == RES_OK)
		r = io_path(to, "%s/%s", dir, name);
	if (r == RES_OK)
		r = io_path(part, "%s/.part", dir);
	if (r != RES_OK || body_good(c, to, body))
		return r;
	r = write_body(c, from, part);
	if (r == RES_OK && !body_good(c, part, body))
		r = body_good(c, from, body) ? RES_IO : RES_NOTFOUND;
	if (r == RES_OK && (io->rename(io, part, to) < 0 ||
			       io->fsync_dir(io, dir) < 0))
		r = io_error(errno);
	if (r == RES_OK) {
		c->b->counts->bodies++;
		return r;
	}
	io->unlink(io, part);
	if (r != RES_NOTFOUND) {
		err_set(c->err, "%s: %s", to, res_text(r));
		return r;
	}
	c->b->counts->damaged++;
	backup_say(c->b->o, "%s: damaged or gone", from);
	return RES_OK;
}

/* --- verifying ------------------------------------------------------------- */

/* Bytes [from, to) of the copy are not as they should be: is it the source? */
static enum res
judge(struct copy *c, uint64_t from, uint64_t to)
{
	if (!same_bytes(c, from, to)) {
		err_set(c->err,
		    "%s/segment: at %" PRIu64 ": cannot be read back as it "
		    "was written", c->b->to, from);
		return RES_IO;
	}
	c->b->counts->damaged++;
	backup_say(c->b->o, "%s/segment: damaged at %" PRIu64 " to %" PRIu64,
	    c->b->from, from, to);
	return RES_OK;
}

static enum res
verify_frame(struct copy *c, const struct segment_frame *f)
{
	struct segment_content content;
	struct backup_state *s = &c->state;
	struct arena *a = arena_new(FRAME_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = segment_reader_load(c->dst, a, f, NULL, &content);
	if (r == RES_CORRUPT)
		r = judge(c, f->offset, segment_frame_end(f));
	if (r == RES_OK && (f->header.flags & FRAME_BODY_IN_FILE) &&
	    content.state[BLOCK_BODY] == BLOCK_WHOLE)
		r = copy_body(c, &content.body);
	arena_free(&a);
	if (r == RES_OK && f->header.number != s->frames)
		s->holes = true;
	if (r == RES_OK)
		r = merkle_add(&s->tree, f->header.leaf);
	s->frames = f->header.number + 1;
	s->last = f->offset;
	c->b->counts->frames++;
	return r;
}

static enum res
verify_piece(struct copy *c, uint64_t at, uint64_t to)
{
	while (at < to) {
		struct segment_frame f;
		enum res r = segment_reader_at(c->dst, at, &f);
		if (r == RES_OK && f.header.number >= c->state.frames &&
		    segment_frame_end(&f) <= to) {
			r = verify_frame(c, &f);
			at = segment_frame_end(&f);
		} else if (r == RES_OK || r == RES_CORRUPT ||
		    r == RES_NOTFOUND) {
			r = segment_reader_resync(
			    c->dst, at + 8, c->state.frames, &f);
			uint64_t end =
			    r == RES_OK && f.offset < to ? f.offset : to;
			r = judge(c, at, end);
			c->state.holes = true;
			at = end;
		}
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

/* --- one shard ------------------------------------------------------------- */

/* The names that lead to the copy, and the copy itself. */
static enum res
open_copy(struct copy *c)
{
	const struct archive_io *io = c->b->o->io;
	char path[PATH_MAX], from[PATH_MAX];
	enum res r = io_path(from, "%s/segment", c->b->from);
	if (r == RES_OK)
		r = io_path(path, "%s/bodies", c->b->to);
	if (r == RES_OK)
		r = io_make_dir(io, c->b->to, path);
	if (r == RES_OK)
		r = io_path(path, "%s/segment", c->b->to);
	if (r != RES_OK)
		return r;
	c->in = open(from, O_RDONLY | O_CLOEXEC);
	c->out = io->open(io, path, O_RDWR | O_CREAT, ARCHIVE_FILE_MODE);
	if (c->in < 0 || c->out < 0)
		return io_error(errno);
	return io->fsync_dir(io, c->b->to) < 0 ? io_error(errno) : RES_OK;
}

/* Is what was copied earlier the beginning of what is there? */
static enum res
check_past(struct copy *c)
{
	struct backup_state *s = &c->state;
	enum res r = backup_state_read(c->b->to, s);
	if (r == RES_NOTFOUND || r == RES_CORRUPT) {
		*s = (struct backup_state){ .bytes = 0 }; /* from the start */
		merkle_init(&s->tree);
		return RES_OK;
	}
	if (r != RES_OK)
		return r;
	if (same_bytes(c, 0, SHARD_HEADER_BYTES) &&
	    (s->last == 0 ||
		same_bytes(c, s->last, s->last + FRAME_HEADER_BYTES)))
		return RES_OK;
	err_set(c->err, "%s: not the past of %s: begin a new backup elsewhere",
	    c->b->to, c->b->from);
	return RES_EXISTS;
}

/* A small file beside the segment, as a whole, when there is one. */
static enum res
copy_file(struct copy *c, const char *name)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/%s", c->b->from, name);
	int fd = r == RES_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return r != RES_OK || errno == ENOENT ? r : io_error(errno);
	struct buf all;
	buf_init(&all, (size_t)64 << 20);
	size_t n = CHUNK;
	while (r == RES_OK && n > 0) {
		r = io_read_some(
		    &archive_io_system, fd, c->chunk, CHUNK, all.len, &n);
		buf_add(&all, c->chunk, n);
		if (r == RES_OK)
			r = all.error;
	}
	close(fd);
	if (r == RES_OK)
		r = io_put_file(
		    c->b->o->io, c->b->to, name, all.ptr, all.len);
	buf_done(&all);
	return r;
}

/* Are all blocks there in the copy? A frame that is not copied yet is not
 * erased there either. */
static enum res
is_blank(struct copy *c, uint64_t number, bool *out)
{
	struct segment_frame f;
	struct segment_content content = { .meta = STR_EMPTY };
	*out = false;
	enum res r = segment_reader_find(c->dst, number, &f);
	if (r == RES_NOTFOUND)
		return RES_OK;
	struct arena *a = r == RES_OK ? arena_new(FRAME_MEMORY) : NULL;
	if (r == RES_OK && a == NULL)
		r = RES_NOMEM;
	if (r == RES_OK)
		r = segment_reader_load(c->dst, a, &f, NULL, &content);
	for (int b = 0; b < FRAME_BLOCKS; b++)
		*out = *out || content.state[b] == BLOCK_ERASED;
	arena_free(&a);
	return r == RES_CORRUPT ? RES_OK : r;
}

/* The same frame in the copy, for good: blocks, and the file of its body. */
static enum res
erase_copy(struct copy *c, uint64_t number)
{
	static const char zeros[CHUNK];
	const struct archive_io *io = c->b->o->io;
	char path[PATH_MAX], name[FRAME_BODY_NAME];
	struct segment_frame f;
	struct frame_body body;
	enum res r = segment_reader_find(c->dst, number, &f);
	if (r != RES_OK)
		return r;
	if ((f.header.flags & FRAME_BODY_IN_FILE) &&
	    segment_reader_peek_body(c->dst, &f, &body) == RES_OK) {
		frame_body_name(&body, name);
		r = io_path(path, "%s/bodies/%s", c->b->to, name);
		if (r == RES_OK && io->unlink(io, path) < 0 && errno != ENOENT)
			r = io_error(errno);
	}
	uint64_t at = f.offset + FRAME_HEADER_BYTES;
	while (r == RES_OK && at < segment_frame_end(&f)) {
		uint64_t n = segment_frame_end(&f) - at;
		if (n > sizeof zeros)
			n = sizeof zeros;
		r = io_write(io, c->out, zeros, (size_t)n, at);
		at += n;
	}
	if (r == RES_OK && io->fdatasync(io, c->out) < 0)
		r = io_error(errno);
	return r;
}

/* Whether a frame that was erased in the store is so in the copy. */
static enum res
settle_erased(struct copy *c, uint64_t number, bool *out_blank)
{
	struct segment_frame f;
	enum res r = is_blank(c, number, out_blank);
	if (r != RES_OK || *out_blank ||
	    segment_reader_find(c->dst, number, &f) != RES_OK)
		return r;
	c->b->counts->erased++;
	if (!c->b->o->prune)
		return RES_OK;
	r = erase_copy(c, number);
	*out_blank = r == RES_OK;
	return r;
}

/* What was erased behind a copy that has it still is there, unless it is to be
 * dropped, and the file of erasures beside it must not say otherwise. One under
 * way is kept: whoever opens a store of this copy goes on with it. */
static enum res
copy_erasures(struct copy *c, struct err *err)
{
	struct erasures e;
	char path[PATH_MAX];
	size_t kept = 0;
	struct arena *a = arena_new(ERASURES_ARENA);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = erasures_read(c->b->from, a, err, &e);
	if (r == RES_OK && e.count > 0 && c->dst == NULL)
		r = segment_reader_open(c->b->to, NULL, c->err, &c->dst);
	for (size_t i = 0; r == RES_OK && i < e.count; i++) {
		bool blank = e.frames[i].intent == 0;
		if (!blank)
			r = settle_erased(c, e.frames[i].number, &blank);
		if (blank)
			e.frames[kept++] = e.frames[i];
	}
	if (r == RES_OK)
		r = io_path(path, "%s/" ERASURES_FILE, c->b->to);
	if (r == RES_OK) {
		e.count = kept;
		/* one of before may say more */
		if (kept > 0 || e.pending || access(path, F_OK) == 0)
			r = erasures_write(c->b->o->io, c->b->to, &e);
	}
	arena_free(&a);
	return r;
}

static enum res
copy_pieces(struct copy *c, uint64_t end)
{
	struct backup_state *s = &c->state;
	uint64_t begin = s->bytes;
	enum res r = RES_OK;
	if (begin == 0) {
		r = copy_bytes(c, 0, SHARD_HEADER_BYTES);
		s->bytes = SHARD_HEADER_BYTES;
	}
	if (r == RES_OK)
		r = segment_reader_open(c->b->to, NULL, c->err, &c->dst);
	do {
		uint64_t to = s->bytes;
		if (r == RES_OK)
			r = piece_end(c, s->bytes, end, &to);
		if (r == RES_OK)
			r = copy_bytes(c, s->bytes, to);
		if (r == RES_OK)
			r = verify_piece(c, s->bytes, to);
		if (r != RES_OK)
			return r;
		c->b->counts->bytes += to - (begin == 0 ? 0 : s->bytes);
		begin = s->bytes = to;
		r = backup_state_write(c->b->o->io, c->b->to, s);
		if (r == RES_OK && c->b->o->progress != NULL)
			c->b->o->progress(c->b->o->context, c->b->from, to, end);
	} while (r == RES_OK && s->bytes < end);
	return r;
}

enum res
backup_shard_copy(
    struct backup_shard *b, struct err *err, struct backup_state *out)
{
	struct copy c = { .b = b, .in = -1, .out = -1, .err = err };
	uint64_t end = b->limit;
	c.chunk = malloc(CHUNK);
	enum res r = c.chunk != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = segment_reader_open(b->from, NULL, err, &c.src);
	if (r == RES_OK)
		r = open_copy(&c);
	if (r == RES_OK)
		r = check_past(&c);
	/* signed notes go first: each is about frames that come behind */
	if (r == RES_OK)
		r = copy_file(&c, CHECKPOINTS_FILE);
	if (r == RES_OK && end == 0)
		r = durable_end(&c, &end);
	bool new = r == RES_OK && (end > c.state.bytes || c.state.bytes == 0);
	if (new)
		r = copy_pieces(&c, end);
	/* erasures last: whatever is zeros now stands there */
	if (r == RES_OK)
		r = copy_erasures(&c, err);
	if (r == RES_OK && new)
		b->counts->changed++;
	if (r == RES_OK && c.state.bytes > SHARD_HEADER_BYTES &&
	    end < c.state.bytes) {
		err_set(err, "%s: shorter than its backup", b->from);
		r = RES_EXISTS;
	}
	segment_reader_close(&c.src);
	segment_reader_close(&c.dst);
	if (c.in >= 0)
		close(c.in);
	if (c.out >= 0)
		b->o->io->close(b->o->io, c.out);
	free(c.chunk);
	if (r == RES_OK)
		*out = c.state;
	else
		err_set(err, "%s: cannot be copied: %s", b->from, res_text(r));
	return r;
}

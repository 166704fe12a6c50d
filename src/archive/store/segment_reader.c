#include "archive/store/segment_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "archive/store/segment_inside.h"

/* A mark (number and offset) is kept about every so many frames. */
#define MARK_EVERY 256

static enum res
read_header(struct segment_reader *r, struct err *err)
{
	uint8_t bytes[SHARD_HEADER_BYTES];
	enum res res = io_read(r->io, r->window.fd, bytes, sizeof bytes, 0);
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
	struct segment_reader *r = calloc(1, sizeof *r);
	if (r == NULL)
		return RES_NOMEM;
	r->io = io != NULL ? io : &archive_io_system;
	enum res res = window_init(&r->window, r->io);
	r->unpacker = unpacker_new();
	if (r->unpacker == NULL)
		res = RES_NOMEM;
	if (res == RES_OK)
		res = io_path(r->dir, "%s", dir);
	if (res == RES_OK) {
		r->window.fd = r->io->open(r->io, path, O_RDONLY, 0);
		if (r->window.fd < 0) {
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
	enum res res = io_read(r->io, r->window.fd, bytes, sizeof bytes, 0);
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
		segment_dictionary_done(&r->dictionaries[i]);
	unpacker_free(&r->unpacker);
	window_done(&r->window);
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
	return io_size(r->window.fd, out);
}

enum res
segment_reader_sync(const struct segment_reader *r, struct err *err)
{
	if (r->io->fdatasync(r->io, r->window.fd) == 0)
		return RES_OK;
	err_set(err, "%s/segment: cannot be synced: %s", r->dir,
	    strerror(errno));
	return RES_IO;
}

/* Frames seen in order make find faster. */
static void
remember(struct segment_reader *r, const struct segment_frame *f)
{
	r->last = (struct segment_mark){ f->header.number, f->offset };
	if (r->mark_count > 0 &&
	    f->header.number < r->marks[r->mark_count - 1].number + MARK_EVERY)
		return;
	if (r->mark_count == r->mark_cap) {
		size_t cap = r->mark_cap == 0 ? 64 : r->mark_cap * 2;
		struct segment_mark *m = realloc(r->marks, cap * sizeof *m);
		if (m == NULL)
			return; /* only slower */
		r->marks = m;
		r->mark_cap = cap;
	}
	r->marks[r->mark_count++] =
	    (struct segment_mark){ f->header.number, f->offset };
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
	enum res res = window_view(&r->window, offset, FRAME_HEADER_BYTES, &s);
	if (res != RES_OK)
		return res;
	if (s.len < FRAME_HEADER_BYTES)
		return window_all_zero(s) ? RES_NOTFOUND : RES_CORRUPT;
	res = decode_header(r, s.ptr, &f.header);
	if (res == RES_CORRUPT && window_all_zero(s))
		return RES_NOTFOUND; /* still to be told from a hole */
	if (res != RES_OK)
		return res;
	if (segment_frame_end(&f) > r->known_size) {
		res = io_size(r->window.fd, &r->known_size);
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
	if (res != RES_OK && r->window.from_cache) {
		/* perhaps written since the window was read */
		window_drop(&r->window);
		res = header_at(r, offset, out);
	}
	if (res == RES_OK)
		remember(r, out);
	if (res != RES_NOTFOUND)
		return res;
	bool zeros;
	enum res z = window_zeros_to_end(&r->window, offset, &zeros);
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
		uint64_t data = window_next_data(&r->window, offset);
		if (data == UINT64_MAX)
			return RES_NOTFOUND;
		offset = data & ~(uint64_t)7;
		window_drop(&r->window);
		enum res res =
		    window_view(&r->window, offset, WINDOW_LARGE, &s);
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

enum res
segment_reader_next(struct segment_reader *r, struct segment_walk *w,
    struct segment_frame *out)
{
	enum res res = segment_reader_at(r, w->at, out);
	w->from = w->at;
	if (res == RES_CORRUPT || res == RES_UNSUPPORTED) {
		w->damaged++;
		w->later += res == RES_UNSUPPORTED;
		res = segment_reader_resync(r, w->at + 8, w->next, out);
	}
	if (res != RES_OK)
		return res;
	w->at = segment_frame_end(out);
	w->next = out->header.number + 1;
	return RES_OK;
}

/* The last frame seen at or before `number`, as far as it is known. */
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
	const struct segment_mark *m = low > 0 ? &r->marks[low - 1] : NULL;
	if (r->last.offset != 0 && r->last.number <= number &&
	    (m == NULL || r->last.number > m->number))
		m = &r->last;
	return m != NULL ? m->offset : SHARD_HEADER_BYTES;
}

enum res
segment_reader_find(
    struct segment_reader *r, uint64_t number, struct segment_frame *out)
{
	struct segment_walk w = { .at = nearest(r, number) };
	struct segment_frame f;
	enum res res;
	do
		res = segment_reader_next(r, &w, &f);
	while (res == RES_OK && f.header.number < number);
	if (res != RES_OK)
		return res;
	if (f.header.number > number)
		return RES_NOTFOUND; /* lost to damage */
	*out = f;
	return RES_OK;
}

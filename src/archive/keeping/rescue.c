#include "archive/keeping/rescue.h"

#include <errno.h>
#include <string.h>

#define FRAME_MEMORY ((size_t)64 << 20)
#define DISK_PIECE   4096 /* what a bad sector costs */

struct walk {
	struct segment_reader *reader;
	const struct rescue_ops *ops;
	void *context;
	struct err *err;
	uint64_t next; /* number of the next frame */
};

/* --- reading from a bad disk --- */

static ssize_t
patient_pread(const struct archive_io *io, int fd, void *bytes, size_t len,
    uint64_t offset)
{
	ssize_t n = archive_io_system.pread(io, fd, bytes, len, offset);
	if (n >= 0 || errno != EIO)
		return n;
	/* up to the end of the disk's piece, so that the next one is tried */
	size_t piece = DISK_PIECE - (size_t)(offset % DISK_PIECE);
	if (piece > len)
		piece = len;
	n = archive_io_system.pread(io, fd, bytes, piece, offset);
	if (n >= 0 || errno != EIO)
		return n;
	memset(bytes, 0xbd, piece); /* zeros would look erased */
	return (ssize_t)piece;
}

const struct archive_io *
rescue_io(void)
{
	static struct archive_io io;
	if (io.pread == NULL) {
		io = archive_io_system;
		io.pread = patient_pread;
	}
	return &io;
}

/* --- the walk --- */

static enum res
take_frame(struct walk *w, const struct segment_frame *f)
{
	struct segment_content c;
	struct arena *a = arena_new(FRAME_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = segment_reader_load(w->reader, a, f, NULL, &c);
	if (r == RES_OK || r == RES_CORRUPT)
		r = w->ops->frame(w->context, w->reader, a, f, &c, r);
	arena_free(&a);
	w->next = f->header.number + 1;
	return r;
}

/* Nothing usable at `at`: to the next frame, or to the end. */
static enum res
skip_damage(struct walk *w, uint64_t at, const char *what, uint64_t *out_at)
{
	struct segment_frame f;
	uint64_t end;
	enum res r = segment_reader_resync(w->reader, at + 8, w->next, &f);
	if (r == RES_OK) {
		w->ops->damage(w->context, at, f.offset, what);
		*out_at = f.offset;
		return RES_OK;
	}
	if (r != RES_NOTFOUND)
		return r;
	r = segment_reader_size(w->reader, &end);
	if (r == RES_OK && end > at)
		w->ops->damage(w->context, at, end, what);
	*out_at = UINT64_MAX;
	return r;
}

enum res
rescue_walk(struct segment_reader *reader, const struct rescue_ops *ops,
    void *context, struct err *err)
{
	struct walk w = { reader, ops, context, err, 0 };
	uint64_t at = SHARD_HEADER_BYTES;
	enum res r = RES_OK;
	while (r == RES_OK && at != UINT64_MAX) {
		struct segment_frame f;
		r = segment_reader_at(reader, at, &f);
		if (r == RES_NOTFOUND)
			return RES_OK;
		/* where no tag can be checked, the order must be right */
		bool order = r == RES_OK && f.header.number >= w.next &&
		    (segment_reader_trust(reader) != SEGMENT_NO_NONCE ||
			f.header.number == w.next);
		if (r == RES_OK && order) {
			r = take_frame(&w, &f);
			at = segment_frame_end(&f);
		} else if (r == RES_OK || r == RES_CORRUPT) {
			r = skip_damage(&w, at, "no frame can be read", &at);
		} else if (r == RES_UNSUPPORTED) {
			r = skip_damage(
			    &w, at, "a frame of a later version", &at);
		}
	}
	if (r != RES_OK)
		err_set(err, "%s: at %llu: %s", segment_reader_dir(reader),
		    (unsigned long long)at, res_text(r));
	return r;
}

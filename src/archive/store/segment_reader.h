/* Reading one shard's segment: frame by frame from an offset (the applier,
 * rescue, verify), one frame at a known offset (show, search), or by number.
 * Works on a segment that is being written: what is not there yet reads as
 * the end. A reader belongs to one thread at a time; any number may be open.
 *
 *   uint64_t at = SHARD_HEADER_BYTES;
 *   while ((r = segment_reader_at(sr, at, &f)) == RES_OK) {
 *           r = segment_reader_load(sr, a, &f, &c);   (what is needed)
 *           at = segment_frame_end(&f);
 *   }
 *   RES_NOTFOUND: the end.  RES_CORRUPT: damage at `at`;
 *   segment_reader_resync finds the next frame behind it. */
#ifndef ARCHIVE_SEGMENT_READER_H
#define ARCHIVE_SEGMENT_READER_H

#include "archive/format/leaf.h"
#include "archive/format/segment.h"
#include "archive/store/io.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/sink.h"

/* Plain bytes of META, EVIDENCE or EDITS. */
#define SEGMENT_MAX_RECORD ((uint64_t)4 << 20)
#define SEGMENT_MAX_DICTIONARY ((uint64_t)1 << 20)
/* In one shard: one, but for imports that come by in several runs. */
#define SEGMENT_MAX_DICTIONARIES 8

struct segment_reader;

/* `dir` is the shard's directory; `io` NULL is the system. RES_NOTFOUND: no
 * segment; RES_CORRUPT, RES_UNSUPPORTED: its header. A line goes to `err`. */
HN_CHECK enum res segment_reader_open(const char *dir,
    const struct archive_io *io, struct err *err, struct segment_reader **out);
/* For rescue: any file, with `dir` as the place of bodies/, and with a header
 * that may be damaged or lost. What such a reader believes is told by
 * segment_reader_trust. */
HN_CHECK enum res segment_reader_open_damaged(const char *file,
    const char *dir, const struct archive_io *io, struct err *err,
    struct segment_reader **out);
enum segment_trust {
	SEGMENT_WHOLE,    /* header and nonce are right */
	SEGMENT_NONCE,    /* header damaged; frames bear its nonce */
	SEGMENT_NO_NONCE, /* frames cannot be told from a copy of frames: read
	                     one behind the other, never look for the next */
};
enum segment_trust segment_reader_trust(const struct segment_reader *r);
void segment_reader_close(struct segment_reader **r);
const struct shard_header *segment_reader_shard(const struct segment_reader *r);
const char *segment_reader_dir(const struct segment_reader *r);
/* Bytes of the file now, reserved ones included. */
HN_CHECK enum res segment_reader_size(
    const struct segment_reader *r, uint64_t *out);

/* Make what was written so far durable, whoever wrote it. RES_IO: it is not,
 * and no later sync can tell (a line in `err`). */
HN_CHECK enum res segment_reader_sync(
    const struct segment_reader *r, struct err *err);

struct segment_frame {
	uint64_t offset;
	struct frame_header header;
};
static inline uint64_t
segment_frame_end(const struct segment_frame *f)
{
	return f->offset + f->header.total;
}
static inline uint64_t
segment_frame_id(
    const struct shard_header *shard, const struct segment_frame *f)
{
	return (uint64_t)shard->number << 32 | f->header.number;
}

/* A dictionary that may be read for other frames: it stands in its frame and
 * was packed without one, so that reading it needs no other. */
static inline bool
segment_is_dictionary(const struct segment_frame *f)
{
	return f->header.type == FRAME_DICTIONARY &&
	    f->header.dictionary == 0 &&
	    (f->header.flags & (FRAME_BODY_IN_FRAME | FRAME_BODY_IN_FILE)) == 0;
}

/* The frame at `offset` (8-aligned). RES_NOTFOUND: only zeros or nothing from
 * there to the end. RES_CORRUPT: something else, or a frame that reaches
 * behind the end of the file. RES_UNSUPPORTED: of a later version. */
HN_CHECK enum res segment_reader_at(
    struct segment_reader *r, uint64_t offset, struct segment_frame *out);
/* The first frame with a valid tag and a number >= `least` at or behind
 * `offset`; RES_NOTFOUND. `least` is the number that should come next: an
 * operator may mail the open segment to himself, and then older frames of
 * this very shard stand in a body. */
HN_CHECK enum res segment_reader_resync(struct segment_reader *r,
    uint64_t offset, uint64_t least, struct segment_frame *out);
/* All frames from one place on, damage passed over:
 *
 *   struct segment_walk w = SEGMENT_WALK;
 *   while ((r = segment_reader_next(sr, &w, &f)) == RES_OK)
 *           ...
 *   RES_NOTFOUND: the end. */
struct segment_walk {
	uint64_t at;      /* the next frame should be here ... */
	uint64_t next;    /* ... with this number */
	uint64_t from;    /* up to the frame nothing could be read from here */
	uint64_t damaged; /* places passed over, the last at the end perhaps */
	uint64_t later;   /* ... of these, frames of a later version */
};
#define SEGMENT_WALK ((struct segment_walk){ .at = SHARD_HEADER_BYTES })
HN_CHECK enum res segment_reader_next(struct segment_reader *r,
    struct segment_walk *w, struct segment_frame *out);

/* The frame of this number, walking from the nearest one seen before (faster
 * with the offset from an index). RES_NOTFOUND. */
HN_CHECK enum res segment_reader_find(
    struct segment_reader *r, uint64_t number, struct segment_frame *out);

/* What a frame holds, all of it checked. */
struct segment_content {
	enum block_state state[FRAME_BLOCKS];
	struct str meta, evidence, edits; /* plain; empty: absent or erased */
	struct frame_body body;           /* when state[BLOCK_BODY] is WHOLE */
};
/* Check all CRCs and the leaf, decode the three small blocks into `a`.
 * RES_CORRUPT: a block is damaged or the leaf does not fit (a line in `err`
 * names frame and block; `out->state` is filled then too). An erased block is
 * no error. The body's plain bytes are checked by segment_reader_body. */
HN_CHECK enum res segment_reader_load(struct segment_reader *r,
    struct arena *a, const struct segment_frame *f, struct err *err,
    struct segment_content *out);
/* The same for the scan after a crash: CRCs and leaf, nothing decoded. */
HN_CHECK enum res segment_reader_check(
    struct segment_reader *r, const struct segment_frame *f);
/* The salt of a block that was loaded whole. */
HN_CHECK enum res segment_reader_salt(struct segment_reader *r,
    const struct segment_frame *f, enum frame_block b,
    uint8_t out[FRAME_SALT_BYTES]);
/* Salt, hash and reference of the body, not checked: a hint. */
HN_CHECK enum res segment_reader_peek_body(struct segment_reader *r,
    const struct segment_frame *f, struct frame_body *out);
/* Is the file of a FRAME_BODY_IN_FILE body there, with the right length? `dir`
 * is the shard's directory. */
bool segment_body_file_ok(const char *dir, const struct frame_body *b);

/* Push the plain body to `out`, which is not finished, in bounded memory,
 * wherever it is kept; the SHA-256 of the bytes is checked at the end.
 * RES_NOTFOUND: absent or erased; RES_CORRUPT: damaged (part of it may have
 * been pushed). */
HN_CHECK enum res segment_reader_body(struct segment_reader *r,
    const struct segment_frame *f, struct err *err, struct sink *out);

#endif

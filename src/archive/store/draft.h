/* A frame before it has a number: the session's thread salts, compresses and
 * checks the blocks, so that the writer only fills in the header and writes.
 *
 *   draft_init → draft_add_small* → draft_body_begin … draft_body_end
 *   (session's thread) → draft_refer? → draft_place (writer) → draft_done */
#ifndef ARCHIVE_DRAFT_H
#define ARCHIVE_DRAFT_H

#include "archive/format/compress.h"
#include "archive/format/leaf.h"
#include "archive/format/segment.h"
#include "archive/store/bufpool.h"
#include "base/buf.h"

/* Three small blocks, the body block and what zstd wants as room. */
#define DRAFT_MAX_BYTES ((size_t)18 << 20)

struct dictionary;

struct draft {
	struct frame_header header;
	/* what its blocks are packed with; NULL: nothing. Not its own */
	const struct dictionary *dictionary;
	uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES];
	struct frame_body body;
	struct buf bytes;         /* header's place, then the blocks */
	struct bufpool *pool;     /* where they come from; may be NULL */
	/* drawn together: the generator has a lock and a price for each call */
	uint8_t salts[FRAME_BLOCKS][FRAME_SALT_BYTES];
	unsigned salts_left;
};

void draft_init(struct draft *d, enum frame_type type, int64_t time_us);
/* The same, with memory from a pool. */
void draft_init_pooled(struct draft *d, enum frame_type type, int64_t time_us,
    struct bufpool *pool);
void draft_done(struct draft *d);

/* META, EVIDENCE or EDITS, in this order; nothing for an empty text.
 * RES_LIMIT beyond SEGMENT_MAX_RECORD plain bytes. */
HN_CHECK enum res draft_add_small(
    struct draft *d, struct packer *p, enum frame_block b, struct str plain);

/* The BODY block in the frame: salt and hash are written, the caller adds the
 * zstd frame to d->bytes, then ends it. */
HN_CHECK enum res draft_body_begin(
    struct draft *d, uint64_t plain, const uint8_t sha256[32]);
HN_CHECK enum res draft_body_end(struct draft *d);
/* Instead: the zstd frame stands in bodies/<file_name>; drops what was added
 * since draft_body_begin. */
HN_CHECK enum res draft_body_in_file(struct draft *d, uint64_t file_bytes,
    uint32_t file_crc, const uint8_t file_name[16]);
/* Make it a delivery of a message frame that holds the same bytes. */
HN_CHECK enum res draft_refer(
    struct draft *d, uint64_t frame, uint64_t offset);

/* Give it its place: number, offset known durable, leaf, header bytes. */
HN_CHECK enum res draft_place(struct draft *d, const struct shard_header *shard,
    uint64_t number, uint64_t durable_upto);

#endif

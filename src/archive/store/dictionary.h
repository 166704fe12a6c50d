/* A compression dictionary in use: made once, shared by the threads that
 * compress with it, and known by its bytes. A family has at most one at a
 * time; each shard that uses it holds a copy in a frame of its own, before
 * the first frame that needs it.
 *
 * It has two parts, each a dictionary to zstd: records (META, EVIDENCE,
 * EDITS) and messages are different enough that one for both makes a message
 * 2 % larger and takes longer. */
#ifndef ARCHIVE_DICTIONARY_H
#define ARCHIVE_DICTIONARY_H

#include <stdatomic.h>

#include "archive/format/compress.h"
#include "archive/store/draft.h"
#include "archive/store/segment_reader.h"

/* Plain bytes of bodies that are packed with it. */
#define DICTIONARY_MAX_BODY ((uint64_t)16 << 10)

/* META tags of a dictionary's frame. */
enum dictionary_tag {
	DICTIONARY_RECORDS = 1, /* the part for records */
	DICTIONARY_SAMPLES = 2, /* u32: messages it was made from */
};

/* What a frame holds. One of a former version has only `body`, which then
 * serves records as well. */
struct dictionary_parts {
	struct buf body, records;
	uint32_t samples; /* 0: not said */
};
void dictionary_parts_init(struct dictionary_parts *p);
void dictionary_parts_done(struct dictionary_parts *p);
/* The parts in this frame of a segment, added to `out`. */
HN_CHECK enum res dictionary_parts_read(struct segment_reader *r,
    const struct segment_frame *f, struct err *err,
    struct dictionary_parts *out);
/* Is this the id of one of them? */
bool dictionary_parts_have(const struct dictionary_parts *p, uint32_t id);

struct dictionary {
	atomic_int references;
	/* Of the body part. The parts come from the same messages, and the
	 * ids in them are not used again, so it stands for both. */
	uint8_t sha256[32];
	struct dictionary_parts parts;
	struct pack_dictionary *pack_body, *pack_records;
};

/* Takes what is in `parts`, which is empty then. RES_INVALID: that is no
 * dictionary. */
HN_CHECK enum res dictionary_new(
    struct dictionary_parts *parts, struct dictionary **out);
/* NULL is fine for all three. */
struct dictionary *dictionary_ref(struct dictionary *d);
void dictionary_unref(struct dictionary **d);
/* What block `b` is packed with. */
const struct pack_dictionary *dictionary_pack(
    const struct dictionary *d, enum frame_block b);

/* The frame that holds it. */
HN_CHECK enum res dictionary_draft(
    const struct dictionary *d, int64_t now_us, struct draft *out);
/* The one in this frame of a segment. */
HN_CHECK enum res dictionary_read(struct segment_reader *r,
    const struct segment_frame *f, struct err *err, struct dictionary **out);

/* A copy of the dictionary that has a part with this id (see compress.h) in
 * one of the shards that stand beside the shard directory `dir`.
 * RES_NOTFOUND. */
HN_CHECK enum res dictionary_find_copy(const char *dir,
    const struct archive_io *io, uint32_t id, struct dictionary_parts *out);

#endif

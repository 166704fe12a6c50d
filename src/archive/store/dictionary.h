/* A compression dictionary in use: made once, shared by the threads that
 * compress with it, and known by its bytes. A family has at most one at a
 * time; each shard that uses it holds a copy in a frame of its own, before
 * the first frame that needs it. */
#ifndef ARCHIVE_DICTIONARY_H
#define ARCHIVE_DICTIONARY_H

#include <stdatomic.h>

#include "archive/format/compress.h"
#include "archive/store/draft.h"
#include "archive/store/segment_reader.h"

/* Plain bytes of bodies that are packed with it. */
#define DICTIONARY_MAX_BODY ((uint64_t)16 << 10)

struct dictionary {
	atomic_int references;
	uint8_t sha256[32];
	struct buf content;
	struct pack_dictionary *pack;
};

/* A copy of `content`. RES_INVALID: it is no dictionary. */
HN_CHECK enum res dictionary_new(struct str content, struct dictionary **out);
/* NULL is fine for both. */
struct dictionary *dictionary_ref(struct dictionary *d);
void dictionary_unref(struct dictionary **d);

/* The frame that holds it. */
HN_CHECK enum res dictionary_draft(
    const struct dictionary *d, int64_t now_us, struct draft *out);
/* The one in this frame of a segment. */
HN_CHECK enum res dictionary_read(struct segment_reader *r,
    const struct segment_frame *f, struct err *err, struct dictionary **out);

/* A copy of dictionary `id` (see compress.h) in one of the shards that stand
 * beside the shard directory `dir`. RES_NOTFOUND. */
HN_CHECK enum res dictionary_find_copy(
    const char *dir, const struct archive_io *io, uint32_t id, struct buf *out);

#endif

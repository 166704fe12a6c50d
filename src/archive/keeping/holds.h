/* Holds: stored queries. What matches one is neither erased nor lost when its
 * shard expires. They stand in the store's file `holds` and are evaluated when
 * something is about to go, so mail that arrived after the hold is caught.
 * Relative dates in a query mean the moment when the hold was made. */
#ifndef ARCHIVE_HOLDS_H
#define ARCHIVE_HOLDS_H

#include "archive/search/search.h"
#include "archive/store/io.h"
#include "archive/store/store_dir.h"

#define HOLDS_FILE      "holds"
#define HOLDS_MAX       1000
#define HOLDS_MAX_NAME  63 /* of a-z, A-Z, 0-9, - _ . */
#define HOLDS_MAX_BYTES ((size_t)8 << 20)

struct hold {
	struct str name, query, login;
	uint32_t uid;
	int64_t created_us;
};
struct holds {
	size_t count;
	struct hold *items;
};

bool hold_name_valid(struct str name);
/* In `a`. A file that cannot be read is an error: nothing may go then. */
HN_CHECK enum res holds_read(const char *store_path, struct arena *a,
    struct err *err, struct holds *out);
/* The text of the file, `path` for messages; views into it. */
HN_CHECK enum res holds_parse(struct str text, const char *path,
    struct arena *a, struct err *err, struct holds *out);
HN_CHECK enum res holds_write(const struct archive_io *io,
    const char *store_path, const struct holds *h);

/* What of one shard is held. */
#define HELD_NOT   0u
#define HELD_DOUBT 0xffffu /* damaged, not or partly indexed: taken as held */
struct held_frames {
	uint64_t frames;   /* of the shard */
	/* HELD_NOT, HELD_DOUBT, or 1 + index of the first hold that has it */
	uint16_t *by;
	uint64_t count;    /* of them held */
};
/* The caller holds the shard's lock. Nothing is held without holds. Free with
 * held_frames_done. */
HN_CHECK enum res holds_evaluate(const struct holds *h,
    struct archive_reader *reader, const struct shard_entry *e,
    struct err *err, struct held_frames *out);
void held_frames_done(struct held_frames *h);

#endif

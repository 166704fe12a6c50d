/* Where a search goes on: "1_PERIOD_SHARD_FRAME_HASH", behind the last hit of
 * the page before, whatever has come or gone since. */
#ifndef ARCHIVE_CURSOR_H
#define ARCHIVE_CURSOR_H

#include "archive/search/query.h"
#include "archive/store/store_dir.h"

struct cursor {
	bool given;
	struct str period; /* in the text that was parsed */
	uint64_t shard, frame;
};

/* Empty: from the newest on. RES_INVALID with a line: no cursor, or one of
 * another query. */
HN_CHECK enum res cursor_parse(struct str text, const struct query *q,
    struct err *err, struct cursor *out);
/* Behind frame `frame` of this shard, in `a`; no ptr: no memory. */
struct str cursor_make(struct arena *a, const struct query *q,
    const struct shard_entry *e, uint64_t frame);
/* In this shard only frames below this one are left; 0: none. */
uint64_t cursor_below(const struct cursor *c, const struct shard_entry *e);

#endif

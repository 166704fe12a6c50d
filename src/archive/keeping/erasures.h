/* What was erased in one shard: its file `erasures`, rewritten as a whole at
 * each step of an erasure (erase.h), so that recovery can tell a block that
 * was erased from one that is damaged without reading the audit family. The
 * intents there are the authority: each frame names its own. */
#ifndef ARCHIVE_ERASURES_H
#define ARCHIVE_ERASURES_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/store/io.h"
#include "base/arena.h"
#include "base/err.h"

#define ERASURES_FILE "erasures"
#define ERASURES_MAX_BYTES ((size_t)64 << 20)
#define ERASURES_ARENA (ERASURES_MAX_BYTES * 4) /* to read it */
#define ERASURES_TOKEN 16

struct erased_frame {
	uint64_t number;
	uint64_t intent; /* id of its event; 0: under way */
};
struct erasures {
	size_t count;
	struct erased_frame *frames;
	/* The one under way. Its intent, if it got that far, stands in the
	 * audit family at or behind this place. */
	bool pending;
	uint8_t token[ERASURES_TOKEN];
	uint32_t audit_shard;
	uint64_t audit_frame;
	size_t file_count;
	struct str *files; /* of bodies that go */
};

/* In `a`; without a file there are none. RES_CORRUPT with a line. */
HN_CHECK enum res erasures_read(const char *shard_dir, struct arena *a,
    struct err *err, struct erasures *out);
/* The text of the file, `path` for messages; views into it. */
HN_CHECK enum res erasures_parse(struct str text, const char *path,
    struct arena *a, struct err *err, struct erasures *out);
/* Durable, or as it was. */
HN_CHECK enum res erasures_write(const struct archive_io *io,
    const char *shard_dir, const struct erasures *e);
bool erasures_have(const struct erasures *e, uint64_t number);

#endif

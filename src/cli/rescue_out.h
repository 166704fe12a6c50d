/* Where rescued messages go: files of their own with a MANIFEST, or a new
 * store with envelope, results and evidence as they were kept. */
#ifndef CLI_RESCUE_OUT_H
#define CLI_RESCUE_OUT_H

#include <limits.h>
#include <stdio.h>

#include "archive/keeping/rescue.h"
#include "archive/store/store.h"

struct rescue_out {
	const char *to;
	bool as_store;
	FILE *manifest;
	struct store *store;
};

struct rescued {
	struct str label;        /* of the shard, a part of file names */
	uint64_t number, holder; /* of the frame, and of the one with the body */
	const char *family;
	int64_t time_us;
	uint64_t bytes;
	struct str meta, evidence, edits;
};

/* `to` must not exist, or be an empty directory. EX_OK or a complaint. */
int rescue_out_open(struct rescue_out *o);
/* One message, whose body `r` and `f` give. RES_CORRUPT, RES_NOTFOUND: it
 * cannot be had (a line in `err`); anything else ends the rescue. */
HN_CHECK enum res rescue_out_frame(struct rescue_out *o, struct arena *a,
    const struct rescued *m, struct segment_reader *r,
    const struct segment_frame *f, struct err *err);
/* The same for a body file nothing refers to any more. */
HN_CHECK enum res rescue_out_file(struct rescue_out *o, struct arena *a,
    const struct rescued *m, const char *path, struct err *err);
/* All of it durable. */
int rescue_out_close(struct rescue_out *o, int status);

#endif

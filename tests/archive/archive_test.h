/* Helpers of the archive's tests: a scratch directory, drafts, reading back. */
#ifndef ARCHIVE_TEST_H
#define ARCHIVE_TEST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/store/draft.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard.h"
#include "hn_test.h"
#include "keys/digest.h"

#define TEST_TIME ((int64_t)1780000000 * 1000000) /* 2026-05-28 */

static inline int
scratch_remove_one(
    const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
scratch_remove(const char *path)
{
	nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A new directory below $TMPDIR. */
static inline void
scratch_make(char out[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR");
	snprintf(out, PATH_MAX, "%s/hanaper-test-XXXXXX",
	    tmp != NULL && strlen(tmp) < 1000 ? tmp : "/tmp");
	assert_non_null(mkdtemp(out));
}

/* A message draft with the given body and META text (any bytes). */
static inline void
test_draft(struct draft *d, struct str meta, struct str body)
{
	uint8_t hash[32];
	struct packer *p = packer_new();
	assert_non_null(p);
	draft_init(d, FRAME_MESSAGE, TEST_TIME);
	assert_ok(draft_add_small(d, p, BLOCK_META, meta));
	assert_ok(digest_sha256(body.ptr, body.len, hash));
	assert_ok(draft_body_begin(d, body.len, hash));
	assert_ok(packer_whole(p, body, &d->bytes));
	assert_ok(draft_body_end(d));
	packer_free(&p);
}

/* Append one message as a group of its own. */
static inline enum res
test_append(struct shard *s, struct str meta, struct str body)
{
	struct draft d, *one = &d;
	test_draft(&d, meta, body);
	assert_ok(shard_place(s, NULL, 0, s->durable, &d));
	enum res r = shard_append(s, &one, 1);
	draft_done(&d);
	return r;
}

/* The whole file. */
static inline struct str
test_read_file(struct arena *a, const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size_t len = (size_t)ftell(f);
	rewind(f);
	char *p = arena_alloc(a, len);
	assert_non_null(p);
	assert_int_equal(fread(p, 1, len, f), len);
	fclose(f);
	return str_of(p, len);
}

static inline void
test_write_file(const char *path, struct str bytes)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
	assert_int_equal(fclose(f), 0);
}

/* The plain body of a frame. */
static inline enum res
test_body(struct segment_reader *r, const struct segment_frame *f,
    struct buf *out)
{
	struct arena *a = arena_new(0);
	buf_init(out, (size_t)64 << 20);
	struct sink *s = sink_buf(a, out);
	enum res res = segment_reader_body(r, f, NULL, s);
	arena_free(&a);
	return res;
}

#endif

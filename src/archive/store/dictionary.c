#include "archive/store/dictionary.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "keys/digest.h"

/* Frames of a shard looked at for one: it stands in front, but for the first
 * shard of a family. */
#define MAX_FIND_FRAMES 20000

enum res
dictionary_new(struct str content, struct dictionary **out)
{
	struct dictionary *d = calloc(1, sizeof *d);
	if (d == NULL)
		return RES_NOMEM;
	atomic_init(&d->references, 1);
	buf_init(&d->content, SEGMENT_MAX_DICTIONARY);
	buf_add_str(&d->content, content);
	d->pack = pack_dictionary_new(content);
	enum res r = digest_sha256(content.ptr, content.len, d->sha256);
	if (r == RES_OK)
		r = d->content.error;
	if (r == RES_OK && d->pack == NULL)
		r = RES_INVALID;
	if (r != RES_OK) {
		dictionary_unref(&d);
		return r;
	}
	*out = d;
	return RES_OK;
}

struct dictionary *
dictionary_ref(struct dictionary *d)
{
	if (d != NULL)
		atomic_fetch_add(&d->references, 1);
	return d;
}

void
dictionary_unref(struct dictionary **dictionary)
{
	struct dictionary *d = *dictionary;
	*dictionary = NULL;
	if (d == NULL || atomic_fetch_sub(&d->references, 1) != 1)
		return;
	pack_dictionary_free(&d->pack);
	buf_done(&d->content);
	free(d);
}

enum res
dictionary_draft(const struct dictionary *d, int64_t now_us, struct draft *out)
{
	struct packer *p = packer_new();
	if (p == NULL)
		return RES_NOMEM;
	draft_init(out, FRAME_DICTIONARY, now_us);
	enum res r = draft_body_begin(out, d->content.len, d->sha256);
	if (r == RES_OK)
		r = packer_whole(p, buf_str(&d->content), &out->bytes);
	if (r == RES_OK)
		r = draft_body_end(out);
	packer_free(&p);
	if (r != RES_OK)
		draft_done(out);
	return r;
}

/* The plain bytes. */
static enum res
read_content(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct buf *out)
{
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	struct sink *sink = sink_buf(a, out);
	enum res res =
	    sink != NULL ? segment_reader_body(r, f, err, sink) : RES_NOMEM;
	arena_free(&a);
	return res == RES_OK ? out->error : res;
}

enum res
dictionary_read(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct dictionary **out)
{
	struct buf content;
	if (!segment_is_dictionary(f))
		return RES_CORRUPT;
	buf_init(&content, SEGMENT_MAX_DICTIONARY);
	enum res res = read_content(r, f, err, &content);
	if (res == RES_OK)
		res = dictionary_new(buf_str(&content), out);
	buf_done(&content);
	return res;
}

static enum res
find_in_shard(
    const char *dir, const struct archive_io *io, uint32_t id, struct buf *out)
{
	struct segment_reader *r;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res found = RES_NOTFOUND;
	enum res res = segment_reader_open(dir, io, NULL, &r);
	if (res != RES_OK)
		return res == RES_NOMEM ? res : RES_NOTFOUND;
	for (size_t n = 0; n < MAX_FIND_FRAMES && found == RES_NOTFOUND; n++) {
		if (segment_reader_at(r, at, &f) != RES_OK)
			break;
		if (segment_is_dictionary(&f)) {
			buf_reset(out);
			res = read_content(r, &f, NULL, out);
			if (res == RES_NOMEM ||
			    (res == RES_OK &&
				dictionary_id(buf_str(out)) == id))
				found = res;
		}
		at = segment_frame_end(&f);
	}
	segment_reader_close(&r);
	return found;
}

enum res
dictionary_find_copy(
    const char *dir, const struct archive_io *io, uint32_t id, struct buf *out)
{
	char beside[PATH_MAX], path[PATH_MAX];
	enum res r = io_path(beside, "%s/..", dir);
	if (r != RES_OK)
		return r;
	DIR *d = opendir(beside);
	if (d == NULL)
		return RES_NOTFOUND;
	const struct dirent *e;
	r = RES_NOTFOUND;
	while (r == RES_NOTFOUND && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.' &&
		    io_path(path, "%s/%s", beside, e->d_name) == RES_OK)
			r = find_in_shard(path, io, id, out);
	closedir(d);
	return r;
}

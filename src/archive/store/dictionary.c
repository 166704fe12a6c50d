#include "archive/store/dictionary.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "archive/format/record.h"
#include "base/codec.h"
#include "keys/digest.h"

/* Frames of a shard looked at for one: it stands in front, but for the first
 * shard of a family. */
#define MAX_FIND_FRAMES 20000

void
dictionary_parts_init(struct dictionary_parts *p)
{
	*p = (struct dictionary_parts){ .samples = 0 };
	buf_init(&p->body, SEGMENT_MAX_DICTIONARY);
	buf_init(&p->records, SEGMENT_MAX_DICTIONARY);
}

void
dictionary_parts_done(struct dictionary_parts *p)
{
	buf_done(&p->body);
	buf_done(&p->records);
}

bool
dictionary_parts_have(const struct dictionary_parts *p, uint32_t id)
{
	return id != 0 &&
	    (dictionary_id(buf_str(&p->body)) == id ||
		dictionary_id(buf_str(&p->records)) == id);
}

static enum res
read_body(struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, struct err *err, struct buf *out)
{
	struct sink *sink = sink_buf(a, out);
	enum res res =
	    sink != NULL ? segment_reader_body(r, f, err, sink) : RES_NOMEM;
	return res == RES_OK ? out->error : res;
}

static enum res
read_meta(struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, struct err *err,
    struct dictionary_parts *out)
{
	struct segment_content c;
	enum res res = segment_reader_load(r, a, f, err, &c);
	if (res != RES_OK)
		return res;
	buf_add_str(&out->records, record_find(c.meta, DICTIONARY_RECORDS));
	struct str samples = record_find(c.meta, DICTIONARY_SAMPLES);
	if (samples.len == sizeof out->samples)
		out->samples = get_le32((const uint8_t *)samples.ptr);
	return out->records.error;
}

enum res
dictionary_parts_read(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct dictionary_parts *out)
{
	if (!segment_is_dictionary(f))
		return RES_CORRUPT;
	struct arena *a = arena_new(SEGMENT_MAX_RECORD);
	if (a == NULL)
		return RES_NOMEM;
	enum res res = read_body(r, a, f, err, &out->body);
	if (res == RES_OK)
		res = read_meta(r, a, f, err, out);
	arena_free(&a);
	return res;
}

/* --- in use --- */

enum res
dictionary_new(struct dictionary_parts *parts, struct dictionary **out)
{
	struct dictionary *d = calloc(1, sizeof *d);
	if (d == NULL)
		return RES_NOMEM;
	atomic_init(&d->references, 1);
	d->parts = *parts;
	dictionary_parts_init(parts);
	struct str body = buf_str(&d->parts.body);
	struct str records = buf_str(&d->parts.records);
	enum res r = digest_sha256(body.ptr, body.len, d->sha256);
	d->pack_body = pack_dictionary_new(body);
	if (records.len > 0)
		d->pack_records = pack_dictionary_new(records);
	if (r == RES_OK &&
	    (d->pack_body == NULL ||
		(records.len > 0 && d->pack_records == NULL)))
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
	pack_dictionary_free(&d->pack_body);
	pack_dictionary_free(&d->pack_records);
	dictionary_parts_done(&d->parts);
	free(d);
}

const struct pack_dictionary *
dictionary_pack(const struct dictionary *d, enum frame_block b)
{
	if (d == NULL)
		return NULL;
	return b != BLOCK_BODY && d->pack_records != NULL ? d->pack_records :
							    d->pack_body;
}

static enum res
draft_meta(const struct dictionary *d, struct packer *p, struct draft *out)
{
	struct record rec;
	if (d->parts.samples == 0)
		return RES_OK; /* of a former version */
	record_init(&rec, SEGMENT_MAX_RECORD);
	if (d->parts.records.len > 0)
		record_add(
		    &rec, DICTIONARY_RECORDS, buf_str(&d->parts.records));
	record_add_u32(&rec, DICTIONARY_SAMPLES, d->parts.samples);
	enum res r = rec.buf.error;
	if (r == RES_OK)
		r = draft_add_small(out, p, BLOCK_META, buf_str(&rec.buf));
	record_done(&rec);
	return r;
}

enum res
dictionary_draft(const struct dictionary *d, int64_t now_us, struct draft *out)
{
	struct packer *p = packer_new();
	if (p == NULL)
		return RES_NOMEM;
	draft_init(out, FRAME_DICTIONARY, now_us);
	enum res r = draft_meta(d, p, out);
	if (r == RES_OK)
		r = draft_body_begin(out, d->parts.body.len, d->sha256);
	if (r == RES_OK)
		r = packer_whole(p, buf_str(&d->parts.body), &out->bytes);
	if (r == RES_OK)
		r = draft_body_end(out);
	packer_free(&p);
	if (r != RES_OK)
		draft_done(out);
	return r;
}

enum res
dictionary_read(struct segment_reader *r, const struct segment_frame *f,
    struct err *err, struct dictionary **out)
{
	struct dictionary_parts parts;
	dictionary_parts_init(&parts);
	enum res res = dictionary_parts_read(r, f, err, &parts);
	if (res == RES_OK)
		res = dictionary_new(&parts, out);
	dictionary_parts_done(&parts);
	return res;
}

/* --- copies --- */

static enum res
find_in_shard(const char *dir, const struct archive_io *io, uint32_t id,
    struct dictionary_parts *out)
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
			buf_reset(&out->body);
			buf_reset(&out->records);
			res = dictionary_parts_read(r, &f, NULL, out);
			if (res == RES_NOMEM ||
			    (res == RES_OK && dictionary_parts_have(out, id)))
				found = res;
		}
		at = segment_frame_end(&f);
	}
	segment_reader_close(&r);
	return found;
}

enum res
dictionary_find_copy(const char *dir, const struct archive_io *io, uint32_t id,
    struct dictionary_parts *out)
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

/* The dictionaries that frames of a segment were packed with. */
#include "archive/store/dictionary.h"
#include "archive/store/segment_inside.h"

/* The parts in frame `number`. */
static enum res
read_dictionary(struct segment_reader *r, uint64_t number,
    struct dictionary_parts *out)
{
	struct segment_frame f;
	enum res res = segment_reader_find(r, number, &f);
	return res == RES_OK ? dictionary_parts_read(r, &f, NULL, out) : res;
}

/* What the frame's blocks say they were packed with. */
static uint32_t
wanted_dictionary(struct segment_reader *r, const struct segment_frame *f)
{
	for (int b = 0; b < FRAME_BLOCKS; b++) {
		struct str s;
		size_t head = b == BLOCK_BODY ? FRAME_BODY_HEAD :
						FRAME_SALT_BYTES;
		if (f->header.stored[b] < head ||
		    window_view(&r->window, f->offset +
			frame_block_offset(&f->header, (enum frame_block)b),
			(size_t)f->header.stored[b], &s) != RES_OK)
			continue;
		uint32_t id = packed_dictionary_id(str_skip(s, head));
		if (id != 0)
			return id;
	}
	return 0;
}

/* Get dictionary `number` from its frame or, when that is damaged, from the
 * copy in a shard beside this one. */
static enum res
fetch_dictionary(struct segment_reader *r, const struct segment_frame *f,
    uint64_t number, struct segment_dictionary *out)
{
	struct dictionary_parts parts;
	dictionary_parts_init(&parts);
	enum res res = read_dictionary(r, number, &parts);
	if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		uint32_t id = wanted_dictionary(r, f);
		buf_reset(&parts.body);
		buf_reset(&parts.records);
		res = id != 0 ?
		    dictionary_find_copy(r->dir, r->io, id, &parts) :
		    RES_NOTFOUND;
	}
	if (res == RES_OK) {
		bool two = parts.records.len > 0;
		out->body = unpack_dictionary_new(buf_str(&parts.body));
		if (two)
			out->records =
			    unpack_dictionary_new(buf_str(&parts.records));
		if (out->body == NULL || (two && out->records == NULL))
			res = RES_NOMEM;
	}
	dictionary_parts_done(&parts);
	return res == RES_NOTFOUND ? RES_CORRUPT : res;
}

/* What serves block `b`. */
static const struct unpack_dictionary *
part_for(const struct segment_dictionary *d, enum frame_block b)
{
	return b != BLOCK_BODY && d->records != NULL ? d->records : d->body;
}

/* A line for a frame whose dictionary cannot be had. */
static enum res
missing(const struct segment_reader *r, const struct segment_frame *f,
    struct err *err)
{
	err_set(err, "%s/segment: frame %llu needs the dictionary in frame "
	    "%llu, which is missing or damaged", r->dir,
	    (unsigned long long)f->header.number,
	    (unsigned long long)f->header.dictionary - 1);
	return RES_CORRUPT;
}

enum res
segment_dictionary(struct segment_reader *r, const struct segment_frame *f,
    enum frame_block b, struct err *err, const struct unpack_dictionary **out)
{
	struct segment_dictionary d = { .number = f->header.dictionary };
	*out = NULL;
	if (d.number == 0)
		return RES_OK;
	for (size_t i = 0; i < r->dictionary_count; i++)
		if (r->dictionaries[i].number == d.number) {
			*out = part_for(&r->dictionaries[i], b);
			return *out != NULL ? RES_OK : missing(r, f, err);
		}
	if (r->dictionary_count == SEGMENT_MAX_DICTIONARIES) {
		err_set(err, "%s/segment: frame %llu needs one dictionary more "
		    "than there may be", r->dir,
		    (unsigned long long)f->header.number);
		return RES_CORRUPT;
	}
	enum res res = fetch_dictionary(r, f, d.number - 1, &d);
	if (res != RES_OK && res != RES_CORRUPT) {
		segment_dictionary_done(&d);
		return res;
	}
	r->dictionaries[r->dictionary_count++] = d;
	*out = part_for(&d, b);
	return *out != NULL ? RES_OK : missing(r, f, err);
}

void
segment_dictionary_done(struct segment_dictionary *d)
{
	unpack_dictionary_free(&d->body);
	unpack_dictionary_free(&d->records);
}

/* The dictionaries that frames of a segment were packed with. */
#include "archive/store/dictionary.h"
#include "archive/store/segment_inside.h"

/* The plain dictionary in frame `number`. */
static enum res
read_dictionary(
    struct segment_reader *r, uint64_t number, struct buf *content)
{
	struct segment_frame f;
	enum res res = segment_reader_find(r, number, &f);
	if (res == RES_OK && !segment_is_dictionary(&f))
		res = RES_CORRUPT;
	struct arena *a = arena_new(SEGMENT_LOAD_MEMORY);
	if (a == NULL)
		return RES_NOMEM;
	struct sink *sink = sink_buf(a, content);
	if (res == RES_OK)
		res = sink != NULL ? segment_reader_body(r, &f, NULL, sink) :
				     RES_NOMEM;
	arena_free(&a);
	return res == RES_OK ? content->error : res;
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
    uint64_t number, struct unpack_dictionary **out)
{
	struct buf content;
	buf_init(&content, SEGMENT_MAX_DICTIONARY);
	enum res res = read_dictionary(r, number, &content);
	if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		uint32_t id = wanted_dictionary(r, f);
		buf_reset(&content);
		res = id != 0 ?
		    dictionary_find_copy(r->dir, r->io, id, &content) :
		    RES_NOTFOUND;
	}
	if (res == RES_OK) {
		*out = unpack_dictionary_new(buf_str(&content));
		res = *out != NULL ? RES_OK : RES_NOMEM;
	}
	buf_done(&content);
	return res == RES_NOTFOUND ? RES_CORRUPT : res;
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
    struct err *err, const struct unpack_dictionary **out)
{
	uint32_t number = f->header.dictionary;
	struct unpack_dictionary *d = NULL;
	*out = NULL;
	if (number == 0)
		return RES_OK;
	for (size_t i = 0; i < r->dictionary_count; i++)
		if (r->dictionaries[i].number == number) {
			*out = r->dictionaries[i].dictionary;
			return *out != NULL ? RES_OK : missing(r, f, err);
		}
	if (r->dictionary_count == SEGMENT_MAX_DICTIONARIES) {
		err_set(err, "%s/segment: frame %llu needs one dictionary more "
		    "than there may be", r->dir,
		    (unsigned long long)f->header.number);
		return RES_CORRUPT;
	}
	enum res res = fetch_dictionary(r, f, number - 1, &d);
	if (res != RES_OK && res != RES_CORRUPT)
		return res;
	r->dictionaries[r->dictionary_count].number = number;
	r->dictionaries[r->dictionary_count++].dictionary = d;
	*out = d;
	return d != NULL ? RES_OK : missing(r, f, err);
}

/* An mbox in one piece and in small ones: the same messages come out. Read
 * without quoting, every byte is in a message, a From_ line or an empty line
 * between them; and a second reader that begins at the offset of any message
 * finds that message and those behind it. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/date.h"
#include "mail/mbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_MESSAGES 64

struct run {
	struct buf text;  /* of all messages */
	uint64_t at;      /* where the last one ended */
	size_t count;
	struct {
		uint64_t offset;
		size_t text;
	} begins[MAX_MESSAGES];
	bool open;
};

static enum res
on_begin(void *context, struct str from, uint64_t offset)
{
	struct run *r = context;
	int64_t s;
	if (r->open || (r->count > 0 && offset != r->at) ||
	    (from.ptr == NULL && r->count > 0))
		abort();
	r->open = true;
	if (r->count < MAX_MESSAGES) {
		r->begins[r->count].offset = offset;
		r->begins[r->count].text = r->text.len;
	}
	r->count++;
	if (mbox_from_sender(from).len > from.len ||
	    mbox_from_date(from, &s) == RES_OK)
		buf_add_char(&r->text, 'D');
	return RES_OK;
}

static void
on_data(void *context, const char *bytes, size_t len)
{
	struct run *r = context;
	if (!r->open || len == 0)
		abort();
	buf_add(&r->text, bytes, len);
}

static enum res
on_end(void *context, uint64_t offset)
{
	struct run *r = context;
	if (!r->open || offset < r->at)
		abort();
	r->open = false;
	r->at = offset;
	return RES_OK;
}

static void
run(struct str text, size_t piece, enum mbox_form form, uint64_t offset,
    struct run *out)
{
	static const struct mbox_ops ops = { on_begin, on_data, on_end };
	struct arena *a = arena_new(0);
	*out = (struct run){ .count = 0 };
	buf_init(&out->text, SIZE_MAX / 2);
	struct mbox *m = mbox_new(a, form, offset, &ops, out);
	while (text.len > 0) {
		struct str p = str_sub(text, 0, piece);
		sink_push(mbox_sink(m), p.ptr, p.len);
		text = str_skip(text, p.len);
	}
	if (sink_finish(mbox_sink(m)) != RES_OK || out->open)
		abort();
	arena_free(&a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run whole, pieces, later;
	if (size < 2)
		return 0;
	enum mbox_form form = (enum mbox_form)(data[0] % 3);
	struct str text = str_of(data + 2, size - 2);
	int64_t s;
	if (date_parse(text, &s) == RES_OK && (s < -100000000000 ||
	    s > 300000000000))
		abort();
	run(text, SIZE_MAX, form, 0, &whole);
	run(text, data[1] + 1u, form, 0, &pieces);
	if (whole.count != pieces.count ||
	    !str_eq(buf_str(&whole.text), buf_str(&pieces.text)))
		abort();
	if (whole.count > 0 && whole.at != text.len)
		abort();
	size_t known =
	    whole.count < MAX_MESSAGES ? whole.count : MAX_MESSAGES;
	for (size_t i = 1; i < known; i++) {
		uint64_t at = whole.begins[i].offset;
		run(str_skip(text, (size_t)at), SIZE_MAX, form, at, &later);
		if (later.count != whole.count - i ||
		    !str_eq(buf_str(&later.text),
			str_skip(buf_str(&whole.text), whole.begins[i].text)))
			abort();
		buf_done(&later.text);
	}
	buf_done(&whole.text);
	buf_done(&pieces.text);
	return 0;
}

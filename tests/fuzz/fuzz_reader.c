/* A message through the reader in one piece and in small ones: the same
 * header and body come out. Each field then goes through what reads fields:
 * lookups, unfolding, both canonicalizations, the picker. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/canon.h"
#include "mail/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_HEADER 4096

struct run {
	struct buf body;
	struct header *header;
	enum res res;
	bool malformed, was_lf;
};

static enum res
end_of_header(void *context, struct header *h)
{
	struct run *r = context;
	if (r->header != NULL)
		abort(); /* told once */
	r->header = h;
	return RES_OK;
}

static void
body(void *context, const char *bytes, size_t len)
{
	struct run *r = context;
	if (r->header == NULL)
		abort();
	buf_add(&r->body, bytes, len);
}

static struct run
run(struct arena *a, struct str text, size_t piece, enum reader_line_ends ends)
{
	static const struct reader_ops ops = { end_of_header, body };
	struct run r = { .header = NULL };
	struct header *h = header_new(a, MAX_HEADER);
	struct reader *reader = reader_new(a, h, ends, &ops, &r);
	buf_init(&r.body, SIZE_MAX / 2);
	while (text.len > 0) {
		struct str p = str_sub(text, 0, piece);
		sink_push(reader_sink(reader), p.ptr, p.len);
		text = str_skip(text, p.len);
	}
	r.res = sink_finish(reader_sink(reader));
	r.malformed = reader_malformed(reader);
	r.was_lf = reader_was_lf(reader);
	return r;
}

static void
same(const struct run *x, const struct run *y)
{
	if (x->res != y->res || x->malformed != y->malformed ||
	    x->was_lf != y->was_lf ||
	    (x->header == NULL) != (y->header == NULL))
		abort();
	if (!str_eq(buf_str(&x->body), buf_str(&y->body)))
		abort();
	for (size_t i = 0; x->header != NULL && i < header_count(x->header);
	     i++) {
		const struct field *f = header_at(x->header, i);
		const struct field *g = header_at(y->header, i);
		if (g == NULL || !str_eq(f->raw_name, g->raw_name) ||
		    !str_eq(f->value, g->value))
			abort();
	}
}

static void
use_field(struct arena *a, const struct header *h, const struct field *f,
    struct header_pick *pick)
{
	struct buf b;
	const struct field *picked;
	buf_init(&b, SIZE_MAX / 2);
	canon_field(CANON_SIMPLE, f, sink_buf(a, &b));
	if (b.len != f->raw_name.len + f->value.len + 3)
		abort();
	buf_reset(&b);
	canon_field(CANON_RELAXED, f, sink_buf(a, &b));
	canon_signature_field(CANON_RELAXED, f, f->value.len / 3,
	    f->value.len / 2, sink_buf(a, &b));
	buf_done(&b);
	if (header_unfold(a, f->value).len > f->value.len)
		abort();
	if (!header_name_valid(f->name) || header_find(h, f->name) == NULL ||
	    header_count_name(h, f->name) < f->occurrence)
		abort();
	/* one take per field takes all, so each has its turn */
	if (header_pick_take(pick, f->name, &picked) != RES_OK ||
	    !str_case_eq(picked->name, f->name))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct arena *a = arena_new(0);
	enum reader_line_ends ends = (enum reader_line_ends)(data[0] % 3);
	struct str text = str_of(data + 2, size - 2);
	struct run whole = run(a, text, SIZE_MAX, ends);
	struct run pieces = run(a, text, data[1] + 1u, ends);
	same(&whole, &pieces);
	const struct header *h = whole.header;
	struct header_pick *pick = h != NULL ? header_pick_new(a, h) : NULL;
	for (size_t i = 0; h != NULL && i < header_count(h); i++)
		use_field(a, h, header_at(h, i), pick);
	buf_done(&whole.body);
	buf_done(&pieces.body);
	arena_free(&a);
	return 0;
}

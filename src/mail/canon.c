#include "mail/canon.h"

#include "base/str.h"

/* A value in one or two pieces (the b= value cut out) goes through one state,
 * so that blanks on both sides of the cut are one run. */
struct relax {
	struct sink *out;
	bool started; /* a byte of the value was written */
	bool blank;   /* a run of blanks waits for what follows */
};

static bool
is_fold(struct str v, size_t i)
{
	return i + 2 < v.len && v.ptr[i] == '\r' && v.ptr[i + 1] == '\n' &&
	    ascii_is_wsp(v.ptr[i + 2]);
}

static void
put_span(struct relax *r, struct str span)
{
	if (span.len == 0)
		return;
	if (r->blank && r->started)
		sink_push(r->out, " ", 1);
	r->blank = false;
	r->started = true;
	sink_push(r->out, span.ptr, span.len);
}

static void
relax_piece(struct relax *r, struct str v)
{
	size_t from = 0;
	for (size_t i = 0; i < v.len; i++) {
		bool blank = ascii_is_wsp(v.ptr[i]), fold = is_fold(v, i);
		if (!blank && !fold)
			continue;
		put_span(r, str_sub(v, from, i - from));
		r->blank = true;
		if (fold)
			i += 2;
		from = i + 1;
	}
	put_span(r, str_skip(v, from));
}

static void
relax_name(struct str name, struct sink *out)
{
	char lower[64];
	for (size_t i = 0; i < name.len;) {
		size_t n = 0;
		while (n < sizeof lower && i < name.len)
			lower[n++] = ascii_lower(name.ptr[i++]);
		sink_push(out, lower, n);
	}
	sink_push(out, ":", 1);
}

static void
canon_pieces(enum canon c, const struct field *f, struct str first,
    struct str second, struct sink *out)
{
	switch (c) {
	case CANON_SIMPLE:
		sink_push(out, f->raw_name.ptr, f->raw_name.len);
		sink_push(out, ":", 1);
		sink_push(out, first.ptr, first.len);
		sink_push(out, second.ptr, second.len);
		return;
	case CANON_RELAXED:
		relax_name(f->name, out);
		struct relax r = { out, false, false };
		relax_piece(&r, first);
		relax_piece(&r, second);
		return;
	}
}

void
canon_field(enum canon c, const struct field *f, struct sink *out)
{
	canon_pieces(c, f, f->value, STR_EMPTY, out);
	sink_push(out, "\r\n", 2);
}

void
canon_signature_field(enum canon c, const struct field *f, size_t b_from,
    size_t b_to, struct sink *out)
{
	canon_pieces(
	    c, f, str_sub(f->value, 0, b_from), str_skip(f->value, b_to), out);
}

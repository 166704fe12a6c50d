#include "mail/canon.h"

#include "base/codec.h"
#include "base/str.h"
#include "base/word.h"

/* A value in one or two pieces (the b= value cut out) goes through one state,
 * so that blanks on both sides of the cut are one run. Bytes are staged: a
 * push for each word would cost more than the words.
 *
 * `blank`: the last byte was a blank (or there was none yet). Such a blank is
 * the last of the stage as " ", unless it is one in front of the value. */
struct relax {
	struct sink *out;
	bool blank;
	size_t staged;
	char stage[512];
};

static bool
is_fold(struct str v, size_t i)
{
	return i + 2 < v.len && v.ptr[i] == '\r' && v.ptr[i + 1] == '\n' &&
	    ascii_is_wsp(v.ptr[i + 2]);
}

/* Push all but a blank that may turn out to be the last. */
static void
flush(struct relax *r)
{
	size_t kept = r->blank && r->staged > 0;
	sink_push(r->out, r->stage, r->staged - kept);
	r->stage[0] = ' ';
	r->staged = kept;
}

/* Eight bytes that stay as they are: no HTAB, no CR, no second blank.
 * `*blank` is whether the last byte is one. */
static bool
is_clean(const char *p, bool *blank)
{
	uint64_t w = get_le64((const uint8_t *)p), sp = word_equal(w, ' ');
	uint64_t second = sp & (sp << 8 | (*blank ? 0x80 : 0));
	if ((second | word_equal(w, '\t') | word_equal(w, '\r')) != 0)
		return false;
	*blank = sp >> 63;
	return true;
}

/* Words are short, so a branch at each blank would be guessed wrong: every
 * byte is stored, and overwritten by the next when it is a second blank. */
static void
relax_piece(struct relax *r, struct str v)
{
	for (size_t i = 0; i < v.len;) {
		if (sizeof r->stage - r->staged < 8)
			flush(r);
		char *to = r->stage + r->staged;
		if (v.len - i >= 8 && is_clean(v.ptr + i, &r->blank)) {
			memcpy(to, v.ptr + i, 8);
			r->staged += 8;
			i += 8;
			continue;
		}
		size_t end = v.len - i < 8 ? v.len : i + 8, n = 0;
		bool was_blank = r->blank;
		for (; i < end; i++) {
			char c = v.ptr[i];
			bool blank = ascii_is_wsp(c);
			if (c == '\r' && is_fold(v, i)) {
				blank = true;
				i += 2;
			}
			to[n] = blank ? ' ' : c;
			n += !(blank && was_blank);
			was_blank = blank;
		}
		r->staged += n;
		r->blank = was_blank;
	}
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
		struct relax r;
		r.out = out;
		r.blank = true;
		r.staged = 0;
		relax_piece(&r, first);
		relax_piece(&r, second);
		flush(&r);
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

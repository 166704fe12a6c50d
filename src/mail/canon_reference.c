#include "mail/canon.h"

/* RFC 6376 §3.4 read aloud, one byte at a time. Shares nothing with the fast
 * one but the contract: what both get wrong alike, the vectors must find. */
struct reference {
	struct sink sink;
	struct sink *next;
	bool relaxed, wrote;
	bool after_cr;      /* the last byte was a CR */
	bool blank;         /* relaxed: blanks wait for what follows them */
	uint64_t line_ends; /* complete CRLFs waiting for data */
};

static void
put(struct reference *r, char c)
{
	sink_push(r->next, &c, 1);
	r->wrote = true;
}

static void
data_byte(struct reference *r, char c)
{
	for (; r->line_ends > 0; r->line_ends--) {
		put(r, '\r');
		put(r, '\n');
	}
	if (r->blank)
		put(r, ' ');
	r->blank = false;
	put(r, c);
}

static void
one_byte(struct reference *r, char c)
{
	if (r->after_cr && c == '\n') {
		r->after_cr = false;
		r->blank = false; /* §3.4.4 (a): blanks at the line end go */
		r->line_ends++;
		return;
	}
	if (r->after_cr)
		data_byte(r, '\r');
	r->after_cr = c == '\r';
	if (r->after_cr)
		return;
	if (r->relaxed && (c == ' ' || c == '\t'))
		r->blank = true;
	else
		data_byte(r, c);
}

static void
reference_push(struct sink *s, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		one_byte((struct reference *)s, bytes[i]);
}

static enum res
reference_finish(struct sink *s)
{
	struct reference *r = (struct reference *)s;
	if (r->after_cr)
		data_byte(r, '\r');
	/* All waiting line ends shrink to one; it is there even when the body
	 * was empty or had none (§3.4.3), but not for an empty relaxed body
	 * (§3.4.4 with erratum 1384). */
	if (r->wrote || !r->relaxed) {
		put(r, '\r');
		put(r, '\n');
	}
	return sink_finish(r->next);
}

struct sink *
canon_body_reference(struct arena *a, enum canon c, struct sink *next)
{
	struct reference *r = ARENA_NEW(a, struct reference);
	if (r == NULL)
		return NULL;
	r->sink = (struct sink){ reference_push, reference_finish };
	r->next = next;
	r->relaxed = c == CANON_RELAXED;
	return &r->sink;
}

#include "cli/safe.h"

static bool
is_continuation(unsigned char c)
{
	return c >= 0x80 && c < 0xc0;
}

static void
release(struct safe *s, struct buf *out)
{
	if (s->held_cr || s->held_c2)
		buf_add_char(out, '?');
	s->held_cr = s->held_c2 = false;
	s->need = 0;
}

/* The first byte of a character. */
static void
begin(struct safe *s, unsigned char c, struct buf *out)
{
	if (c == '\r' && s->lines) {
		s->held_cr = true;
	} else if ((c == '\n' || c == '\t') && s->lines) {
		buf_add_char(out, (char)c);
	} else if (c == '\t') {
		buf_add_char(out, ' '); /* a fold of a header field */
	} else if (c < ' ' || c == 0x7f || is_continuation(c) || c < 0xc2 ||
	    c > 0xf4) {
		buf_add_char(
		    out, c >= ' ' && c < 0x7f ? (char)c : '?');
	} else {
		/* C2 begins the characters of C1, too */
		s->held_c2 = c == 0xc2;
		s->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
		if (!s->held_c2)
			buf_add_char(out, (char)c);
	}
}

void
safe_put(struct safe *s, struct str bytes, struct buf *out)
{
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.ptr[i];
		if (s->held_cr && c == '\n') {
			s->held_cr = false;
			buf_add_char(out, '\n');
		} else if (s->held_c2 && is_continuation(c)) {
			s->held_c2 = false;
			s->need = 0;
			if (c >= 0xa0) {
				buf_add_char(out, (char)0xc2);
				buf_add_char(out, (char)c);
			} else {
				buf_add_char(out, '?');
			}
		} else if (s->need > 0 && !s->held_c2 && is_continuation(c)) {
			s->need--;
			buf_add_char(out, (char)c);
		} else {
			release(s, out);
			begin(s, c, out);
		}
	}
}

void
safe_end(struct safe *s, struct buf *out)
{
	release(s, out);
}

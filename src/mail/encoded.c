#include "mail/encoded.h"

#include <stdbool.h>

#include "base/codec.h"
#include "mail/charset.h"
#include "mail/transfer.h"

#define MAX_CHARSET_NAME 64

struct word {
	struct str charset, text;
	bool base64;
};

/* "=?" charset ["*" language] "?" encoding "?" text "?=" at the start of `s`.
 * Bytes used, or 0. */
static size_t
word_parse(struct str s, struct word *w)
{
	if (!str_starts(s, STR("=?")))
		return 0;
	struct str rest = str_skip(s, 2);
	size_t n = str_chr(str_sub(rest, 0, MAX_CHARSET_NAME), '?');
	if (n == SIZE_MAX || n == 0)
		return 0;
	w->charset = str_sub(rest, 0, n);
	size_t star = str_chr(w->charset, '*');
	if (star != SIZE_MAX)
		w->charset = str_sub(w->charset, 0, star);
	rest = str_skip(rest, n + 1);
	if (rest.len < 2 || rest.ptr[1] != '?')
		return 0;
	char encoding = ascii_lower(rest.ptr[0]);
	if (encoding != 'q' && encoding != 'b')
		return 0;
	w->base64 = encoding == 'b';
	rest = str_skip(rest, 2);
	n = str_chr(rest, '?');
	if (n == SIZE_MAX || n + 1 >= rest.len || rest.ptr[n + 1] != '=')
		return 0;
	w->text = str_sub(rest, 0, n);
	return (size_t)(w->text.ptr + n + 2 - s.ptr);
}

struct decoder {
	struct charset charset;
	struct str name; /* of `charset` */
	bool open;
	struct buf *out;
};

static void
decoder_close(struct decoder *d)
{
	if (!d->open)
		return;
	charset_finish(&d->charset, d->out);
	charset_done(&d->charset);
	d->open = false;
}

static void
decoder_emit(void *context, const char *bytes, size_t len)
{
	struct decoder *d = context;
	charset_push(&d->charset, bytes, len, d->out);
}

static void
decode_q(struct decoder *d, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		bool escape = c == '=' && i + 2 < text.len;
		int high = escape ? hex_digit(text.ptr[i + 1]) : -1;
		int low = escape ? hex_digit(text.ptr[i + 2]) : -1;
		if (c == '_') {
			c = ' ';
		} else if (high >= 0 && low >= 0) {
			c = (char)(high << 4 | low);
			i += 2;
		}
		decoder_emit(d, &c, 1);
	}
}

static void
decode_word(struct decoder *d, const struct word *w)
{
	if (d->open && !str_case_eq(d->name, w->charset))
		decoder_close(d);
	if (!d->open) {
		charset_init(&d->charset, w->charset);
		d->name = w->charset;
		d->open = true;
	}
	if (w->base64) {
		struct transfer t;
		transfer_init(&t, TRANSFER_BASE64, decoder_emit, d);
		transfer_push(&t, w->text.ptr, w->text.len);
		transfer_finish(&t);
	} else {
		decode_q(d, w->text);
	}
}

static size_t
blanks(struct str s)
{
	size_t i = 0;
	while (i < s.len && (ascii_is_wsp(s.ptr[i]) || s.ptr[i] == '\r' ||
	    s.ptr[i] == '\n'))
		i++;
	return i;
}

/* Text that is no encoded word: line ends go, bytes are guessed. */
static void
plain(struct charset *guess, struct str s, struct buf *out)
{
	while (s.len > 0) {
		size_t n = 0;
		while (n < s.len && s.ptr[n] != '\r' && s.ptr[n] != '\n')
			n++;
		charset_push(guess, s.ptr, n, out);
		s = str_skip(s, n < s.len ? n + 1 : n);
	}
	charset_finish(guess, out);
}

void
encoded_decode(struct str value, struct buf *out)
{
	struct decoder d = { .out = out };
	struct charset guess;
	charset_init(&guess, STR_EMPTY);
	size_t from = 0, at = 0;
	while (at < value.len) {
		const char *p = memchr(value.ptr + at, '=', value.len - at);
		if (p == NULL)
			break;
		size_t start = (size_t)(p - value.ptr);
		struct word w;
		size_t used = word_parse(str_skip(value, start), &w);
		if (used == 0) {
			at = start + 1;
			continue;
		}
		struct str between = str_sub(value, from, start - from);
		/* blanks between two words do not count */
		if (!d.open || blanks(between) != between.len) {
			decoder_close(&d);
			plain(&guess, between, out);
		}
		decode_word(&d, &w);
		from = at = start + used;
	}
	decoder_close(&d);
	plain(&guess, str_skip(value, from), out);
}

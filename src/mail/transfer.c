#include "mail/transfer.h"

#include "base/codec.h"

/* Decoded bytes are handed on in pieces of at most this. */
#define OUT_CHUNK 1024

struct piece {
	struct transfer *t;
	size_t len;
	char bytes[OUT_CHUNK];
};

static void
piece_flush(struct piece *p)
{
	if (p->len > 0)
		p->t->emit(p->t->context, p->bytes, p->len);
	p->len = 0;
}

static void
piece_add(struct piece *p, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p->len == sizeof p->bytes)
			piece_flush(p);
		p->bytes[p->len++] = bytes[i];
	}
}

enum transfer_kind
transfer_kind(struct str name)
{
	name = str_trim(name);
	if (str_case_eq(name, STR("base64")))
		return TRANSFER_BASE64;
	if (str_case_eq(name, STR("quoted-printable")))
		return TRANSFER_QUOTED_PRINTABLE;
	return TRANSFER_IDENTITY;
}

void
transfer_init(struct transfer *t, enum transfer_kind kind,
    void (*emit)(void *context, const char *bytes, size_t len), void *context)
{
	t->kind = kind;
	t->emit = emit;
	t->context = context;
	t->bits = 0;
	t->count = 0;
	t->undecided = kind == TRANSFER_BASE64;
	t->held_len = 0;
}

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The bytes of an incomplete group; one character alone holds none. */
static void
base64_group(struct transfer *t, struct piece *p)
{
	uint32_t bits = t->bits << (6 * (4 - t->count));
	char out[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };
	piece_add(p, out, t->count > 1 ? t->count - 1 : 0);
	t->bits = 0;
	t->count = 0;
}

static void
base64_push(struct transfer *t, struct piece *p, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int v = base64_value(bytes[i]);
		if (v >= 0) {
			t->bits = t->bits << 6 | (uint32_t)v;
			t->count++;
		}
		/* padding ends a group; another one may follow */
		if (t->count == 4 || (bytes[i] == '=' && t->count > 0))
			base64_group(t, p);
	}
}

/* Enough of the first line is here to see whether it is base64. */
static void
decide(struct transfer *t, struct piece *p)
{
	struct str line = str_trim(str_of(t->held, t->held_len));
	t->undecided = false;
	if (str_chr(line, ' ') != SIZE_MAX || str_chr(line, '\t') != SIZE_MAX) {
		t->kind = TRANSFER_IDENTITY;
		piece_add(p, t->held, t->held_len);
	} else {
		base64_push(t, p, t->held, t->held_len);
	}
	t->held_len = 0;
}

/* Collects the first line that is not empty. How many bytes it took. */
static size_t
look_at_first_line(
    struct transfer *t, struct piece *p, const char *bytes, size_t len)
{
	size_t i = 0;
	while (i < len && t->undecided) {
		bool empty = str_trim(str_of(t->held, t->held_len)).len == 0;
		if ((bytes[i] == '\n' && !empty) ||
		    t->held_len == sizeof t->held)
			decide(t, p);
		else
			t->held[t->held_len++] = bytes[i++];
	}
	return i;
}

/* `held` is either blanks that may turn out to stand at a line's end, or the
 * beginning of an escape: '=' and what followed it so far. */
static bool
in_escape(const struct transfer *t)
{
	return t->held_len > 0 && t->held[0] == '=';
}

static void
release(struct transfer *t, struct piece *p)
{
	piece_add(p, t->held, t->held_len);
	t->held_len = 0;
}

static void
hold(struct transfer *t, struct piece *p, char c)
{
	if (t->held_len == TRANSFER_MAX_BLANKS)
		release(t, p);
	t->held[t->held_len++] = c;
}

static void
qp_plain(struct transfer *t, struct piece *p, char c)
{
	if (c == ' ' || c == '\t') {
		hold(t, p, c);
		return;
	}
	if (c == '\r') {
		/* blanks before CR are kept back until LF is seen */
		hold(t, p, c);
		return;
	}
	if (c == '\n') {
		bool cr = t->held_len > 0 && t->held[t->held_len - 1] == '\r';
		t->held_len = 0;
		piece_add(p, cr ? "\r\n" : "\n", cr ? 2 : 1);
		return;
	}
	release(t, p);
	if (c == '=')
		hold(t, p, c);
	else
		piece_add(p, &c, 1);
}

/* Soft line break: "=" *WSP [CR] LF; else two hex digits; else no escape. */
static void
qp_escape(struct transfer *t, struct piece *p, char c)
{
	if (c == '\n') {
		t->held_len = 0;
		return;
	}
	int first = t->held_len == 2 ? hex_digit(t->held[1]) : -1;
	if (first >= 0 && hex_digit(c) >= 0) {
		char byte = (char)(first << 4 | hex_digit(c));
		t->held_len = 0;
		piece_add(p, &byte, 1);
		return;
	}
	bool blank = c == ' ' || c == '\t' || c == '\r';
	bool fits = (t->held_len == 1 && hex_digit(c) >= 0) ||
	    (blank && first < 0);
	if (fits) {
		hold(t, p, c);
		return;
	}
	release(t, p);
	qp_plain(t, p, c);
}

void
transfer_push(struct transfer *t, const char *bytes, size_t len)
{
	if (t->kind == TRANSFER_IDENTITY) {
		if (len > 0)
			t->emit(t->context, bytes, len);
		return;
	}
	struct piece p;
	p.t = t;
	p.len = 0;
	if (t->undecided) {
		size_t n = look_at_first_line(t, &p, bytes, len);
		piece_flush(&p);
		if (n < len)
			transfer_push(t, bytes + n, len - n);
		return;
	}
	if (t->kind == TRANSFER_BASE64) {
		base64_push(t, &p, bytes, len);
	} else {
		for (size_t i = 0; i < len; i++) {
			if (in_escape(t))
				qp_escape(t, &p, bytes[i]);
			else
				qp_plain(t, &p, bytes[i]);
		}
	}
	piece_flush(&p);
}

void
transfer_finish(struct transfer *t)
{
	struct piece p;
	p.t = t;
	p.len = 0;
	if (t->undecided)
		decide(t, &p);
	if (t->kind == TRANSFER_BASE64) {
		base64_group(t, &p);
	} else if (t->kind == TRANSFER_QUOTED_PRINTABLE) {
		if (t->held_len == 1 && t->held[0] == '=')
			t->held_len = 0; /* a soft break at the very end */
		else
			release(t, &p);
	}
	piece_flush(&p);
}

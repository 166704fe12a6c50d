#include "auth/diagnose.h"

#include "base/codec.h"

#define MAX_FRONT_LINES 16 /* lines in front taken away, one after the other */

/* The hash of `text` in the signature's body canonicalization is bh=. False
 * when too much was hashed for this message already. */
static enum res
fits(struct sigcore *c, const struct sig *s, struct str text, bool *out)
{
	uint8_t got[DIGEST_LEN];
	*out = false;
	if (text.len > SIG_MAX_RETRIED - c->retried)
		return RES_OK;
	c->retried += text.len;
	struct sink *digest = digest_sink(c->arena, got);
	struct sink *canon =
	    digest != NULL ? canon_body(c->arena, s->body_canon, digest) : NULL;
	if (canon == NULL)
		return RES_NOMEM;
	sink_push(canon, text.ptr, text.len);
	enum res r = sink_finish(canon);
	*out = r == RES_OK && memcmp(got, s->body_hash, DIGEST_LEN) == 0;
	return r;
}

/* --- undoing what is done to whole bodies ---------------------------------- */
/* Each writes what the body was before into `out`. */
static void
undo_quoted_printable(struct str t, struct buf *out)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.ptr[i] != '=') {
			buf_add_char(out, t.ptr[i]);
		} else if (i + 2 < t.len && t.ptr[i + 1] == '\r' &&
		    t.ptr[i + 2] == '\n') {
			i += 2;
		} else if (i + 2 < t.len && hex_digit(t.ptr[i + 1]) >= 0 &&
		    hex_digit(t.ptr[i + 2]) >= 0) {
			buf_add_char(out,
			    (char)(hex_digit(t.ptr[i + 1]) << 4 |
				hex_digit(t.ptr[i + 2])));
			i += 2;
		} else {
			buf_add_char(out, '=');
		}
	}
}

static void
undo_base64(struct str t, struct buf *out)
{
	if (base64_decode(t, true, out) != RES_OK)
		buf_reset(out);
}

/* Write `t` with each `from` at the start of a line turned into `to`. */
static void
at_line_starts(struct str t, struct str from, struct str to, struct buf *out)
{
	bool start = true;
	for (size_t i = 0; i < t.len; i++) {
		if (start && str_starts(str_skip(t, i), from)) {
			buf_add_str(out, to);
			i += from.len - 1;
			start = false;
			continue;
		}
		buf_add_char(out, t.ptr[i]);
		start = t.ptr[i] == '\n';
	}
}

static void
undo_doubled_dots(struct str t, struct buf *out)
{
	at_line_starts(t, STR(".."), STR("."), out);
}

static void
undo_lost_dots(struct str t, struct buf *out)
{
	at_line_starts(t, STR("."), STR(".."), out);
}

static void
undo_from_escape(struct str t, struct buf *out)
{
	at_line_starts(t, STR(">From "), STR("From "), out);
}

/* Long lines broken by Sendmail ("!" CRLF SP) or Postfix (CRLF SP). */
static void
undo_broken_lines(struct str t, struct buf *out)
{
	size_t column = 0;
	for (size_t i = 0; i < t.len; i++) {
		struct str rest = str_skip(t, i);
		if (column >= 900 && str_starts(rest, STR("!\r\n "))) {
			i += 3;
			column = 0;
		} else if (column >= 900 && str_starts(rest, STR("\r\n "))) {
			i += 2;
			column = 0;
		} else {
			buf_add_char(out, t.ptr[i]);
			column = t.ptr[i] == '\n' ? 0 : column + 1;
		}
	}
}

/* Blanks that a hop put into a body hashed as it is (simple): at the ends of
 * lines, or anywhere. What a hop took away cannot be known. */
static void
undo_blanks(struct str t, bool runs, struct buf *out)
{
	for (size_t i = 0; i < t.len;) {
		size_t to = i;
		while (to < t.len && ascii_is_wsp(t.ptr[to]))
			to++;
		if (to == i)
			buf_add_char(out, t.ptr[i++]);
		else if (to < t.len && t.ptr[to] != '\r')
			buf_add_str(
			    out, runs ? STR(" ") : str_sub(t, i, to - i));
		i = to > i ? to : i;
	}
}

static void
undo_trailing_blanks(struct str t, struct buf *out)
{
	undo_blanks(t, false, out);
}

static void
undo_blank_runs(struct str t, struct buf *out)
{
	undo_blanks(t, true, out);
}

static const struct {
	void (*undo)(struct str t, struct buf *out);
	const char *cause;
} undos[] = {
	{ undo_quoted_printable, "it was encoded as quoted-printable" },
	{ undo_base64, "it was encoded as base64" },
	{ undo_broken_lines, "long lines were broken" },
	{ undo_doubled_dots, "dots at the start of lines were doubled" },
	{ undo_lost_dots, "dots at the start of lines were lost" },
	{ undo_from_escape, "lines with \"From \" were escaped" },
	{ undo_trailing_blanks, "trailing blanks were added" },
	{ undo_blank_runs, "white space was changed" },
};

static enum res
try_undos(
    struct sigcore *c, const struct sig *s, struct str text, struct buf *out)
{
	struct buf before;
	enum res r = RES_OK;
	buf_init(&before, 2 * BODYHASH_TAIL_MAX);
	for (size_t i = 0; i < sizeof undos / sizeof *undos; i++) {
		bool good = false;
		buf_reset(&before);
		undos[i].undo(text, &before);
		if (before.error == RES_OK && before.len != 0 &&
		    !str_eq(buf_str(&before), text))
			r = fits(c, s, buf_str(&before), &good);
		if (good)
			buf_add_c(out, undos[i].cause);
		if (good || r != RES_OK)
			break;
	}
	buf_done(&before);
	return r;
}

/* Lines added in front. */
static enum res
try_front(
    struct sigcore *c, const struct sig *s, struct str text, struct buf *out)
{
	size_t lines = 0, from = 0;
	while (lines++ < MAX_FRONT_LINES) {
		size_t line = str_chr(str_skip(text, from), '\n');
		bool good;
		if (line == SIZE_MAX || from + line + 1 == text.len)
			return RES_OK;
		from += line + 1;
		enum res r = fits(c, s, str_skip(text, from), &good);
		if (r != RES_OK)
			return r;
		if (good) {
			buf_addf(out, "%zu octets were added in front", from);
			return RES_OK;
		}
	}
	return RES_OK;
}

static enum res
find_cause(struct sigcore *c, const struct sig *s, struct buf *out)
{
	uint64_t have = bodyhash_canonical_length(c->hashes, s->body_index);
	uint64_t length;
	struct str text;
	if (s->has_length) {
		if (s->length > have)
			buf_addf(out,
			    "l= covers %llu octets, only %llu are left",
			    (unsigned long long)s->length,
			    (unsigned long long)have);
		return RES_OK;
	}
	enum res r =
	    bodyhash_find_cut(c->hashes, s->body_index, s->body_hash, &length);
	if (r == RES_OK) {
		buf_addf(out, "%llu octets were added at the end",
		    (unsigned long long)(have - length));
		return RES_OK;
	}
	if (r != RES_NOTFOUND)
		return r;
	if (bodyhash_text(c->hashes, s->body_index, &text) != RES_OK)
		return RES_OK;
	r = try_undos(c, s, text, out);
	if (r == RES_OK && out->len == 0)
		r = try_front(c, s, text, out);
	return r;
}

enum res
diagnose_body(struct sigcore *c, const struct sig *s, struct buf *out)
{
	if (c->body_told && c->told_index == s->body_index &&
	    memcmp(c->told_hash, s->body_hash, DIGEST_LEN) == 0) {
		buf_add_str(out, c->told_cause);
		return RES_OK;
	}
	enum res r = find_cause(c, s, out);
	if (r != RES_OK)
		return r;
	struct str cause = arena_dup(c->arena, buf_str(out));
	if (cause.ptr == NULL)
		return RES_NOMEM;
	c->body_told = true;
	c->told_index = s->body_index;
	memcpy(c->told_hash, s->body_hash, DIGEST_LEN);
	c->told_cause = cause;
	return RES_OK;
}

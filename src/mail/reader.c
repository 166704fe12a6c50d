#include "mail/reader.h"

#include "base/buf.h"

/*            bytes                         first empty line,
 *   push  ----------->  IN_HEADER  ---------------------------->  IN_BODY
 *                           |        or a line that is no field
 *                           |  limit, no memory, end_of_header's error
 *                           +------------------------------------> BROKEN
 *
 * In the header, `text` holds the field being collected and behind it the
 * line being collected, in CRLF form:
 *
 *     text   "Subject: one\r\n two\r\n" "From: a@exam"
 *                                       ^ line_from
 */
enum stage {
	IN_HEADER,
	IN_BODY,
	BROKEN
};

#define MAX_STAGED 8192

struct reader {
	struct sink sink;
	struct header *header;
	const struct reader_ops *ops;
	void *context;
	enum stage stage;
	enum res error;
	enum reader_line_ends ends;
	bool was_lf, malformed, first_line, last_was_cr;
	struct buf text;
	size_t line_from;
	size_t staged;
	char staging[MAX_STAGED];
};

static void
fail(struct reader *r, enum res res)
{
	r->stage = BROKEN;
	r->error = res;
}

/* --- body ---------------------------------------------------------------- */
static void
flush(struct reader *r)
{
	if (r->staged != 0)
		r->ops->body(r->context, r->staging, r->staged);
	r->staged = 0;
}

static void
add_staged(struct reader *r, const char *p, size_t len)
{
	if (len > MAX_STAGED - r->staged)
		flush(r);
	if (len > MAX_STAGED) {
		r->ops->body(r->context, p, len);
		return;
	}
	memcpy(r->staging + r->staged, p, len);
	r->staged += len;
}

static void
push_body(struct reader *r, const char *p, size_t len)
{
	if (r->ends != READER_LF) {
		if (len != 0)
			r->ops->body(r->context, p, len);
		return;
	}
	while (len > 0) {
		const char *lf = memchr(p, '\n', len);
		size_t n = lf != NULL ? (size_t)(lf - p) : len;
		if (n > 0) {
			add_staged(r, p, n);
			r->last_was_cr = p[n - 1] == '\r';
		}
		if (lf != NULL) {
			const char *end = r->last_was_cr ? "\n" : "\r\n";
			add_staged(r, end, r->last_was_cr ? 1 : 2);
			r->last_was_cr = false;
			n++;
		}
		p += n;
		len -= n;
	}
	flush(r);
}

/* --- header --------------------------------------------------------------- */
/* Where the colon of a field stands, or SIZE_MAX: RFC 5322 §2.2, with blanks
 * before the colon (§4.5). */
static size_t
colon_at(struct str line)
{
	size_t colon = str_chr(line, ':');
	if (colon == SIZE_MAX)
		return SIZE_MAX;
	size_t end = colon;
	while (end > 0 && ascii_is_wsp(line.ptr[end - 1]))
		end--;
	return header_name_valid(str_sub(line, 0, end)) ? colon : SIZE_MAX;
}

/* The field before the current line is complete: into the header with it. */
static enum res
take_field(struct reader *r)
{
	struct str field = str_sub(buf_str(&r->text), 0, r->line_from);
	if (field.len == 0)
		return RES_OK;
	if (str_ends(field, STR("\r\n")))
		field.len -= 2;
	size_t colon = str_chr(field, ':');
	enum res res = header_add_exact(
	    r->header, str_sub(field, 0, colon), str_skip(field, colon + 1));
	memmove(r->text.ptr, r->text.ptr + r->line_from,
	    r->text.len - r->line_from);
	r->text.len -= r->line_from;
	r->line_from = 0;
	return res;
}

/* `first` is what the body begins with: nothing, or the line that is none of
 * the header. */
static void
end_header(struct reader *r, struct str first)
{
	enum res res = r->ops->end_of_header(r->context, r->header);
	if (res != RES_OK) {
		fail(r, res);
		return;
	}
	r->stage = IN_BODY;
	if (first.len != 0)
		r->ops->body(r->context, first.ptr, first.len);
}

static bool
is_mbox_line(const struct reader *r, struct str line)
{
	return r->first_line && str_starts(line, STR("From ")) &&
	    colon_at(line) == SIZE_MAX;
}

/* A line is complete, with its CRLF or by the end of the message. */
static void
end_line(struct reader *r)
{
	struct str line = str_skip(buf_str(&r->text), r->line_from);
	if (line.len > 0 && ascii_is_wsp(line.ptr[0]) && r->line_from > 0) {
		r->line_from = r->text.len;
		return;
	}
	bool mbox = is_mbox_line(r, line);
	r->first_line = false;
	enum res res = take_field(r);
	line = buf_str(&r->text); /* has moved to the front */
	if (res != RES_OK) {
		fail(r, res);
	} else if (mbox) {
		r->text.len = 0;
	} else if (str_eq(line, STR("\r\n"))) {
		end_header(r, STR_EMPTY);
	} else if (colon_at(line) != SIZE_MAX) {
		r->line_from = r->text.len;
	} else {
		r->malformed = true;
		end_header(r, line);
	}
}

static void
collect(struct reader *r, const char *p, size_t len)
{
	/* One line more than fits is never needed: "X:" and CRLF. */
	if (len + r->text.len > header_room(r->header) + 2)
		fail(r, RES_LIMIT);
	else
		buf_add(&r->text, p, len);
	if (r->text.error != RES_OK)
		fail(r, r->text.error);
}

/* Take bytes up to a LF at most; gives how many. */
static size_t
push_header(struct reader *r, const char *p, size_t len)
{
	const char *lf = memchr(p, '\n', len);
	size_t n = lf != NULL ? (size_t)(lf - p) : len;
	collect(r, p, n);
	if (lf == NULL || r->stage == BROKEN)
		return n;
	bool after_cr =
	    r->text.len > r->line_from && r->text.ptr[r->text.len - 1] == '\r';
	if (r->ends == READER_AUTO)
		r->ends = after_cr ? READER_CRLF : READER_LF;
	if (after_cr || r->ends == READER_CRLF)
		collect(r, "\n", 1);
	else
		collect(r, "\r\n", 2);
	if (r->stage != BROKEN && (after_cr || r->ends == READER_LF))
		end_line(r);
	return n + 1;
}

static void
reader_push(struct sink *s, const char *p, size_t len)
{
	struct reader *r = (struct reader *)s;
	size_t at = 0;
	while (at < len && r->stage == IN_HEADER)
		at += push_header(r, p + at, len - at);
	if (at < len && r->stage == IN_BODY)
		push_body(r, p + at, len - at);
}

static enum res
reader_finish(struct sink *s)
{
	struct reader *r = (struct reader *)s;
	if (r->stage == IN_HEADER && r->text.len > r->line_from)
		end_line(r);
	if (r->stage == IN_HEADER) {
		enum res res = take_field(r);
		if (res != RES_OK)
			fail(r, res);
		else
			end_header(r, STR_EMPTY);
	}
	return r->error;
}

static void
free_text(void *p)
{
	buf_done(p);
}

struct reader *
reader_new(struct arena *a, struct header *h, enum reader_line_ends ends,
    const struct reader_ops *ops, void *context)
{
	struct reader *r = ARENA_NEW(a, struct reader);
	if (r == NULL)
		return NULL;
	r->sink = (struct sink){ reader_push, reader_finish };
	r->header = h;
	r->ops = ops;
	r->context = context;
	r->ends = ends;
	r->first_line = true;
	buf_init(&r->text, header_room(h) + 2);
	return arena_on_free(a, free_text, &r->text) == RES_OK ? r : NULL;
}

struct sink *
reader_sink(struct reader *r)
{
	return &r->sink;
}

bool
reader_malformed(const struct reader *r)
{
	return r->malformed;
}

bool
reader_was_lf(const struct reader *r)
{
	return r->ends == READER_LF;
}

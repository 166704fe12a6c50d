#include "mail/mime.h"

#include <stdlib.h>

#include "base/buf.h"
#include "mail/param.h"
#include "mail/transfer.h"

/* How input is read:
 *
 *   HEADER ──empty line──▶ BODY (leaf) | SKIP (preamble) | HEADER (message)
 *   BODY, SKIP ──boundary of a level──▶ HEADER of its next part
 *              ──closing boundary─────▶ SKIP (epilogue)
 *   any ──limit──▶ STOP
 *
 * Invariants: (1) levels[0..depth) are the open multiparts and messages; the
 * part being read, if any, is inside the innermost. (2) In BODY with a
 * boundary open, a line end is held back until the next line is seen not to
 * be a boundary: it belongs to the boundary (RFC 2046 §5.1.1). (3) `line` is
 * filled with header lines and, in bodies, with lines beginning with "-". */
enum mode { MODE_HEADER, MODE_BODY, MODE_SKIP, MODE_STOP };

struct level {
	unsigned number;
	int parent;
	enum mime_kind kind;
	bool digest;         /* parts are messages (RFC 2046 §5.1.5) */
	size_t boundary_len; /* 0 for a message */
	char boundary[MIME_MAX_BOUNDARY];
};

enum text_slot {
	SLOT_TYPE, SLOT_CHARSET, SLOT_ENCODING, SLOT_DISPOSITION, SLOT_NAME,
	SLOT_FILENAME, SLOT_CONTENT_ID, SLOT_FORMAT, SLOT_BOUNDARY,
	SLOTS,
};

/* The fields that say what a part is; the first of each name counts. */
enum what_field { WHAT_TYPE, WHAT_ENCODING, WHAT_DISPOSITION, WHAT_ID, WHATS };
static const char *const what_names[WHATS] = { "content-type",
	"content-transfer-encoding", "content-disposition", "content-id" };
#define MAX_WHAT ((size_t)16384)

struct mime {
	struct sink sink;
	const struct mime_ops *ops;
	void *context;
	enum mode mode;
	bool partial;
	enum res error;
	unsigned parts;
	size_t header_bytes;

	unsigned depth, boundaries; /* boundaries: levels that have one */
	struct level levels[MIME_MAX_DEPTH];

	/* A message inside an encoding (RFC 2046 §5.2.1 forbids it, programs
	 * send it) is walked by a walker of its own, which counts on from us. */
	struct mime *inner;
	int base_parent;
	unsigned base_depth;

	bool open;       /* `part` has begun and not ended */
	struct mime_part part;
	struct buf what[WHATS], slot[SLOTS];
	struct transfer transfer;

	struct buf field, line;
	bool line_start, first_line, any_line, held_cr;
	unsigned held_eol; /* 0, 1 (LF), 2 (CRLF) */
};

static void
emit_data(void *context, const char *bytes, size_t len)
{
	struct mime *m = context;
	if (m->inner != NULL)
		mime_push(m->inner, bytes, len);
	else if (m->ops->data != NULL)
		m->ops->data(m->context, &m->part, bytes, len);
}

static void
content(struct mime *m, const char *bytes, size_t len)
{
	if (m->mode == MODE_BODY && len > 0)
		transfer_push(&m->transfer, bytes, len);
}

static void fill_part(struct mime *m);
static void end_field(struct mime *m);

/* A limit is reached. A part whose header was being read begins with what is
 * known of it, so that it can end. */
static void
stop(struct mime *m)
{
	if (m->mode == MODE_HEADER && m->open) {
		end_field(m);
		fill_part(m);
		if (m->ops->begin != NULL)
			m->ops->begin(m->context, &m->part);
	}
	m->partial = true;
	m->mode = MODE_STOP;
}

/* --- parts --- */

static void
begin_part(struct mime *m, bool is_message)
{
	if (m->parts == MIME_MAX_PARTS) {
		stop(m);
		return;
	}
	int parent = m->base_parent;
	if (m->depth > 0)
		parent = (int)m->levels[m->depth - 1].number;
	m->part = (struct mime_part){ .number = m->parts++,
		.parent = parent,
		.depth = m->base_depth + m->depth,
		.is_message = is_message };
	for (size_t i = 0; i < WHATS; i++)
		buf_reset(&m->what[i]);
	buf_reset(&m->field);
	buf_reset(&m->line);
	m->open = true;
	m->any_line = false;
	m->mode = MODE_HEADER;
}

static void
end_inner(struct mime *m)
{
	enum res r = mime_finish(m->inner);
	if (r != RES_OK)
		m->error = r;
	m->parts = m->inner->parts;
	m->header_bytes = m->inner->header_bytes;
	m->partial = m->partial || m->inner->partial;
	mime_free(&m->inner);
}

static void
end_part(struct mime *m)
{
	if (!m->open)
		return;
	transfer_finish(&m->transfer);
	if (m->inner != NULL)
		end_inner(m);
	m->open = false;
	if (m->ops->end != NULL)
		m->ops->end(m->context, &m->part);
}

static void
push_level(struct mime *m, bool digest)
{
	struct level *l = &m->levels[m->depth++];
	struct str boundary = STR_EMPTY;
	if (m->part.kind == MIME_MULTIPART)
		boundary = buf_str(&m->slot[SLOT_BOUNDARY]);
	l->number = m->part.number;
	l->parent = m->part.parent;
	l->kind = m->part.kind;
	l->digest = digest;
	l->boundary_len = boundary.len;
	if (boundary.len > 0) {
		memcpy(l->boundary, boundary.ptr, boundary.len);
		m->boundaries++;
	}
	m->open = false;
}

static void
pop_level(struct mime *m)
{
	const struct level *l = &m->levels[--m->depth];
	if (l->boundary_len > 0)
		m->boundaries--;
	struct mime_part p = { .number = l->number,
		.parent = l->parent,
		.depth = m->base_depth + m->depth,
		.kind = l->kind };
	if (m->ops->end != NULL)
		m->ops->end(m->context, &p);
}

/* --- what a part is --- */

static void
keep_error(struct mime *m, const struct buf *b)
{
	if (b->error == RES_NOMEM)
		m->error = RES_NOMEM;
}

static void
set_slot(struct mime *m, enum text_slot s, struct str text, bool lower)
{
	struct buf *b = &m->slot[s];
	for (size_t i = 0; i < text.len && b->len < b->max; i++)
		buf_add_char(b, lower ? ascii_lower(text.ptr[i]) : text.ptr[i]);
}

static void
find_params(struct mime *m)
{
	static const struct {
		enum text_slot slot;
		enum what_field what;
		const char *name;
	} rows[] = {
		{ SLOT_CHARSET, WHAT_TYPE, "charset" },
		{ SLOT_NAME, WHAT_TYPE, "name" },
		{ SLOT_FORMAT, WHAT_TYPE, "format" },
		{ SLOT_BOUNDARY, WHAT_TYPE, "boundary" },
		{ SLOT_FILENAME, WHAT_DISPOSITION, "filename" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		(void)param_find(buf_str(&m->what[rows[i].what]),
		    str_c(rows[i].name), &m->slot[rows[i].slot]);
}

static enum mime_kind
kind_of(struct str type)
{
	if (type.len == 0)
		return MIME_TEXT;
	if (str_starts(type, STR("multipart/")))
		return MIME_MULTIPART;
	if (str_eq(type, STR("message/rfc822")) ||
	    str_eq(type, STR("message/global")) ||
	    str_eq(type, STR("message/news")))
		return MIME_MESSAGE;
	if (str_eq(type, STR("text/html")) ||
	    str_eq(type, STR("application/xhtml+xml")))
		return MIME_HTML;
	if (str_starts(type, STR("text/")) ||
	    str_starts(type, STR("message/")))
		return MIME_TEXT;
	/* "text" alone was RFC 1049's way */
	return str_eq(type, STR("text")) ? MIME_TEXT : MIME_BINARY;
}

static void
fill_part(struct mime *m)
{
	for (size_t i = 0; i < SLOTS; i++)
		buf_reset(&m->slot[i]);
	struct str type = param_main(buf_str(&m->what[WHAT_TYPE]));
	bool digest = m->depth > 0 && m->levels[m->depth - 1].digest;
	if (type.len == 0 && digest)
		type = STR("message/rfc822");
	set_slot(m, SLOT_TYPE, type, true);
	struct str encoding = buf_str(&m->what[WHAT_ENCODING]);
	encoding = str_sub(encoding, 0, str_chr(encoding, '('));
	set_slot(m, SLOT_ENCODING, str_trim(encoding), false);
	set_slot(m, SLOT_DISPOSITION,
	    param_main(buf_str(&m->what[WHAT_DISPOSITION])), true);
	struct str id = str_trim(buf_str(&m->what[WHAT_ID]));
	if (id.len >= 2 && id.ptr[0] == '<' && id.ptr[id.len - 1] == '>')
		id = str_sub(id, 1, id.len - 2);
	set_slot(m, SLOT_CONTENT_ID, id, false);
	find_params(m);
	struct mime_part *p = &m->part;
	p->type = buf_str(&m->slot[SLOT_TYPE]);
	p->charset = buf_str(&m->slot[SLOT_CHARSET]);
	p->encoding = buf_str(&m->slot[SLOT_ENCODING]);
	p->disposition = buf_str(&m->slot[SLOT_DISPOSITION]);
	p->name = buf_str(&m->slot[SLOT_NAME]);
	p->filename = buf_str(&m->slot[SLOT_FILENAME]);
	p->content_id = buf_str(&m->slot[SLOT_CONTENT_ID]);
	p->format = buf_str(&m->slot[SLOT_FORMAT]);
	p->kind = kind_of(p->type);
	for (size_t i = 0; i < SLOTS; i++)
		keep_error(m, &m->slot[i]);
}

static void
begin_inner(struct mime *m)
{
	m->inner = mime_new(m->ops, m->context);
	if (m->inner == NULL) {
		m->error = RES_NOMEM;
		m->part.kind = MIME_BINARY;
		return;
	}
	m->inner->parts = m->parts;
	m->inner->header_bytes = m->header_bytes;
	m->inner->base_parent = (int)m->part.number;
	m->inner->base_depth = m->part.depth + 1;
	m->inner->first_line = false;
	begin_part(m->inner, true);
}

/* Whether the part's content is read as nested parts here; decides `kind`. */
static bool
is_container(struct mime *m, enum transfer_kind encoding)
{
	struct mime_part *p = &m->part;
	if (p->kind != MIME_MULTIPART && p->kind != MIME_MESSAGE)
		return false;
	size_t boundary = m->slot[SLOT_BOUNDARY].len;
	if (p->kind == MIME_MULTIPART &&
	    (boundary == 0 || boundary > MIME_MAX_BOUNDARY)) {
		p->kind = MIME_TEXT;
		return false;
	}
	if (m->base_depth + m->depth == MIME_MAX_DEPTH) {
		m->partial = true;
		p->kind = MIME_BINARY;
		return false;
	}
	/* a multipart's own encoding means nothing (RFC 2045 §6.4) */
	if (p->kind == MIME_MESSAGE && encoding != TRANSFER_IDENTITY) {
		begin_inner(m);
		return false;
	}
	return true;
}

static void
end_header(struct mime *m)
{
	fill_part(m);
	enum transfer_kind encoding = transfer_kind(m->part.encoding);
	bool container = is_container(m, encoding);
	if (m->ops->begin != NULL)
		m->ops->begin(m->context, &m->part);
	transfer_init(&m->transfer, encoding, emit_data, m);
	buf_reset(&m->line);
	m->line_start = true;
	m->held_eol = 0;
	m->held_cr = false;
	m->mode = MODE_BODY;
	if (!container)
		return;
	bool message = m->part.kind == MIME_MESSAGE;
	push_level(m, str_eq(m->part.type, STR("multipart/digest")));
	if (message)
		begin_part(m, true);
	else
		m->mode = MODE_SKIP;
}

/* --- header lines --- */

static void
end_field(struct mime *m)
{
	struct str raw = buf_str(&m->field);
	size_t colon = str_chr(raw, ':');
	if (colon == SIZE_MAX)
		return;
	struct str name = str_trim(str_sub(raw, 0, colon));
	struct str value = str_skip(raw, colon + 1);
	for (size_t i = 0; i < WHATS; i++)
		if (m->what[i].len == 0 &&
		    str_case_eq(name, str_c(what_names[i])))
			buf_add_str(&m->what[i], str_sub(value, 0, MAX_WHAT));
	if (m->ops->field != NULL)
		m->ops->field(m->context, &m->part, name, value);
	keep_error(m, &m->field);
	buf_reset(&m->field);
}

/* 1*(33..126 but ':') *WSP ":" (RFC 5322 §4.5 allows the blanks). */
static bool
is_field_line(struct str line)
{
	size_t i = 0;
	while (i < line.len && line.ptr[i] > 32 && line.ptr[i] < 127 &&
	    line.ptr[i] != ':')
		i++;
	if (i == 0)
		return false;
	while (i < line.len && ascii_is_wsp(line.ptr[i]))
		i++;
	return i < line.len && line.ptr[i] == ':';
}

/* --- boundaries --- */

/* The innermost level whose boundary `line` begins with, or -1. RFC 2046
 * §5.1.1: what follows it does not matter, but "--" closes; §5.1.2: outer
 * boundaries count at any depth. */
static int
find_boundary(const struct mime *m, struct str line, bool *out_closing)
{
	if (m->boundaries == 0 || !str_starts(line, STR("--")))
		return -1;
	line = str_skip(line, 2);
	for (int k = (int)m->depth - 1; k >= 0; k--) {
		const struct level *l = &m->levels[k];
		struct str b = str_of(l->boundary, l->boundary_len);
		if (b.len == 0 || !str_starts(line, b))
			continue;
		*out_closing = str_starts(str_skip(line, b.len), STR("--"));
		return k;
	}
	return -1;
}

static void
at_boundary(struct mime *m, int k, bool closing)
{
	end_part(m);
	while ((int)m->depth - 1 > k)
		pop_level(m);
	m->held_eol = 0;
	m->line_start = true;
	buf_reset(&m->line);
	if (closing) {
		pop_level(m);
		m->mode = MODE_SKIP;
	} else {
		begin_part(m, false);
	}
}

static void body_line(struct mime *m, unsigned eol);

/* m->line is one header line without its end (`eol` bytes long). */
static void
header_line(struct mime *m, unsigned eol)
{
	struct str line = buf_str(&m->line);
	bool first = m->first_line, closing;
	m->first_line = false;
	m->any_line = true;
	bool folded = line.len > 0 && ascii_is_wsp(line.ptr[0]);
	int k = find_boundary(m, line, &closing);
	if (line.len == 0 || (folded && m->field.len == 0)) {
		end_field(m);
		end_header(m);
		return;
	}
	if (folded) {
		buf_add(&m->field, "\r\n", 2);
		buf_add_str(&m->field, line);
	} else if (k < 0 && is_field_line(line)) {
		end_field(m);
		buf_add_str(&m->field, line);
	} else if (first && (str_starts(line, STR("From ")) ||
	    str_starts(line, STR(">From ")))) {
		/* an mbox separator: not the message's */
	} else {
		end_field(m);
		/* the header is over without an empty line */
		struct buf keep = m->line;
		buf_init(&m->line, keep.max);
		end_header(m);
		if (m->mode == MODE_BODY || m->mode == MODE_SKIP) {
			buf_done(&m->line);
			m->line = keep;
			body_line(m, eol);
			return;
		}
		/* a message begins here: the line is its first */
		if (m->mode == MODE_HEADER) {
			buf_done(&m->line);
			m->line = keep;
			header_line(m, eol);
			return;
		}
		buf_done(&keep);
	}
	buf_reset(&m->line);
}

static void
flush_eol(struct mime *m)
{
	if (m->held_eol > 0)
		content(m, m->held_eol == 2 ? "\r\n" : "\n", m->held_eol);
	m->held_eol = 0;
}

/* m->line is a whole line of a body that might be a boundary. */
static void
body_line(struct mime *m, unsigned eol)
{
	bool closing;
	int k = find_boundary(m, buf_str(&m->line), &closing);
	if (k >= 0) {
		at_boundary(m, k, closing);
		return;
	}
	flush_eol(m);
	content(m, m->line.ptr, m->line.len);
	buf_reset(&m->line);
	m->held_eol = eol;
	m->line_start = true;
}

/* Cut the line end off m->line, which ends in LF. Its length. */
static unsigned
cut_eol(struct mime *m)
{
	unsigned eol = 1;
	m->line.len--;
	if (m->line.len > 0 && m->line.ptr[m->line.len - 1] == '\r') {
		m->line.len--;
		eol = 2;
	}
	return eol;
}

/* --- input --- */

static size_t
push_header(struct mime *m, const char *bytes, size_t len)
{
	const char *lf = memchr(bytes, '\n', len);
	size_t n = lf != NULL ? (size_t)(lf - bytes) + 1 : len;
	m->header_bytes += n;
	if (m->header_bytes > MIME_MAX_HEADER_BYTES) {
		stop(m);
		return n;
	}
	buf_add(&m->line, bytes, n);
	keep_error(m, &m->line);
	if (m->line.error != RES_OK)
		stop(m);
	else if (lf != NULL)
		header_line(m, cut_eol(m));
	return n;
}

/* A line of a body that began with "-": collect it until it is known. */
static size_t
push_candidate(struct mime *m, const char *bytes, size_t len)
{
	size_t room = MIME_MAX_BOUNDARY + 64 - m->line.len;
	if (len > room)
		len = room;
	const char *lf = memchr(bytes, '\n', len);
	size_t n = lf != NULL ? (size_t)(lf - bytes) + 1 : len;
	buf_add(&m->line, bytes, n);
	keep_error(m, &m->line);
	bool dashes = m->line.len < 2 || m->line.ptr[1] == '-';
	if (m->line.error != RES_OK) {
		stop(m);
	} else if (lf != NULL) {
		body_line(m, cut_eol(m));
	} else if (!dashes || n == room) {
		flush_eol(m);
		/* its last CR may belong to a line end */
		m->held_cr = m->line.ptr[m->line.len - 1] == '\r';
		content(m, m->line.ptr, m->line.len - m->held_cr);
		buf_reset(&m->line);
		m->line_start = false;
	}
	return n;
}

/* Lines that are no boundary for sure, as many as there are in one piece. */
static size_t
push_lines(struct mime *m, const char *bytes, size_t len)
{
	size_t at = 0;
	for (;;) {
		const char *lf = memchr(bytes + at, '\n', len - at);
		if (lf == NULL) {
			m->held_cr = bytes[len - 1] == '\r';
			content(m, bytes, len - m->held_cr);
			return len;
		}
		at = (size_t)(lf - bytes) + 1;
		if (at < len && bytes[at] != '-')
			continue;
		bool crlf = at >= 2 && bytes[at - 2] == '\r';
		content(m, bytes, at - 1 - crlf);
		m->held_eol = crlf ? 2 : 1;
		m->line_start = true;
		return at;
	}
}

static size_t
push_body(struct mime *m, const char *bytes, size_t len)
{
	if (m->boundaries == 0) {
		flush_eol(m);
		content(m, bytes, len);
		return len;
	}
	if (m->held_cr) {
		m->held_cr = false;
		if (bytes[0] == '\n') {
			m->held_eol = 2;
			m->line_start = true;
			return 1;
		}
		content(m, "\r", 1);
	}
	if (m->line.len > 0 || (m->line_start && bytes[0] == '-'))
		return push_candidate(m, bytes, len);
	if (m->line_start) {
		flush_eol(m);
		m->line_start = false;
	}
	return push_lines(m, bytes, len);
}

void
mime_push(struct mime *m, const char *bytes, size_t len)
{
	size_t at = 0;
	while (at < len && m->mode != MODE_STOP) {
		if (m->mode == MODE_HEADER)
			at += push_header(m, bytes + at, len - at);
		else
			at += push_body(m, bytes + at, len - at);
	}
}

/* No line of the part has been seen. */
static bool
is_bare(const struct mime *m)
{
	return !m->part.is_message && !m->any_line && m->field.len == 0;
}

enum res
mime_finish(struct mime *m)
{
	/* the last line has no end; it may still be a boundary */
	if ((m->mode == MODE_BODY || m->mode == MODE_SKIP) && m->line.len > 0)
		body_line(m, 0);
	if (m->mode == MODE_HEADER && m->line.len > 0) {
		if (m->line.ptr[m->line.len - 1] == '\r')
			m->line.len--;
		header_line(m, 0);
	}
	if (m->mode == MODE_HEADER && is_bare(m)) {
		/* a boundary that nothing follows begins no part */
		m->open = false;
		m->parts--;
		m->mode = MODE_SKIP;
	}
	if (m->mode == MODE_HEADER) {
		end_field(m);
		while (m->mode == MODE_HEADER)
			end_header(m);
	}
	if (m->mode == MODE_BODY || m->mode == MODE_SKIP) {
		flush_eol(m);
		if (m->held_cr)
			content(m, "\r", 1);
	}
	end_part(m);
	while (m->depth > 0)
		pop_level(m);
	m->mode = MODE_STOP;
	return m->error;
}

bool
mime_partial(const struct mime *m)
{
	return m->partial;
}

/* --- life --- */

static void
sink_push_mime(struct sink *s, const char *bytes, size_t len)
{
	mime_push((struct mime *)s, bytes, len);
}

static enum res
sink_finish_mime(struct sink *s)
{
	return mime_finish((struct mime *)s);
}

struct sink *
mime_sink(struct mime *m)
{
	return &m->sink;
}

void
mime_reset(struct mime *m)
{
	mime_free(&m->inner);
	m->partial = false;
	m->error = RES_OK;
	m->parts = 0;
	m->header_bytes = 0;
	m->depth = m->boundaries = 0;
	m->held_eol = 0;
	m->held_cr = false;
	m->first_line = true;
	transfer_init(&m->transfer, TRANSFER_IDENTITY, emit_data, m);
	begin_part(m, true);
}

struct mime *
mime_new(const struct mime_ops *ops, void *context)
{
	struct mime *m = calloc(1, sizeof *m);
	if (m == NULL)
		return NULL;
	m->sink = (struct sink){ sink_push_mime, sink_finish_mime };
	m->ops = ops;
	m->context = context;
	for (size_t i = 0; i < WHATS; i++)
		buf_init(&m->what[i], MAX_WHAT);
	for (size_t i = 0; i < SLOTS; i++)
		buf_init(&m->slot[i], PARAM_MAX_VALUE);
	buf_init(&m->field, 2 * MIME_MAX_HEADER_BYTES);
	buf_init(&m->line, MIME_MAX_HEADER_BYTES);
	m->base_parent = -1;
	mime_reset(m);
	return m;
}

void
mime_free(struct mime **m)
{
	if (*m == NULL)
		return;
	for (size_t i = 0; i < WHATS; i++)
		buf_done(&(*m)->what[i]);
	for (size_t i = 0; i < SLOTS; i++)
		buf_done(&(*m)->slot[i]);
	buf_done(&(*m)->field);
	buf_done(&(*m)->line);
	mime_free(&(*m)->inner);
	free(*m);
	*m = NULL;
}

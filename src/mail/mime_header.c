/* A part's header: its fields, and what the part turns out to be at its end:
 * a leaf, a container of nested parts, or an encoded message for a walker of
 * its own. */
#include "mail/mime_walk.h"

static void
tell_part(struct mime *m)
{
	bool digest = m->depth > 0 && m->levels[m->depth - 1].digest;
	enum res r = mime_facts_tell(&m->facts, digest, &m->part);
	if (r != RES_OK)
		m->error = r;
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
	mime_begin_part(m->inner, true);
}

/* Whether the part's content is read as nested parts here; decides `kind`. */
static bool
is_container(struct mime *m, enum transfer_kind encoding)
{
	struct mime_part *p = &m->part;
	if (p->kind != MIME_MULTIPART && p->kind != MIME_MESSAGE)
		return false;
	size_t boundary = mime_facts_boundary(&m->facts).len;
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

void
mime_end_header(struct mime *m)
{
	tell_part(m);
	enum transfer_kind encoding = transfer_kind(m->part.encoding);
	bool container = is_container(m, encoding);
	if (m->ops->begin != NULL)
		m->ops->begin(m->context, &m->part);
	mime_begin_content(m, encoding);
	buf_reset(&m->line);
	m->line_start = true;
	m->held_eol = 0;
	m->held_cr = false;
	m->mode = MODE_BODY;
	if (!container)
		return;
	bool message = m->part.kind == MIME_MESSAGE;
	mime_push_level(m, str_eq(m->part.type, STR("multipart/digest")));
	if (message)
		mime_begin_part(m, true);
	else
		m->mode = MODE_SKIP;
}

/* --- lines --- */

void
mime_end_field(struct mime *m)
{
	struct str raw = buf_str(&m->field);
	size_t colon = str_chr(raw, ':');
	if (colon == SIZE_MAX)
		return;
	struct str name = str_trim(str_sub(raw, 0, colon));
	struct str value = str_skip(raw, colon + 1);
	mime_facts_field(&m->facts, name, value);
	if (m->ops->field != NULL)
		m->ops->field(m->context, &m->part, name, value);
	mime_keep_error(m, &m->field);
	buf_reset(&m->field);
}

/* A limit is reached. A part whose header was being read begins with what is
 * known of it, so that it can end. */
void
mime_stop(struct mime *m)
{
	if (m->mode == MODE_HEADER && m->open) {
		mime_end_field(m);
		tell_part(m);
		if (m->ops->begin != NULL)
			m->ops->begin(m->context, &m->part);
	}
	m->partial = true;
	m->mode = MODE_STOP;
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

/* The header is over without an empty line: m->line is the first of what
 * follows. */
static void
end_abruptly(struct mime *m, unsigned eol)
{
	struct buf keep = m->line;
	mime_end_field(m);
	buf_init(&m->line, keep.max);
	mime_end_header(m);
	if (m->mode == MODE_STOP) {
		buf_done(&keep);
		buf_reset(&m->line);
		return;
	}
	buf_done(&m->line);
	m->line = keep;
	if (m->mode == MODE_HEADER)
		mime_header_line(m, eol); /* of a message that begins here */
	else
		mime_body_line(m, eol);
}

static bool
is_mbox_separator(struct str line)
{
	return str_starts(line, STR("From ")) ||
	    str_starts(line, STR(">From "));
}

void
mime_header_line(struct mime *m, unsigned eol)
{
	struct str line = buf_str(&m->line);
	bool first = m->first_line, closing;
	bool folded = line.len > 0 && ascii_is_wsp(line.ptr[0]);
	m->first_line = false;
	m->any_line = true;
	if (line.len == 0 || (folded && m->field.len == 0)) {
		mime_end_field(m);
		mime_end_header(m);
		return;
	}
	if (folded) {
		buf_add(&m->field, "\r\n", 2);
		buf_add_str(&m->field, line);
	} else if (mime_find_boundary(m, line, &closing) < 0 &&
	    is_field_line(line)) {
		mime_end_field(m);
		buf_add_str(&m->field, line);
	} else if (!first || !is_mbox_separator(line)) {
		end_abruptly(m, eol);
		return;
	}
	buf_reset(&m->line);
}

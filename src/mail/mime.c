#include "mail/mime_walk.h"

#include <stdlib.h>

static void
emit_data(void *context, const char *bytes, size_t len)
{
	struct mime *m = context;
	if (m->inner != NULL)
		mime_push(m->inner, bytes, len);
	else if (m->ops->data != NULL)
		m->ops->data(m->context, &m->part, bytes, len);
}

void
mime_begin_content(struct mime *m, enum transfer_kind encoding)
{
	transfer_init(&m->transfer, encoding, emit_data, m);
}

void
mime_content(struct mime *m, const char *bytes, size_t len)
{
	if (m->mode == MODE_BODY && len > 0)
		transfer_push(&m->transfer, bytes, len);
}

void
mime_keep_error(struct mime *m, const struct buf *b)
{
	if (b->error == RES_NOMEM)
		m->error = RES_NOMEM;
}

/* --- parts --- */

void
mime_begin_part(struct mime *m, bool is_message)
{
	if (m->parts == MIME_MAX_PARTS) {
		mime_stop(m);
		return;
	}
	int parent = m->base_parent;
	if (m->depth > 0)
		parent = (int)m->levels[m->depth - 1].number;
	m->part = (struct mime_part){ .number = m->parts++,
		.parent = parent,
		.depth = m->base_depth + m->depth,
		.is_message = is_message };
	mime_facts_reset(&m->facts);
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

void
mime_push_level(struct mime *m, bool digest)
{
	struct mime_level *l = &m->levels[m->depth++];
	struct str boundary = STR_EMPTY;
	if (m->part.kind == MIME_MULTIPART)
		boundary = mime_facts_boundary(&m->facts);
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
	const struct mime_level *l = &m->levels[--m->depth];
	if (l->boundary_len > 0)
		m->boundaries--;
	struct mime_part p = { .number = l->number,
		.parent = l->parent,
		.depth = m->base_depth + m->depth,
		.kind = l->kind };
	if (m->ops->end != NULL)
		m->ops->end(m->context, &p);
}

/* --- boundaries --- */

/* The innermost level whose boundary `line` begins with, or -1. RFC 2046
 * §5.1.1: what follows it does not matter, but "--" closes; §5.1.2: outer
 * boundaries count at any depth. */
int
mime_find_boundary(const struct mime *m, struct str line, bool *out_closing)
{
	if (m->boundaries == 0 || !str_starts(line, STR("--")))
		return -1;
	line = str_skip(line, 2);
	for (int k = (int)m->depth - 1; k >= 0; k--) {
		const struct mime_level *l = &m->levels[k];
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
		mime_begin_part(m, false);
	}
}

/* The line's end is still behind it in the buffer. */
void
mime_body_line(struct mime *m, unsigned eol)
{
	bool closing;
	int k = mime_find_boundary(m, buf_str(&m->line), &closing);
	if (k >= 0) {
		at_boundary(m, k, closing);
		return;
	}
	mime_flush_eol(m);
	m->line_start = !mime_hold_tail(m, m->line.ptr, m->line.len + eol);
	if (m->line_start) {
		mime_content(m, m->line.ptr, m->line.len);
		m->held_eol = eol;
	}
	buf_reset(&m->line);
}

/* --- the end of input --- */

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
		mime_body_line(m, 0);
	int k = m->mode != MODE_STOP ? mime_end_tail(m) : -1;
	if (k >= 0)
		at_boundary(m, k, true);
	if (m->mode == MODE_HEADER && m->line.len > 0) {
		if (m->line.ptr[m->line.len - 1] == '\r')
			m->line.len--;
		mime_header_line(m, 0);
	}
	if (m->mode == MODE_HEADER && is_bare(m)) {
		/* a boundary that nothing follows begins no part */
		m->open = false;
		m->parts--;
		m->mode = MODE_SKIP;
	}
	if (m->mode == MODE_HEADER) {
		mime_end_field(m);
		while (m->mode == MODE_HEADER)
			mime_end_header(m);
	}
	if (m->mode == MODE_BODY || m->mode == MODE_SKIP) {
		mime_flush_eol(m);
		if (m->held_cr)
			mime_content(m, "\r", 1);
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
	m->tail_len = 0;
	m->first_line = true;
	mime_begin_content(m, TRANSFER_IDENTITY);
	mime_begin_part(m, true);
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
	mime_facts_init(&m->facts);
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
	mime_facts_done(&(*m)->facts);
	buf_done(&(*m)->field);
	buf_done(&(*m)->line);
	mime_free(&(*m)->inner);
	free(*m);
	*m = NULL;
}

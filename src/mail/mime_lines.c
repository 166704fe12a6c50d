/* From bytes to lines: whole lines of a header, and of a body those that may be
 * boundaries; all else passes in pieces as large as it comes. */
#include "mail/mime_walk.h"

void
mime_flush_eol(struct mime *m)
{
	if (m->held_eol > 0)
		mime_content(m, m->held_eol == 2 ? "\r\n" : "\n", m->held_eol);
	m->held_eol = 0;
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

static size_t
push_header(struct mime *m, const char *bytes, size_t len)
{
	const char *lf = memchr(bytes, '\n', len);
	size_t n = lf != NULL ? (size_t)(lf - bytes) + 1 : len;
	m->header_bytes += n;
	if (m->header_bytes > MIME_MAX_HEADER_BYTES) {
		mime_stop(m);
		return n;
	}
	buf_add(&m->line, bytes, n);
	mime_keep_error(m, &m->line);
	if (m->line.error != RES_OK)
		mime_stop(m);
	else if (lf != NULL)
		mime_header_line(m, cut_eol(m));
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
	mime_keep_error(m, &m->line);
	bool dashes = m->line.len < 2 || m->line.ptr[1] == '-';
	if (m->line.error != RES_OK) {
		mime_stop(m);
	} else if (lf != NULL) {
		mime_body_line(m, cut_eol(m));
	} else if (!dashes || n == room) {
		mime_flush_eol(m);
		/* its last CR may belong to a line end */
		m->held_cr = m->line.ptr[m->line.len - 1] == '\r';
		mime_content(m, m->line.ptr, m->line.len - m->held_cr);
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
			mime_content(m, bytes, len - m->held_cr);
			return len;
		}
		at = (size_t)(lf - bytes) + 1;
		if (at < len && bytes[at] != '-')
			continue;
		bool crlf = at >= 2 && bytes[at - 2] == '\r';
		mime_content(m, bytes, at - 1 - crlf);
		m->held_eol = crlf ? 2 : 1;
		m->line_start = true;
		return at;
	}
}

static size_t
push_body(struct mime *m, const char *bytes, size_t len)
{
	if (m->boundaries == 0) {
		mime_flush_eol(m);
		mime_content(m, bytes, len);
		return len;
	}
	if (m->held_cr) {
		m->held_cr = false;
		if (bytes[0] == '\n') {
			m->held_eol = 2;
			m->line_start = true;
			return 1;
		}
		mime_content(m, "\r", 1);
	}
	if (m->line.len > 0 || (m->line_start && bytes[0] == '-'))
		return push_candidate(m, bytes, len);
	if (m->line_start) {
		mime_flush_eol(m);
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

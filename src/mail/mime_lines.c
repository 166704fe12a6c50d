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

/* --- a closing boundary behind text, at the end of input --- */

/* The closing line of the innermost multipart; its level. */
static int
closing_line(const struct mime *m, char line[MIME_MAX_TAIL], struct str *out)
{
	int k = (int)m->depth - 1;
	while (m->levels[k].boundary_len == 0)
		k--;
	size_t n = m->levels[k].boundary_len;
	memcpy(line, "--", 2);
	memcpy(line + 2, m->levels[k].boundary, n);
	memcpy(line + 2 + n, "--", 2);
	*out = str_of(line, n + 4);
	return k;
}

/* Whether `s` is the beginning of `closing`, or all of it and a line end. */
static bool
may_close(struct str s, struct str closing)
{
	if (s.len <= closing.len)
		return str_starts(closing, s);
	if (!str_starts(s, closing))
		return false;
	s = str_skip(s, closing.len);
	return str_eq(s, STR("\n")) || str_starts(STR("\r\n"), s);
}

/* The input so far ends with `s`, which begins in a line. How many bytes at its
 * end, behind other text, may close the multipart. */
static size_t
find_tail(const struct mime *m, struct str s)
{
	char line[MIME_MAX_TAIL];
	struct str closing;
	(void)closing_line(m, line, &closing);
	size_t at = s.len > closing.len + 2 ? s.len - closing.len - 2 : 0;
	for (; at < s.len; at++) {
		const char *dash = memchr(s.ptr + at, '-', s.len - at);
		if (dash == NULL)
			break;
		at = (size_t)(dash - s.ptr);
		if (may_close(str_skip(s, at), closing))
			return at > 0 && s.ptr[at - 1] == '\n' ? 0 : s.len - at;
	}
	return 0;
}

bool
mime_hold_tail(struct mime *m, const char *bytes, size_t len)
{
	size_t n = m->boundaries > 0 ? find_tail(m, str_of(bytes, len)) : 0;
	if (n == 0)
		return false;
	mime_content(m, bytes, len - n);
	memcpy(m->tail, bytes + len - n, n);
	m->tail_len = n;
	return true;
}

/* More input behind a tail: it is none, or still may be. */
static size_t
push_tail(struct mime *m, const char *bytes, size_t len)
{
	char both[2 * MIME_MAX_TAIL];
	size_t had = m->tail_len;
	size_t n = len < MIME_MAX_TAIL ? len : MIME_MAX_TAIL;
	memcpy(both, m->tail, had);
	memcpy(both + had, bytes, n);
	m->tail_len = 0;
	mime_push(m, both, had + n);
	return n;
}

int
mime_end_tail(struct mime *m)
{
	if (m->tail_len == 0)
		return -1;
	char line[MIME_MAX_TAIL];
	struct str closing;
	struct str tail = str_of(m->tail, m->tail_len);
	int k = closing_line(m, line, &closing);
	m->tail_len = 0;
	if (str_starts(tail, closing))
		return k;
	mime_content(m, tail.ptr, tail.len);
	return -1;
}

/* --- lines of a body --- */

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
		m->line_start = false;
		if (!mime_hold_tail(m, m->line.ptr, m->line.len)) {
			/* its last CR may belong to a line end */
			m->held_cr = m->line.ptr[m->line.len - 1] == '\r';
			mime_content(m, m->line.ptr, m->line.len - m->held_cr);
		}
		buf_reset(&m->line);
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
		at = lf != NULL ? (size_t)(lf - bytes) + 1 : len;
		if (at < len && bytes[at] != '-')
			continue;
		if (at == len && mime_hold_tail(m, bytes, len))
			return len;
		if (lf == NULL) {
			m->held_cr = bytes[len - 1] == '\r';
			mime_content(m, bytes, len - m->held_cr);
			return len;
		}
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
	if (m->tail_len > 0)
		return push_tail(m, bytes, len);
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

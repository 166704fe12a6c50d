#include "mail/mbox.h"

#include <stdbool.h>

#include "mail/date.h"

/*   bytes --> `line` (the start of a line, until it is known what it is)
 *               |
 *               +-- empty line:   kept in `blank`, perhaps a separator
 *               +-- "From …\n":   kept in `from`, perhaps a separator;
 *               |                 the next `line` decides
 *               +-- else:         text; the rest of the line passes through
 */
#define MAX_PROBE  80 /* a field's name is found within */
#define MAX_LINE   (MBOX_MAX_FROM + MBOX_MAX_QUOTE)
#define MAX_STAGED 8192

enum kind { MORE, TEXT, QUOTED, SLIDE, BLANK, FROM };

struct mbox {
	struct sink sink;
	enum mbox_form form;
	const struct mbox_ops *ops;
	void *context;
	enum res error;
	bool open;             /* between begin and end */
	bool in_line;          /* the rest of this line is text */
	bool after_blank;      /* a From_ line may stand here */
	bool from_after_blank; /* the same of `from` */
	size_t blank_len, from_len, line_len, staged;
	uint64_t start;        /* of the file, or where we were told to begin */
	uint64_t offset;       /* of the next byte */
	uint64_t line_at, from_at;
	char blank[2];
	char from[MBOX_MAX_FROM];
	char line[MAX_LINE];
	char staging[MAX_STAGED];
};

static const struct str from_word = { "From ", 5 };

/* --- out ----------------------------------------------------------------- */

static void
flush(struct mbox *m)
{
	if (m->staged > 0 && m->error == RES_OK)
		m->ops->data(m->context, m->staging, m->staged);
	m->staged = 0;
}

static void
begin(struct mbox *m, struct str from, uint64_t offset)
{
	m->open = true;
	if (m->error == RES_OK)
		m->error = m->ops->begin(m->context, from, offset);
}

static void
end(struct mbox *m, uint64_t offset)
{
	flush(m);
	if (m->open && m->error == RES_OK)
		m->error = m->ops->end(m->context, offset);
	m->open = false;
}

static void
put(struct mbox *m, const char *bytes, size_t len)
{
	if (len == 0)
		return;
	if (!m->open)
		begin(m, STR_EMPTY, m->start);
	if (len > MAX_STAGED - m->staged)
		flush(m);
	if (len > MAX_STAGED) {
		if (m->error == RES_OK)
			m->ops->data(m->context, bytes, len);
		return;
	}
	memcpy(m->staging + m->staged, bytes, len);
	m->staged += len;
}

static void
put_blank(struct mbox *m)
{
	put(m, m->blank, m->blank_len);
	m->blank_len = 0;
}

/* --- From_ lines --------------------------------------------------------- */

static struct str
trim_end(struct str line)
{
	while (line.len > 0 &&
	    (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
		line.len--;
	return line;
}

struct str
mbox_from_sender(struct str from)
{
	struct str sender = str_sub(from, 0, str_chr(from, ' '));
	if (str_chr(sender, '@') == SIZE_MAX)
		return STR_EMPTY;
	return sender;
}

bool
mbox_from_open_end(struct str from)
{
	return str_ends(from, STR(MBOX_OPEN_END));
}

enum res
mbox_from_date(struct str from, int64_t *out_s)
{
	if (mbox_from_open_end(from))
		from.len -= sizeof MBOX_OPEN_END - 1;
	size_t space = str_chr(from, ' ');
	if (space == SIZE_MAX)
		return RES_SYNTAX;
	return date_parse(str_skip(from, space), out_s);
}

static struct str
from_text(const struct mbox *m)
{
	return trim_end(str_of(m->from + from_word.len,
	    m->from_len - from_word.len));
}

static bool
is_dated(const struct mbox *m)
{
	int64_t s;
	return mbox_from_date(from_text(m), &s) == RES_OK;
}

/* `from` begins a message. */
static void
take_from(struct mbox *m)
{
	m->blank_len = 0;
	end(m, m->from_at);
	begin(m, from_text(m), m->from_at);
	m->from_len = 0;
}

/* `from` is text. */
static void
refuse_from(struct mbox *m)
{
	put_blank(m);
	put(m, m->from, m->from_len);
	m->from_len = 0;
}

/* A From_ line is there; is it known what it is? */
static void
judge_from(struct mbox *m)
{
	bool first = m->from_at == 0 || (!m->open && m->from_after_blank);
	if (first || (m->from_after_blank && is_dated(m)))
		take_from(m);
	else if (!m->from_after_blank && !is_dated(m))
		refuse_from(m);
}

/* What `line`, behind a From_ line, says of it. False: not known yet. */
static bool
probe(struct mbox *m)
{
	for (size_t i = 0; i < m->line_len && i < MAX_PROBE; i++) {
		unsigned char c = (unsigned char)m->line[i];
		if (c == ':' && i > 0) {
			take_from(m);
			return true;
		}
		if (c <= ' ' || c >= 0x7f || c == ':') {
			refuse_from(m);
			return true;
		}
	}
	if (m->line_len < MAX_PROBE)
		return false;
	refuse_from(m);
	return true;
}

/* --- lines --------------------------------------------------------------- */

static enum kind
kind_of(const struct mbox *m)
{
	struct str l = str_of(m->line, m->line_len);
	size_t quotes = 0;
	bool whole = l.ptr[l.len - 1] == '\n';
	if (str_eq(l, STR("\n")) || str_eq(l, STR("\r\n")))
		return BLANK;
	if (str_eq(l, STR("\r")))
		return MORE;
	while (quotes < l.len && l.ptr[quotes] == '>')
		quotes++;
	if ((quotes > 0 && m->form == MBOX_PLAIN) ||
	    (quotes > 1 && m->form == MBOX_O))
		return TEXT;
	if (quotes > MBOX_MAX_QUOTE)
		return SLIDE;
	struct str word = str_sub(str_skip(l, quotes), 0, from_word.len);
	if (!str_starts(from_word, word))
		return TEXT;
	if (word.len < from_word.len)
		return MORE;
	if (quotes > 0)
		return QUOTED;
	if (whole)
		return FROM;
	return l.len < MBOX_MAX_FROM ? MORE : TEXT;
}

static void
line_is_text(struct mbox *m, size_t skip)
{
	put_blank(m);
	put(m, m->line + skip, m->line_len - skip);
	m->in_line = m->line[m->line_len - 1] != '\n';
	m->after_blank = false;
	m->line_len = 0;
}

static void
line_is_blank(struct mbox *m)
{
	put_blank(m); /* only the last one may be a separator */
	memcpy(m->blank, m->line, m->line_len);
	m->blank_len = m->line_len;
	m->after_blank = true;
	m->line_len = 0;
}

static void
line_is_from(struct mbox *m)
{
	memcpy(m->from, m->line, m->line_len);
	m->from_len = m->line_len;
	m->from_at = m->line_at;
	m->from_after_blank = m->after_blank;
	m->after_blank = false;
	m->line_len = 0;
	judge_from(m);
}

/* `line` has grown. */
static void
look(struct mbox *m)
{
	if (m->from_len > 0 && !probe(m))
		return;
	switch (kind_of(m)) {
	case MORE:
		break;
	case TEXT:
		line_is_text(m, 0);
		break;
	case QUOTED:
		line_is_text(m, 1);
		break;
	case SLIDE: /* whatever follows, this one stays: they are all alike */
		put_blank(m);
		put(m, m->line, 1);
		memmove(m->line, m->line + 1, --m->line_len);
		break;
	case BLANK:
		line_is_blank(m);
		break;
	case FROM:
		line_is_from(m);
		break;
	}
}

static void
mbox_push(struct sink *sink, const char *p, size_t len)
{
	struct mbox *m = (struct mbox *)sink;
	while (len > 0 && m->error == RES_OK) {
		size_t n = 1;
		if (m->in_line) {
			const char *lf = memchr(p, '\n', len);
			n = lf != NULL ? (size_t)(lf - p) + 1 : len;
			put(m, p, n);
			m->in_line = lf == NULL;
		} else {
			if (m->line_len == 0)
				m->line_at = m->offset;
			m->line[m->line_len++] = *p;
			look(m);
		}
		m->offset += n;
		p += n;
		len -= n;
	}
}

static enum res
mbox_finish(struct sink *sink)
{
	struct mbox *m = (struct mbox *)sink;
	if (m->from_len > 0)
		refuse_from(m); /* nothing follows it */
	if (m->line_len > 0) {
		if (kind_of(m) == MORE && m->after_blank &&
		    str_starts(str_of(m->line, m->line_len), from_word)) {
			/* the file ends in a From_ line */
			line_is_from(m);
			if (m->from_len > 0)
				refuse_from(m);
		} else {
			line_is_text(m, 0);
		}
	}
	end(m, m->offset);
	return m->error;
}

struct mbox *
mbox_new(struct arena *a, enum mbox_form form, uint64_t offset,
    const struct mbox_ops *ops, void *context)
{
	struct mbox *m = ARENA_NEW(a, struct mbox);
	if (m == NULL)
		return NULL;
	m->sink = (struct sink){ mbox_push, mbox_finish };
	m->form = form;
	m->start = m->offset = offset;
	m->ops = ops;
	m->context = context;
	m->after_blank = true;
	return m;
}

struct sink *
mbox_sink(struct mbox *m)
{
	return &m->sink;
}

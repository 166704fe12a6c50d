#include "mail/text.h"

#include <stdlib.h>

#include "mail/charset.h"
#include "mail/encoded.h"
#include "mail/html.h"
#include "mail/mime.h"

/* Converted text waits here until it is HTML or body text. */
#define MAX_CONVERTED ((size_t)64 << 10)
/* Pieces converted at once, so that no charset can overflow the above. */
#define PIECE         ((size_t)4096)

struct text_extract {
	struct sink sink;
	struct mime *mime;
	struct text_doc doc;
	struct charset charset;
	struct html html;
	struct buf converted;
	bool is_text, is_html; /* the part being read */
	enum res error;
};

struct field_row {
	struct str name;
	size_t offset; /* of the buf in struct text_doc */
};
#define ROW(name, member)                                                     \
	{ { name, sizeof name - 1 }, offsetof(struct text_doc, member) }
static const struct field_row fields[] = {
	ROW("subject", subject),
	ROW("from", from),
	ROW("to", to),
	ROW("cc", cc),
	ROW("bcc", cc),
	ROW("reply-to", other),
	ROW("sender", other),
	ROW("list-id", other),
	ROW("resent-from", other),
	ROW("resent-to", other),
	ROW("resent-cc", other),
	ROW("resent-sender", other),
	ROW("delivered-to", other),
	ROW("x-original-to", other),
	ROW("keywords", other),
	ROW("comments", other),
	ROW("organization", other),
};

static struct buf *
doc_buf(struct text_extract *x, const struct field_row *row)
{
	return (struct buf *)((char *)&x->doc + row->offset);
}

/* As much as fits. */
static void
add(struct text_extract *x, struct buf *to, struct str s)
{
	size_t room = to->max - to->len;
	if (s.len > room) {
		x->doc.partial = true;
		s.len = room;
	}
	buf_add_str(to, s);
	if (to->error == RES_NOMEM)
		x->error = RES_NOMEM;
}

static void
add_line(struct text_extract *x, struct buf *to, struct str s)
{
	if (to->len > 0)
		add(x, to, STR("\n"));
	add(x, to, s);
}

/* --- the walk's events --- */

static void
on_field(void *context, const struct mime_part *part, struct str name,
    struct str value)
{
	struct text_extract *x = context;
	if (!part->is_message)
		return;
	struct buf *to = NULL;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_case_eq(name, fields[i].name))
			to = doc_buf(x, &fields[i]);
	if (part->number == 0 && (str_case_eq(name, STR("list-id")) ||
	    str_case_eq(name, STR("list-post"))))
		x->doc.list = true;
	if (part->number == 0 && str_case_eq(name, STR("message-id")) &&
	    x->doc.message_id.len == 0)
		add(x, &x->doc.message_id, str_trim(value));
	if (to == NULL)
		return;
	if (part->number > 0)
		to = &x->doc.body;
	buf_reset(&x->converted);
	encoded_decode(str_sub(value, 0, PIECE * 4), &x->converted);
	if (value.len > PIECE * 4)
		x->doc.partial = true;
	add_line(x, to, str_trim(buf_str(&x->converted)));
}

static void
note_kind(struct text_extract *x, const struct mime_part *part)
{
	static const char *const encrypted[] = { "multipart/encrypted",
		"application/pkcs7-mime", "application/x-pkcs7-mime",
		"application/pgp-encrypted" };
	for (size_t i = 0; i < sizeof encrypted / sizeof *encrypted; i++)
		if (str_eq(part->type, str_c(encrypted[i])))
			x->doc.encrypted = true;
	if (str_eq(part->type, STR("multipart/signed")))
		x->doc.is_signed = true;
}

/* Logos shown inside a text are no attachments. */
static bool
is_attachment(const struct mime_part *part)
{
	if (part->kind == MIME_MULTIPART || part->number == 0)
		return part->kind == MIME_BINARY;
	if (str_eq(part->disposition, STR("attachment")))
		return true;
	if (part->content_id.len > 0 && str_starts(part->type, STR("image/")))
		return false;
	return part->kind == MIME_BINARY || part->filename.len > 0 ||
	    part->kind == MIME_MESSAGE;
}

static void
on_begin(void *context, const struct mime_part *part)
{
	struct text_extract *x = context;
	note_kind(x, part);
	if (is_attachment(part))
		x->doc.attachments++;
	struct str name = part->filename.len > 0 ? part->filename : part->name;
	if (name.len > 0)
		add_line(x, &x->doc.filename, name);
	x->is_html = part->kind == MIME_HTML;
	x->is_text = x->is_html || part->kind == MIME_TEXT;
	if (!x->is_text)
		return;
	charset_init(&x->charset, part->charset);
	buf_reset(&x->converted);
	if (x->doc.body.len > 0)
		add(x, &x->doc.body, STR("\n"));
	html_init(&x->html, &x->doc.body);
}

/* Converted text goes on into the body, through HTML if it is that. */
static void
pass_on(struct text_extract *x)
{
	struct str s = buf_str(&x->converted);
	if (x->is_html) {
		html_push(&x->html, s.ptr, s.len);
		if (x->doc.body.error == RES_LIMIT)
			x->doc.partial = true;
	} else {
		add(x, &x->doc.body, s);
	}
	if (x->converted.error == RES_NOMEM)
		x->error = RES_NOMEM;
	buf_reset(&x->converted);
}

static void
on_data(void *context, const struct mime_part *part, const char *bytes,
    size_t len)
{
	struct text_extract *x = context;
	struct str s = str_of(bytes, len);
	while (x->is_text && s.len > 0) {
		if (x->doc.body.len == x->doc.body.max ||
		    x->doc.body.error != RES_OK) {
			x->doc.partial = true;
			return;
		}
		struct str piece = str_sub(s, 0, PIECE);
		charset_push(&x->charset, piece.ptr, piece.len, &x->converted);
		pass_on(x);
		s = str_skip(s, piece.len);
	}
	(void)part;
}

static void
on_end(void *context, const struct mime_part *part)
{
	struct text_extract *x = context;
	if (!x->is_text)
		return;
	charset_finish(&x->charset, &x->converted);
	pass_on(x);
	if (x->is_html)
		html_finish(&x->html);
	charset_done(&x->charset);
	x->is_text = false;
	(void)part;
}

static const struct mime_ops ops = { on_field, on_begin, on_data, on_end };

/* --- the end --- */

/* Marks of the index's own words become blanks. */
static void
strip_marks(struct buf *b)
{
	size_t at = 0;
	while (at + 2 < b->len) {
		char *p = memchr(b->ptr + at, '\xee', b->len - at - 2);
		if (p == NULL)
			return;
		if (p[1] == '\x80' && (p[2] == '\x80' || p[2] == '\x81'))
			memset(p, ' ', 3);
		at = (size_t)(p - b->ptr) + 1;
	}
}

#define DOC_BUFS 8
static void
doc_bufs(struct text_doc *d, struct buf **out)
{
	struct buf *all[DOC_BUFS] = { &d->subject, &d->from, &d->to, &d->cc,
		&d->other, &d->body, &d->filename, &d->message_id };
	memcpy(out, all, sizeof all);
}

static void
push(struct sink *s, const char *bytes, size_t len)
{
	mime_push(((struct text_extract *)s)->mime, bytes, len);
}

static enum res
finish(struct sink *s)
{
	struct text_extract *x = (struct text_extract *)s;
	enum res r = mime_finish(x->mime);
	if (mime_partial(x->mime))
		x->doc.partial = true;
	struct buf *bufs[DOC_BUFS];
	doc_bufs(&x->doc, bufs);
	for (size_t i = 0; i < DOC_BUFS; i++)
		strip_marks(bufs[i]);
	return r != RES_OK ? r : x->error;
}

struct sink *
text_extract_sink(struct text_extract *x)
{
	return &x->sink;
}

const struct text_doc *
text_extract_doc(const struct text_extract *x)
{
	return &x->doc;
}

void
text_extract_reset(struct text_extract *x)
{
	struct buf *bufs[DOC_BUFS];
	doc_bufs(&x->doc, bufs);
	for (size_t i = 0; i < DOC_BUFS; i++)
		buf_reset(bufs[i]);
	x->doc.attachments = 0;
	x->doc.partial = x->doc.encrypted = false;
	x->doc.is_signed = x->doc.list = false;
	charset_done(&x->charset);
	x->is_text = x->is_html = false;
	x->error = RES_OK;
	mime_reset(x->mime);
}

struct text_extract *
text_extract_new(void)
{
	struct text_extract *x = calloc(1, sizeof *x);
	if (x == NULL)
		return NULL;
	x->sink = (struct sink){ push, finish };
	x->mime = mime_new(&ops, x);
	if (x->mime == NULL) {
		free(x);
		return NULL;
	}
	struct buf *bufs[DOC_BUFS];
	doc_bufs(&x->doc, bufs);
	for (size_t i = 0; i < DOC_BUFS; i++)
		buf_init(bufs[i], TEXT_MAX_FIELD);
	buf_init(&x->doc.body, TEXT_MAX_BODY);
	buf_init(&x->converted, MAX_CONVERTED);
	text_extract_reset(x);
	return x;
}

void
text_extract_free(struct text_extract **x)
{
	if (*x == NULL)
		return;
	struct buf *bufs[DOC_BUFS];
	doc_bufs(&(*x)->doc, bufs);
	for (size_t i = 0; i < DOC_BUFS; i++)
		buf_done(bufs[i]);
	buf_done(&(*x)->converted);
	charset_done(&(*x)->charset);
	mime_free(&(*x)->mime);
	free(*x);
	*x = NULL;
}

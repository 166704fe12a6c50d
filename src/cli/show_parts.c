/* The bytes of a message, or of parts of it. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/safe.h"
#include "cli/show.h"
#include "mail/mime.h"

/* --- bytes to standard output ---------------------------------------------- */

#define OUT_PIECE 16384

struct out {
	struct sink sink;
	bool terminal;
	struct safe safe;
	struct buf piece;
	/* the header only: up to the first empty line */
	bool only_header, done;
	unsigned matched; /* bytes of the line so far: 0, CR, more */
};

static void
write_out(struct out *o, const char *bytes, size_t len)
{
	if (!o->terminal) {
		(void)fwrite(bytes, 1, len, stdout);
		return;
	}
	while (len > 0) {
		size_t n = len < OUT_PIECE ? len : OUT_PIECE;
		safe_put(&o->safe, str_of(bytes, n), &o->piece);
		(void)buf_write(&o->piece, stdout);
		buf_reset(&o->piece);
		bytes += n;
		len -= n;
	}
}

/* How much of this is header still. */
static size_t
header_part(struct out *o, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n' && o->matched < 2) {
			o->done = true;
			return i + 1;
		}
		if (bytes[i] == '\n')
			o->matched = 0;
		else
			o->matched = bytes[i] == '\r' && o->matched == 0 ? 1 : 2;
	}
	return len;
}

static void
out_push(struct sink *sink, const char *bytes, size_t len)
{
	struct out *o = (struct out *)sink;
	if (o->done)
		return;
	if (o->only_header)
		len = header_part(o, bytes, len);
	write_out(o, bytes, len);
}

static enum res
out_finish(struct sink *sink)
{
	struct out *o = (struct out *)sink;
	if (o->terminal) {
		safe_end(&o->safe, &o->piece);
		(void)buf_write(&o->piece, stdout);
		buf_done(&o->piece);
	}
	return fflush(stdout) == 0 && !ferror(stdout) ? RES_OK : RES_IO;
}

static void
out_init(struct out *o)
{
	*o = (struct out){ .sink = { out_push, out_finish },
		.terminal = isatty(STDOUT_FILENO) != 0,
		.safe = SAFE_LINES };
	buf_init(&o->piece, 4 * OUT_PIECE);
}

int
show_raw(const struct show *s)
{
	struct out o;
	out_init(&o);
	return show_push_body(s, &o.sink);
}

int
show_headers(const struct show *s)
{
	struct out o;
	out_init(&o);
	o.only_header = true;
	return show_push_body(s, &o.sink);
}

/* --- MIME ------------------------------------------------------------------ */

struct parts {
	const struct show *show;
	struct buf out;
	struct out *to; /* an attachment's bytes */
	uint64_t bytes;
	bool found;
};

static void
structure_begin(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	x->bytes = 0;
	buf_addf(&x->out, "%*s%u  ", (int)(2 * p->depth), "", p->number);
	archive_put_safe(&x->out, p->type.len > 0 ? p->type : STR("text/plain"));
	if (p->charset.len > 0) {
		buf_add_c(&x->out, " charset=");
		archive_put_safe(&x->out, p->charset);
	}
	if (p->encoding.len > 0) {
		buf_add_c(&x->out, " ");
		archive_put_safe(&x->out, p->encoding);
	}
	if (p->disposition.len > 0) {
		buf_add_c(&x->out, " ");
		archive_put_safe(&x->out, p->disposition);
	}
	struct str name = p->filename.len > 0 ? p->filename : p->name;
	if (name.len > 0) {
		buf_add_c(&x->out, " \"");
		archive_put_safe(&x->out, name);
		buf_add_char(&x->out, '"');
	}
	if (p->kind == MIME_MULTIPART || p->kind == MIME_MESSAGE)
		buf_add_char(&x->out, '\n');
}

static void
structure_data(void *context, const struct mime_part *p, const char *bytes,
    size_t len)
{
	(void)p;
	(void)bytes;
	((struct parts *)context)->bytes += len;
}

static void
structure_end(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	if (p->kind != MIME_MULTIPART && p->kind != MIME_MESSAGE)
		buf_addf(&x->out, "  %" PRIu64 " bytes\n", x->bytes);
}

static void
attachment_begin(void *context, const struct mime_part *p)
{
	struct parts *x = context;
	if (p->number == x->show->part && p->kind != MIME_MULTIPART &&
	    p->kind != MIME_MESSAGE)
		x->found = true;
}

static void
attachment_data(void *context, const struct mime_part *p, const char *bytes,
    size_t len)
{
	struct parts *x = context;
	if (p->number == x->show->part)
		sink_push(&x->to->sink, bytes, len);
}

static int
walk(const struct show *s, const struct mime_ops *ops, struct parts *x)
{
	struct mime *m = mime_new(ops, x);
	if (m == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	int status = show_push_body(s, mime_sink(m));
	if (status == EX_OK && mime_partial(m))
		fputs("hanaper: not all of it was looked into: too many or "
		      "too deep parts\n", stderr);
	mime_free(&m);
	return status;
}

int
show_structure(const struct show *s)
{
	static const struct mime_ops ops = { NULL, structure_begin,
		structure_data, structure_end };
	struct parts x = { .show = s };
	buf_init(&x.out, SHOW_MAX_OUTPUT);
	int status = walk(s, &ops, &x);
	if (status != EX_OK) {
		buf_done(&x.out);
		return status;
	}
	return archive_print(&x.out);
}

int
show_attachment(const struct show *s)
{
	static const struct mime_ops ops = { NULL, attachment_begin,
		attachment_data, NULL };
	struct out o;
	out_init(&o);
	struct parts x = { .show = s, .to = &o };
	int status = walk(s, &ops, &x);
	enum res r = sink_finish(&o.sink);
	if (status == EX_OK && !x.found)
		return cli_fail(EX_NOINPUT, "no part %" PRIu64
		    " with bytes of its own; --structure lists the parts",
		    s->part);
	if (status == EX_OK && r != RES_OK)
		return cli_fail(EX_IOERR, "standard output: write error");
	return status;
}

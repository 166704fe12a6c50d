#include "helper.h"

#include <stdio.h>

#include "base/codec.h"
#include "mail/charset.h"
#include "mail/encoded.h"
#include "mail/html.h"
#include "mail/mbox.h"
#include "mail/mime.h"

struct mime_case {
	struct json j;
	struct buf value;    /* of a field, decoded */
	struct buf content;  /* of the part being read */
	struct charset charset;
	bool converts, first_field;
};

static void
open_part(struct mime_case *c, const struct mime_part *p)
{
	json_open(&c->j, '{');
	json_key_int(&c->j, "number", p->number);
	json_key_int(&c->j, "parent", p->parent);
	json_key_int(&c->j, "depth", p->depth);
	json_key_bool(&c->j, "is_message", p->is_message);
	json_key(&c->j, "fields");
	json_open(&c->j, '[');
}

static void
on_field(void *context, const struct mime_part *p, struct str name,
    struct str value)
{
	struct mime_case *c = context;
	if (c->first_field)
		open_part(c, p);
	c->first_field = false;
	buf_reset(&c->value);
	encoded_decode(value, &c->value);
	json_open(&c->j, '[');
	json_str(&c->j, name);
	json_str(&c->j, str_trim(buf_str(&c->value)));
	json_close(&c->j, ']');
}

static void
on_begin(void *context, const struct mime_part *p)
{
	static const char *const kinds[] = { "text", "html", "multipart",
		"message", "binary" };
	struct mime_case *c = context;
	if (c->first_field)
		open_part(c, p);
	json_close(&c->j, ']');
	json_key_c(&c->j, "body", kinds[p->kind]);
	json_key_str(&c->j, "type", p->type);
	json_key_str(&c->j, "charset", p->charset);
	json_key_str(&c->j, "encoding", p->encoding);
	json_key_str(&c->j, "disposition", p->disposition);
	json_key_str(&c->j, "name", p->name);
	json_key_str(&c->j, "filename", p->filename);
	json_key_str(&c->j, "content_id", p->content_id);
	json_key_str(&c->j, "format", p->format);
	buf_reset(&c->content);
	c->converts = p->kind == MIME_TEXT || p->kind == MIME_HTML;
	if (c->converts)
		charset_init(&c->charset, p->charset);
	if (p->kind == MIME_MULTIPART || p->kind == MIME_MESSAGE)
		json_close(&c->j, '}');
	c->first_field = true;
}

static void
on_data(void *context, const struct mime_part *p, const char *bytes, size_t len)
{
	struct mime_case *c = context;
	(void)p;
	if (c->converts)
		charset_push(&c->charset, bytes, len, &c->content);
	else
		buf_add(&c->content, bytes, len);
}

static void
on_end(void *context, const struct mime_part *p)
{
	struct mime_case *c = context;
	if (p->kind == MIME_MULTIPART || p->kind == MIME_MESSAGE)
		return;
	if (c->converts) {
		charset_finish(&c->charset, &c->content);
		charset_done(&c->charset);
	}
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	base64_encode(&b, c->content.ptr, c->content.len);
	json_key_str(&c->j, "content", buf_str(&b));
	json_close(&c->j, '}');
	buf_done(&b);
}

void
run_mime(struct options *o)
{
	static const struct mime_ops ops = { on_field, on_begin, on_data,
		on_end };
	struct mime_case c = { .first_field = true };
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	buf_init(&c.value, MAX_OUTPUT);
	buf_init(&c.content, MAX_OUTPUT);
	json_init(&c.j, &b);
	struct mime *m = have(mime_new(&ops, &c));
	struct str text = file_read(o->arena, only_file(o));
	json_open(&c.j, '{');
	json_key(&c.j, "parts");
	json_open(&c.j, '[');
	mime_push(m, text.ptr, text.len);
	need(mime_finish(m), "mime_finish");
	json_close(&c.j, ']');
	json_key_bool(&c.j, "partial", mime_partial(m));
	json_close(&c.j, '}');
	mime_free(&m);
	json_finish(&b);
	buf_done(&c.value);
	buf_done(&c.content);
}

void
run_charset(struct options *o)
{
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	charset_decode(str_c(option_needed(o, "charset")),
	    file_read(o->arena, only_file(o)), &b);
	need(b.error, "output");
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

void
run_html(struct options *o)
{
	struct buf b;
	struct html h;
	buf_init(&b, MAX_OUTPUT);
	html_init(&h, &b);
	struct buf text;
	buf_init(&text, MAX_OUTPUT);
	charset_decode(STR_EMPTY, file_read(o->arena, only_file(o)), &text);
	html_push(&h, text.ptr, text.len);
	buf_done(&text);
	html_finish(&h);
	need(b.error, "output");
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

/* --- mbox ----------------------------------------------------------------- */
struct mbox_case {
	struct json j;
	struct buf content;
};

static enum res
mbox_begin(void *context, struct str from, uint64_t offset)
{
	struct mbox_case *c = context;
	buf_reset(&c->content);
	json_open(&c->j, '{');
	json_key_str(&c->j, "from", from);
	json_key_int(&c->j, "begin", (int64_t)offset);
	return RES_OK;
}

static void
mbox_data(void *context, const char *bytes, size_t len)
{
	buf_add(&((struct mbox_case *)context)->content, bytes, len);
}

static enum res
mbox_end(void *context, uint64_t offset)
{
	struct mbox_case *c = context;
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	base64_encode(&b, c->content.ptr, c->content.len);
	json_key_int(&c->j, "end", (int64_t)offset);
	json_key_str(&c->j, "content", buf_str(&b));
	json_close(&c->j, '}');
	buf_done(&b);
	return c->content.error;
}

void
run_mbox(struct options *o)
{
	static const struct mbox_ops ops = { mbox_begin, mbox_data, mbox_end };
	struct mbox_case c;
	struct buf b;
	buf_init(&b, MAX_OUTPUT);
	buf_init(&c.content, MAX_OUTPUT);
	json_init(&c.j, &b);
	struct mbox *m = have(mbox_new(o->arena, MBOX_RD, 0, &ops, &c));
	struct str text = file_read(o->arena, only_file(o));
	json_open(&c.j, '[');
	sink_push(mbox_sink(m), text.ptr, text.len);
	need(sink_finish(mbox_sink(m)), "reading the mbox");
	json_close(&c.j, ']');
	json_finish(&b);
	buf_done(&c.content);
}

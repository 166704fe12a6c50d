#include "mail/mime_facts.h"

#include "mail/param.h"

#define NAME(text) { text, sizeof text - 1 }
static const struct str field_names[FACT_FIELDS] = { NAME("content-type"),
	NAME("content-transfer-encoding"), NAME("content-disposition"),
	NAME("content-id") };

void
mime_facts_init(struct mime_facts *f)
{
	for (size_t i = 0; i < FACT_FIELDS; i++)
		buf_init(&f->field[i], MIME_FACTS_MAX_FIELD);
	for (size_t i = 0; i < FACT_TEXTS; i++)
		buf_init(&f->text[i], PARAM_MAX_VALUE);
}

void
mime_facts_done(struct mime_facts *f)
{
	for (size_t i = 0; i < FACT_FIELDS; i++)
		buf_done(&f->field[i]);
	for (size_t i = 0; i < FACT_TEXTS; i++)
		buf_done(&f->text[i]);
}

void
mime_facts_reset(struct mime_facts *f)
{
	for (size_t i = 0; i < FACT_FIELDS; i++)
		buf_reset(&f->field[i]);
}

void
mime_facts_field(struct mime_facts *f, struct str name, struct str value)
{
	for (size_t i = 0; i < FACT_FIELDS; i++)
		if (f->field[i].len == 0 && str_case_eq(name, field_names[i]))
			buf_add_str(&f->field[i],
			    str_sub(value, 0, MIME_FACTS_MAX_FIELD));
}

static void
set_text(struct mime_facts *f, enum mime_fact_text which, struct str text,
    bool lower)
{
	struct buf *b = &f->text[which];
	text = str_sub(text, 0, b->max - b->len);
	char *to = buf_reserve(b, text.len);
	if (to == NULL)
		return;
	for (size_t i = 0; i < text.len; i++)
		to[i] = lower ? ascii_lower(text.ptr[i]) : text.ptr[i];
	b->len += text.len;
}

static void
find_params(struct mime_facts *f)
{
	static const struct {
		enum mime_fact_text text;
		enum mime_fact_field field;
		const char *name;
	} rows[] = {
		{ TEXT_CHARSET, FACT_TYPE, "charset" },
		{ TEXT_NAME, FACT_TYPE, "name" },
		{ TEXT_FORMAT, FACT_TYPE, "format" },
		{ TEXT_BOUNDARY, FACT_TYPE, "boundary" },
		{ TEXT_FILENAME, FACT_DISPOSITION, "filename" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		(void)param_find(buf_str(&f->field[rows[i].field]),
		    str_c(rows[i].name), &f->text[rows[i].text]);
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
set_texts(struct mime_facts *f, struct str type)
{
	set_text(f, TEXT_TYPE, type, true);
	struct str encoding = buf_str(&f->field[FACT_ENCODING]);
	encoding = str_sub(encoding, 0, str_chr(encoding, '('));
	set_text(f, TEXT_ENCODING, str_trim(encoding), false);
	set_text(f, TEXT_DISPOSITION,
	    param_main(buf_str(&f->field[FACT_DISPOSITION])), true);
	struct str id = str_trim(buf_str(&f->field[FACT_ID]));
	if (id.len >= 2 && id.ptr[0] == '<' && id.ptr[id.len - 1] == '>')
		id = str_sub(id, 1, id.len - 2);
	set_text(f, TEXT_CONTENT_ID, id, false);
	find_params(f);
}

enum res
mime_facts_tell(struct mime_facts *f, bool digest, struct mime_part *out)
{
	enum res r = RES_OK;
	for (size_t i = 0; i < FACT_TEXTS; i++)
		buf_reset(&f->text[i]);
	struct str type = param_main(buf_str(&f->field[FACT_TYPE]));
	if (type.len == 0 && digest)
		type = STR("message/rfc822");
	set_texts(f, type);
	out->type = buf_str(&f->text[TEXT_TYPE]);
	out->charset = buf_str(&f->text[TEXT_CHARSET]);
	out->encoding = buf_str(&f->text[TEXT_ENCODING]);
	out->disposition = buf_str(&f->text[TEXT_DISPOSITION]);
	out->name = buf_str(&f->text[TEXT_NAME]);
	out->filename = buf_str(&f->text[TEXT_FILENAME]);
	out->content_id = buf_str(&f->text[TEXT_CONTENT_ID]);
	out->format = buf_str(&f->text[TEXT_FORMAT]);
	out->kind = kind_of(out->type);
	for (size_t i = 0; i < FACT_TEXTS; i++)
		if (f->text[i].error == RES_NOMEM)
			r = RES_NOMEM;
	return r;
}

struct str
mime_facts_boundary(const struct mime_facts *f)
{
	return buf_str(&f->text[TEXT_BOUNDARY]);
}

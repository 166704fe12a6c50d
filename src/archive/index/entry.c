#include "archive/index/entry.h"

#include <stdlib.h>

#include "archive/format/record.h"
#include "archive/index/tokenizer.h"
#include "archive/keeping/held.h"

struct entry_builder {
	struct text_extract *text;
	struct buf facts, rcpts, sender;
};

struct entry_builder *
entry_builder_new(void)
{
	struct entry_builder *b = calloc(1, sizeof *b);
	if (b == NULL)
		return NULL;
	b->text = text_extract_new();
	buf_init(&b->facts, ENTRY_MAX_FACTS);
	buf_init(&b->rcpts, ENTRY_MAX_RCPTS);
	buf_init(&b->sender, ENTRY_MAX_RCPTS);
	if (b->text == NULL)
		entry_builder_free(&b);
	return b;
}

void
entry_builder_free(struct entry_builder **b)
{
	if (*b == NULL)
		return;
	text_extract_free(&(*b)->text);
	buf_done(&(*b)->facts);
	buf_done(&(*b)->rcpts);
	buf_done(&(*b)->sender);
	free(*b);
	*b = NULL;
}

/* --- facts --- */

static void
fact(struct entry_builder *b, const char *key, struct str value)
{
	if (value.len == 0)
		return;
	tokenizer_fact(&b->facts, str_c(key), value);
	buf_add_char(&b->facts, ' ');
}

static void
fact_words(struct entry_builder *b, const char *key, struct str value)
{
	tokenizer_fact_words(&b->facts, str_c(key), value);
	buf_add_char(&b->facts, ' ');
}

static void
fact_c(struct entry_builder *b, const char *key, const char *value)
{
	fact(b, key, str_c(value));
}

static void
fact_net(struct entry_builder *b, struct ip ip, unsigned prefix)
{
	unsigned bits = ip.family == IP_V4 ? 32 : 128;
	struct buf text;
	for (unsigned i = prefix; i < bits; i++)
		ip.bytes[i / 8] &= (uint8_t)~(0x80u >> (i % 8));
	buf_init(&text, IP_MAX_TEXT + 4);
	ip_format(&text, &ip);
	if (prefix < bits)
		buf_addf(&text, "/%u", prefix);
	fact(b, "ip", buf_str(&text));
	buf_done(&text);
}

/* The address and the networks a query may name (archive/query.c knows the
 * same lengths). */
static void
facts_ip(struct entry_builder *b, const struct ip *ip)
{
	static const unsigned v4[] = { 8, 16, 24, 32 };
	static const unsigned v6[] = { 16, 32, 48, 64, 128 };
	if (ip->family == IP_V4)
		for (size_t i = 0; i < sizeof v4 / sizeof *v4; i++)
			fact_net(b, *ip, v4[i]);
	else if (ip->family == IP_V6)
		for (size_t i = 0; i < sizeof v6 / sizeof *v6; i++)
			fact_net(b, *ip, v6[i]);
}

/* "key=value" as META holds it. */
static void
fact_pair(struct entry_builder *b, struct str pair)
{
	size_t equals = str_chr(pair, '=');
	if (equals == SIZE_MAX || equals == 0)
		return;
	struct str key = str_sub(pair, 0, equals);
	struct str value = str_skip(pair, equals + 1);
	if (str_eq(key, STR("reason")))
		tokenizer_fact_words(&b->facts, key, value);
	else
		tokenizer_fact(&b->facts, key, value);
	buf_add_char(&b->facts, ' ');
}

static struct str
without_brackets(struct str id)
{
	id = str_trim(id);
	if (id.len >= 2 && id.ptr[0] == '<' && id.ptr[id.len - 1] == '>')
		id = str_sub(id, 1, id.len - 2);
	return id;
}

/* --- META --- */

/* An envelope address as text: a hostile one must not look like a fact, so
 * what begins U+E000 goes (as do the Private Use characters around it). */
static void
add_address(struct buf *to, struct str address)
{
	if (to->len + address.len + 1 > to->max)
		return;
	if (to->len > 0)
		buf_add_char(to, '\n');
	for (size_t i = 0; i < address.len; i++) {
		char c = address.ptr[i];
		buf_add_char(to, c == '\xee' || c == '\n' ? '?' : c);
	}
}

static void
read_meta(struct entry_builder *b, struct str meta, struct entry *e)
{
	static const struct {
		enum meta_tag tag;
		const char *fact;
	} facts[] = {
		{ META_DIRECTION, "dir" },
		{ META_QUEUE_ID, "qid" },
		{ META_HELO, "helo" },
		{ META_AUTH, "auth" },
		{ META_TLS, "tls" },
		{ META_DISPOSITION, "disposition" },
	};
	struct record_reader r;
	unsigned tag;
	struct str value;
	if (record_open(meta, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &value)) {
		for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
			if (tag == (unsigned)facts[i].tag)
				fact(b, facts[i].fact, value);
		if (tag == META_DIRECTION)
			e->direction = value;
		else if (tag == META_QUEUE_ID)
			e->queue_id = value;
		else if (tag == META_MAIL_FROM)
			add_address(&b->sender, value);
		else if (tag == META_RCPT && ++e->rcpt_count > 0)
			add_address(&b->rcpts, value);
		else if (tag == META_FACT)
			fact_pair(b, value);
		else if (tag == META_REASON)
			fact_words(b, "reason", value);
		else if (tag == META_CLIENT_IP &&
		    ip_parse(value, &e->ip) != RES_OK)
			e->ip.family = IP_NONE;
	}
	facts_ip(b, &e->ip);
}

/* The id it had before its shard expired. */
static void
fact_origin(struct entry_builder *b, uint64_t id)
{
	struct buf text;
	if (id == 0)
		return;
	buf_init(&text, 64);
	archive_id_format(&text, id);
	fact(b, "origin", buf_str(&text));
	buf_done(&text);
}

static void
facts_of_text(struct entry_builder *b, const struct text_doc *d)
{
	fact(b, "msgid", without_brackets(buf_str(&d->message_id)));
	if (d->attachments > 0)
		fact_c(b, "has", "attachment");
	if (d->encrypted)
		fact_c(b, "has", "encrypted");
	if (d->is_signed)
		fact_c(b, "has", "signed");
	if (d->list)
		fact_c(b, "has", "list");
	if (d->partial)
		fact_c(b, "index", "partial");
}

enum res
entry_build(struct entry_builder *b, struct arena *a, struct segment_reader *r,
    const struct segment_frame *f, struct err *err, struct entry *out)
{
	struct segment_content c;
	if (f->header.type != FRAME_MESSAGE &&
	    f->header.type != FRAME_DELIVERY && f->header.type != FRAME_HELD)
		return RES_NOTFOUND;
	enum res res = segment_reader_load(r, a, f, err, &c);
	if (res == RES_CORRUPT && c.state[BLOCK_META] == BLOCK_WHOLE)
		res = RES_OK; /* the body's damage is told below */
	if (res != RES_OK)
		return res;
	if (c.state[BLOCK_META] == BLOCK_ERASED ||
	    c.state[BLOCK_BODY] == BLOCK_ERASED)
		return RES_NOTFOUND;
	*out = (struct entry){ .number = f->header.number,
		.offset = f->offset,
		.bytes = f->header.body_plain,
		.content = f->header.number,
		.time_us = f->header.time_us };
	if (f->header.flags & FRAME_BODY_IN_FRAME)
		out->content = c.body.frame;
	buf_reset(&b->facts);
	buf_reset(&b->rcpts);
	buf_reset(&b->sender);
	buf_add_c(&b->facts, TOKENIZER_FACT_MARK "all ");
	if (f->header.type == FRAME_HELD)
		fact_origin(b, held_origin(c.meta));
	read_meta(b, held_meta(f->header.type, c.meta), out);
	text_extract_reset(b->text);
	struct sink *sink = text_extract_sink(b->text);
	res = segment_reader_body(r, f, NULL, sink);
	out->damaged =
	    res == RES_CORRUPT || res == RES_NOTFOUND || res == RES_IO;
	if (out->damaged)
		fact_c(b, "index", "damaged");
	else if (res != RES_OK)
		return res;
	res = sink_finish(sink);
	if (res != RES_OK)
		return res;
	out->doc = text_extract_doc(b->text);
	facts_of_text(b, out->doc);
	if (b->facts.error == RES_NOMEM || b->rcpts.error == RES_NOMEM ||
	    b->sender.error == RES_NOMEM)
		return RES_NOMEM;
	out->facts = buf_str(&b->facts);
	out->rcpts = buf_str(&b->rcpts);
	out->sender = buf_str(&b->sender);
	return RES_OK;
}

size_t
entry_bytes(const struct entry *e)
{
	const struct text_doc *d = e->doc;
	return d->subject.len + d->from.len + d->to.len + d->cc.len +
	    d->other.len + d->body.len + d->filename.len + d->message_id.len +
	    e->facts.len + e->rcpts.len + e->sender.len;
}

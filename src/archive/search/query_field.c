/* The fields of the query language and what their values mean. */
#include "archive/index/tokenizer.h"
#include "archive/search/query_inside.h"
#include "base/codec.h"

/* Ignored words that are named. */
#define MAX_IGNORED 20

#define BIT(column) (1u << (column))
#define ADDRESSES                                                              \
	(BIT(COLUMN_FROM) | BIT(COLUMN_TO) | BIT(COLUMN_CC) |                  \
	    BIT(COLUMN_SENDER) | BIT(COLUMN_RCPT) | BIT(COLUMN_OTHER))

static void
ignore(struct parser *p, struct str word)
{
	if (p->q->ignored_count == MAX_IGNORED)
		return;
	struct str *list =
	    arena_array(p->a, p->q->ignored_count + 1, sizeof *list);
	if (list == NULL)
		return;
	if (p->q->ignored_count > 0)
		memcpy(list, p->q->ignored, p->q->ignored_count * sizeof *list);
	list[p->q->ignored_count++] = word;
	p->q->ignored = list;
}

/* NULL without an error: nothing to look for, noted as ignored. */
struct node *
query_text_value(struct parser *p, const struct field_row *f, struct str value)
{
	if (f != NULL && str_starts(value, STR("@")))
		value = str_skip(value, 1); /* from:@example.org */
	if (!tokenizer_has_token(value) && f != NULL && p->group == NULL) {
		/* without it the field would find every message */
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "no letter or digit stands behind ",
		    arena_printf(p->a, "%s:", f->name));
		return NULL;
	}
	if (!tokenizer_has_token(value)) {
		ignore(p, value);
		return NULL;
	}
	struct node *n = query_leaf(p, NODE_WORD, f);
	if (n == NULL)
		return NULL;
	n->text = value;
	n->columns = f != NULL ? f->columns : 0;
	n->phrase = p->lex.quoted;
	n->prefix = p->lex.star || tokenizer_is_single_cjk(value);
	return n;
}

static bool
word_in_list(struct str word, const char *list)
{
	struct str rest = str_c(list), one;
	while (str_split(&rest, ' ', &one))
		if (str_case_eq(one, word))
			return true;
	return false;
}

static struct node *
new_fact(struct parser *p, const struct field_row *f, struct str value,
    void (*mark)(struct buf *, struct str, struct str))
{
	struct node *n = query_leaf(p, NODE_FACT, f);
	if (n == NULL)
		return NULL;
	struct buf b;
	buf_init(&b, QUERY_MAX_MATCH);
	mark(&b, str_c(f->name), value);
	n->text = arena_dup(p->a, buf_str(&b));
	n->prefix = p->lex.star;
	buf_done(&b);
	if (n->text.ptr == NULL)
		lexer_fail(
		    &p->lex, p->lex.at, RES_NOMEM, "out of memory", STR_EMPTY);
	return n;
}

static struct node *
fact_value(struct parser *p, const struct field_row *f, struct str value)
{
	value = str_trim(value);
	if (value.len >= 2 && value.ptr[0] == '<' &&
	    value.ptr[value.len - 1] == '>')
		value = str_sub(value, 1, value.len - 2);
	if (value.len == 0 && !p->lex.star) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "nothing stands behind ",
		    arena_printf(p->a, "%s:", f->name));
		return NULL;
	}
	if (f->values != NULL && !p->lex.star &&
	    !word_in_list(value, f->values)) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX, "",
		    arena_printf(p->a, "%s: is one of %s", f->name, f->values));
		return NULL;
	}
	return new_fact(p, f, value, tokenizer_fact);
}

/* A sentence, of which words and phrases are found; several facts in one FTS5
 * string are a phrase. */
static struct node *
reason_value(struct parser *p, const struct field_row *f, struct str value)
{
	struct node *n = new_fact(p, f, value, tokenizer_fact_words);
	if (n != NULL && n->text.len == 0) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "no word stands behind ",
		    arena_printf(p->a, "%s:", f->name));
		return NULL;
	}
	return n;
}

/* Prefix lengths whose network has a fact (archive/facts.c writes them). */
static bool
net_has_fact(const struct ip_net *net)
{
	static const unsigned v4[] = { 8, 16, 24, 32 };
	static const unsigned v6[] = { 16, 32, 48, 64, 128 };
	for (size_t i = 0; i < sizeof v4 / sizeof *v4; i++)
		if (net->ip.family == IP_V4 && net->prefix == v4[i])
			return true;
	for (size_t i = 0; i < sizeof v6 / sizeof *v6; i++)
		if (net->ip.family == IP_V6 && net->prefix == v6[i])
			return true;
	return false;
}

/* The network's text: base address and, unless it is one host, its length. */
static struct str
net_text(struct arena *a, struct ip_net net)
{
	unsigned bits = net.ip.family == IP_V4 ? 32 : 128;
	for (unsigned i = net.prefix; i < bits; i++)
		net.ip.bytes[i / 8] &= (uint8_t) ~(0x80u >> (i % 8));
	struct buf b;
	buf_init(&b, IP_MAX_TEXT + 4);
	ip_format(&b, &net.ip);
	if (net.prefix < bits)
		buf_addf(&b, "/%u", net.prefix);
	struct str text = arena_dup(a, buf_str(&b));
	buf_done(&b);
	return text;
}

/* The smallest network with a fact that holds all of `net`. */
static bool
covering_net(const struct ip_net *net, struct ip_net *out)
{
	*out = *net;
	while (out->prefix > 0 && !net_has_fact(out))
		out->prefix--;
	return out->prefix > 0;
}

static struct node *
ip_value(struct parser *p, const struct field_row *f, struct str value)
{
	struct ip_net net, covering;
	if (ip_net_parse(value, &net) != RES_OK) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "no address or network: ", value);
		return NULL;
	}
	if (net_has_fact(&net))
		return new_fact(p, f, net_text(p->a, net), tokenizer_fact);
	struct node *exact = query_leaf(p, NODE_NET, f);
	if (exact == NULL)
		return NULL;
	exact->net = net;
	exact->text = net_text(p->a, net);
	if (!covering_net(&net, &covering))
		return exact;
	struct children both = { 0 };
	query_add_child(
	    p, &both, new_fact(p, f, net_text(p->a, covering), tokenizer_fact));
	query_add_child(p, &both, exact);
	return query_join(p, NODE_AND, &both);
}

static struct node *
time_value(struct parser *p, const struct field_row *f, struct str value)
{
	int64_t from, to;
	if (query_date(value, p->now_s, &from, &to) != RES_OK) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "no date (2026-11-30, 3d, 2026-10..2026-11): ", value);
		return NULL;
	}
	if (from >= to) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "this ends before it begins: ", value);
		return NULL;
	}
	struct node *n = query_leaf(p, NODE_TIME, f);
	if (n == NULL)
		return NULL;
	n->from = from;
	n->to = to;
	if (str_eq(str_c(f->name), STR("before"))) {
		n->to = from;
		n->from = INT64_MIN;
	} else if (str_eq(str_c(f->name), STR("after"))) {
		n->to = INT64_MAX;
	}
	return n;
}

static struct node *
size_value(struct parser *p, const struct field_row *f, struct str value)
{
	int64_t size;
	if (query_size(value, &size) != RES_OK) {
		lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
		    "no size (500k, 10M): ", value);
		return NULL;
	}
	struct node *n = query_leaf(p, NODE_SIZE, f);
	if (n == NULL)
		return NULL;
	bool larger = str_eq(str_c(f->name), STR("larger"));
	n->from = larger ? size + 1 : 0;
	n->to = larger ? INT64_MAX : size;
	return n;
}

/* --- the fields --- */

#define RESULTS                                                                \
	"pass fail softfail neutral none temperror permerror policy "          \
	"bestguesspass"
static const struct field_row fields[] = {
	{ "from", query_text_value, BIT(COLUMN_FROM) | BIT(COLUMN_SENDER),
	    NULL },
	{ "to", query_text_value, BIT(COLUMN_TO), NULL },
	{ "cc", query_text_value, BIT(COLUMN_CC), NULL },
	{ "rcpt", query_text_value, BIT(COLUMN_RCPT), NULL },
	{ "sender", query_text_value, BIT(COLUMN_SENDER), NULL },
	{ "addr", query_text_value, ADDRESSES, NULL },
	{ "subject", query_text_value, BIT(COLUMN_SUBJECT), NULL },
	{ "body", query_text_value, BIT(COLUMN_BODY), NULL },
	{ "filename", query_text_value, BIT(COLUMN_FILENAME), NULL },
	{ "msgid", fact_value, 0, NULL },
	{ "qid", fact_value, 0, NULL },
	{ "origin", fact_value, 0, NULL },
	{ "helo", fact_value, 0, NULL },
	{ "auth", fact_value, 0, NULL },
	{ "tls", fact_value, 0, NULL },
	{ "dir", fact_value, 0, "in out import seen" },
	{ "dkim", fact_value, 0, RESULTS },
	{ "dkim.d", fact_value, 0, NULL },
	{ "dkim.s", fact_value, 0, NULL },
	{ "signed", fact_value, 0, NULL },
	{ "spf", fact_value, 0, RESULTS },
	{ "spf.helo", fact_value, 0, RESULTS },
	{ "iprev", fact_value, 0, RESULTS },
	{ "dmarc", fact_value, 0, RESULTS },
	{ "arc", fact_value, 0, RESULTS },
	{ "reason", reason_value, 0, NULL },
	{ "disposition", fact_value, 0, NULL },
	{ "has", fact_value, 0, "attachment encrypted signed list" },
	{ "index", fact_value, 0, "partial damaged" },
	{ "ip", ip_value, 0, NULL },
	{ "before", time_value, 0, NULL },
	{ "after", time_value, 0, NULL },
	{ "date", time_value, 0, NULL },
	{ "larger", size_value, 0, NULL },
	{ "smaller", size_value, 0, NULL },
};

const struct field_row *
query_field(struct str name)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_case_eq(name, str_c(fields[i].name)))
			return &fields[i];
	return NULL;
}

#include "archive/search/query.h"

#include "archive/index/tokenizer.h"
#include "base/codec.h"

const char *const query_column_names[COLUMNS] = { "subject", "body",
	"filename", "sender_field", "to_field", "cc_field", "sender", "rcpt",
	"other", "facts" };

/* Ignored words that are named. */
#define MAX_IGNORED 20

#define BIT(column) (1u << (column))
#define ADDRESSES                                                             \
	(BIT(COLUMN_FROM) | BIT(COLUMN_TO) | BIT(COLUMN_CC) |                 \
	    BIT(COLUMN_SENDER) | BIT(COLUMN_RCPT) | BIT(COLUMN_OTHER))

struct parser;
struct field_row;
typedef struct node *(*value_fn)(
    struct parser *p, const struct field_row *f, struct str value);
static struct node *text_value(
    struct parser *, const struct field_row *, struct str);
static struct node *fact_value(
    struct parser *, const struct field_row *, struct str);
static struct node *reason_value(
    struct parser *, const struct field_row *, struct str);
static struct node *ip_value(
    struct parser *, const struct field_row *, struct str);
static struct node *time_value(
    struct parser *, const struct field_row *, struct str);
static struct node *size_value(
    struct parser *, const struct field_row *, struct str);

struct field_row {
	const char *name;
	value_fn parse;
	unsigned columns;   /* of text fields */
	const char *values; /* of facts: the words allowed; NULL = any */
};

#define RESULTS                                                               \
	"pass fail softfail neutral none temperror permerror policy "         \
	"bestguesspass"
static const struct field_row fields[] = {
	{ "from", text_value, BIT(COLUMN_FROM) | BIT(COLUMN_SENDER), NULL },
	{ "to", text_value, BIT(COLUMN_TO), NULL },
	{ "cc", text_value, BIT(COLUMN_CC), NULL },
	{ "rcpt", text_value, BIT(COLUMN_RCPT), NULL },
	{ "sender", text_value, BIT(COLUMN_SENDER), NULL },
	{ "addr", text_value, ADDRESSES, NULL },
	{ "subject", text_value, BIT(COLUMN_SUBJECT), NULL },
	{ "body", text_value, BIT(COLUMN_BODY), NULL },
	{ "filename", text_value, BIT(COLUMN_FILENAME), NULL },
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

struct parser {
	struct arena *a;
	struct str text;
	size_t at;
	size_t token;       /* where the value being parsed begins */
	int64_t now_s;
	struct err *err;
	enum res res;
	unsigned depth, terms;
	const struct field_row *group; /* inside field:( … ) */
	bool quoted, star;  /* how the value was written */
	struct query *q;
};

/* --- errors --- */

static void
fail(struct parser *p, size_t at, enum res r, const char *what, struct str more)
{
	if (p->res != RES_OK)
		return;
	p->res = r;
	err_set(p->err, "at %zu: %s%.*s", at + 1, what, STR_ARG(more));
}

/* --- building --- */

static struct node *
new_node(struct parser *p, enum node_kind kind)
{
	struct node *n = ARENA_NEW(p->a, struct node);
	if (n == NULL) {
		fail(p, p->at, RES_NOMEM, "out of memory", STR_EMPTY);
		return NULL;
	}
	n->kind = kind;
	return n;
}

static struct node *
new_leaf(struct parser *p, enum node_kind kind, const struct field_row *f)
{
	if (++p->terms > QUERY_MAX_TERMS) {
		fail(p, p->token, RES_LIMIT, "too many terms (100 are allowed)",
		    STR_EMPTY);
		return NULL;
	}
	struct node *n = new_node(p, kind);
	if (n != NULL && f != NULL)
		n->field = str_c(f->name);
	return n;
}

/* A growing list of children; one child alone stands for itself. */
struct children {
	size_t count;
	struct node *nodes[QUERY_MAX_TERMS + QUERY_MAX_DEPTH];
};

static void
add_child(struct parser *p, struct children *c, struct node *n)
{
	if (n == NULL)
		return;
	if (c->count == sizeof c->nodes / sizeof *c->nodes)
		fail(p, p->at, RES_LIMIT, "too many terms", STR_EMPTY);
	else
		c->nodes[c->count++] = n;
}

static struct node *
join(struct parser *p, enum node_kind kind, const struct children *c)
{
	if (c->count == 0)
		return NULL;
	if (c->count == 1)
		return c->nodes[0];
	struct node *n = new_node(p, kind);
	struct node **copy = arena_array(p->a, c->count, sizeof *copy);
	if (n == NULL || copy == NULL)
		return NULL;
	memcpy(copy, c->nodes, c->count * sizeof *copy);
	n->children = copy;
	n->count = c->count;
	return n;
}

/* --- values --- */

static void
ignore(struct parser *p, struct str word)
{
	if (p->q->ignored_count == MAX_IGNORED)
		return;
	struct str *list = arena_array(
	    p->a, p->q->ignored_count + 1, sizeof *list);
	if (list == NULL)
		return;
	if (p->q->ignored_count > 0)
		memcpy(list, p->q->ignored, p->q->ignored_count * sizeof *list);
	list[p->q->ignored_count++] = word;
	p->q->ignored = list;
}

/* NULL without an error: nothing to look for, noted as ignored. */
static struct node *
text_value(struct parser *p, const struct field_row *f, struct str value)
{
	if (f != NULL && str_starts(value, STR("@")))
		value = str_skip(value, 1); /* from:@example.org */
	if (!tokenizer_has_token(value) && f != NULL && p->group == NULL) {
		/* without it the field would find every message */
		fail(p, p->token, RES_SYNTAX, "no letter or digit stands behind ",
		    arena_printf(p->a, "%s:", f->name));
		return NULL;
	}
	if (!tokenizer_has_token(value)) {
		ignore(p, value);
		return NULL;
	}
	struct node *n = new_leaf(p, NODE_WORD, f);
	if (n == NULL)
		return NULL;
	n->text = value;
	n->columns = f != NULL ? f->columns : 0;
	n->phrase = p->quoted;
	n->prefix = p->star || tokenizer_is_single_cjk(value);
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
	struct node *n = new_leaf(p, NODE_FACT, f);
	if (n == NULL)
		return NULL;
	struct buf b;
	buf_init(&b, QUERY_MAX_MATCH);
	mark(&b, str_c(f->name), value);
	n->text = arena_dup(p->a, buf_str(&b));
	n->prefix = p->star;
	buf_done(&b);
	if (n->text.ptr == NULL)
		fail(p, p->at, RES_NOMEM, "out of memory", STR_EMPTY);
	return n;
}

static struct node *
fact_value(struct parser *p, const struct field_row *f, struct str value)
{
	value = str_trim(value);
	if (value.len >= 2 && value.ptr[0] == '<' &&
	    value.ptr[value.len - 1] == '>')
		value = str_sub(value, 1, value.len - 2);
	if (value.len == 0 && !p->star) {
		fail(p, p->token, RES_SYNTAX, "nothing stands behind ",
		    arena_printf(p->a, "%s:", f->name));
		return NULL;
	}
	if (f->values != NULL && !p->star && !word_in_list(value, f->values)) {
		fail(p, p->token, RES_SYNTAX, "",
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
		fail(p, p->token, RES_SYNTAX, "no word stands behind ",
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
		net.ip.bytes[i / 8] &= (uint8_t)~(0x80u >> (i % 8));
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
		fail(p, p->token, RES_SYNTAX, "no address or network: ", value);
		return NULL;
	}
	if (net_has_fact(&net))
		return new_fact(p, f, net_text(p->a, net), tokenizer_fact);
	struct node *exact = new_leaf(p, NODE_NET, f);
	if (exact == NULL)
		return NULL;
	exact->net = net;
	exact->text = net_text(p->a, net);
	if (!covering_net(&net, &covering))
		return exact;
	struct children both = { 0 };
	add_child(p, &both,
	    new_fact(p, f, net_text(p->a, covering), tokenizer_fact));
	add_child(p, &both, exact);
	return join(p, NODE_AND, &both);
}

static struct node *
time_value(struct parser *p, const struct field_row *f, struct str value)
{
	int64_t from, to;
	if (query_date(value, p->now_s, &from, &to) != RES_OK) {
		fail(p, p->token, RES_SYNTAX,
		    "no date (2026-11-30, 3d, 2026-10..2026-11): ", value);
		return NULL;
	}
	if (from >= to) {
		fail(p, p->token, RES_SYNTAX, "this ends before it begins: ",
		    value);
		return NULL;
	}
	struct node *n = new_leaf(p, NODE_TIME, f);
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
		fail(p, p->token, RES_SYNTAX, "no size (500k, 10M): ", value);
		return NULL;
	}
	struct node *n = new_leaf(p, NODE_SIZE, f);
	if (n == NULL)
		return NULL;
	bool larger = str_eq(str_c(f->name), STR("larger"));
	n->from = larger ? size + 1 : 0;
	n->to = larger ? INT64_MAX : size;
	return n;
}

/* --- reading --- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void
skip_blanks(struct parser *p)
{
	while (p->at < p->text.len && is_blank(p->text.ptr[p->at]))
		p->at++;
}

static struct str
rest(const struct parser *p)
{
	return str_skip(p->text, p->at);
}

static bool
take(struct parser *p, char c)
{
	if (p->at >= p->text.len || p->text.ptr[p->at] != c)
		return false;
	p->at++;
	return true;
}

/* A keyword in capitals, alone. */
static bool
take_keyword(struct parser *p, const char *word)
{
	struct str r = rest(p), w = str_c(word);
	if (!str_starts(r, w))
		return false;
	if (r.len > w.len && !is_blank(r.ptr[w.len]) && r.ptr[w.len] != '(' &&
	    r.ptr[w.len] != ')')
		return false;
	p->at += w.len;
	skip_blanks(p);
	return true;
}

/* "phrase", with "" for a quote in it, or a word up to a blank or a
 * parenthesis; a '*' right behind it. */
static struct str
read_value(struct parser *p)
{
	p->token = p->at;
	p->quoted = p->star = false;
	struct str value;
	if (take(p, '"')) {
		p->quoted = true;
		size_t from = p->at, end = str_chr(rest(p), '"');
		if (end == SIZE_MAX) {
			fail(p, p->token, RES_SYNTAX,
			    "this quotation mark is never closed", STR_EMPTY);
			return STR_EMPTY;
		}
		value = str_sub(p->text, from, end);
		p->at = from + end + 1;
		p->star = take(p, '*');
		return value;
	}
	size_t from = p->at;
	while (p->at < p->text.len && !is_blank(p->text.ptr[p->at]) &&
	    p->text.ptr[p->at] != '(' && p->text.ptr[p->at] != ')' &&
	    p->text.ptr[p->at] != '"')
		p->at++;
	value = str_sub(p->text, from, p->at - from);
	if (str_ends(value, STR("*"))) {
		value.len--;
		p->star = true;
	}
	return value;
}

/* "name:" at the place we are, letters and dots only. */
static bool
field_name(const struct parser *p, struct str *out)
{
	struct str r = rest(p);
	size_t n = 0;
	while (n < r.len && (ascii_is_alpha(r.ptr[n]) || r.ptr[n] == '.'))
		n++;
	if (n == 0 || n == r.len || r.ptr[n] != ':')
		return false;
	*out = str_sub(r, 0, n);
	return true;
}

static const struct field_row *
find_field(struct str name)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_case_eq(name, str_c(fields[i].name)))
			return &fields[i];
	return NULL;
}

static struct node *parse_or(struct parser *p);

static bool
enter(struct parser *p)
{
	if (++p->depth <= QUERY_MAX_DEPTH)
		return true;
	fail(p, p->at, RES_LIMIT, "nested too deep (32 levels are allowed)",
	    STR_EMPTY);
	return false;
}

static struct node *
parse_group(struct parser *p)
{
	size_t opened = p->at - 1;
	if (!enter(p))
		return NULL;
	struct node *n = parse_or(p);
	p->depth--;
	skip_blanks(p);
	if (!take(p, ')'))
		fail(p, opened, RES_SYNTAX,
		    "this parenthesis is never closed", STR_EMPTY);
	return n;
}

/* Behind "name:": a value, or a group of values. */
static struct node *
parse_field(struct parser *p, const struct field_row *f)
{
	if (!take(p, '(')) {
		struct str value = read_value(p);
		if (p->res != RES_OK)
			return NULL;
		if (value.len == 0 && !p->star) {
			fail(p, p->token, RES_SYNTAX, "nothing stands behind ",
			    arena_printf(p->a, "%s:", f->name));
			return NULL;
		}
		return f->parse(p, f, value);
	}
	const struct field_row *outer = p->group;
	p->group = f;
	struct node *n = parse_group(p);
	p->group = outer;
	return n;
}

static struct node *
parse_primary(struct parser *p)
{
	if (take(p, '('))
		return parse_group(p);
	if (p->at < p->text.len && p->text.ptr[p->at] == ')') {
		fail(p, p->at, RES_SYNTAX, "nothing was opened that this closes",
		    STR_EMPTY);
		return NULL;
	}
	struct str name;
	if (field_name(p, &name)) {
		const struct field_row *f = find_field(name);
		struct str behind = str_skip(rest(p), name.len + 1);
		if (f != NULL && p->group == NULL) {
			p->at += name.len + 1;
			return parse_field(p, f);
		}
		/* "Re:" and "http://…" are words; "form:x" is a slip */
		if (behind.len > 0 && !is_blank(behind.ptr[0]) &&
		    !str_starts(behind, STR("//"))) {
			fail(p, p->at, RES_SYNTAX,
			    f != NULL ? "a field inside a field's group: " :
					"no such field (quote it to search for "
					"the word): ",
			    name);
			return NULL;
		}
	}
	struct str value = read_value(p);
	if (p->res != RES_OK)
		return NULL;
	if (p->group != NULL)
		return p->group->parse(p, p->group, value);
	return text_value(p, NULL, value);
}

static struct node *
parse_unary(struct parser *p)
{
	skip_blanks(p);
	size_t from = p->at;
	bool negated = take_keyword(p, "NOT");
	if (!negated && p->at + 1 < p->text.len && p->text.ptr[p->at] == '-' &&
	    !is_blank(p->text.ptr[p->at + 1])) {
		p->at++;
		negated = true;
	}
	if (!negated)
		return parse_primary(p);
	if (!enter(p))
		return NULL;
	skip_blanks(p);
	if (p->at == p->text.len) {
		fail(p, from, RES_SYNTAX, "nothing stands behind NOT", STR_EMPTY);
		return NULL;
	}
	struct node *child = parse_unary(p);
	p->depth--;
	if (child == NULL)
		return NULL;
	struct node *n = new_node(p, NODE_NOT);
	struct node **list = arena_array(p->a, 1, sizeof *list);
	if (n == NULL || list == NULL)
		return NULL;
	list[0] = child;
	n->children = list;
	n->count = 1;
	return n;
}

static bool
at_end(struct parser *p)
{
	skip_blanks(p);
	return p->res != RES_OK || p->at == p->text.len;
}

static bool
at_or(struct parser *p)
{
	size_t at = p->at;
	bool yes = take_keyword(p, "OR");
	p->at = at;
	return yes;
}

static struct node *
parse_and(struct parser *p)
{
	struct children c = { 0 };
	while (!at_end(p) && !at_or(p) &&
	    !(p->depth > 0 && p->text.ptr[p->at] == ')')) {
		if (c.count > 0 && take_keyword(p, "AND") && at_end(p)) {
			fail(p, p->at, RES_SYNTAX, "nothing stands behind AND",
			    STR_EMPTY);
			break;
		}
		add_child(p, &c, parse_unary(p));
	}
	return join(p, NODE_AND, &c);
}

static struct node *
parse_or(struct parser *p)
{
	struct children c = { 0 };
	for (;;) {
		skip_blanks(p);
		size_t from = p->at;
		add_child(p, &c, parse_and(p));
		skip_blanks(p);
		bool empty = p->at == from;
		bool more = p->res == RES_OK && take_keyword(p, "OR");
		if (empty && (more || c.count > 0))
			fail(p, from, RES_SYNTAX, "OR wants a term on each side",
			    STR_EMPTY);
		if (!more)
			break;
		if (at_end(p) && p->res == RES_OK)
			fail(p, p->at, RES_SYNTAX,
			    "OR wants a term on each side", STR_EMPTY);
	}
	return join(p, NODE_OR, &c);
}

/* --- words to highlight --- */

static void
collect_words(struct query *q, const struct node *n, bool negated)
{
	if (n->kind == NODE_WORD && !negated && q->words != NULL)
		q->words[q->word_count++] = n;
	for (size_t i = 0; i < n->count; i++)
		collect_words(q, n->children[i],
		    n->kind == NODE_NOT ? !negated : negated);
}

enum res
query_parse(struct arena *a, struct str text, int64_t now_s, struct err *err,
    struct query **out)
{
	struct query *q = ARENA_NEW(a, struct query);
	struct parser p = { .a = a, .now_s = now_s, .err = err, .q = q };
	if (text.len > QUERY_MAX_TEXT) {
		err_set(err, "the query is longer than %zu bytes",
		    QUERY_MAX_TEXT);
		return RES_LIMIT;
	}
	if (q == NULL)
		return RES_NOMEM;
	q->text = arena_dup(a, text);
	if (q->text.ptr == NULL)
		return RES_NOMEM;
	if (!utf8_valid(text) || str_chr(text, '\0') != SIZE_MAX) {
		err_set(err, "the query is not UTF-8 text");
		return RES_SYNTAX;
	}
	p.text = q->text;
	struct node *root = parse_or(&p);
	if (p.res == RES_OK && p.at < p.text.len)
		fail(&p, p.at, RES_SYNTAX, "nothing was opened that this closes",
		    STR_EMPTY);
	if (p.res == RES_OK && root == NULL)
		root = new_node(&p, NODE_ALL);
	if (p.res != RES_OK)
		return p.res;
	if (root == NULL)
		return RES_NOMEM;
	q->root = root;
	q->words = arena_array(a, p.terms + 1, sizeof *q->words);
	collect_words(q, root, false);
	enum res r = query_compile(a, q, err);
	if (r == RES_OK)
		*out = q;
	return r;
}

#include "archive/search/query.h"

#include "archive/search/query_inside.h"
#include "base/codec.h"

const char *const query_column_names[COLUMNS] = { "subject", "body", "filename",
	"sender_field", "to_field", "cc_field", "sender", "rcpt", "other",
	"facts" };

/* --- building --- */

struct node *
query_node(struct parser *p, enum node_kind kind)
{
	struct node *n = ARENA_NEW(p->a, struct node);
	if (n == NULL) {
		lexer_fail(
		    &p->lex, p->lex.at, RES_NOMEM, "out of memory", STR_EMPTY);
		return NULL;
	}
	n->kind = kind;
	return n;
}

struct node *
query_leaf(struct parser *p, enum node_kind kind, const struct field_row *f)
{
	if (++p->terms > QUERY_MAX_TERMS) {
		lexer_fail(&p->lex, p->lex.token, RES_LIMIT,
		    "too many terms (100 are allowed)", STR_EMPTY);
		return NULL;
	}
	struct node *n = query_node(p, kind);
	if (n != NULL && f != NULL)
		n->field = str_c(f->name);
	return n;
}

void
query_add_child(struct parser *p, struct children *c, struct node *n)
{
	if (n == NULL)
		return;
	if (c->count == sizeof c->nodes / sizeof *c->nodes)
		lexer_fail(
		    &p->lex, p->lex.at, RES_LIMIT, "too many terms", STR_EMPTY);
	else
		c->nodes[c->count++] = n;
}

struct node *
query_join(struct parser *p, enum node_kind kind, const struct children *c)
{
	if (c->count == 0)
		return NULL;
	if (c->count == 1)
		return c->nodes[0];
	struct node *n = query_node(p, kind);
	struct node **copy = arena_array(p->a, c->count, sizeof *copy);
	if (n == NULL || copy == NULL)
		return NULL;
	memcpy(copy, c->nodes, c->count * sizeof *copy);
	n->children = copy;
	n->count = c->count;
	return n;
}

/* --- reading --- */

static struct node *parse_or(struct parser *p);

static bool
enter(struct parser *p)
{
	if (++p->depth <= QUERY_MAX_DEPTH)
		return true;
	lexer_fail(&p->lex, p->lex.at, RES_LIMIT,
	    "nested too deep (32 levels are allowed)", STR_EMPTY);
	return false;
}

static struct node *
parse_group(struct parser *p)
{
	size_t opened = p->lex.at - 1;
	if (!enter(p))
		return NULL;
	struct node *n = parse_or(p);
	p->depth--;
	lexer_skip_blanks(&p->lex);
	if (!lexer_take(&p->lex, ')'))
		lexer_fail(&p->lex, opened, RES_SYNTAX,
		    "this parenthesis is never closed", STR_EMPTY);
	return n;
}

/* Behind "name:": a value, or a group of values. */
static struct node *
parse_field(struct parser *p, const struct field_row *f)
{
	if (!lexer_take(&p->lex, '(')) {
		struct str value = lexer_value(&p->lex);
		if (p->lex.res != RES_OK)
			return NULL;
		if (value.len == 0 && !p->lex.star) {
			lexer_fail(&p->lex, p->lex.token, RES_SYNTAX,
			    "nothing stands behind ",
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
	if (lexer_take(&p->lex, '('))
		return parse_group(p);
	if (p->lex.at < p->lex.text.len && p->lex.text.ptr[p->lex.at] == ')') {
		lexer_fail(&p->lex, p->lex.at, RES_SYNTAX,
		    "nothing was opened that this closes", STR_EMPTY);
		return NULL;
	}
	struct str name;
	if (lexer_field_name(&p->lex, &name)) {
		const struct field_row *f = query_field(name);
		struct str behind = str_skip(lexer_rest(&p->lex), name.len + 1);
		if (f != NULL && p->group == NULL) {
			p->lex.at += name.len + 1;
			return parse_field(p, f);
		}
		/* "Re:" and "http://…" are words; "form:x" is a slip */
		if (behind.len > 0 && !lexer_is_blank(behind.ptr[0]) &&
		    !str_starts(behind, STR("//"))) {
			lexer_fail(&p->lex, p->lex.at, RES_SYNTAX,
			    f != NULL ? "a field inside a field's group: "
				      : "no such field (quote it to search for "
					"the word): ",
			    name);
			return NULL;
		}
	}
	struct str value = lexer_value(&p->lex);
	if (p->lex.res != RES_OK)
		return NULL;
	if (p->group != NULL)
		return p->group->parse(p, p->group, value);
	return query_text_value(p, NULL, value);
}

static struct node *
parse_unary(struct parser *p)
{
	lexer_skip_blanks(&p->lex);
	size_t from = p->lex.at;
	bool negated = lexer_keyword(&p->lex, "NOT");
	if (!negated && p->lex.at + 1 < p->lex.text.len &&
	    p->lex.text.ptr[p->lex.at] == '-' &&
	    !lexer_is_blank(p->lex.text.ptr[p->lex.at + 1])) {
		p->lex.at++;
		negated = true;
	}
	if (!negated)
		return parse_primary(p);
	if (!enter(p))
		return NULL;
	lexer_skip_blanks(&p->lex);
	if (p->lex.at == p->lex.text.len) {
		lexer_fail(&p->lex, from, RES_SYNTAX,
		    "nothing stands behind NOT", STR_EMPTY);
		return NULL;
	}
	struct node *child = parse_unary(p);
	p->depth--;
	if (child == NULL)
		return NULL;
	if (child->kind == NODE_NOT) /* FTS5's parser has a small stack */
		return child->children[0];
	struct node *n = query_node(p, NODE_NOT);
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
	lexer_skip_blanks(&p->lex);
	return p->lex.res != RES_OK || p->lex.at == p->lex.text.len;
}

static bool
at_or(struct parser *p)
{
	size_t at = p->lex.at;
	bool yes = lexer_keyword(&p->lex, "OR");
	p->lex.at = at;
	return yes;
}

static struct node *
parse_and(struct parser *p)
{
	struct children c = { 0 };
	while (!at_end(p) && !at_or(p) &&
	    !(p->depth > 0 && p->lex.text.ptr[p->lex.at] == ')')) {
		if (c.count > 0 && lexer_keyword(&p->lex, "AND") && at_end(p)) {
			lexer_fail(&p->lex, p->lex.at, RES_SYNTAX,
			    "nothing stands behind AND", STR_EMPTY);
			break;
		}
		query_add_child(p, &c, parse_unary(p));
	}
	return query_join(p, NODE_AND, &c);
}

static struct node *
parse_or(struct parser *p)
{
	struct children c = { 0 };
	for (;;) {
		lexer_skip_blanks(&p->lex);
		size_t from = p->lex.at;
		query_add_child(p, &c, parse_and(p));
		lexer_skip_blanks(&p->lex);
		bool empty = p->lex.at == from;
		bool more =
		    p->lex.res == RES_OK && lexer_keyword(&p->lex, "OR");
		if (empty && (more || c.count > 0))
			lexer_fail(&p->lex, from, RES_SYNTAX,
			    "OR wants a term on each side", STR_EMPTY);
		if (!more)
			break;
		if (at_end(p) && p->lex.res == RES_OK)
			lexer_fail(&p->lex, p->lex.at, RES_SYNTAX,
			    "OR wants a term on each side", STR_EMPTY);
	}
	return query_join(p, NODE_OR, &c);
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
	struct parser p = {
		.a = a, .now_s = now_s, .lex = { .err = err }, .q = q
	};
	if (text.len > QUERY_MAX_TEXT) {
		err_set(
		    err, "the query is longer than %zu bytes", QUERY_MAX_TEXT);
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
	p.lex.text = q->text;
	struct node *root = parse_or(&p);
	if (p.lex.res == RES_OK && p.lex.at < p.lex.text.len)
		lexer_fail(&p.lex, p.lex.at, RES_SYNTAX,
		    "nothing was opened that this closes", STR_EMPTY);
	if (p.lex.res == RES_OK && root == NULL)
		root = query_node(&p, NODE_ALL);
	if (p.lex.res != RES_OK)
		return p.lex.res;
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

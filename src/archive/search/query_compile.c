/* From the tree to what a search runs. Parts of the tree that hold no
 * condition on rows ("pure") become one FTS5 expression as they are; only
 * where conditions stand under OR or NOT the tree is multiplied out. */
#include "archive/search/query.h"

#include "archive/index/tokenizer.h"
#include "base/codec.h"

static bool
is_cond(const struct node *n)
{
	return n->kind == NODE_TIME || n->kind == NODE_SIZE ||
	    n->kind == NODE_NET;
}

static bool
is_pure(const struct node *n)
{
	if (is_cond(n))
		return false;
	for (size_t i = 0; i < n->count; i++)
		if (!is_pure(n->children[i]))
			return false;
	return true;
}

/* --- a pure tree as an FTS5 expression --- */

/* An FTS5 string: quotes doubled, so that nothing in it is syntax. */
static void
put_string(struct buf *out, const char *mark, struct str text)
{
	buf_add_char(out, '"');
	buf_add_c(out, mark);
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, text.ptr[i]);
	}
	buf_add_char(out, '"');
}

static void
put_columns(struct buf *out, unsigned columns)
{
	if (columns == 0)
		return;
	buf_add_char(out, '{');
	for (size_t i = 0; i < COLUMNS; i++)
		if (columns & 1u << i)
			buf_addf(out, " %s", query_column_names[i]);
	buf_add_c(out, " } : ");
}

#define ALL_FACT "\"" TOKENIZER_FACT_MARK "all\""

static void put_node(struct buf *out, const struct node *n);

static void
put_list(struct buf *out, const struct node *n, bool negated, const char *word)
{
	bool first = true;
	buf_add_char(out, '(');
	for (size_t i = 0; i < n->count; i++) {
		const struct node *c = n->children[i];
		if ((c->kind == NODE_NOT) != negated && n->kind == NODE_AND)
			continue;
		if (!first)
			buf_addf(out, " %s ", word);
		first = false;
		put_node(out, negated && c->kind == NODE_NOT ? c->children[0]
							     : c);
	}
	buf_add_char(out, ')');
}

/* FTS5's NOT has two sides: what is wanted, and what must not be there. */
static void
put_and(struct buf *out, const struct node *n)
{
	size_t negated = 0;
	for (size_t i = 0; i < n->count; i++)
		negated += n->children[i]->kind == NODE_NOT;
	if (negated == 0) {
		put_list(out, n, false, "AND");
		return;
	}
	buf_add_char(out, '(');
	if (negated == n->count)
		buf_add_c(out, ALL_FACT);
	else
		put_list(out, n, false, "AND");
	buf_add_c(out, " NOT ");
	put_list(out, n, true, "OR");
	buf_add_char(out, ')');
}

static void
put_node(struct buf *out, const struct node *n)
{
	switch (n->kind) {
	case NODE_ALL:
		buf_add_c(out, ALL_FACT);
		break;
	case NODE_AND:
		put_and(out, n);
		break;
	case NODE_OR:
		put_list(out, n, false, "OR");
		break;
	case NODE_NOT:
		buf_add_c(out, "(" ALL_FACT " NOT ");
		put_node(out, n->children[0]);
		buf_add_char(out, ')');
		break;
	case NODE_WORD:
		put_columns(out, n->columns);
		put_string(out, n->phrase ? "" : TOKENIZER_WORD_MARK, n->text);
		if (n->prefix)
			buf_add_c(out, " *");
		break;
	case NODE_FACT:
		put_string(out, "", n->text);
		if (n->prefix)
			buf_add_c(out, " *");
		break;
	case NODE_TIME:
	case NODE_SIZE:
	case NODE_NET:
		break; /* conditions are never part of an expression */
	}
}

/* --- branches --- */

struct branch {
	size_t node_count, cond_count;
	struct node *nodes[QUERY_MAX_TERMS];  /* all of them, pure */
	struct query_cond conds[QUERY_MAX_TERMS];
};
struct branches {
	size_t count;
	struct branch *at[QUERY_MAX_BRANCHES];
};

struct compiler {
	struct arena *a;
	struct err *err;
};

static enum res
too_many(struct compiler *c)
{
	err_set(c->err, "too many alternatives with dates, sizes or networks "
	    "under OR or NOT (%d are allowed)", QUERY_MAX_BRANCHES);
	return RES_LIMIT;
}

static struct branch *
add_branch(struct compiler *c, struct branches *to, const struct branch *from)
{
	struct branch *b = ARENA_NEW(c->a, struct branch);
	if (b == NULL)
		return NULL;
	if (from != NULL)
		*b = *from;
	to->at[to->count++] = b;
	return b;
}

static enum res expand(struct compiler *c, struct node *n, bool negated,
    struct branches *out);

/* A leaf, or a pure tree, in one branch. */
static enum res
expand_one(struct compiler *c, struct node *n, bool negated,
    struct branches *out)
{
	if (out->count == QUERY_MAX_BRANCHES)
		return too_many(c);
	struct branch *b = add_branch(c, out, NULL);
	if (b == NULL)
		return RES_NOMEM;
	if (is_cond(n)) {
		b->conds[b->cond_count++] = (struct query_cond){ n, negated };
		return RES_OK;
	}
	if (negated) {
		struct node *not = ARENA_NEW(c->a, struct node);
		struct node **list = arena_array(c->a, 1, sizeof *list);
		if (not == NULL || list == NULL)
			return RES_NOMEM;
		list[0] = n;
		not->kind = NODE_NOT;
		not->children = list;
		not->count = 1;
		n = not;
	}
	b->nodes[b->node_count++] = n;
	return RES_OK;
}

static enum res
multiply(struct compiler *c, const struct branches *x,
    const struct branches *y, struct branches *out)
{
	for (size_t i = 0; i < x->count; i++)
		for (size_t k = 0; k < y->count; k++) {
			if (out->count == QUERY_MAX_BRANCHES)
				return too_many(c);
			struct branch *b = add_branch(c, out, x->at[i]);
			const struct branch *more = y->at[k];
			if (b == NULL)
				return RES_NOMEM;
			if (b->node_count + more->node_count >
				QUERY_MAX_TERMS ||
			    b->cond_count + more->cond_count > QUERY_MAX_TERMS)
				return too_many(c);
			for (size_t j = 0; j < more->node_count; j++)
				b->nodes[b->node_count++] = more->nodes[j];
			for (size_t j = 0; j < more->cond_count; j++)
				b->conds[b->cond_count++] = more->conds[j];
		}
	return RES_OK;
}

static enum res
expand_all(struct compiler *c, struct node *n, bool negated,
    struct branches *out)
{
	struct branches sum = { 0 };
	for (size_t i = 0; i < n->count; i++) {
		struct branches one = { 0 }, product = { 0 };
		enum res r = expand(c, n->children[i], negated, &one);
		if (r == RES_OK && i > 0)
			r = multiply(c, &sum, &one, &product);
		if (r != RES_OK)
			return r;
		sum = i > 0 ? product : one;
	}
	*out = sum;
	return RES_OK;
}

static enum res
expand_any(struct compiler *c, struct node *n, bool negated,
    struct branches *out)
{
	for (size_t i = 0; i < n->count; i++) {
		enum res r = expand(c, n->children[i], negated, out);
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

/* Append the branches of `n`. */
static enum res
expand(struct compiler *c, struct node *n, bool negated, struct branches *out)
{
	if (is_pure(n) || is_cond(n))
		return expand_one(c, n, negated, out);
	if (n->kind == NODE_NOT)
		return expand(c, n->children[0], !negated, out);
	if ((n->kind == NODE_AND) == negated)
		return expand_any(c, n, negated, out);
	struct branches product = { 0 };
	enum res r = expand_all(c, n, negated, &product);
	for (size_t i = 0; r == RES_OK && i < product.count; i++) {
		if (out->count == QUERY_MAX_BRANCHES)
			return too_many(c);
		out->at[out->count++] = product.at[i];
	}
	return r;
}

static enum res
finish_branch(struct compiler *c, const struct branch *from,
    struct query_branch *out)
{
	struct node top = { .kind = NODE_AND,
		.count = from->node_count,
		.children = (struct node **)(uintptr_t)from->nodes };
	struct query_cond *conds = arena_array(
	    c->a, from->cond_count + 1, sizeof *conds);
	struct buf b;
	buf_init(&b, QUERY_MAX_MATCH);
	bool all = from->node_count == 1 && from->nodes[0]->kind == NODE_ALL;
	if (from->node_count == 1 && !all)
		put_node(&b, from->nodes[0]);
	else if (!all && from->node_count > 0)
		put_node(&b, &top);
	enum res r = b.error;
	if (r == RES_LIMIT)
		err_set(c->err, "the query is too long");
	out->match = arena_dup(c->a, buf_str(&b));
	buf_done(&b);
	if (conds == NULL || out->match.ptr == NULL)
		return RES_NOMEM;
	memcpy(conds, from->conds, from->cond_count * sizeof *conds);
	out->conds = conds;
	out->cond_count = from->cond_count;
	return r;
}

enum res
query_compile(struct arena *a, struct query *q, struct err *err)
{
	struct compiler c = { a, err };
	struct branches all = { 0 };
	enum res r = expand(&c, (struct node *)(uintptr_t)q->root, false, &all);
	if (r != RES_OK)
		return r;
	struct query_branch *list = arena_array(a, all.count, sizeof *list);
	if (list == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < all.count && r == RES_OK; i++)
		r = finish_branch(&c, all.at[i], &list[i]);
	q->branches = list;
	q->branch_count = all.count;
	return r;
}

/* --- conditions --- */

static bool
cond_holds(const struct query_cond *c, int64_t time_us, uint64_t bytes,
    const struct ip *ip)
{
	const struct node *n = c->node;
	bool yes = false;
	if (n->kind == NODE_TIME)
		yes = time_us >= n->from && time_us < n->to;
	else if (n->kind == NODE_SIZE)
		yes = (int64_t)bytes >= n->from && (int64_t)bytes < n->to;
	else if (n->kind == NODE_NET)
		yes = ip->family != IP_NONE && ip_net_contains(&n->net, ip);
	return yes != c->negated;
}

bool
query_conds_hold(const struct query_branch *b, int64_t time_us, uint64_t bytes,
    const struct ip *ip)
{
	for (size_t i = 0; i < b->cond_count; i++)
		if (!cond_holds(&b->conds[i], time_us, bytes, ip))
			return false;
	return true;
}

static void
branch_span(const struct query_branch *b, int64_t *from, int64_t *to)
{
	*from = INT64_MIN;
	*to = INT64_MAX;
	for (size_t i = 0; i < b->cond_count; i++) {
		const struct node *n = b->conds[i].node;
		if (n->kind != NODE_TIME || b->conds[i].negated)
			continue;
		if (n->from > *from)
			*from = n->from;
		if (n->to < *to)
			*to = n->to;
	}
}

void
query_span(const struct query *q, int64_t *out_from, int64_t *out_to)
{
	*out_from = INT64_MAX;
	*out_to = INT64_MIN;
	for (size_t i = 0; i < q->branch_count; i++) {
		int64_t from, to;
		branch_span(&q->branches[i], &from, &to);
		if (from < *out_from)
			*out_from = from;
		if (to > *out_to)
			*out_to = to;
	}
}

uint32_t
query_hash(const struct query *q)
{
	return crc32c(0, q->text.ptr, q->text.len);
}

#include "archive/search/query.h"

#include <inttypes.h>

#include "archive/index/tokenizer.h"
#include "base/clock.h"

static void
indent(struct buf *out, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		buf_add_c(out, "  ");
}

static void
explain_word(const struct node *n, struct buf *out)
{
	const char *kind = n->phrase ? "phrase" : "word";
	if (n->field.len > 0)
		buf_addf(out, "%.*s: ", STR_ARG(n->field));
	buf_addf(out, "the %s \"%.*s\"%s in ", kind, STR_ARG(n->text),
	    n->prefix ? " or one that begins so" : "");
	if (n->columns == 0) {
		buf_add_c(out, "any text\n");
		return;
	}
	static const char *const names[COLUMNS] = { "the subject", "the body",
		"attachment names", "From", "To", "Cc", "the envelope sender",
		"the envelope recipients", "other address fields", "facts" };
	bool first = true;
	for (size_t i = 0; i < COLUMNS; i++) {
		if (!(n->columns & 1u << i))
			continue;
		if (!first)
			buf_add_c(out, " or ");
		buf_add_c(out, names[i]);
		first = false;
	}
	buf_add_char(out, '\n');
}

static void
explain_time(const struct node *n, struct buf *out)
{
	buf_add_c(out, "archived");
	if (n->from != INT64_MIN) {
		buf_add_c(out, " from ");
		clock_format_us(out, n->from);
	}
	if (n->to != INT64_MAX) {
		buf_add_c(out, " before ");
		clock_format_us(out, n->to);
	}
	buf_add_char(out, '\n');
}

static void
explain_size(const struct node *n, struct buf *out)
{
	if (n->to == INT64_MAX)
		buf_addf(out, "larger than %" PRId64 " bytes\n", n->from - 1);
	else
		buf_addf(out, "smaller than %" PRId64 " bytes\n", n->to);
}

/* Several are a phrase. */
static void
explain_fact(const struct node *n, struct buf *out)
{
	struct str rest = n->text, one;
	buf_add_c(out, str_chr(rest, ' ') == SIZE_MAX ? "the fact" :
	    "the facts side by side");
	while (str_split(&rest, ' ', &one)) {
		buf_add_char(out, ' ');
		buf_add_str(out, str_skip(one, sizeof TOKENIZER_FACT_MARK - 1));
	}
	buf_addf(out, "%s\n", n->prefix ? " or one that begins so" : "");
}

static void
explain(const struct node *n, unsigned depth, struct buf *out)
{
	static const char *const heads[] = { [NODE_AND] = "all of:\n",
		[NODE_OR] = "any of:\n", [NODE_NOT] = "not:\n" };
	indent(out, depth);
	switch (n->kind) {
	case NODE_ALL:
		buf_add_c(out, "every message\n");
		break;
	case NODE_AND:
	case NODE_OR:
	case NODE_NOT:
		buf_add_c(out, heads[n->kind]);
		for (size_t i = 0; i < n->count; i++)
			explain(n->children[i], depth + 1, out);
		break;
	case NODE_WORD:
		explain_word(n, out);
		break;
	case NODE_FACT:
		explain_fact(n, out);
		break;
	case NODE_TIME:
		explain_time(n, out);
		break;
	case NODE_SIZE:
		explain_size(n, out);
		break;
	case NODE_NET:
		buf_addf(out, "a client in %.*s\n", STR_ARG(n->text));
		break;
	}
}

void
query_explain(const struct query *q, struct buf *out)
{
	explain(q->root, 0, out);
	for (size_t i = 0; i < q->ignored_count; i++)
		buf_addf(out, "ignored, no letter or digit in it: \"%.*s\"\n",
		    STR_ARG(q->ignored[i]));
	if (q->branch_count > 1)
		buf_addf(out, "searched as %zu alternatives\n",
		    q->branch_count);
}

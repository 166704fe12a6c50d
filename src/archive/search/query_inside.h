/* What parsing a query and the values of its fields have in common. */
#ifndef ARCHIVE_QUERY_INSIDE_H
#define ARCHIVE_QUERY_INSIDE_H

#include "archive/search/query.h"
#include "archive/search/query_lexer.h"

struct field_row;

struct parser {
	struct lexer lex;
	struct arena *a;
	int64_t now_s;
	unsigned depth, terms;
	const struct field_row *group; /* inside field:( … ) */
	struct query *q;
};

/* What may stand before a ':'. */
struct field_row {
	const char *name;
	/* NULL with an error, or without: nothing to look for */
	struct node *(*parse)(
	    struct parser *p, const struct field_row *f, struct str value);
	unsigned columns;   /* of text fields */
	const char *values; /* of facts: the words allowed; NULL = any */
};

/* NULL: there is none of this name, any case. */
const struct field_row *query_field(struct str name);
/* The value of such a field or, with `f` NULL, a word that stands alone;
 * NULL as above. */
struct node *query_text_value(
    struct parser *p, const struct field_row *f, struct str value);

/* A growing list of children; one child alone stands for itself. */
struct children {
	size_t count;
	struct node *nodes[QUERY_MAX_TERMS + QUERY_MAX_DEPTH];
};

/* NULL: no memory, or too many; the error is set. */
struct node *query_node(struct parser *p, enum node_kind kind);
struct node *query_leaf(
    struct parser *p, enum node_kind kind, const struct field_row *f);
void query_add_child(
    struct parser *p, struct children *c, struct node *n);
struct node *query_join(
    struct parser *p, enum node_kind kind, const struct children *c);

#endif

/* A parsed query (the language: hanaper-search(7)). Inside it is a tree; what
 * a search runs are its branches: each an FTS5 expression, in which every word
 * stands quoted, and conditions on catalogue rows. A message matches when any
 * branch does. Nearly every query is one branch without conditions. */
#ifndef ARCHIVE_QUERY_H
#define ARCHIVE_QUERY_H

#include "archive/search/search.h"
#include "base/ip.h"

#define QUERY_MAX_TEXT     ((size_t)4096)
#define QUERY_MAX_TERMS    100
#define QUERY_MAX_DEPTH    32  /* of parentheses and negations */
#define QUERY_MAX_BRANCHES 16
#define QUERY_MAX_MATCH    ((size_t)64 << 10) /* bytes of one expression */

/* Columns of the FTS5 table, in its order. */
enum query_column {
	COLUMN_SUBJECT, COLUMN_BODY, COLUMN_FILENAME, COLUMN_FROM, COLUMN_TO,
	COLUMN_CC, COLUMN_SENDER, COLUMN_RCPT, COLUMN_OTHER, COLUMN_FACTS,
	COLUMNS,
};
/* "subject", "body", … as the table calls them. */
extern const char *const query_column_names[COLUMNS];

enum node_kind { NODE_ALL, NODE_AND, NODE_OR, NODE_NOT, NODE_WORD, NODE_FACT,
	NODE_TIME, NODE_SIZE, NODE_NET };

struct node {
	enum node_kind kind;
	/* AND, OR: children; NOT: one */
	size_t count;
	struct node **children;
	/* WORD: as written; FACT: the marked word */
	struct str text;
	struct str field;       /* as the user wrote it; empty: none */
	unsigned columns;       /* bit per column; 0 = any but facts */
	bool phrase, prefix;
	/* TIME: from <= time < to, µs; SIZE: from <= bytes < to */
	int64_t from, to;
	struct ip_net net;
};

/* One condition on a row. */
struct query_cond {
	const struct node *node; /* TIME, SIZE or NET */
	bool negated;
};

struct query_branch {
	struct str match;        /* FTS5 expression; empty = every message */
	size_t cond_count;
	const struct query_cond *conds;
};

struct query {
	struct str text;         /* as given */
	const struct node *root;
	size_t branch_count;
	const struct query_branch *branches;
	size_t ignored_count;    /* words without a letter or digit */
	const struct str *ignored;
	/* words to highlight: not negated, not facts */
	size_t word_count;
	const struct node **words;
};

/* "2026-11-30", "3d", "yesterday", "a..b": the time meant, µs. RES_SYNTAX. */
HN_CHECK enum res query_date(
    struct str text, int64_t now_s, int64_t *out_from, int64_t *out_to);
/* "10k", "5M", "1G", "1500". */
HN_CHECK enum res query_size(struct str text, int64_t *out);

/* Fill in q->branches from q->root. RES_LIMIT: too many branches. */
HN_CHECK enum res query_compile(
    struct arena *a, struct query *q, struct err *err);

/* Whether the row passes all conditions of a branch. `ip` family IP_NONE:
 * unknown, in no network. */
bool query_conds_hold(const struct query_branch *b, int64_t time_us,
    uint64_t bytes, const struct ip *ip);
/* The time span outside of which nothing matches; INT64_MIN/MAX: open. */
void query_span(const struct query *q, int64_t *out_from, int64_t *out_to);
/* For cursors: tells two queries apart. */
uint32_t query_hash(const struct query *q);

#endif

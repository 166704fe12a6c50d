#include "config/sign_table.h"

#include <stdlib.h>

#include "config/value.h"

struct table {
	struct arena *arena;
	const char *label;
	struct err *err;
	unsigned line;
	struct sign_rule *rules;
	unsigned *lines; /* of each rule, for messages and order */
	size_t count, cap;
};

static enum res
wrong(struct table *t, const char *what, struct str item)
{
	err_set(
	    t->err, "%s:%u: %s '%.*s'", t->label, t->line, what, STR_ARG(item));
	return RES_SYNTAX;
}

static enum res
read_pattern(struct table *t, struct str s, struct sign_rule *r)
{
	size_t at = str_rchr(s, '@');
	struct str domain = s;
	if (str_eq(s, STR("*"))) {
		r->kind = SIGN_ANY;
		r->pattern = STR("");
		return RES_OK;
	}
	if (at != SIZE_MAX) {
		r->kind = SIGN_USER;
		domain = str_skip(s, at + 1);
	} else if (str_starts(s, STR("."))) {
		r->kind = SIGN_SUBDOMAINS;
		domain = s = str_skip(s, 1);
	} else {
		r->kind = SIGN_DOMAIN;
	}
	if (!value_is_domain(domain) ||
	    (r->kind == SIGN_USER && !value_is_address(s)))
		return wrong(t,
		    "the pattern must be user@domain, domain, .domain or *, "
		    "not",
		    s);
	r->pattern = arena_lower(t->arena, s);
	return r->pattern.ptr != NULL ? RES_OK : RES_NOMEM;
}

static bool
is_selector(struct str s)
{
	return value_is_domain(s) && s.len <= 63 * 3;
}

/* i= must lie in or below d= (RFC 6376 §3.5). */
static bool
is_identity_of(struct str identity, struct str domain)
{
	size_t at = str_rchr(identity, '@');
	if (at == SIZE_MAX)
		return false;
	struct str host = str_skip(identity, at + 1);
	if (!value_is_domain(host) || (at != 0 && !value_is_address(identity)))
		return false;
	return str_case_eq(host, domain) ||
	    (host.len > domain.len && str_case_ends(host, domain) &&
		host.ptr[host.len - domain.len - 1] == '.');
}

static enum res
read_part(struct table *t, struct str item, struct sign_rule *r)
{
	size_t equal = str_chr(item, '=');
	struct str name = str_sub(item, 0, equal);
	struct str value =
	    equal != SIZE_MAX ? str_skip(item, equal + 1) : STR_EMPTY;
	struct str *to;
	bool lower = false;
	if (str_eq(name, STR("d"))) {
		to = &r->domain;
		lower = true;
		if (!value_is_domain(value))
			return wrong(
			    t, "d= is not a domain (A-labels):", value);
	} else if (str_eq(name, STR("s"))) {
		to = &r->selector;
		lower = true;
		if (!is_selector(value))
			return wrong(t, "s= is not a selector:", value);
	} else if (str_eq(name, STR("i"))) {
		to = &r->identity;
		if (value.len == 0)
			return wrong(t, "an empty value:", item);
	} else if (str_eq(name, STR("key"))) {
		to = &r->key_path;
		if (!str_starts(value, STR("/")))
			return wrong(t, "key= is not an absolute path:", value);
	} else {
		return wrong(t, "expected d=, s=, i= or key=, got", item);
	}
	if (to->len != 0)
		return wrong(t, "given twice:", name);
	*to = lower ? arena_lower(t->arena, value) : arena_dup(t->arena, value);
	return to->ptr != NULL ? RES_OK : RES_NOMEM;
}

static enum res
add_rule(struct table *t, const struct sign_rule *r)
{
	if (t->count == SIGN_TABLE_MAX_RULES) {
		err_set(t->err, "%s:%u: more than %d rules", t->label, t->line,
		    SIGN_TABLE_MAX_RULES);
		return RES_LIMIT;
	}
	if (t->count == t->cap) {
		size_t cap = t->cap == 0 ? 16 : t->cap * 2;
		struct sign_rule *rules =
		    arena_array(t->arena, cap, sizeof *rules);
		unsigned *lines = arena_array(t->arena, cap, sizeof *lines);
		if (rules == NULL || lines == NULL)
			return RES_NOMEM;
		if (t->count != 0) {
			memcpy(rules, t->rules, t->count * sizeof *rules);
			memcpy(lines, t->lines, t->count * sizeof *lines);
		}
		t->rules = rules;
		t->lines = lines;
		t->cap = cap;
	}
	t->lines[t->count] = t->line;
	t->rules[t->count++] = *r;
	return RES_OK;
}

static enum res
read_line(struct table *t, struct str line)
{
	struct sign_rule r = { .kind = SIGN_ANY };
	struct strlist items;
	line = str_trim(line);
	if (line.len == 0 || line.ptr[0] == '#')
		return RES_OK;
	enum res res = value_split(t->arena, line, &items);
	if (res == RES_OK && items.count == 0)
		return wrong(t, "expected a pattern, got", line);
	if (res == RES_OK)
		res = read_pattern(t, items.items[0], &r);
	for (size_t i = 1; res == RES_OK && i < items.count; i++)
		res = read_part(t, items.items[i], &r);
	if (res != RES_OK)
		return res;
	if (r.domain.len == 0)
		return wrong(t, "d= is missing for", items.items[0]);
	if (r.key_path.len != 0 && r.selector.len == 0)
		return wrong(t, "key= needs s= for", items.items[0]);
	if (r.identity.len != 0 && !is_identity_of(r.identity, r.domain))
		return wrong(
		    t, "i= is not an address in or below d=:", r.identity);
	r.where = arena_printf(t->arena, "%s:%u", t->label, t->line);
	return r.where.ptr != NULL ? add_rule(t, &r) : RES_NOMEM;
}

/* Most specific first: kinds in their order, among `.dom` the longer name,
 * then by name so that equal patterns stand together, then by line. */
static int
compare_rules(const struct sign_rule *x, const struct sign_rule *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->kind == SIGN_SUBDOMAINS && x->pattern.len != y->pattern.len)
		return x->pattern.len > y->pattern.len ? -1 : 1;
	return str_cmp(x->pattern, y->pattern);
}

struct ordered {
	struct sign_rule rule;
	size_t position;
};

static int
compare_ordered(const void *x, const void *y)
{
	const struct ordered *a = x, *b = y;
	int d = compare_rules(&a->rule, &b->rule);
	if (d != 0)
		return d;
	return a->position < b->position ? -1 : a->position > b->position;
}

static bool
is_same_signature(const struct sign_rule *x, const struct sign_rule *y)
{
	return compare_rules(x, y) == 0 && str_eq(x->domain, y->domain) &&
	    str_eq(x->selector, y->selector);
}

/* Rules of one pattern are neighbours after sorting. */
static enum res
check_against_group(struct table *t, size_t i)
{
	const struct sign_rule *r = &t->rules[i];
	for (size_t k = i; k-- > 0 && compare_rules(&t->rules[k], r) == 0;) {
		if (is_same_signature(&t->rules[k], r))
			return wrong(
			    t, "the same signature as at", t->rules[k].where);
		if (i - k >= SIGN_TABLE_MAX_PER_PATTERN) {
			(void)wrong(t, "too many signatures for", r->pattern);
			return RES_LIMIT;
		}
	}
	return RES_OK;
}

static enum res
sort_rules(struct table *t)
{
	struct ordered *sorted =
	    arena_array(t->arena, t->count, sizeof *sorted);
	if (sorted == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < t->count; i++)
		sorted[i] = (struct ordered){ t->rules[i], i };
	qsort(sorted, t->count, sizeof *sorted, compare_ordered);
	for (size_t i = 0; i < t->count; i++)
		t->rules[i] = sorted[i].rule;
	for (size_t i = 0; i < t->count; i++) {
		t->line = t->lines[sorted[i].position];
		enum res r = check_against_group(t, i);
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

enum res
sign_table_parse(struct arena *a, struct str text, const char *label,
    struct err *err, const struct sign_rule **out_rules, size_t *out_count)
{
	struct table t = { .arena = a, .label = label, .err = err };
	struct str line;
	enum res r = RES_OK;
	while (r == RES_OK && text.len != 0 && str_split(&text, '\n', &line)) {
		t.line++;
		r = read_line(&t, line);
	}
	if (r == RES_OK)
		r = sort_rules(&t);
	if (r != RES_OK)
		return r;
	*out_rules = t.rules;
	*out_count = t.count;
	return RES_OK;
}

#include "flow/keyfiles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
compare_names(struct str domain_a, struct str selector_a, struct str domain_b,
    struct str selector_b)
{
	int order = str_cmp(domain_a, domain_b);
	return order != 0 ? order : str_cmp(selector_a, selector_b);
}

static int
compare_files(const void *va, const void *vb)
{
	const struct keyfile *a = va, *b = vb;
	return compare_names(a->domain, a->selector, b->domain, b->selector);
}

/* Rules of one name stand together; the order of the table breaks ties. */
static int
compare_rules(const void *va, const void *vb)
{
	const struct sign_rule *a = *(const struct sign_rule *const *)va;
	const struct sign_rule *b = *(const struct sign_rule *const *)vb;
	int order =
	    compare_names(a->domain, a->selector, b->domain, b->selector);
	return order != 0 ? order : (a > b) - (a < b);
}

static enum res
take_rule(struct arena *a, const struct sign_rule *rule, size_t in_folder,
    struct keydir *d, struct err *err)
{
	struct keyfile f = { .domain = rule->domain,
		.selector = rule->selector };
	const struct keyfile *same = d->files == NULL ? NULL :
	    bsearch(&f, d->files, in_folder, sizeof f, compare_files);
	if (same != NULL) {
		err_set(err, "%.*s: key_dir holds this key as well: leave "
			     "key= out, or remove %.*s",
		    STR_ARG(rule->where), STR_ARG(same->path));
		return RES_EXISTS;
	}
	enum res r = keyfile_open(
	    a, rule->key_path, rule->domain, rule->selector, err, &f);
	if (r != RES_OK)
		return r;
	f.by_rule = true;
	d->files[d->count++] = f;
	return RES_OK;
}

/* One key of each name: rules may share it, not disagree about it. */
static enum res
take_rules(struct arena *a, const struct sign_rule **rules, size_t count,
    struct keydir *d, struct err *err)
{
	size_t in_folder = d->count;
	for (size_t i = 0; i < count; i++) {
		const struct sign_rule *rule = rules[i],
				       *last = i > 0 ? rules[i - 1] : NULL;
		enum res r = RES_OK;
		if (last == NULL ||
		    compare_names(last->domain, last->selector, rule->domain,
			rule->selector) != 0) {
			r = take_rule(a, rule, in_folder, d, err);
		} else if (!str_eq(last->key_path, rule->key_path)) {
			err_set(err, "%.*s: key= is another file than that of "
				     "the same d= and s= at %.*s",
			    STR_ARG(rule->where), STR_ARG(last->where));
			r = RES_EXISTS;
		}
		if (r != RES_OK)
			return r;
	}
	return RES_OK;
}

enum res
keyfiles_add_table(const struct config *c, struct arena *a, struct err *err,
    struct keydir *d)
{
	size_t count = 0;
	const struct sign_rule **rules =
	    arena_array(a, c->sign_rule_count + 1, sizeof *rules);
	if (rules == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < c->sign_rule_count; i++)
		if (c->sign_rules[i].key_path.len != 0)
			rules[count++] = &c->sign_rules[i];
	if (count == 0)
		return RES_OK;
	qsort(rules, count, sizeof *rules, compare_rules);
	struct keyfile *all = arena_array(a, d->count + count, sizeof *all);
	if (all == NULL)
		return RES_NOMEM;
	if (d->count > 0)
		memcpy(all, d->files, d->count * sizeof *all);
	d->files = all;
	enum res r = take_rules(a, rules, count, d, err);
	if (r == RES_OK)
		qsort(d->files, d->count, sizeof *d->files, compare_files);
	return r;
}

enum res
keyfiles_open(const struct config *c, struct arena *a, struct err *err,
    struct keydir *out)
{
	struct keydir d = { 0 };
	enum res r = RES_OK;
	if (c->mode != MODE_VERIFY) {
		char *path = arena_cstr(a, c->key_dir);
		r = path != NULL ? keydir_open(a, path, err, &d) : RES_NOMEM;
		if (r == RES_OK)
			r = keyfiles_add_table(c, a, err, &d);
	}
	if (r == RES_OK)
		*out = d;
	return r;
}

enum res
keyfiles_open_notes(const struct config *c, struct arena *a, struct err *err,
    struct keydir *out)
{
	char *path = arena_cstr(a, c->archive_keys);
	if (path == NULL)
		return RES_NOMEM;
	if (!c->archive || access(path, F_OK) != 0) {
		*out = (struct keydir){ 0 };
		return RES_OK;
	}
	return keydir_open_notes(a, path, err, out);
}

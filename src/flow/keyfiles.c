#include "flow/keyfiles.h"

#include <string.h>

static bool
is_listed(const struct keydir *d, const struct keyfile *f)
{
	for (size_t i = 0; i < d->count; i++)
		if (str_eq(d->files[i].domain, f->domain) &&
		    str_eq(d->files[i].selector, f->selector))
			return true;
	return false;
}

static enum res
add_table_keys(const struct config *c, struct arena *a, struct err *err,
    struct keydir *d)
{
	struct keyfile *all = arena_array(
	    a, d->count + c->sign_rule_count + 1, sizeof *all);
	if (all == NULL)
		return RES_NOMEM;
	if (d->count > 0)
		memcpy(all, d->files, d->count * sizeof *all);
	d->files = all;
	for (size_t i = 0; i < c->sign_rule_count; i++) {
		const struct sign_rule *rule = &c->sign_rules[i];
		struct keyfile f;
		if (rule->key_path.len == 0)
			continue;
		enum res r = keyfile_open(
		    a, rule->key_path, rule->domain, rule->selector, err, &f);
		if (r != RES_OK)
			return r;
		if (!is_listed(d, &f))
			all[d->count++] = f;
	}
	return RES_OK;
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
			r = add_table_keys(c, a, err, &d);
	}
	if (r == RES_OK)
		*out = d;
	return r;
}

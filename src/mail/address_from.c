#include "mail/address.h"

#include "mail/domain.h"

static enum res
add_domain(struct arena *a, struct str domain, struct from_domains *f)
{
	struct str d;
	enum res r = domain_normalize(a, domain, &d);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < f->count; i++)
		if (domain_equal(f->domains[i], d))
			return RES_OK;
	if (f->domains == NULL)
		f->domains =
		    arena_array(a, FROM_MAX_DOMAINS, sizeof *f->domains);
	if (f->domains == NULL)
		return RES_NOMEM;
	if (f->count < FROM_MAX_DOMAINS)
		f->domains[f->count++] = d;
	return RES_OK;
}

/* Adds the domains of one field. RES_SYNTAX when the list or one of its
 * domains is none; a literal is a domain by grammar, but names nothing. */
static enum res
add_field(struct arena *a, struct str value, struct from_domains *f)
{
	struct address_list list;
	enum res r = address_parse_list(a, value, &list);
	if (r != RES_OK)
		return r;
	enum res first = RES_OK;
	for (size_t i = 0; i < list.count; i++) {
		struct str d = list.items[i].domain;
		if (d.len > 0 && d.ptr[0] == '[')
			continue;
		r = add_domain(a, d, f);
		if (r == RES_NOMEM)
			return r;
		if (first == RES_OK)
			first = r;
	}
	return first;
}

static enum from_state
state_of(enum res parsed, const struct from_domains *f)
{
	if (parsed != RES_OK)
		return FROM_UNPARSABLE;
	if (f->count == 0)
		return FROM_NO_DOMAIN;
	return f->count == 1 ? FROM_OK : FROM_MANY_DOMAINS;
}

enum res
address_from_value(struct arena *a, struct str value, struct from_domains *out)
{
	struct from_domains f = { FROM_MISSING, 0, NULL };
	enum res r = add_field(a, value, &f);
	if (r == RES_NOMEM)
		return r;
	f.state = state_of(r, &f);
	*out = f;
	return RES_OK;
}

enum res
address_from_domains(
    struct arena *a, const struct header *h, struct from_domains *out)
{
	const struct field *field = header_find(h, STR("From"));
	struct from_domains f = { FROM_MISSING, 0, NULL };
	if (field == NULL) {
		*out = f;
		return RES_OK;
	}
	if (header_next_same(h, field) == NULL)
		return address_from_value(a, field->value, out);
	f.state = FROM_MANY_FIELDS;
	for (size_t n = 0; field != NULL && n < FROM_MAX_FIELDS; n++) {
		if (add_field(a, field->value, &f) == RES_NOMEM)
			return RES_NOMEM;
		field = header_next_same(h, field);
	}
	*out = f;
	return RES_OK;
}

const char *
from_state_text(enum from_state s)
{
	switch (s) {
	case FROM_OK:
		return "one author domain";
	case FROM_MISSING:
		return "no From field";
	case FROM_MANY_FIELDS:
		return "several From fields";
	case FROM_MANY_DOMAINS:
		return "several domains in From";
	case FROM_NO_DOMAIN:
		return "no domain in From";
	case FROM_UNPARSABLE:
		return "From does not parse";
	}
	return "unknown state of From";
}

/* --- envelope -------------------------------------------------------------- */
/* Position of the last `c` that stands in no quotes and no brackets, or
 * SIZE_MAX; with `first` of the first one. */
static size_t
find_outside(struct str s, char c, bool first)
{
	size_t found = SIZE_MAX;
	bool quoted = false, bracketed = false;
	for (size_t i = 0; i < s.len; i++) {
		char b = s.ptr[i];
		if (b == '\\' && quoted) {
			i++;
		} else if (b == '"' && !bracketed) {
			quoted = !quoted;
		} else if (quoted) {
			continue;
		} else if (b == '[' || b == ']') {
			bracketed = b == '[';
		} else if (b == c && !bracketed) {
			found = i;
			if (first)
				break;
		}
	}
	return found;
}

void
address_envelope(struct str path, struct str *out_address,
    struct str *out_local, struct str *out_domain)
{
	struct str a = str_trim(path);
	if (str_starts(a, STR("<"))) {
		a = str_skip(a, 1);
		if (str_ends(a, STR(">")))
			a.len--;
	}
	if (str_starts(a, STR("@"))) {
		size_t colon = find_outside(a, ':', true);
		if (colon != SIZE_MAX)
			a = str_skip(a, colon + 1);
	}
	size_t at = find_outside(a, '@', false);
	*out_address = a;
	*out_local = str_sub(a, 0, at);
	*out_domain = at != SIZE_MAX ? str_skip(a, at + 1) : STR_EMPTY;
}

#include <stdlib.h>

#include "auth/dmarc.h"

/* Scanners of RFC 9989 §4.7. Only a bad `v` makes the text no record; any
 * other tag that does not parse is dropped alone (§4.8). */

static struct str
trim_wsp(struct str s)
{
	while (s.len > 0 && ascii_is_wsp(s.ptr[0]))
		s = str_skip(s, 1);
	while (s.len > 0 && ascii_is_wsp(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

/* "v" *WSP "=" *WSP "DMARC1", then the end or a ";" (DMARC-R-05, R-06).
 * Nothing may stand before it, and only this value counts in its case. */
static bool
skip_version(struct str *rest)
{
	struct str s = *rest;
	if (!str_starts(s, STR("v")))
		return false;
	s = str_skip(s, 1);
	while (s.len > 0 && ascii_is_wsp(s.ptr[0]))
		s = str_skip(s, 1);
	if (!str_starts(s, STR("=")))
		return false;
	s = str_skip(s, 1);
	while (s.len > 0 && ascii_is_wsp(s.ptr[0]))
		s = str_skip(s, 1);
	if (!str_starts(s, STR("DMARC1")))
		return false;
	s = str_skip(s, 6);
	while (s.len > 0 && ascii_is_wsp(s.ptr[0]))
		s = str_skip(s, 1);
	if (s.len > 0 && s.ptr[0] != ';')
		return false;
	*rest = str_skip(s, 1);
	return true;
}

/* 1*ALPHA *WSP "=" *WSP 1*dmarc-value. A value may be empty here: for the
 * policies that is not the same as absent. */
static bool
scan_tag(struct str part, struct str *out_name, struct str *out_value)
{
	size_t n = 0;
	while (n < part.len && ascii_is_alpha(part.ptr[n]))
		n++;
	struct str after = trim_wsp(str_skip(part, n));
	if (n == 0 || !str_starts(after, STR("=")))
		return false;
	*out_name = str_sub(part, 0, n);
	*out_value = trim_wsp(str_skip(after, 1));
	return true;
}

static bool
policy_from(struct str value, enum dmarc_policy *out)
{
	for (enum dmarc_policy p = DMARC_NONE; p <= DMARC_REJECT; p++)
		if (str_case_eq(value, str_c(dmarc_policy_word(p)))) {
			*out = p;
			return true;
		}
	return false;
}

/* The first of several counts; `p` twice with different values counts as
 * none at all (DMARC-R-03). */
struct policy_tag {
	bool seen, valid;
	enum dmarc_policy value;
};

static void
read_policy(struct str value, bool is_p, struct policy_tag *tag)
{
	enum dmarc_policy p = DMARC_NONE;
	bool valid = policy_from(value, &p);
	if (tag->seen) {
		if (is_p && (valid != tag->valid || p != tag->value))
			tag->valid = false;
		return;
	}
	*tag = (struct policy_tag){ true, valid, p };
}

static bool
is_one_of(struct str value, const char *letters, char *out)
{
	if (value.len != 1)
		return false;
	char c = ascii_lower(value.ptr[0]);
	if (strchr(letters, c) == NULL || c == '\0')
		return false;
	*out = c;
	return true;
}

/* "0" and "1" exclude each other, each at most once; else the default. */
static bool
is_fo(struct str value)
{
	static const char letters[] = "01ds";
	bool seen[sizeof letters] = { false };
	struct str item;
	if (value.len == 0)
		return false;
	while (str_split(&value, ':', &item)) {
		char c;
		if (!is_one_of(trim_wsp(item), letters, &c))
			return false;
		size_t i = (size_t)(strchr(letters, c) - letters);
		if (seen[i])
			return false;
		seen[i] = true;
	}
	return !(seen[0] && seen[1]);
}

/* Cut the obsolete "!10m" off. A "!" anywhere else must be encoded. */
static bool
cut_size(struct str *uri)
{
	size_t at = str_rchr(*uri, '!');
	if (at == SIZE_MAX)
		return true;
	struct str size = str_skip(*uri, at + 1);
	if (size.len > 0 &&
	    strchr("kmgt", ascii_lower(size.ptr[size.len - 1])) != NULL)
		size.len--;
	uint64_t ignored;
	if (str_to_u64(size, UINT64_MAX, &ignored) == RES_SYNTAX)
		return false;
	*uri = str_sub(*uri, 0, at);
	return str_chr(*uri, '!') == SIZE_MAX;
}

/* scheme ":" and something of URI characters behind it (RFC 3986 §3); for
 * mailto an address must be there. */
static bool
is_uri(struct str s)
{
	size_t n = 0;
	while (n < s.len &&
	    (ascii_is_alpha(s.ptr[n]) ||
		(n > 0 &&
		    (ascii_is_digit(s.ptr[n]) ||
			str_chr(STR("+-."), s.ptr[n]) != SIZE_MAX))))
		n++;
	struct str rest = str_skip(s, n);
	if (n == 0 || rest.len < 2 || rest.ptr[0] != ':')
		return false;
	rest = str_skip(rest, 1);
	for (size_t i = 0; i < rest.len; i++)
		if (rest.ptr[i] <= ' ' || rest.ptr[i] > '~' ||
		    str_chr(STR("<>\"\\^`{|}"), rest.ptr[i]) != SIZE_MAX)
			return false;
	if (!str_case_eq(str_sub(s, 0, n), STR("mailto")))
		return true;
	size_t at = str_rchr(str_sub(rest, 0, str_chr(rest, '?')), '@');
	return at != SIZE_MAX && at > 0 && at + 1 < rest.len;
}

static enum res
read_uris(struct arena *a, struct str value, struct str **out, size_t *count)
{
	struct str item;
	if (*out != NULL)
		return RES_OK;
	*out = arena_array(a, DMARC_MAX_URIS, sizeof **out);
	if (*out == NULL)
		return RES_NOMEM;
	while (*count < DMARC_MAX_URIS && str_split(&value, ',', &item)) {
		item = trim_wsp(item);
		if (!cut_size(&item) || !is_uri(item))
			continue;
		(*out)[(*count)++] = item;
	}
	return RES_OK;
}

struct reading {
	struct arena *arena;
	struct dmarc_record *record;
	struct policy_tag p, sp, np;
	bool adkim, aspf, psd, testing, fo; /* seen, also when invalid */
};

/* The first time a tag is seen? */
static bool
first(bool *seen)
{
	bool was = *seen;
	*seen = true;
	return !was;
}

static enum res
read_tag(struct reading *r, struct str name, struct str value)
{
	struct dmarc_record *d = r->record;
	char c = '\0';
	if (str_eq(name, STR("p"))) {
		read_policy(value, true, &r->p);
	} else if (str_eq(name, STR("sp"))) {
		read_policy(value, false, &r->sp);
	} else if (str_eq(name, STR("np"))) {
		read_policy(value, false, &r->np);
	} else if (str_eq(name, STR("adkim")) && first(&r->adkim)) {
		d->strict_dkim = is_one_of(value, "rs", &c) && c == 's';
	} else if (str_eq(name, STR("aspf")) && first(&r->aspf)) {
		d->strict_spf = is_one_of(value, "rs", &c) && c == 's';
	} else if (str_eq(name, STR("psd")) && first(&r->psd)) {
		d->psd = is_one_of(value, "ynu", &c) ? c : 'u';
	} else if (str_eq(name, STR("t")) && first(&r->testing)) {
		d->testing = is_one_of(value, "yn", &c) && c == 'y';
	} else if (str_eq(name, STR("fo")) && first(&r->fo)) {
		d->fo = is_fo(value) ? value : STR("0");
	} else if (str_eq(name, STR("rua"))) {
		return read_uris(r->arena, value, &d->rua, &d->rua_count);
	} else if (str_eq(name, STR("ruf"))) {
		return read_uris(r->arena, value, &d->ruf, &d->ruf_count);
	}
	return RES_OK;
}

static void
keep_policies(const struct reading *r, struct dmarc_record *d)
{
	d->has_p = r->p.seen && r->p.valid;
	d->has_sp = r->sp.seen && r->sp.valid;
	d->has_np = r->np.seen && r->np.valid;
	d->p = d->has_p ? r->p.value : DMARC_NONE;
	d->sp = d->has_sp ? r->sp.value : d->p;
	d->np = d->has_np ? r->np.value : d->sp;
	d->bad_policy = r->p.seen != d->has_p || r->sp.seen != d->has_sp ||
	    r->np.seen != d->has_np;
}

enum res
dmarc_record_parse(struct arena *a, struct str text, struct dmarc_record *out)
{
	struct str rest = text, part, name, value;
	if (!skip_version(&rest))
		return RES_SYNTAX;
	struct dmarc_record d = { .psd = 'u', .fo = STR("0") };
	struct reading r = { .arena = a, .record = &d };
	d.text = arena_dup(a, text);
	if (d.text.ptr == NULL)
		return RES_NOMEM;
	/* views from here on are into the copy */
	rest = str_skip(d.text, text.len - rest.len);
	while (str_split(&rest, ';', &part)) {
		if (!scan_tag(trim_wsp(part), &name, &value))
			continue;
		enum res res = read_tag(&r, name, value);
		if (res != RES_OK)
			return res;
	}
	keep_policies(&r, &d);
	*out = d;
	return RES_OK;
}

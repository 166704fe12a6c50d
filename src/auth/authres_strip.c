#include "auth/authres.h"

#include "auth/authres_scan.h"
#include "mail/domain.h"

/* Fails closed: what cannot be understood and could carry one of our ids
 * counts as ours. */

/* Enough for any honest field; a larger one is looked through as text. */
#define SCRATCH_BYTES ((size_t)1 << 20)

/* The one form ids are compared in: A-labels where it is a domain name, else
 * lower case; no trailing dot. */
static struct str
normal_id(struct arena *a, struct str id)
{
	struct str out;
	if (domain_normalize(a, id, &out) == RES_OK)
		return out;
	out = arena_lower(a, id);
	while (out.len > 0 && out.ptr[out.len - 1] == '.')
		out.len--;
	return out;
}

/* Equal, or above or below inside our organizational domain: "example.org"
 * and "a.mx.example.org" are read as "mx.example.org" by some. */
static bool
looks_like(struct str id, struct str ours, struct str org)
{
	if (str_eq(id, ours))
		return true;
	return org.len != 0 && domain_equal_or_below(id, org) &&
	    domain_equal_or_below(ours, org) &&
	    (domain_is_below(id, ours) || domain_is_below(ours, id));
}

/* --- the id where it belongs ----------------------------------------------- */
enum id_form {
	ID_CLEAR,
	ID_UNCLEAR, /* more than a version behind it */
	ID_REFUSED, /* ";" where it should be, empty, or an unknown version */
	ID_NONE,    /* Microsoft's form, or nothing to be understood */
};

static enum id_form
read_behind_id(struct authres_scan *w)
{
	unsigned version = 1;
	enum res r = authres_version(w, &version);
	if (r == RES_OK && version != 1)
		return ID_REFUSED;
	if (r == RES_OK && scan_cfws(&w->s) != RES_OK)
		return ID_UNCLEAR;
	return scan_peek(&w->s) == ';' || scan_peek(&w->s) == -1 ? ID_CLEAR
								 : ID_UNCLEAR;
}

static enum id_form
read_id(struct arena *a, struct str value, struct str *out)
{
	struct authres_scan w = { .arena = a, .s.text = value };
	struct str id;
	if (scan_cfws(&w.s) != RES_OK)
		return ID_NONE;
	if (scan_peek(&w.s) == ';')
		return ID_REFUSED;
	enum res r = authres_loose_id(&w, &id);
	if (r == RES_NOMEM)
		return ID_REFUSED;
	if (r != RES_OK || scan_cfws(&w.s) != RES_OK || scan_peek(&w.s) == '=')
		return ID_NONE;
	/* "mx.example.org/foo" is read as "mx.example.org" by some */
	*out = str_trim(str_sub(id, 0, str_chr(id, '/')));
	return out->len != 0 ? read_behind_id(&w) : ID_REFUSED;
}

/* --- the id anywhere -------------------------------------------------------- */
/* The text as a careless reader might see it: lower case, no blanks, quotes,
 * backslashes or control bytes; comments gone, or only their parentheses. */
static struct str
flatten(struct arena *a, struct str value, bool keep_comments)
{
	char *p = arena_alloc(a, value.len);
	size_t n = 0, depth = 0;
	for (size_t i = 0; p != NULL && i < value.len; i++) {
		char c = ascii_lower(value.ptr[i]);
		if (c == '(')
			depth++;
		else if (c == ')' && depth > 0)
			depth--;
		else if ((keep_comments || depth == 0) && c != '"' &&
		    c != '\\' && (unsigned char)c > ' ' && c != 0x7f)
			p[n++] = c;
	}
	return str_of(p, n);
}

/* Each id is looked for as configured and in normal form. */
static bool
holds_any(
    struct arena *a, struct str text, const struct str *ids, size_t id_count)
{
	for (size_t i = 0; i < id_count; i++) {
		struct str configured = flatten(a, ids[i], true);
		struct str normal = flatten(a, normal_id(a, ids[i]), true);
		if (str_find(text, configured) != SIZE_MAX ||
		    str_find(text, normal) != SIZE_MAX)
			return true;
	}
	return false;
}

static bool
is_any_hidden(
    struct arena *a, struct str value, const struct str *ids, size_t id_count)
{
	for (int keep = 0; keep <= 1; keep++) {
		struct str text = flatten(a, value, keep);
		if (text.ptr == NULL || holds_any(a, text, ids, id_count))
			return true;
	}
	return false;
}

/* In an arena of its own, so that thousands of forged fields do not fill the
 * message's with results that nobody reads. */
static bool
parses(struct str value)
{
	struct arena *scratch = arena_new(SCRATCH_BYTES + value.len * 4);
	struct authres_field f;
	if (scratch == NULL)
		return false;
	enum res r = authres_parse(scratch, value, AUTHRES_LENIENT, &f);
	arena_free(&scratch);
	return r == RES_OK;
}

/* One of the ids, or without memory to know it. */
static bool
matches(struct arena *a, struct str id, const struct str *ids, size_t id_count,
    struct str org)
{
	id = normal_id(a, id);
	org = normal_id(a, org);
	if (id.ptr == NULL || org.ptr == NULL)
		return true;
	for (size_t i = 0; i < id_count; i++) {
		struct str ours = normal_id(a, ids[i]);
		if (ours.ptr == NULL || looks_like(id, ours, org))
			return true;
	}
	return false;
}

bool
authres_is_ours(struct arena *a, struct str value, const struct str *ids,
    size_t id_count, struct str org)
{
	struct str id = STR_EMPTY;
	if (authres_join_lines(a, &value) != RES_OK)
		return true;
	enum id_form form = read_id(a, value, &id);
	if (form == ID_REFUSED)
		return true;
	if (form != ID_NONE && matches(a, id, ids, id_count, org))
		return true;
	if (form != ID_UNCLEAR && parses(value))
		return false;
	return is_any_hidden(a, value, ids, id_count);
}

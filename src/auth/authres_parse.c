#include "auth/authres.h"

#include "auth/authres_scan.h"

/* One reader for both modes: the frame
 *
 *     id [version] *( ";" method [ "/" version ] "=" result *( detail ) )
 *
 * is common; authres_scan.c knows what a word or a value is in each mode. */
struct parse {
	struct authres_scan w;
	struct authres_field *out;
	size_t item_capacity;
};

/* --- results --------------------------------------------------------------- */
/* The registered results of the methods we judge by (RFC 8601 §2.7 and its
 * registry). */
static const struct {
	const char *method, *results;
	bool any_case;
} known[] = {
	{ "arc", " none pass fail ", false },
	{ "auth", " none pass fail temperror permerror ", false },
	{ "dkim", " none pass fail policy neutral temperror permerror ",
	    false },
	{ "dmarc", " none pass fail temperror permerror ", false },
	{ "spf", " none pass fail softfail policy neutral temperror permerror ",
	    true },
	{ "iprev", " pass fail temperror permerror ", false },
};

static bool
is_registered(struct parse *p, struct str method, struct str result)
{
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (!str_eq(method, str_c(known[i].method)))
			continue;
		struct str word = known[i].any_case
		    ? arena_lower(p->w.arena, result)
		    : result;
		word = arena_printf(p->w.arena, " %.*s ", STR_ARG(word));
		return str_find(str_c(known[i].results), word) != SIZE_MAX;
	}
	return true;
}

static enum res
add_property(struct parse *p, struct authres_item *item,
    struct authres_property property)
{
	size_t n = item->property_count;
	if (n == AUTHRES_MAX_PROPERTIES)
		return RES_LIMIT;
	if ((n & (n - 1)) == 0) { /* 0, 1, 2, 4, …: full */
		struct authres_property *more =
		    arena_array(p->w.arena, n != 0 ? n * 2 : 1, sizeof *more);
		if (more == NULL)
			return RES_NOMEM;
		if (n != 0)
			memcpy(more, item->properties, n * sizeof *more);
		item->properties = more;
	}
	item->properties[item->property_count++] = property;
	return RES_OK;
}

static enum res
add_item(struct parse *p, const struct authres_item *item)
{
	struct authres_field *f = p->out;
	if (f->count == AUTHRES_MAX_RESULTS)
		return RES_LIMIT;
	if (f->count == p->item_capacity) {
		size_t capacity = f->count != 0 ? f->count * 2 : 4;
		struct authres_item *more =
		    arena_array(p->w.arena, capacity, sizeof *more);
		if (more == NULL)
			return RES_NOMEM;
		if (f->count != 0)
			memcpy(more, f->items, f->count * sizeof *more);
		f->items = more;
		p->item_capacity = capacity;
	}
	f->items[f->count++] = *item;
	return RES_OK;
}

/* The cursor stands behind "ptype". A word without "." is reason, or in a
 * lenient field a property without ptype; one with a "." inside quotes is
 * both in one. */
static enum res
parse_detail(struct parse *p, struct authres_item *item, struct str word)
{
	struct authres_property d = { STR_EMPTY, word, STR_EMPTY };
	enum res r = scan_cfws(&p->w.s);
	if (r != RES_OK)
		return r;
	size_t dot = str_chr(word, '.');
	if (scan_byte(&p->w.s, '.')) {
		d.ptype = word;
		if ((r = scan_cfws(&p->w.s)) != RES_OK ||
		    (r = authres_word(&p->w, &d.property)) != RES_OK ||
		    (r = scan_cfws(&p->w.s)) != RES_OK)
			return r;
	} else if (dot != SIZE_MAX) {
		d.ptype = str_sub(word, 0, dot);
		d.property = str_skip(word, dot + 1);
	}
	bool reason = d.ptype.len == 0 && str_case_eq(word, STR("reason"));
	if (p->w.strict && d.ptype.len == 0 &&
	    (!reason || item->reason.ptr != NULL || item->property_count != 0))
		return RES_SYNTAX;
	if (!scan_byte(&p->w.s, '='))
		return RES_SYNTAX;
	if ((r = scan_cfws(&p->w.s)) != RES_OK)
		return r;
	if (!p->w.strict)
		r = authres_loose_value(&p->w, &d.value);
	else if (reason)
		r = authres_strict_value(&p->w, &d.value);
	else
		r = authres_pvalue(&p->w, &d.value);
	if (r != RES_OK)
		return r;
	if (!reason)
		return add_property(p, item, d);
	item->reason = d.value;
	return RES_OK;
}

static bool
at_item_end(const struct parse *p)
{
	return scan_peek(&p->w.s) == -1 || scan_peek(&p->w.s) == ';';
}

static enum res
parse_details(struct parse *p, struct authres_item *item)
{
	p->w.s.comment = STR_EMPTY;
	for (;;) {
		struct str word;
		enum res r = scan_cfws(&p->w.s);
		if (r != RES_OK)
			return r;
		if (at_item_end(p))
			break;
		if ((r = authres_word(&p->w, &word)) != RES_OK ||
		    (r = parse_detail(p, item, word)) != RES_OK)
			return r;
	}
	if (p->w.s.comment.len == 0)
		return RES_OK;
	item->comment = scan_comment_text(p->w.arena, p->w.s.comment);
	return item->comment.ptr != NULL ? RES_OK : RES_NOMEM;
}

/* The cursor stands behind the method and the CFWS after it. */
static enum res
parse_result(struct parse *p, struct str method)
{
	struct authres_item item = { .method = arena_lower(p->w.arena, method),
		.version = 1 };
	struct str result;
	enum res r;
	if (item.method.ptr == NULL)
		return RES_NOMEM;
	if (scan_byte(&p->w.s, '/')) {
		if ((r = scan_cfws(&p->w.s)) != RES_OK ||
		    (r = authres_version(&p->w, &item.version)) != RES_OK ||
		    (r = scan_cfws(&p->w.s)) != RES_OK)
			return r;
	}
	if (!scan_byte(&p->w.s, '='))
		return RES_SYNTAX;
	if ((r = scan_cfws(&p->w.s)) != RES_OK)
		return r;
	r = p->w.strict ? authres_keyword(&p->w, &result)
			: authres_loose_value(&p->w, &result);
	if (r != RES_OK)
		return r;
	if (p->w.strict && !is_registered(p, item.method, result))
		return RES_SYNTAX;
	item.result = arena_lower(p->w.arena, result);
	if (item.result.ptr == NULL)
		return RES_NOMEM;
	r = parse_details(p, &item);
	return r == RES_OK ? add_item(p, &item) : r;
}

/* One element behind a ";" or, without an id, at the start. */
static enum res
parse_element(struct parse *p)
{
	struct str word;
	enum res r = scan_cfws(&p->w.s);
	if (r != RES_OK)
		return r;
	if (!p->w.strict && at_item_end(p))
		return RES_OK;
	if ((r = authres_word(&p->w, &word)) != RES_OK ||
	    (r = scan_cfws(&p->w.s)) != RES_OK)
		return r;
	bool only = p->out->count == 0 && !p->out->none;
	if (str_case_eq(word, STR("none")) && only && at_item_end(p)) {
		p->out->none = true;
		return RES_OK;
	}
	return p->out->none ? RES_SYNTAX : parse_result(p, word);
}

/* --- the id ---------------------------------------------------------------- */
/* Words that some put behind the id; the first may be the version. */
static enum res
parse_behind_id(struct parse *p)
{
	for (bool first = true; !at_item_end(p); first = false) {
		int c = scan_peek(&p->w.s);
		struct str word;
		enum res r;
		if (first && c >= '0' && c <= '9')
			r = authres_version(&p->w, &p->out->version);
		else
			r = p->w.strict ? RES_SYNTAX
					: authres_word(&p->w, &word);
		if (r != RES_OK || (r = scan_cfws(&p->w.s)) != RES_OK)
			return r;
	}
	return p->out->version == 1 ? RES_OK : RES_UNSUPPORTED;
}

/* Microsoft's form has no id: what looked like one was a method. */
static enum res
parse_id(struct parse *p, bool *out_missing)
{
	enum res r = scan_cfws(&p->w.s);
	if (r != RES_OK)
		return r;
	size_t from = p->w.s.at;
	r = p->w.strict ? authres_strict_value(&p->w, &p->out->id)
			: authres_loose_id(&p->w, &p->out->id);
	if (r != RES_OK || (r = scan_cfws(&p->w.s)) != RES_OK)
		return r;
	if (p->w.strict || scan_peek(&p->w.s) != '=')
		return parse_behind_id(p);
	p->w.s.at = from;
	p->out->id = STR_EMPTY;
	*out_missing = true;
	return RES_OK;
}

static enum res
parse_field(struct parse *p)
{
	bool id_missing = false;
	enum res r = parse_id(p, &id_missing);
	if (r == RES_OK && id_missing)
		r = parse_element(p);
	size_t elements = id_missing;
	while (r == RES_OK && scan_byte(&p->w.s, ';')) {
		r = parse_element(p);
		elements++;
	}
	if (r != RES_OK)
		return r;
	/* RFC 8601: no-result or at least one resinfo */
	if (scan_peek(&p->w.s) != -1 || (p->w.strict && elements == 0))
		return RES_SYNTAX;
	return RES_OK;
}

enum res
authres_parse(struct arena *a, struct str value, enum authres_mode mode,
    struct authres_field *out)
{
	struct authres_field field = { .version = 1 };
	struct parse p = {
		.w.arena = a, .w.strict = mode == AUTHRES_STRICT, .out = &field
	};
	if (!p.w.strict && authres_join_lines(a, &value) != RES_OK)
		return RES_NOMEM;
	p.w.s.text = str_trim(value);
	enum res r = parse_field(&p);
	if (r == RES_OK)
		*out = field;
	return r == RES_NOTFOUND ? RES_SYNTAX : r;
}

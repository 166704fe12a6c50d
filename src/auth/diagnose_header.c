#include "auth/diagnose.h"

#define MAX_QUOTED 48 /* octets of mail shown in a cause */

/* A copy of what h= took from the header, to be changed and hashed again. */
struct probe {
	struct sigcore *core;
	const struct sig *sig;
	size_t count;
	const struct field **original;
	struct field *fields; /* in the order of h=; name empty: no field */
	bool known;           /* `signed_digest` was read from the signature */
	uint8_t signed_digest[DIGEST_LEN];
	unsigned tries; /* left for this signature */
	enum res error;
	bool found;
	struct buf *out;
};

/* --- hashing a variant ------------------------------------------------------ */
static bool
digest_fits(struct probe *p, const uint8_t digest[DIGEST_LEN])
{
	bool fits = false;
	if (p->known)
		return memcmp(digest, p->signed_digest, DIGEST_LEN) == 0;
	return pubkey_verify(p->sig->key, digest, p->sig->signature, &fits) ==
	    RES_OK &&
	    fits;
}

/* Is the header, as the fields stand now, what was signed? */
static bool
variant_fits(struct probe *p)
{
	struct sigcore *c = p->core;
	uint8_t digest[DIGEST_LEN];
	if (p->found || p->error != RES_OK || p->tries == 0 || c->tries == 0)
		return false;
	p->tries--;
	c->tries--;
	buf_reset(&c->scratch);
	for (size_t i = 0; i < p->count; i++)
		if (p->fields[i].name.len != 0)
			canon_field(
			    p->sig->header_canon, &p->fields[i], c->out);
	canon_signature_field(p->sig->header_canon, p->sig->field,
	    p->sig->b_from, p->sig->b_to, c->out);
	if (c->scratch.error != RES_OK)
		return false; /* a variant longer than the bound */
	p->error = digest_sha256(c->scratch.ptr, c->scratch.len, digest);
	p->found = p->error == RES_OK && digest_fits(p, digest);
	return p->found;
}

/* Try it with another value in field `i`. */
static bool
value_fits(struct probe *p, size_t i, struct str value)
{
	struct str old = p->fields[i].value;
	p->fields[i].value = value;
	bool fits = variant_fits(p);
	p->fields[i].value = old;
	return fits;
}

static struct str
joined(struct probe *p, struct str a, struct str b)
{
	struct str s =
	    arena_printf(p->core->arena, "%.*s%.*s", STR_ARG(a), STR_ARG(b));
	if (s.ptr == NULL)
		p->error = RES_NOMEM;
	return s;
}

static size_t
find_field(const struct probe *p, struct str name)
{
	for (size_t i = 0; i < p->count; i++)
		if (str_case_eq(p->fields[i].name, name))
			return i;
	return SIZE_MAX;
}

static void
put_quoted(struct buf *out, struct str s)
{
	buf_add_c(out, "\"");
	for (size_t i = 0; i < s.len && i < MAX_QUOTED; i++) {
		char ch = s.ptr[i];
		buf_add_char(out,
		    ch >= ' ' && ch < 0x7f && ch != '"' && ch != '\\' ? ch
								      : '?');
	}
	buf_add_c(out, s.len > MAX_QUOTED ? "...\"" : "\"");
}

/* --- subject tags ------------------------------------------------------------ */
#define MAX_TAG_WORDS 6

/* Where the next word begins, behind `n` words of `s`. */
static size_t
skip_words(struct str s, size_t at, unsigned n)
{
	for (; n > 0; n--) {
		while (at < s.len && !ascii_is_wsp(s.ptr[at]))
			at++;
		while (at < s.len && ascii_is_wsp(s.ptr[at]))
			at++;
	}
	return at;
}

/* One to six words taken out, in front or behind the first word ("Re:"). */
static void
try_subject(struct probe *p)
{
	size_t i = find_field(p, STR("subject"));
	if (i == SIZE_MAX)
		return;
	struct str v = p->fields[i].value;
	size_t first = 0;
	while (first < v.len && ascii_is_wsp(v.ptr[first]))
		first++;
	for (unsigned kept = 0; kept <= 1 && !p->found; kept++) {
		size_t from = skip_words(v, first, kept);
		for (unsigned n = 1; n <= MAX_TAG_WORDS && !p->found; n++) {
			size_t to = skip_words(v, from, n);
			struct str old =
			    joined(p, str_sub(v, 0, from), str_skip(v, to));
			if (!value_fits(p, i, old))
				continue;
			buf_add_c(p->out, "Subject got ");
			put_quoted(
			    p->out, str_trim(str_sub(v, from, to - from)));
		}
	}
}

/* --- fields added ------------------------------------------------------------- */
#define MAX_INSTANCES 4 /* of one name, from the bottom, that are left out */

/* h= taken over a header without `gone`: the fields of this name move up. */
static void
pick_without(struct probe *p, struct str name, const struct field *gone)
{
	const struct header *h = p->core->header;
	const struct field *f = header_find_last(h, name);
	for (size_t i = 0; i < p->count; i++) {
		if (!str_case_eq(p->sig->names[i], name))
			continue;
		if (f == gone || f == p->sig->field)
			f = f != NULL ? header_prev_same(h, f) : NULL;
		if (f == gone || f == p->sig->field)
			f = f != NULL ? header_prev_same(h, f) : NULL;
		p->fields[i] = f != NULL ? *f : (struct field){ 0 };
		f = f != NULL ? header_prev_same(h, f) : NULL;
	}
}

static bool
is_first_listing(const struct sig *s, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (str_case_eq(s->names[j], s->names[i]))
			return false;
	return true;
}

static void
try_added(struct probe *p)
{
	const struct header *h = p->core->header;
	for (size_t i = 0; i < p->count && !p->found; i++) {
		struct str name = p->sig->names[i];
		if (!is_first_listing(p->sig, i))
			continue;
		const struct field *f = header_find_last(h, name);
		for (unsigned n = 0; f != NULL && n < MAX_INSTANCES; n++) {
			pick_without(p, name, f);
			if (variant_fits(p)) {
				buf_add_c(p->out, "a field was added: ");
				put_quoted(p->out, f->name);
				return;
			}
			f = header_prev_same(h, f);
		}
		pick_without(p, name, NULL);
	}
}

/* --- fields changed or lost ----------------------------------------------------- */
/* What such a field usually says. */
static const struct {
	const char *name, *value;
} usual[] = {
	{ "content-transfer-encoding", " 8bit" },
	{ "content-transfer-encoding", " 7bit" },
	{ "content-transfer-encoding", " quoted-printable" },
	{ "content-transfer-encoding", " base64" },
	{ "content-transfer-encoding", " binary" },
	{ "mime-version", " 1.0" },
};

static void
try_usual(struct probe *p)
{
	for (size_t u = 0; u < sizeof usual / sizeof *usual; u++) {
		struct str name = str_c(usual[u].name);
		for (size_t i = 0; i < p->count && !p->found; i++) {
			if (!str_case_eq(p->sig->names[i], name) ||
			    !is_first_listing(p->sig, i))
				continue;
			struct field old = p->fields[i];
			bool absent = old.name.len == 0;
			p->fields[i].value = str_c(usual[u].value);
			if (absent)
				p->fields[i].name = p->fields[i].raw_name =
				    p->sig->names[i];
			if (variant_fits(p))
				buf_addf(p->out, "%s: %s was %s", usual[u].name,
				    usual[u].value + 1,
				    absent ? "removed" : "changed");
			p->fields[i] = old;
		}
	}
}

/* A list that wrote itself into From keeps the old one elsewhere. */
static void
try_from(struct probe *p)
{
	static const char *const kept[] = { "x-original-from", "reply-to",
		"x-from", "original-from", "author" };
	size_t i = find_field(p, STR("from"));
	if (i == SIZE_MAX)
		return;
	for (size_t k = 0; k < sizeof kept / sizeof *kept && !p->found; k++) {
		const struct field *f =
		    header_find(p->core->header, str_c(kept[k]));
		if (f == NULL)
			continue;
		struct str old = p->fields[i].value;
		p->fields[i].value = f->value;
		if (variant_fits(p))
			buf_addf(p->out,
			    "From was rewritten, %s has the old "
			    "one",
			    kept[k]);
		else
			try_subject(p);
		if (p->found && str_starts(buf_str(p->out), STR("Subject")))
			buf_addf(p->out, ", From was rewritten");
		p->fields[i].value = old;
	}
}

/* --- simple: white space and case ------------------------------------------------ */
struct respace {
	const char *fold; /* what a fold and the blank behind it become */
	bool collapse;    /* runs of blanks are one SP */
	const char *cause;
};

static const struct respace respaces[] = {
	{ "", false, "folds were added" },
	{ "\r\n", false, "trailing blanks were added" },
	{ "\r\n\t", false, "fields were folded anew" },
	{ "\r\n ", false, "fields were folded anew" },
	{ " ", true, "white space was changed" },
};

static struct str
respaced(struct probe *p, struct str v, const struct respace *how)
{
	struct buf b;
	buf_init(&b, DIAGNOSE_MAX_HEADER);
	for (size_t i = 0; i < v.len; i++) {
		bool fold = str_starts(str_skip(v, i), STR("\r\n"));
		if (fold) {
			buf_add_c(&b, how->fold);
			i++;
			if (strlen(how->fold) == 3)
				i++; /* the blank that it brings along */
		} else if (how->collapse && i > 0 && ascii_is_wsp(v.ptr[i])) {
			if (b.len == 0 || b.ptr[b.len - 1] != ' ')
				buf_add_char(&b, ' ');
		} else {
			buf_add_char(&b, v.ptr[i]);
		}
	}
	if (strcmp(how->fold, "\r\n") == 0 || how->collapse)
		while (b.len > 0 && ascii_is_wsp(b.ptr[b.len - 1]))
			b.len--;
	struct str out = arena_dup(p->core->arena, buf_str(&b));
	if (out.ptr == NULL)
		p->error = RES_NOMEM;
	buf_done(&b);
	return out;
}

/* All fields alike, then one at a time: a hop touches what it touches. */
static bool
respaced_fits(
    struct probe *p, const struct str *saved, const struct respace *how)
{
	for (size_t i = 0; i < p->count; i++)
		p->fields[i].value = respaced(p, saved[i], how);
	bool fits = variant_fits(p);
	for (size_t i = 0; i < p->count; i++)
		p->fields[i].value = saved[i];
	for (size_t i = 0; i < p->count && !fits; i++) {
		struct str value = respaced(p, saved[i], how);
		if (!str_eq(value, saved[i]))
			fits = value_fits(p, i, value);
	}
	return fits;
}

static void
try_respaced(struct probe *p, const struct str *saved)
{
	for (size_t r = 0; r < sizeof respaces / sizeof *respaces; r++)
		if (respaced_fits(p, saved, &respaces[r])) {
			buf_add_c(p->out, respaces[r].cause);
			return;
		}
}

/* Names in the case that h= has, as most signers copy it from the field. */
static void
try_name_case(struct probe *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->fields[i].name.len != 0)
			p->fields[i].raw_name = p->sig->names[i];
	if (variant_fits(p))
		buf_add_c(p->out, "the case of field names was changed");
	for (size_t i = 0; i < p->count; i++)
		if (p->original[i] != NULL)
			p->fields[i].raw_name = p->original[i]->raw_name;
}

static void
try_simple(struct probe *p)
{
	if (p->sig->header_canon != CANON_SIMPLE)
		return;
	struct str *saved =
	    arena_array(p->core->arena, p->count, sizeof *saved);
	if (saved == NULL) {
		p->error = RES_NOMEM;
		return;
	}
	for (size_t i = 0; i < p->count; i++)
		saved[i] = p->fields[i].value;
	try_name_case(p);
	if (!p->found)
		try_respaced(p, saved);
}

/* --- the whole --------------------------------------------------------------------- */
/* Fields no message goes without: a sign that one was lost. */
static void
name_absent(struct probe *p)
{
	static const char *const expected[] = { "from", "to", "subject", "date",
		"message-id" };
	for (size_t e = 0; e < sizeof expected / sizeof *expected; e++) {
		struct str name = str_c(expected[e]);
		for (size_t i = 0; i < p->count; i++)
			if (str_case_eq(p->sig->names[i], name) &&
			    is_first_listing(p->sig, i) &&
			    p->fields[i].name.len == 0)
				buf_addf(p->out, "%s%s is not there",
				    p->out->len != 0 ? ", " : "", expected[e]);
	}
}

static enum res
probe_init(struct probe *p)
{
	size_t octets = 0;
	enum res r = sig_fields(p->core, p->sig, &p->original);
	if (r != RES_OK)
		return r;
	p->count = p->sig->name_count;
	p->fields = arena_array(p->core->arena, p->count, sizeof *p->fields);
	if (p->fields == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < p->count; i++)
		if (p->original[i] != NULL) {
			p->fields[i] = *p->original[i];
			octets += p->original[i]->value.len;
		}
	p->known = pubkey_recover(p->sig->key, p->sig->signature,
		       p->signed_digest) == RES_OK;
	p->tries = p->known ? SIG_MAX_TRIES : DIAGNOSE_MAX_TRIES_ED25519;
	if (octets > DIAGNOSE_MAX_HEADER)
		p->tries = 0;
	return RES_OK;
}

enum res
diagnose_header(struct sigcore *c, const struct sig *s, struct buf *out)
{
	static void (*const attempts[])(struct probe *) = { try_subject,
		try_added, try_usual, try_simple, try_from };
	struct probe p = { .core = c, .sig = s, .out = out };
	enum res r = probe_init(&p);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (!p.found && p.error == RES_OK && p.tries > 0)
			attempts[i](&p);
	if (p.error == RES_OK && !p.found)
		name_absent(&p);
	return p.error;
}

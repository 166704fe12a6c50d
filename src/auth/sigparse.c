#include "auth/sigcore.h"

#include "base/codec.h"
#include "mail/domain.h"
#include "mail/taglist.h"

#define BAD_SYNTAX        "bad signature syntax"
#define MAX_INSTANCE      50
#define MAX_LENGTH_DIGITS 76           /* RFC 6376 §3.5, l= */
#define MAX_TIME          999999999999 /* 12 digits */

struct parse {
	struct arena *arena;
	struct sig *sig;
	const struct taglist *tags;
	enum res error; /* RES_NOMEM */
};

static void
bad_syntax(struct parse *p)
{
	sig_decide(p->sig, AUTH_NEUTRAL, BAD_SYNTAX);
}

/* RES_OK, or decide what the failure of a parser means. */
static bool
well(struct parse *p, enum res r)
{
	if (r == RES_NOMEM)
		p->error = r;
	else if (r != RES_OK)
		bad_syntax(p);
	return r == RES_OK;
}

/* --- one function per tag -------------------------------------------------- */
static void
parse_v(struct parse *p, struct str v)
{
	if (p->sig->kind == SIG_DKIM && !str_eq(v, STR("1")))
		sig_decide(p->sig, AUTH_NEUTRAL, "incompatible version");
}

static void
parse_a(struct parse *p, struct str v)
{
	if (v.len == 0) {
		bad_syntax(p);
	} else if (str_eq(v, STR("rsa-sha256"))) {
		p->sig->type = KEY_RSA;
	} else if (str_eq(v, STR("ed25519-sha256"))) {
		p->sig->type = KEY_ED25519;
	} else if (str_eq(v, STR("rsa-sha1"))) {
		p->sig->a = STR("rsa-sha1");
		sig_decide(p->sig, AUTH_PERMERROR, "historic algorithm");
	} else {
		sig_decide(p->sig, AUTH_NEUTRAL, "unknown algorithm");
	}
	if (sig_undecided(p->sig))
		p->sig->a = p->sig->type == KEY_RSA ? STR("rsa-sha256")
						    : STR("ed25519-sha256");
}

/* Base64 into the arena. */
static bool
decode(struct parse *p, struct str v, struct str *out)
{
	size_t room = base64_decoded_max(v.len), len = 0;
	if (room > SIG_MAX_SIGNATURE)
		room = SIG_MAX_SIGNATURE;
	void *bytes = arena_alloc_raw(p->arena, room);
	enum res r = bytes != NULL
	    ? base64_decode_to(v, true, bytes, room, &len)
	    : RES_NOMEM;
	*out = str_of(bytes, len);
	return well(p, r);
}

static void
parse_b(struct parse *p, struct str v)
{
	p->sig->b = taglist_strip(p->arena, v);
	if (p->sig->b.ptr == NULL)
		p->error = RES_NOMEM;
	else if (decode(p, p->sig->b, &p->sig->signature) &&
	    p->sig->signature.len == 0)
		bad_syntax(p);
}

static void
parse_bh(struct parse *p, struct str v)
{
	struct str hash;
	if (!decode(p, v, &hash))
		return;
	if (hash.len != DIGEST_LEN)
		bad_syntax(p);
	else
		memcpy(p->sig->body_hash, hash.ptr, DIGEST_LEN);
}

static void
parse_d(struct parse *p, struct str v)
{
	struct str d;
	if (well(p, domain_normalize(p->arena, v, &d)))
		p->sig->d = d;
}

static void
parse_s(struct parse *p, struct str v)
{
	struct str s;
	if (well(p, domain_normalize(p->arena, v, &s)))
		p->sig->s = s;
}

static bool
canon_word(struct str v, enum canon *out)
{
	if (str_eq(v, STR("simple")))
		*out = CANON_SIMPLE;
	else if (str_eq(v, STR("relaxed")))
		*out = CANON_RELAXED;
	else
		return false;
	return true;
}

static void
parse_c(struct parse *p, struct str v)
{
	struct str header;
	str_split(&v, '/', &header);
	if (!canon_word(header, &p->sig->header_canon) ||
	    (v.ptr != NULL && !canon_word(v, &p->sig->body_canon)))
		bad_syntax(p);
}

static void
parse_h(struct parse *p, struct str v)
{
	struct sig *s = p->sig;
	if (s->kind == SIG_SEAL) { /* RFC 8617 §4.1.3 */
		bad_syntax(p);
		return;
	}
	s->h = taglist_strip(p->arena, v);
	size_t room = 1;
	for (size_t i = 0; i < s->h.len && room < SIG_MAX_NAMES; i++)
		room += s->h.ptr[i] == ':';
	struct str *names = arena_array(p->arena, room, sizeof *names);
	if (s->h.ptr == NULL || names == NULL) {
		p->error = RES_NOMEM;
		return;
	}
	s->names = names;
	struct str name;
	while (str_split(&v, ':', &name)) {
		name = str_trim(name);
		/* In ARC an empty list or item is let pass, as by
		 * all other validators. */
		if (s->kind == SIG_AMS && name.len == 0)
			continue;
		if (!header_name_valid(name)) {
			bad_syntax(p);
			return;
		}
		if (s->name_count == SIG_MAX_NAMES) {
			sig_decide(s, AUTH_POLICY, "too many signed fields");
			return;
		}
		names[s->name_count++] = name;
	}
}

static void
parse_q(struct parse *p, struct str v)
{
	struct str method;
	while (str_split(&v, ':', &method))
		if (str_eq(str_trim(method), STR("dns/txt")))
			return;
	bad_syntax(p);
}

static void
parse_l(struct parse *p, struct str v)
{
	/* More than any body has is as good as any other such number. */
	uint64_t n = BODYHASH_WHOLE - 1;
	enum res r = str_to_u64(v, n, &n);
	if (v.len > MAX_LENGTH_DIGITS || (r != RES_OK && r != RES_LIMIT)) {
		bad_syntax(p);
		return;
	}
	p->sig->has_length = true;
	p->sig->length = n;
}

static void
parse_time(struct parse *p, struct str v, int64_t *out)
{
	uint64_t n;
	enum res r = str_to_u64(v, MAX_TIME, &n);
	if (r == RES_OK)
		*out = (int64_t)n;
	else if (r == RES_LIMIT)
		*out = SIG_TIME_NEVER;
	else
		bad_syntax(p);
}

static void
parse_t(struct parse *p, struct str v)
{
	parse_time(p, v, &p->sig->signed_at);
}

static void
parse_x(struct parse *p, struct str v)
{
	struct sig *s = p->sig;
	parse_time(p, v, &s->expires_at);
	if (s->signed_at >= 0 && s->expires_at <= s->signed_at &&
	    s->expires_at != SIG_TIME_NEVER)
		bad_syntax(p);
}

/* DKIM's agent or user identifier; the domain part in normal form. */
static void
parse_i(struct parse *p, struct str v)
{
	struct str i, domain;
	if (p->sig->kind != SIG_DKIM)
		return; /* read by sig_instance or parse_position */
	if (!well(p, taglist_unquote(p->arena, v, &i)))
		return;
	size_t at = str_rchr(i, '@');
	if (at == SIZE_MAX) {
		bad_syntax(p);
		return;
	}
	if (!well(p, domain_normalize(p->arena, str_skip(i, at + 1), &domain)))
		return;
	struct buf b;
	buf_init(&b, i.len + DOMAIN_MAX + 1);
	buf_add_str(&b, str_sub(i, 0, at + 1));
	buf_add_str(&b, domain);
	p->sig->i = arena_dup(p->arena, buf_str(&b));
	if (b.error != RES_OK || p->sig->i.ptr == NULL)
		p->error = RES_NOMEM;
	else
		p->sig->i_domain = str_skip(p->sig->i, at + 1);
	buf_done(&b);
}

static void
parse_cv(struct parse *p, struct str v)
{
	if (str_eq(v, STR("none")))
		p->sig->cv = SIG_CV_NONE;
	else if (str_eq(v, STR("fail")))
		p->sig->cv = SIG_CV_FAIL;
	else if (str_eq(v, STR("pass")))
		p->sig->cv = SIG_CV_PASS;
	else
		bad_syntax(p);
}

/* --- the tags of the three kinds ------------------------------------------ */
#define DKIM (1u << SIG_DKIM)
#define AMS  (1u << SIG_AMS)
#define SEAL (1u << SIG_SEAL)

/* v= first, then in the order they are judged: what names the algorithm before what depends
 * on it, t= before x=. `needed` by RFC 6376 §3.5, RFC 8617 §4.1.2, §4.1.3. */
static const struct row {
	const char *name;
	const char *missing;
	unsigned needed, known;
	void (*parse)(struct parse *p, struct str value);
} rows[] = {
	{ "v", "missing tag v", DKIM, DKIM, parse_v },
	{ "a", "missing tag a", DKIM | AMS | SEAL, DKIM | AMS | SEAL, parse_a },
	{ "b", "missing tag b", DKIM | AMS | SEAL, DKIM | AMS | SEAL, parse_b },
	{ "bh", "missing tag bh", DKIM | AMS, DKIM | AMS, parse_bh },
	{ "d", "missing tag d", DKIM | AMS | SEAL, DKIM | AMS | SEAL, parse_d },
	{ "h", "missing tag h", DKIM | AMS, DKIM | AMS | SEAL, parse_h },
	{ "s", "missing tag s", DKIM | AMS | SEAL, DKIM | AMS | SEAL, parse_s },
	{ "c", NULL, 0, DKIM | AMS, parse_c },
	{ "q", NULL, 0, DKIM | AMS, parse_q },
	{ "l", NULL, 0, DKIM | AMS, parse_l },
	{ "t", NULL, 0, DKIM | AMS | SEAL, parse_t },
	{ "x", NULL, 0, DKIM | AMS, parse_x },
	{ "i", NULL, 0, DKIM, parse_i },
	{ "cv", "missing tag cv", SEAL, SEAL, parse_cv },
};
#define ROWS (sizeof rows / sizeof *rows)

static void
parse_rows(struct parse *p)
{
	unsigned kind = 1u << p->sig->kind;
	const struct tag *found[ROWS];
	for (size_t i = 0; i < ROWS; i++)
		found[i] = taglist_find(p->tags, rows[i].name);
	/* An unknown version says nothing about the other tags. */
	if (found[0] != NULL)
		parse_v(p, found[0]->value);
	for (size_t i = 0; i < ROWS; i++)
		if ((rows[i].needed & kind) != 0 && found[i] == NULL)
			sig_decide(p->sig, AUTH_NEUTRAL, rows[i].missing);
	/* All are read, whatever was decided: a report may name what it can
	 * (RES-01), and an empty part stands for what could not be read. */
	for (size_t i = 0; i < ROWS && p->error == RES_OK; i++)
		if (found[i] != NULL && (rows[i].known & kind) != 0)
			rows[i].parse(p, found[i]->value);
}

/* --- ARC instances -------------------------------------------------------- */
static size_t
skip_comment(struct str t, size_t at)
{
	unsigned depth = 0;
	for (; at < t.len; at++) {
		if (t.ptr[at] == '\\')
			at++;
		else if (t.ptr[at] == '(')
			depth++;
		else if (t.ptr[at] == ')' && --depth == 0)
			return at + 1;
	}
	return t.len;
}

static size_t
skip_cfws(struct str t, size_t at)
{
	while (at < t.len) {
		if (t.ptr[at] == '(')
			at = skip_comment(t, at);
		else if (str_trim(str_sub(t, at, 1)).len == 0)
			at++;
		else
			break;
	}
	return at;
}

static bool
is_at(struct str t, size_t at, char c)
{
	return at < t.len && t.ptr[at] == c;
}

static enum res
parse_position(struct str digits, unsigned *out)
{
	uint64_t n;
	if (digits.len == 0 || digits.len > 2 || digits.ptr[0] == '0' ||
	    str_to_u64(digits, MAX_INSTANCE, &n) != RES_OK)
		return RES_INVALID;
	*out = (unsigned)n;
	return RES_OK;
}

enum res
sig_instance(struct str value, unsigned *out_instance, size_t *out_rest)
{
	size_t at = skip_cfws(value, 0);
	if (!is_at(value, at, 'i'))
		return RES_SYNTAX;
	at = skip_cfws(value, at + 1);
	if (!is_at(value, at, '='))
		return RES_SYNTAX;
	size_t from = skip_cfws(value, at + 1), to = from;
	while (to < value.len && ascii_is_digit(value.ptr[to]))
		to++;
	at = skip_cfws(value, to);
	if (!is_at(value, at, ';'))
		return RES_SYNTAX;
	enum res r =
	    parse_position(str_sub(value, from, to - from), out_instance);
	if (r == RES_OK)
		*out_rest = at + 1;
	return r;
}

/* i= in front, comments and all, or anywhere in the list (ARC-01). */
static void
read_instance(struct sig *s, struct str value, size_t *out_rest)
{
	enum res r = sig_instance(value, &s->instance, out_rest);
	if (r == RES_INVALID)
		sig_decide(s, AUTH_NEUTRAL, BAD_SYNTAX);
	if (r != RES_OK)
		*out_rest = 0;
}

static void
check_instance(struct sig *s, const struct taglist *tags)
{
	const struct tag *i = taglist_find(tags, "i");
	if (s->instance != 0
		? i != NULL
		: i == NULL || parse_position(i->value, &s->instance) != RES_OK)
		sig_decide(s, AUTH_NEUTRAL, BAD_SYNTAX);
}

/* --- the whole ------------------------------------------------------------ */
static enum res
name_key(struct arena *a, struct sig *s)
{
	if (s->d.len == 0 || s->s.len == 0)
		return RES_OK;
	const struct str parts[] = { s->s, STR("._domainkey."), s->d };
	s->key_name = arena_join(a, parts, 3);
	return s->key_name.ptr != NULL ? RES_OK : RES_NOMEM;
}

enum res
sig_parse(
    struct arena *a, enum sig_kind kind, const struct field *f, struct sig *out)
{
	struct sig s = { .kind = kind,
		.field = f,
		.result = AUTH_NONE,
		.length = BODYHASH_WHOLE,
		.signed_at = -1,
		.expires_at = -1 };
	struct taglist tags;
	struct parse p = { a, &s, &tags, RES_OK };
	size_t rest = 0;
	if (kind != SIG_DKIM)
		read_instance(&s, f->value, &rest);
	if (taglist_parse(str_skip(f->value, rest), true, &tags) != RES_OK)
		sig_decide(&s, AUTH_NEUTRAL, BAD_SYNTAX);
	if (kind != SIG_DKIM)
		check_instance(&s, &tags);
	parse_rows(&p);
	if (p.error != RES_OK)
		return p.error;
	const struct tag *b = taglist_find(&tags, "b");
	if (b != NULL) {
		s.b_from = rest + b->from;
		s.b_to = rest + b->to;
	}
	if (kind == SIG_SEAL)
		s.header_canon = CANON_RELAXED;
	if (s.i_domain.ptr == NULL)
		s.i_domain = s.d;
	*out = s;
	return name_key(a, out);
}

#include "auth/arc_seal.h"

#include "auth/signfield.h"

#define NAME_AAR            "ARC-Authentication-Results"
#define NAME_AMS            "ARC-Message-Signature"
#define NAME_AS             "ARC-Seal"
#define MAX_DKIM_SIGNATURES 32 /* covered by the AMS; ARC-07 is a SHOULD */
#define MAX_SEALED          ((size_t)16 << 20)

struct sealing {
	struct arena *arena;
	const struct header *header;
	const struct arc_result *chain;
	const struct arc_seal_options *options;
	struct signer *signer;
	const struct signing_key *key;
	unsigned instance;
};

/* --- ARC-Authentication-Results -------------------------------------------- */
/* The end of the word at the start of `s`: the next blank outside quotes. */
static size_t
word_length(struct str s)
{
	bool quoted = false;
	for (size_t i = 0; i < s.len; i++) {
		if (quoted && s.ptr[i] == '\\')
			i++;
		else if (s.ptr[i] == '"')
			quoted = !quoted;
		else if (!quoted && s.ptr[i] == ' ')
			return i;
	}
	return s.len;
}

static enum res
make_aar(const struct sealing *w, struct str *out)
{
	struct buf b;
	struct str text = arena_printf(w->arena, "i=%u; %.*s; ", w->instance,
	    STR_ARG(w->options->authserv_id));
	size_t column = sizeof NAME_AAR;
	buf_init(&b, SIGNFIELD_MAX);
	struct str parts[] = { text, w->options->results };
	for (size_t p = 0; p < 2; p++) {
		struct str rest = str_trim(parts[p]);
		while (rest.len != 0) {
			size_t n = word_length(rest);
			bool fold =
			    b.len != 0 && column + 1 + n > SIGNFIELD_WIDTH;
			buf_add_c(&b, fold ? "\n\t" : " ");
			buf_add(&b, rest.ptr, n);
			column = (fold ? 8 : column + 1) + n;
			rest = str_trim(str_skip(rest, n));
		}
	}
	*out = arena_dup(w->arena, buf_str(&b));
	enum res r = b.error;
	if (r == RES_OK && (text.ptr == NULL || out->ptr == NULL))
		r = RES_NOMEM;
	buf_done(&b);
	return r;
}

/* --- ARC-Message-Signature -------------------------------------------------- */
/* ARC-06: what an AMS must not name. */
static bool
is_forbidden(struct str name)
{
	return str_case_starts(name, STR("arc-")) ||
	    str_case_eq(name, STR("authentication-results"));
}

static enum res
add_present(
    struct signfield *f, const struct header *h, struct str name, size_t max)
{
	size_t times = header_count_name(h, name);
	enum res r = RES_OK;
	for (times = times < max ? times : max; times > 0 && r == RES_OK;
	     times--)
		r = signfield_name(f, name);
	return r;
}

static enum res
add_names(struct signfield *f, const struct sealing *w)
{
	const struct arc_seal_options *o = w->options;
	const struct str *names =
	    o->headers != NULL ? o->headers : dkim_sign_default_headers;
	bool from = false;
	enum res r = RES_OK;
	for (size_t i = 0; r == RES_OK &&
	     (o->headers != NULL ? i < o->header_count : names[i].len != 0);
	     i++) {
		if (is_forbidden(names[i]))
			continue;
		from |= str_case_eq(names[i], STR("from"));
		r = add_present(f, w->header, names[i], SIG_MAX_NAMES);
	}
	if (r == RES_OK && !from)
		r = add_present(f, w->header, STR("from"), 1);
	if (r == RES_OK && o->headers == NULL)
		r = add_present(
		    f, w->header, STR("dkim-signature"), MAX_DKIM_SIGNATURES);
	return r;
}

static enum res
make_ams(const struct sealing *w, const uint8_t *body_hash, struct str *out)
{
	const struct arc_seal_options *o = w->options;
	struct signfield *f;
	enum res r = signfield_new(w->arena, NAME_AMS, w->header, &f);
	if (r == RES_OK)
		r = add_names(f, w);
	if (r != RES_OK)
		return r;
	signfield_number(f, "i", w->instance);
	signfield_algorithm(f, w->key->type);
	signfield_canon(f, o->header_canon, o->body_canon);
	signfield_tag(f, "d", w->key->domain);
	signfield_tag(f, "s", w->key->selector);
	signfield_number(f, "t", o->now_s);
	signfield_names(f);
	signfield_body_hash(f, body_hash);
	return signfield_sign(f, o->header_canon, w->signer, w->key, out);
}

/* --- ARC-Seal --------------------------------------------------------------- */
static enum res
add_made(const struct sealing *w, const char *name, struct str value,
    struct sink *out)
{
	struct field f = { .name = str_c(name),
		.raw_name = str_c(name),
		.value = signfield_to_crlf(w->arena, value) };
	if (f.value.ptr == NULL)
		return RES_NOMEM;
	canon_field(CANON_RELAXED, &f, out);
	return RES_OK;
}

/* The sets below, unless the chain failed: then the new set stands alone
 * (RFC 8617 §5.1.2). */
static void
add_chain(const struct sealing *w, struct sink *out)
{
	if (w->chain->result != AUTH_PASS)
		return;
	for (unsigned i = 0; i < w->chain->instances; i++) {
		canon_field(CANON_RELAXED, w->chain->sets[i].aar, out);
		canon_field(CANON_RELAXED, w->chain->sets[i].ams, out);
		canon_field(CANON_RELAXED, w->chain->sets[i].as, out);
	}
}

static struct str
chain_status(const struct arc_result *chain)
{
	if (chain->result == AUTH_NONE)
		return STR("none");
	return chain->result == AUTH_PASS ? STR("pass") : STR("fail");
}

static enum res
make_seal(
    const struct sealing *w, struct str aar, struct str ams, struct str *out)
{
	struct signfield *f;
	struct buf before;
	enum res r = signfield_new(w->arena, NAME_AS, w->header, &f);
	if (r != RES_OK)
		return r;
	buf_init(&before, MAX_SEALED);
	struct sink *sink = sink_buf(w->arena, &before);
	if (sink == NULL)
		return RES_NOMEM;
	add_chain(w, sink);
	r = add_made(w, NAME_AAR, aar, sink);
	if (r == RES_OK)
		r = add_made(w, NAME_AMS, ams, sink);
	signfield_number(f, "i", w->instance);
	signfield_algorithm(f, w->key->type);
	signfield_number(f, "t", w->options->now_s);
	signfield_tag(f, "cv", chain_status(w->chain));
	signfield_tag(f, "d", w->key->domain);
	signfield_tag(f, "s", w->key->selector);
	if (r == RES_OK)
		r = before.error;
	if (r == RES_OK)
		r = signfield_sign_after(
		    f, CANON_RELAXED, buf_str(&before), w->signer, w->key, out);
	buf_done(&before);
	return r;
}

enum res
arc_seal_fields(struct arena *a, const struct header *h,
    const struct arc_result *chain, const struct arc_seal_options *o,
    const struct bodyhash_set *hashes, size_t body_index, struct signer *signer,
    const struct signing_key *key, struct str *out_aar, struct str *out_ams,
    struct str *out_as)
{
	struct sealing w = { a, h, chain, o, signer, key,
		chain->instances + 1 };
	struct str aar, ams, as;
	if (chain->sealed_fail || chain->temporary ||
	    (chain->result == AUTH_PASS && chain->sets == NULL) ||
	    w.instance > ARC_MAX_INSTANCES ||
	    header_find(h, STR("from")) == NULL)
		return RES_INVALID;
	if (key->type != KEY_RSA) /* ARC-08 */
		return RES_UNSUPPORTED;
	enum res r = make_aar(&w, &aar);
	if (r == RES_OK)
		r = make_ams(&w, bodyhash_digest(hashes, body_index), &ams);
	if (r == RES_OK)
		r = make_seal(&w, aar, ams, &as);
	if (r != RES_OK)
		return r;
	*out_aar = aar;
	*out_ams = ams;
	*out_as = as;
	return RES_OK;
}

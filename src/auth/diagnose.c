#include "auth/diagnose.h"

#define MAX_TEXT 1024

/* Whether the header is as signed, with the body hash that it claims. */
static bool
header_fits(const struct sig *s, const uint8_t digest[DIGEST_LEN])
{
	bool fits = false;
	return pubkey_verify(s->key, digest, s->signature, &fits) == RES_OK &&
	    fits;
}

/* Another key signed, or b= itself was damaged. Nothing else can be said
 * then: what would fit is not known. */
static bool
is_other_key(const struct sig *s, struct buf *out)
{
	uint8_t digest[DIGEST_LEN];
	if (pubkey_type(s->key) != KEY_RSA) {
		if (s->signature.len == 64)
			return false;
		buf_addf(out, "b= has %zu bytes, not 64", s->signature.len);
		return true;
	}
	if (s->signature.len != (pubkey_bits(s->key) + 7) / 8)
		buf_addf(out,
		    "not signed with this key: it has %u bits, "
		    "b= has %zu",
		    pubkey_bits(s->key), s->signature.len * 8);
	else if (pubkey_recover(s->key, s->signature, digest) != RES_OK)
		buf_add_c(out, "not signed with this key, or b= was damaged");
	return out->len != 0;
}

/* "WHAT changed: CAUSE" */
static enum res
add_half(struct sigcore *c, const struct sig *s, const char *what,
    enum res (*half)(struct sigcore *, const struct sig *, struct buf *),
    struct buf *out)
{
	struct buf cause;
	buf_init(&cause, MAX_TEXT);
	enum res r = half(c, s, &cause);
	buf_addf(out, "%s%s changed", out->len != 0 ? "; " : "", what);
	if (cause.len != 0 && cause.error == RES_OK)
		buf_addf(out, ": %.*s", (int)cause.len, cause.ptr);
	buf_done(&cause);
	return r;
}

static enum res
add_causes(struct sigcore *c, const struct sig *s,
    const uint8_t digest[DIGEST_LEN], struct buf *out)
{
	bool header = header_fits(s, digest), body = sig_body_fits(c, s);
	enum res r = RES_OK;
	if (!header && is_other_key(s, out))
		return r;
	if (!body)
		r = add_half(c, s, "body", diagnose_body, out);
	if (r == RES_OK && !header)
		r = add_half(c, s, "header", diagnose_header, out);
	return r;
}

enum res
diagnose_signature(struct sigcore *c, const struct sig *s,
    const uint8_t digest[DIGEST_LEN], struct str *out)
{
	struct buf b;
	if (s->key == NULL)
		return RES_OK;
	buf_init(&b, MAX_TEXT);
	enum res r = add_causes(c, s, digest, &b);
	if (r == RES_OK) {
		struct str text = arena_dup(c->arena, buf_str(&b));
		r = text.ptr != NULL ? RES_OK : RES_NOMEM;
		if (r == RES_OK)
			*out = text;
	}
	buf_done(&b);
	return r == RES_NOMEM ? RES_NOMEM : RES_OK;
}

#include "auth/sigcore.h"

enum res
sigcore_init(struct sigcore *c, struct arena *a, const struct header *h,
    struct dns_session *dns, struct bodyhash_set *hashes,
    struct key_cache *keys, unsigned min_rsa_bits)
{
	*c = (struct sigcore){ .arena = a,
		.header = h,
		.dns = dns,
		.hashes = hashes,
		.keys = keys,
		.min_rsa_bits = min_rsa_bits,
		.tries = SIG_MAX_TRIES };
	if (c->min_rsa_bits < 1024) /* RFC 8301 §3.2: no option goes below */
		c->min_rsa_bits = 1024;
	/* Each field is taken once by a signature, and its canonical form is
	 * longer than itself by its line end at most. */
	buf_init(&c->scratch, 2 * header_bytes(h) + 4096);
	c->out = sink_buf(a, &c->scratch);
	return c->out != NULL ? RES_OK : RES_NOMEM;
}

void
sig_decide(struct sig *s, enum auth_result result, const char *reason)
{
	if (!sig_undecided(s))
		return;
	s->result = result;
	s->reason = reason;
}

/* Time differences that cannot overflow: both are 0..MAX or "never". */
void
sig_check_age(struct sig *s, int64_t now_s, int64_t skew_s)
{
	if (now_s < 0)
		return;
	if (s->expires_at >= 0 && s->expires_at != SIG_TIME_NEVER &&
	    s->expires_at < now_s - skew_s)
		sig_decide(s, AUTH_POLICY, SIG_EXPIRED);
	else if (s->signed_at > now_s + skew_s)
		sig_decide(s, AUTH_POLICY, SIG_FUTURE);
}

void
sig_prefetch(struct sigcore *c, const struct sig *s)
{
	dns_session_prefetch(c->dns, s->key_name, DNS_TXT);
}

/* --- the header ----------------------------------------------------------- */
/* The next field of `name` upward, this signature's own field passed over. */
static enum res
take(struct header_pick *pick, const struct sig *s, struct str name,
    const struct field **out)
{
	enum res r = header_pick_take(pick, name, out);
	if (r == RES_OK && *out == s->field)
		r = header_pick_take(pick, name, out);
	if (r == RES_NOTFOUND) {
		*out = NULL;
		r = RES_OK;
	}
	return r;
}

enum res
sig_fields(const struct sigcore *c, const struct sig *s,
    const struct field ***out_fields)
{
	const struct field **fields =
	    arena_array(c->arena, s->name_count, sizeof *fields);
	struct header_pick *pick = header_pick_new(c->arena, c->header);
	if (fields == NULL || pick == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < s->name_count; i++) {
		enum res r = take(pick, s, s->names[i], &fields[i]);
		if (r != RES_OK)
			return r;
	}
	*out_fields = fields;
	return RES_OK;
}

enum res
sig_header_digest(
    struct sigcore *c, const struct sig *s, uint8_t out[DIGEST_LEN])
{
	const struct field **fields;
	enum res r = sig_fields(c, s, &fields);
	if (r != RES_OK)
		return r;
	buf_reset(&c->scratch);
	for (size_t i = 0; i < s->name_count; i++)
		if (fields[i] != NULL)
			canon_field(s->header_canon, fields[i], c->out);
	canon_signature_field(
	    s->header_canon, s->field, s->b_from, s->b_to, c->out);
	if (c->scratch.error != RES_OK)
		return RES_NOMEM;
	return digest_sha256(c->scratch.ptr, c->scratch.len, out);
}

/* --- the key -------------------------------------------------------------- */
/* What one key record says about the signature. */
struct verdict {
	enum auth_result result;
	const char *reason, *hint;
};

static struct verdict
check_record(
    const struct sigcore *c, const struct sig *s, const struct key_record *k)
{
	struct verdict v = { AUTH_PERMERROR, k->reason, k->hint };
	if (k->state != KEY_RECORD_OK)
		return v;
	if (k->type != s->type)
		v.reason = "inappropriate key";
	else if (k->type == KEY_RSA && pubkey_bits(k->key) < c->min_rsa_bits)
		v.reason = "key too small";
	else if (s->kind == SIG_DKIM && k->strict_identity &&
	    !str_eq(s->i_domain, s->d))
		v.reason = "domain mismatch";
	else
		v.result = AUTH_NONE;
	return v;
}

bool
sig_body_fits(const struct sigcore *c, const struct sig *s)
{
	if (s->kind == SIG_SEAL)
		return true;
	if (s->has_length &&
	    s->length > bodyhash_canonical_length(c->hashes, s->body_index))
		return false;
	return memcmp(bodyhash_digest(c->hashes, s->body_index), s->body_hash,
		   DIGEST_LEN) == 0;
}

static struct verdict
check_signature(const struct sigcore *c, const struct sig *s,
    struct pubkey *key, const uint8_t digest[DIGEST_LEN])
{
	bool fits;
	if (!sig_body_fits(c, s))
		return (struct verdict){ AUTH_FAIL, "body hash did not verify",
			NULL };
	switch (pubkey_verify(key, digest, s->signature, &fits)) {
	case RES_OK:
		if (fits)
			return (struct verdict){ AUTH_PASS, NULL, NULL };
		return (struct verdict){ AUTH_FAIL, "signature did not verify",
			NULL };
	default:
		return (
		    struct verdict){ AUTH_TEMPERROR, "internal error", NULL };
	}
}

/* Try the records: the first that verifies wins. Else the first verdict of
 * one that is a key record at all is reported, else the first of any. */
static enum res
try_records(struct sigcore *c, struct sig *s, const struct dns_answer *answer,
    const uint8_t digest[DIGEST_LEN])
{
	struct verdict no_record = { 0 }, first = { 0 };
	for (size_t i = 0; i < answer->count && i < SIG_MAX_KEY_RECORDS; i++) {
		struct key_record k;
		enum res r = key_cache_get(
		    c->keys, c->arena, answer->records[i].data, &k);
		if (r != RES_OK)
			return r;
		struct verdict v = check_record(c, s, &k);
		if (v.result == AUTH_NONE)
			v = check_signature(c, s, k.key, digest);
		if (v.result == AUTH_PASS || s->key_bits == 0) {
			s->key = k.key;
			s->key_bits = k.key != NULL ? pubkey_bits(k.key) : 0;
			s->testing = k.testing;
		}
		if (v.result == AUTH_PASS) {
			sig_decide(s, v.result, v.reason);
			return RES_OK;
		}
		struct verdict *keep =
		    k.state == KEY_RECORD_SYNTAX ? &no_record : &first;
		if (keep->reason == NULL)
			*keep = v;
	}
	if (first.reason == NULL)
		first = no_record;
	s->hint = first.hint;
	sig_decide(s, first.result, first.reason);
	return RES_OK;
}

enum res
sig_judge(struct sigcore *c, struct sig *s, const uint8_t digest[DIGEST_LEN])
{
	const struct dns_answer *answer =
	    dns_session_get(c->dns, s->key_name, DNS_TXT);
	if (dns_status_temporary(answer->status)) {
		sig_decide(s, AUTH_TEMPERROR, "key unavailable");
		return RES_OK;
	}
	if (answer->status != DNS_OK || answer->count == 0) {
		sig_decide(s, AUTH_PERMERROR, "no key");
		return RES_OK;
	}
	return try_records(c, s, answer, digest);
}

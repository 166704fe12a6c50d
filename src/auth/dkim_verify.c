#include "auth/dkim_verify.h"

#include "auth/diagnose.h"
#include "auth/sigcore.h"
#include "dns/psl.h"
#include "mail/domain.h"

#define HARD_MAX_SIGNATURES 32 /* DKIM-V-01, and BODYHASH_MAX */

struct dkim_verify {
	struct sigcore core;
	struct dkim_verify_options options;
	size_t count;
	struct sig *sigs;
	size_t from_fields;
};

/* --- cheap checks, before any DNS ------------------------------------------ */
static size_t
times_listed(const struct sig *s, struct str name)
{
	size_t n = 0;
	for (size_t i = 0; i < s->name_count; i++)
		n += str_case_eq(s->names[i], name);
	return n;
}

static void
check_identity(struct sig *s)
{
	if (times_listed(s, STR("from")) == 0)
		sig_decide(s, AUTH_PERMERROR, "From not signed");
	else if (!domain_equal_or_below(s->i_domain, s->d))
		sig_decide(s, AUTH_PERMERROR, "domain mismatch");
	else if (domain_labels(s->d) < 2 || psl_is_registry_suffix(s->d))
		sig_decide(s, AUTH_POLICY, "public suffix domain");
}

static void
check_policy(const struct dkim_verify *v, struct sig *s)
{
	const struct dkim_verify_options *o = &v->options;
	if (s->has_length && o->body_length == BODY_LENGTH_REFUSE)
		sig_decide(s, AUTH_POLICY, "body length not accepted");
	for (size_t i = 0; i < o->required_count; i++) {
		struct str name = o->required_headers[i];
		if (times_listed(s, name) == 0 &&
		    header_find(v->core.header, name) != NULL)
			sig_decide(s, AUTH_POLICY, "required field not signed");
	}
}

static enum res
want_body(struct sigcore *c, struct sig *s)
{
	enum res r =
	    bodyhash_want(c->hashes, s->body_canon, s->length, &s->body_index);
	if (r != RES_LIMIT)
		return r;
	sig_decide(s, AUTH_POLICY, "too many signatures");
	return RES_OK;
}

/* One signature; *live counts those that will cost a key and a hash. */
static enum res
prepare(
    struct dkim_verify *v, const struct field *f, struct sig *s, unsigned *live)
{
	enum res r = sig_parse(v->core.arena, SIG_DKIM, f, s);
	if (r != RES_OK)
		return r;
	if (sig_undecided(s))
		check_identity(s);
	if (sig_undecided(s))
		sig_check_age(
		    s, v->options.now_s, v->options.clock_skew_s);
	if (sig_undecided(s))
		check_policy(v, s);
	if (sig_undecided(s) && ++*live > v->options.max_signatures)
		sig_decide(s, AUTH_POLICY, "too many signatures");
	if (sig_undecided(s))
		r = want_body(&v->core, s);
	if (sig_undecided(s))
		sig_prefetch(&v->core, s);
	return r;
}

static void
release_scratch(void *arg)
{
	struct dkim_verify *v = arg;
	buf_done(&v->core.scratch);
}

static enum res
prepare_all(struct dkim_verify *v)
{
	const struct header *h = v->core.header;
	const struct field *f = header_find(h, STR("dkim-signature"));
	size_t fields = header_count_name(h, STR("dkim-signature"));
	unsigned live = 0;
	if (fields > DKIM_MAX_FIELDS)
		fields = DKIM_MAX_FIELDS;
	v->from_fields = header_count_name(h, STR("from"));
	v->sigs = arena_array(v->core.arena, fields, sizeof *v->sigs);
	if (v->sigs == NULL)
		return RES_NOMEM;
	for (; v->count < fields; f = header_next_same(h, f)) {
		enum res r = prepare(v, f, &v->sigs[v->count], &live);
		if (r != RES_OK)
			return r;
		v->count++;
	}
	return RES_OK;
}

enum res
dkim_verify_begin(struct arena *a, const struct header *h,
    const struct dkim_verify_options *o, struct dns_session *dns,
    struct bodyhash_set *hashes, struct dkim_verify **out)
{
	struct dkim_verify *v = ARENA_NEW(a, struct dkim_verify);
	if (v == NULL)
		return RES_NOMEM;
	v->options = *o;
	if (v->options.max_signatures > HARD_MAX_SIGNATURES)
		v->options.max_signatures = HARD_MAX_SIGNATURES;
	enum res r =
	    sigcore_init(&v->core, a, h, dns, hashes, o->keys, o->min_rsa_bits);
	if (r == RES_OK)
		r = arena_on_free(a, release_scratch, v);
	if (r == RES_OK)
		r = prepare_all(v);
	if (r == RES_OK)
		*out = v;
	return r;
}

/* --- the verdict ----------------------------------------------------------- */
/* What takes the worth from a signature that is right (DKIM-V-11, V-12). */
static void
check_coverage(const struct dkim_verify *v, struct sig *s)
{
	uint64_t body =
	    bodyhash_canonical_length(v->core.hashes, s->body_index);
	const char *reason = NULL;
	if (v->from_fields > 1 && times_listed(s, STR("from")) < v->from_fields)
		reason = "multiple From";
	else if (s->has_length && s->length < body &&
	    v->options.body_length != BODY_LENGTH_ACCEPT)
		reason = "unsigned body bytes";
	if (reason == NULL)
		return;
	s->result = AUTH_NONE;
	sig_decide(s, AUTH_POLICY, reason);
}

static enum res
judge(struct dkim_verify *v, struct sig *s, struct str *out_diagnosis)
{
	uint8_t digest[DIGEST_LEN];
	if (!sig_undecided(s))
		return RES_OK;
	enum res r = sig_header_digest(&v->core, s, digest);
	if (r == RES_OK)
		r = sig_judge(&v->core, s, digest);
	if (r == RES_IO) {
		sig_decide(s, AUTH_TEMPERROR, "internal error");
		r = RES_OK;
	}
	if (r != RES_OK)
		return r;
	if (s->result == AUTH_PASS)
		check_coverage(v, s);
	if (s->result == AUTH_FAIL)
		return diagnose_signature(&v->core, s, digest, out_diagnosis);
	return RES_OK;
}

static struct str
explain_age(const struct dkim_verify *v, const struct sig *s)
{
	if (strcmp(s->reason, SIG_EXPIRED) == 0)
		return arena_printf(v->core.arena,
		    "expired %lld s before it arrived",
		    (long long)(v->options.now_s - s->expires_at));
	if (strcmp(s->reason, SIG_FUTURE) == 0 &&
	    s->signed_at != SIG_TIME_NEVER)
		return arena_printf(v->core.arena,
		    "signed %lld s after it arrived",
		    (long long)(s->signed_at - v->options.now_s));
	return STR_EMPTY;
}

static struct dkim_result
report(const struct dkim_verify *v, const struct sig *s, struct str diagnosis)
{
	if (diagnosis.len == 0 && s->hint != NULL)
		diagnosis = str_c(s->hint);
	if (diagnosis.len == 0 && s->result == AUTH_POLICY)
		diagnosis = explain_age(v, s);
	return (struct dkim_result){
		.result = s->result,
		.reason = s->reason,
		.diagnosis = diagnosis,
		.d = s->d,
		.s = s->s,
		.i = s->i,
		.a = s->a,
		.b = s->b,
		.key_bits = s->key_bits,
		.testing = s->testing,
		.aged = s->expires_at >= 0,
		.signed_at = s->signed_at,
		.expires_at = s->expires_at,
		.field = s->field,
		.h = s->h,
	};
}

enum res
dkim_verify_finish(struct dkim_verify *v,
    const struct dkim_result **out_results, size_t *out_count)
{
	struct dkim_result *results =
	    arena_array(v->core.arena, v->count, sizeof *results);
	if (results == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < v->count; i++) {
		struct str diagnosis = STR_EMPTY;
		enum res r = judge(v, &v->sigs[i], &diagnosis);
		if (r != RES_OK)
			return r;
		results[i] = report(v, &v->sigs[i], diagnosis);
	}
	*out_results = results;
	*out_count = v->count;
	return RES_OK;
}

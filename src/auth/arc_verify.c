#include "auth/arc_verify.h"

#include "auth/sigcore.h"

/* The steps of RFC 8617 §5.2, in the order of standards.md §3.2:
 *
 *   begin   collect -> newest seal's cv -> structure   (no DNS, no body)
 *           -> want body hashes, ask for keys
 *   finish  newest AMS -> older AMS (oldest-pass) -> all seals
 *
 * A chain is failed by one gate, chain_fail; a definite failure covers one for
 * want of an answer, never the other way round. */
struct instance {
	const struct field *aar;
	struct sig ams, as; /* field NULL: not there */
};

struct arc_verify {
	struct sigcore core;
	struct dkim_verify_options options;
	struct arc_result result;
	bool decided; /* by begin: nothing left to verify */
	struct instance *sets; /* ARC_MAX_INSTANCES, [0] is instance 1; NULL
	                          when there is no ARC field */
};

static void
chain_fail(struct arc_verify *v, bool temporary, const char *reason)
{
	if (v->result.result == AUTH_FAIL &&
	    (temporary || !v->result.temporary))
		return;
	v->result.result = AUTH_FAIL;
	v->result.temporary = temporary;
	v->result.reason = reason != NULL ? reason : "internal error";
}

/* Failed by one of its signatures: say which. */
static void
chain_fail_by(struct arc_verify *v, const struct sig *s)
{
	struct str text = arena_printf(v->core.arena, "%s i=%u: %s",
	    s->kind == SIG_SEAL ? "ARC-Seal" : "ARC-Message-Signature",
	    s->instance, s->reason);
	chain_fail(v, s->result == AUTH_TEMPERROR, text.ptr);
}

/* --- collecting ------------------------------------------------------------ */
static void
see_instance(struct arc_verify *v, unsigned i)
{
	if (i > v->result.instances)
		v->result.instances = i;
}

static enum res
collect_aar(struct arc_verify *v, const struct field *f)
{
	unsigned i;
	size_t rest;
	if (sig_instance(f->value, &i, &rest) != RES_OK) {
		chain_fail(v, false, "ARC-Authentication-Results without i=");
		return RES_OK;
	}
	see_instance(v, i);
	if (v->sets[i - 1].aar != NULL)
		chain_fail(v, false, "ARC-Authentication-Results twice");
	v->sets[i - 1].aar = f;
	return RES_OK;
}

static enum res
collect_signature(
    struct arc_verify *v, enum sig_kind kind, const struct field *f)
{
	struct sig s;
	enum res r = sig_parse(v->core.arena, kind, f, &s);
	if (r != RES_OK)
		return r;
	if (s.instance == 0) {
		chain_fail(v, false,
		    kind == SIG_SEAL ? "ARC-Seal without i="
				     : "ARC-Message-Signature without i=");
		return RES_OK;
	}
	see_instance(v, s.instance);
	if (kind == SIG_AMS) /* like a DKIM-Signature (RFC 8617 §4.1.2) */
		sig_check_age(
		    &s, v->options.now_s, v->options.clock_skew_s);
	struct instance *set = &v->sets[s.instance - 1];
	struct sig *place = kind == SIG_SEAL ? &set->as : &set->ams;
	if (place->field != NULL)
		chain_fail(v, false,
		    kind == SIG_SEAL ? "ARC-Seal twice"
				     : "ARC-Message-Signature twice");
	/* Of two newest seals the one that says fail is believed. */
	if (place->field == NULL || s.cv == SIG_CV_FAIL)
		*place = s;
	return RES_OK;
}

static enum res
collect_ams(struct arc_verify *v, const struct field *f)
{
	return collect_signature(v, SIG_AMS, f);
}

static enum res
collect_seal(struct arc_verify *v, const struct field *f)
{
	return collect_signature(v, SIG_SEAL, f);
}

static const struct {
	const char *name;
	enum res (*collect)(struct arc_verify *v, const struct field *f);
} fields[] = {
	{ "arc-authentication-results", collect_aar },
	{ "arc-message-signature", collect_ams },
	{ "arc-seal", collect_seal },
};
#define FIELDS (sizeof fields / sizeof *fields)

static enum res
collect(struct arc_verify *v)
{
	const struct header *h = v->core.header;
	size_t most = 0;
	for (size_t i = 0; i < FIELDS; i++) {
		size_t n = header_count_name(h, str_c(fields[i].name));
		most = n > most ? n : most;
	}
	if (most == 0) {
		v->decided = true; /* AUTH_NONE */
		return RES_OK;
	}
	v->sets =
	    arena_array(v->core.arena, ARC_MAX_INSTANCES, sizeof *v->sets);
	if (v->sets == NULL)
		return RES_NOMEM;
	if (most > ARC_MAX_INSTANCES) {
		/* Not even looked at; nothing may be added either. */
		v->result.instances = ARC_MAX_INSTANCES;
		chain_fail(v, false, "too many ARC sets");
		return RES_OK;
	}
	for (size_t i = 0; i < FIELDS; i++) {
		const struct field *f = header_find(h, str_c(fields[i].name));
		for (; f != NULL; f = header_next_same(h, f)) {
			enum res r = fields[i].collect(v, f);
			if (r != RES_OK)
				return r;
		}
	}
	return RES_OK;
}

/* --- structure ------------------------------------------------------------- */
static bool
lists_seal(const struct sig *ams)
{
	for (size_t i = 0; i < ams->name_count; i++)
		if (str_case_eq(ams->names[i], STR("arc-seal")))
			return true;
	return false;
}

static void
check_set(struct arc_verify *v, unsigned i)
{
	struct instance *set = &v->sets[i - 1];
	if (set->aar == NULL || set->ams.field == NULL || set->as.field == NULL)
		chain_fail(v, false, "ARC set incomplete");
	else if (set->as.result == AUTH_NONE &&
	    set->as.cv != (i == 1 ? SIG_CV_NONE : SIG_CV_PASS))
		chain_fail(v, false, "wrong cv=");
	else if (set->as.result != AUTH_NONE)
		chain_fail_by(v, &set->as);
	if (lists_seal(&set->ams)) /* RFC 8617 §4.1.2 */
		sig_decide(&set->ams, AUTH_NEUTRAL, "ARC-Seal in h=");
}

static void
check_structure(struct arc_verify *v)
{
	unsigned n = v->result.instances;
	if (n == 0)
		return;
	if (v->sets[n - 1].as.cv == SIG_CV_FAIL) {
		v->result.sealed_fail = true;
		chain_fail(v, false, "the newest seal says cv=fail");
		return;
	}
	for (unsigned i = 1; i <= n; i++)
		check_set(v, i);
	if (v->result.result != AUTH_FAIL &&
	    v->sets[n - 1].ams.result != AUTH_NONE)
		chain_fail_by(v, &v->sets[n - 1].ams);
}

static enum res
publish_sets(struct arc_verify *v)
{
	unsigned n = v->result.instances;
	struct arc_set *sets = arena_array(v->core.arena, n, sizeof *sets);
	if (sets == NULL)
		return RES_NOMEM;
	for (unsigned i = 0; i < n; i++) {
		struct instance *set = &v->sets[i];
		sets[i] = (struct arc_set){ set->aar, set->ams.field,
			set->as.field, set->as.d, set->as.s, set->ams.d };
	}
	v->result.sets = sets;
	return RES_OK;
}

/* Newest first: where hashes run out, only old signatures go without. */
static enum res
want_and_ask(struct arc_verify *v)
{
	for (unsigned i = v->result.instances; i-- > 0;) {
		struct sig *ams = &v->sets[i].ams;
		sig_prefetch(&v->core, &v->sets[i].as);
		if (!sig_undecided(ams))
			continue;
		enum res r = bodyhash_want(v->core.hashes, ams->body_canon,
		    ams->length, &ams->body_index);
		if (r == RES_LIMIT)
			sig_decide(ams, AUTH_POLICY, "too many signatures");
		else if (r != RES_OK)
			return r;
		else
			sig_prefetch(&v->core, ams);
	}
	return RES_OK;
}

static void
release_scratch(void *arg)
{
	struct arc_verify *v = arg;
	buf_done(&v->core.scratch);
}

enum res
arc_verify_begin(struct arena *a, const struct header *h,
    const struct dkim_verify_options *o, struct dns_session *dns,
    struct bodyhash_set *hashes, struct arc_verify **out)
{
	struct arc_verify *v = ARENA_NEW(a, struct arc_verify);
	if (v == NULL)
		return RES_NOMEM;
	v->options = *o;
	v->result.result = AUTH_NONE;
	enum res r =
	    sigcore_init(&v->core, a, h, dns, hashes, o->keys, o->min_rsa_bits);
	if (r == RES_OK)
		r = arena_on_free(a, release_scratch, v);
	if (r == RES_OK)
		r = collect(v);
	if (r != RES_OK)
		return r;
	check_structure(v);
	if (v->result.result == AUTH_FAIL)
		v->decided = true;
	if (!v->decided)
		r = publish_sets(v);
	if (r == RES_OK && !v->decided)
		r = want_and_ask(v);
	if (r == RES_OK)
		*out = v;
	return r;
}

/* --- verifying ------------------------------------------------------------- */
static enum res
judge(struct arc_verify *v, struct sig *s, enum res digested,
    const uint8_t digest[DIGEST_LEN])
{
	enum res r =
	    digested == RES_OK ? sig_judge(&v->core, s, digest) : digested;
	if (r == RES_IO) {
		sig_decide(s, AUTH_TEMPERROR, "internal error");
		r = RES_OK;
	}
	return r;
}

static enum res
judge_ams(struct arc_verify *v, struct sig *s)
{
	uint8_t digest[DIGEST_LEN];
	if (!sig_undecided(s))
		return RES_OK;
	enum res r = sig_header_digest(&v->core, s, digest);
	r = judge(v, s, r, digest);
	if (r == RES_OK && s->result == AUTH_PASS && s->has_length &&
	    v->options.body_length != BODY_LENGTH_ACCEPT &&
	    s->length <
		bodyhash_canonical_length(v->core.hashes, s->body_index)) {
		s->result = AUTH_NONE;
		sig_decide(s, AUTH_POLICY, "unsigned body bytes");
	}
	return r;
}

/* The newest decides; the older ones only tell since when all is well. */
static enum res
judge_all_ams(struct arc_verify *v)
{
	unsigned n = v->result.instances;
	enum res r = judge_ams(v, &v->sets[n - 1].ams);
	if (r != RES_OK)
		return r;
	if (v->sets[n - 1].ams.result != AUTH_PASS)
		chain_fail_by(v, &v->sets[n - 1].ams);
	for (unsigned i = n - 1; i > 0 && v->result.result != AUTH_FAIL; i--) {
		r = judge_ams(v, &v->sets[i - 1].ams);
		if (r != RES_OK)
			return r;
		if (v->sets[i - 1].ams.result == AUTH_PASS)
			continue;
		v->result.oldest_pass = i + 1;
		break;
	}
	return RES_OK;
}

/* Every seal covers all sets up to its own, itself without b= (ARC-V-02). The
 * canonical octets of the sets below are kept, so they are made only once;
 * that is why the seals are taken upward here. */
static enum res
judge_seals(struct arc_verify *v)
{
	struct sigcore *c = &v->core;
	buf_reset(&c->scratch);
	for (unsigned i = 0; i < v->result.instances; i++) {
		struct instance *set = &v->sets[i];
		struct sig *as = &set->as;
		uint8_t digest[DIGEST_LEN];
		canon_field(CANON_RELAXED, set->aar, c->out);
		canon_field(CANON_RELAXED, set->ams.field, c->out);
		size_t below = c->scratch.len;
		canon_signature_field(
		    CANON_RELAXED, as->field, as->b_from, as->b_to, c->out);
		if (c->scratch.error != RES_OK)
			return RES_NOMEM;
		enum res r =
		    digest_sha256(c->scratch.ptr, c->scratch.len, digest);
		r = judge(v, as, r, digest);
		if (r != RES_OK)
			return r;
		if (as->result != AUTH_PASS)
			chain_fail_by(v, as);
		c->scratch.len = below;
		canon_field(CANON_RELAXED, as->field, c->out);
	}
	return RES_OK;
}

enum res
arc_verify_finish(struct arc_verify *v, struct arc_result *out)
{
	if (!v->decided) {
		enum res r = judge_all_ams(v);
		if (r == RES_OK)
			r = judge_seals(v);
		if (r != RES_OK)
			return r;
		if (v->result.result != AUTH_FAIL)
			v->result.result = AUTH_PASS;
		else
			v->result.oldest_pass = 0;
		v->decided = true;
	}
	*out = v->result;
	return RES_OK;
}

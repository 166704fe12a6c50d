#include "auth/dmarc.h"

#include "auth/dmarc_discover.h"
#include "mail/domain.h"

const char *
dmarc_policy_word(enum dmarc_policy p)
{
	switch (p) {
	case DMARC_NONE:
		return "none";
	case DMARC_QUARANTINE:
		return "quarantine";
	case DMARC_REJECT:
		return "reject";
	}
	return "none";
}

/* One author domain under evaluation. */
struct evaluation {
	struct arena *arena;
	struct dns_session *dns;
	const struct dmarc_input *in;
	struct dmarc_result *r;
	bool unsure; /* an alignment could not be looked up, or an identifier
	                that would align has itself a temporary error */
};

/* Does the author domain exist (DMARC-D-04)? An answer that is missing counts
 * as yes: the milder reading of a zone we cannot see. */
static bool
is_nonexistent(struct evaluation *e, struct str domain)
{
	const struct dns_answer *a = dns_session_get(e->dns, domain, DNS_A);
	return a->status == DNS_NXDOMAIN;
}

static void
choose_policy(struct evaluation *e)
{
	struct dmarc_result *r = e->r;
	const struct dmarc_record *d = &r->record;
	r->policy = d->p;
	r->policy_tag = "p";
	if (!domain_equal(r->record_domain, r->from)) {
		/* np falls back to sp: asking is only needed when they differ */
		bool ghost = d->np != d->sp && is_nonexistent(e, r->from);
		r->policy = ghost ? d->np : d->sp;
		r->policy_tag = ghost ? "np" : d->has_sp ? "sp" : "p";
	}
	if (d->testing && r->policy != DMARC_NONE)
		r->policy--; /* DMARC-D-09 */
}

/* The organizational domain of the author, once. RES_AGAIN: unknown. */
static enum res
know_org(struct evaluation *e)
{
	if (e->r->org_domain.len != 0)
		return RES_OK;
	return dmarc_org_domain(
	    e->arena, e->dns, e->in->method, e->r->from, &e->r->org_domain);
}

enum alignment {
	ALIGNED,
	NOT_ALIGNED,
	ALIGNMENT_UNKNOWN
};

/* Relaxed alignment of two different names (ALIGN-01). An organizational
 * domain is a suffix of its name, so that only an identifier at or below the
 * author's need be walked itself; and without a common top label there is
 * nothing to ask at all. */
static enum res
align_relaxed(struct evaluation *e, struct str domain, enum alignment *out)
{
	struct str org;
	*out = NOT_ALIGNED;
	if (!domain_equal(domain_last_labels(domain, 1),
		domain_last_labels(e->r->from, 1)))
		return RES_OK;
	enum res r = know_org(e);
	if (r == RES_OK && !domain_equal_or_below(domain, e->r->org_domain))
		return RES_OK;
	if (r == RES_OK)
		r = dmarc_org_domain(
		    e->arena, e->dns, e->in->method, domain, &org);
	if (r == RES_AGAIN) {
		*out = ALIGNMENT_UNKNOWN;
		return RES_OK;
	}
	if (r == RES_OK && domain_equal(org, e->r->org_domain))
		*out = ALIGNED;
	return r;
}

static enum res
align(struct evaluation *e, struct str domain, bool strict, enum alignment *out)
{
	*out = NOT_ALIGNED;
	if (domain.len == 0)
		return RES_OK;
	if (domain_equal(domain, e->r->from)) {
		*out = ALIGNED;
		return RES_OK;
	}
	return strict ? RES_OK : align_relaxed(e, domain, out);
}

/* Count one identifier: a pass that aligns, or a reason to be unsure. */
static enum res
count_identifier(struct evaluation *e, const struct dmarc_identifier *id,
    bool strict, bool *aligned)
{
	enum alignment how;
	if (id->result != AUTH_PASS && id->result != AUTH_TEMPERROR)
		return RES_OK;
	enum res r = align(e, id->domain, strict, &how);
	if (r != RES_OK || how == NOT_ALIGNED)
		return r;
	if (how == ALIGNMENT_UNKNOWN || id->result == AUTH_TEMPERROR) {
		e->unsure = true;
		return RES_OK;
	}
	*aligned = true;
	if (e->r->aligned_domain.len == 0)
		e->r->aligned_domain = id->domain;
	return RES_OK;
}

/* Identifiers equal to the author domain need no look-up: once one passes,
 * only what is certain by itself is still counted (DMARC-D-08). */
static enum res
count_equal(struct evaluation *e)
{
	const struct dmarc_input *in = e->in;
	enum res r = RES_OK;
	if (domain_equal(in->spf.domain, e->r->from))
		r = count_identifier(e, &in->spf, true, &e->r->spf_aligned);
	for (size_t i = 0; r == RES_OK && i < in->dkim_count; i++)
		if (domain_equal(in->dkim[i].domain, e->r->from))
			r = count_identifier(
			    e, &in->dkim[i], true, &e->r->dkim_aligned);
	return r;
}

static enum res
count_others(struct evaluation *e)
{
	const struct dmarc_input *in = e->in;
	const struct dmarc_record *d = &e->r->record;
	enum res r = RES_OK;
	if (!e->r->spf_aligned)
		r = count_identifier(
		    e, &in->spf, d->strict_spf, &e->r->spf_aligned);
	for (size_t i = 0;
	     r == RES_OK && i < in->dkim_count && !e->r->dkim_aligned; i++)
		r = count_identifier(
		    e, &in->dkim[i], d->strict_dkim, &e->r->dkim_aligned);
	return r;
}

/* Both must come to the same verdict; a difference is our fault and nobody's
 * mail is judged by it. */
static enum res
ask_library(struct dmarc_result *r)
{
	bool pass;
	enum dmarc_policy policy;
	enum res res = dmarc_library_verdict(r, &pass, &policy);
	if (res == RES_NOMEM)
		return res;
	bool ours = r->result == AUTH_PASS;
	if (res != RES_OK || pass != ours || (!pass && policy != r->policy)) {
		r->result = AUTH_TEMPERROR;
		r->reason = "engines disagree";
	}
	return RES_OK;
}

static enum res
judge_alignment(struct evaluation *e)
{
	struct dmarc_result *r = e->r;
	enum res res = count_equal(e);
	if (res == RES_OK)
		res = count_others(e);
	if (res != RES_OK)
		return res;
	if (r->spf_aligned || r->dkim_aligned) {
		r->result = AUTH_PASS;
	} else if (e->unsure) {
		r->result = AUTH_TEMPERROR;
		r->reason = "temporary error of an aligned identifier";
		return RES_OK;
	} else {
		r->result = AUTH_FAIL;
		r->reason = "no aligned identifier";
	}
	return ask_library(r);
}

/* DMARC-D-07: an invalid policy is p=none when there is somebody to tell,
 * otherwise there is no DMARC. */
static bool
is_usable(struct dmarc_record *d)
{
	if (!d->bad_policy)
		return true;
	if (d->rua_count == 0)
		return false;
	d->p = d->sp = d->np = DMARC_NONE;
	d->has_p = true;
	d->has_sp = d->has_np = false;
	return true;
}

static enum res
evaluate_one(struct arena *a, struct dns_session *dns,
    const struct dmarc_input *in, struct str from, struct dmarc_result *out)
{
	struct dmarc_result r = { .result = AUTH_NONE, .from = from };
	struct evaluation e = { .arena = a, .dns = dns, .in = in, .r = &r };
	struct dmarc_discovery found;
	enum res res = dmarc_discover(a, dns, in->method, from, &found);
	if (res != RES_OK)
		return res;
	r.org_domain = found.org_domain;
	switch (found.look) {
	case DMARC_LOOK_TEMPORARY:
		r.result = AUTH_TEMPERROR;
		r.reason = "no answer for the policy record";
		break;
	case DMARC_LOOK_ABSENT:
	case DMARC_LOOK_SEVERAL:
		r.reason = "no policy record";
		break;
	case DMARC_LOOK_FOUND:
		r.has_record = true;
		r.record = found.record;
		r.record_domain = found.record_domain;
		if (!is_usable(&r.record)) {
			r.reason = "policy record without a valid policy";
			break;
		}
		choose_policy(&e);
		res = judge_alignment(&e);
		break;
	}
	if (res == RES_OK)
		*out = r;
	return res;
}

/* Which of two author domains' results speaks for the message: a fail before
 * all (the strictest first), then what keeps us from saying pass. */
static int
weight(const struct dmarc_result *r)
{
	switch (r->result) {
	case AUTH_FAIL:
		return 10 + (int)r->policy;
	case AUTH_TEMPERROR:
		return 3;
	case AUTH_NONE:
		return 2;
	case AUTH_PASS:
		return 1;
	case AUTH_SOFTFAIL:
	case AUTH_POLICY:
	case AUTH_NEUTRAL:
	case AUTH_PERMERROR:
		break;
	}
	return 0;
}

enum res
dmarc_evaluate(struct arena *a, struct dns_session *dns,
    const struct dmarc_input *in, struct dmarc_result *out)
{
	struct dmarc_result decisive = { .result = AUTH_PERMERROR };
	if (in->from_count == 0 || in->from_count > DMARC_MAX_FROM_DOMAINS) {
		decisive.reason = in->from_count == 0
		    ? "no author domain"
		    : "too many author domains";
		*out = decisive;
		return RES_OK;
	}
	struct dmarc_result *each = arena_array(a, in->from_count, sizeof *each);
	if (each == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < in->from_count; i++) {
		enum res res =
		    evaluate_one(a, dns, in, in->from_domains[i], &each[i]);
		if (res != RES_OK)
			return res;
		if (weight(&each[i]) > weight(&decisive))
			decisive = each[i];
	}
	if (in->from_count > 1) {
		decisive.each = each;
		decisive.each_count = in->from_count;
	}
	*out = decisive;
	return RES_OK;
}

/* Inbound: everything that can be asked is asked at end of header, so that
 * answers arrive while the body does; judged at end of message. */
#include "flow/state.h"

static struct spf_request
spf_request(const struct message *m)
{
	const struct session_facts *f = &m->session->facts;
	return (struct spf_request){
		.client = m->client,
		.helo = m->helo,
		.mail_from = m->mail_from,
		.receiver = f->hostname,
		.now_s = m->time_us / 1000000,
		.void_limit = (unsigned)m->config->void_lookups,
	};
}

/* Without a client there is nothing that SPF could say (SPF-09). */
static bool
spf_wanted(const struct message *m)
{
	return m->config->spf && m->session->facts.client.family != IP_NONE;
}

static bool
helo_wanted(const struct message *m)
{
	return m->config->spf_helo && m->helo.len != 0;
}

static struct dkim_verify_options
dkim_options(const struct message *m)
{
	const struct config *c = m->config;
	struct dkim_verify_options o = {
		.max_signatures = (unsigned)c->max_signatures,
		.min_rsa_bits = (unsigned)c->min_rsa_bits,
		.now_s = m->session->env->judge_age ? m->time_us / 1000000 : -1,
		.clock_skew_s = c->clock_skew_s,
		.required_headers = c->required_signed_headers.items,
		.required_count = c->required_signed_headers.count,
		.keys = m->session->env->keys,
	};
	switch (c->body_length) {
	case BODY_LENGTH_SETTING_POLICY:
		o.body_length = BODY_LENGTH_POLICY;
		break;
	case BODY_LENGTH_SETTING_ACCEPT:
		o.body_length = BODY_LENGTH_ACCEPT;
		break;
	case BODY_LENGTH_SETTING_REFUSE:
		o.body_length = BODY_LENGTH_REFUSE;
		break;
	}
	return o;
}

void
verify_begin(struct message *m)
{
	relay_find(m);
	struct dkim_verify_options o = dkim_options(m);
	enum res r = dkim_verify_begin(m->arena, m->header, &o, m->dns,
	    m->hashes, &m->dkim_verify);
	if (r == RES_OK && m->config->arc != ARC_OFF)
		r = arc_verify_begin(m->arena, m->header, &o, m->dns,
		    m->hashes, &m->arc_verify);
	if (r != RES_OK) {
		message_internal(m, "Out of memory");
		return;
	}
	struct spf_request rq = spf_request(m);
	if (m->client.family != IP_NONE)
		iprev_prefetch(m->arena, m->dns, &m->client);
	if (spf_wanted(m) && m->client.family != IP_NONE) {
		spf_prefetch(m->arena, m->dns, &rq, SPF_MAILFROM);
		if (helo_wanted(m))
			spf_prefetch(m->arena, m->dns, &rq, SPF_HELO);
	}
	if (!policy_wants_dmarc(m->config))
		return;
	for (size_t i = 0; i < m->from.count && i < DMARC_MAX_FROM_DOMAINS; i++)
		dmarc_prefetch(m->arena, m->dns, m->from.domains[i]);
}

static enum res
finish_spf(struct message *m)
{
	struct decision *d = &m->decision;
	struct spf_request rq = spf_request(m);
	enum res r = RES_OK;
	if (!spf_wanted(m))
		return RES_OK;
	if (m->client.family == IP_NONE) {
		d->spf[d->spf_count++] = (struct spf_result){
			.result = AUTH_NONE,
			.identity = SPF_MAILFROM,
			.reason = "no address before the trusted relay",
		};
		return RES_OK;
	}
	/* with a null sender both identities are the same question */
	if (helo_wanted(m) && m->mail_from.len != 0) {
		r = spf_check(m->arena, m->dns, &rq, SPF_HELO,
		    &d->spf[d->spf_count]);
		if (r != RES_OK)
			return r;
		d->spf_count++;
	}
	r = spf_check(
	    m->arena, m->dns, &rq, SPF_MAILFROM, &d->spf[d->spf_count]);
	if (r == RES_OK)
		d->spf_count++;
	return r;
}

static enum res
finish_dmarc(struct message *m)
{
	struct decision *d = &m->decision;
	struct dmarc_identifier *dkim =
	    arena_array(m->arena, d->dkim_count, sizeof *dkim);
	if (dkim == NULL)
		return RES_NOMEM;
	size_t n = 0;
	for (size_t i = 0; i < d->dkim_count; i++)
		if (d->dkim[i].d.len != 0)
			dkim[n++] = (struct dmarc_identifier){ d->dkim[i].d,
				d->dkim[i].result };
	struct dmarc_input in = {
		.from_domains = m->from.domains,
		.from_count = m->from.count,
		.dkim = dkim,
		.dkim_count = n,
		.method = m->config->org_domain == ORG_DOMAIN_PSL ?
		    ORG_PSL : ORG_TREEWALK,
	};
	for (size_t i = 0; i < d->spf_count; i++)
		if (d->spf[i].identity == SPF_MAILFROM)
			in.spf = (struct dmarc_identifier){ d->spf[i].domain,
				d->spf[i].result };
	if (m->from.count == 0) {
		/* no author domain: never "no record" (P-06) */
		d->dmarc = (struct dmarc_result){ .result = AUTH_PERMERROR,
			.reason = from_state_text(m->from.state) };
		d->dmarc_done = true;
		return RES_OK;
	}
	enum res r = dmarc_evaluate(m->arena, m->dns, &in, &d->dmarc);
	d->dmarc_done = r == RES_OK;
	return r;
}

void
verify_finish(struct message *m)
{
	struct decision *d = &m->decision;
	enum res r = RES_OK;
	if (m->dkim_verify != NULL)
		r = dkim_verify_finish(m->dkim_verify, &d->dkim, &d->dkim_count);
	if (r == RES_OK && m->arc_verify != NULL) {
		r = arc_verify_finish(m->arc_verify, &d->arc);
		d->arc_done = r == RES_OK;
	}
	if (r == RES_OK && m->client.family != IP_NONE) {
		r = iprev_check(m->arena, m->dns, &m->client, &d->iprev);
		d->iprev_done = r == RES_OK;
	}
	if (r == RES_OK)
		r = finish_spf(m);
	if (r == RES_OK && policy_wants_dmarc(m->config))
		r = finish_dmarc(m);
	if (r != RES_OK)
		message_internal(m, "Out of memory");
}

void
verify_chain_begin(struct message *m)
{
	struct dkim_verify_options o = dkim_options(m);
	if (m->config->arc == ARC_SEAL &&
	    arc_verify_begin(m->arena, m->header, &o, m->dns, m->hashes,
		&m->arc_verify) != RES_OK)
		message_internal(m, "Out of memory");
}

void
verify_chain_finish(struct message *m)
{
	struct decision *d = &m->decision;
	if (m->arc_verify == NULL)
		return;
	if (arc_verify_finish(m->arc_verify, &d->arc) != RES_OK) {
		message_internal(m, "Out of memory");
		return;
	}
	d->arc_done = true;
	/* What counts is what arrived, not what a filter made of it; but a
	 * pass that it took away, in part or whole, cannot be told any more. */
	d->arc.temporary = m->recalled_arc_temporary;
	if (m->recalled_arc == AUTH_FAIL ||
	    (m->recalled_arc == AUTH_PASS && d->arc.sets != NULL))
		d->arc.result = m->recalled_arc;
}

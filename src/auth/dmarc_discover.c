#include "auth/dmarc_discover.h"

#include "dns/psl.h"
#include "mail/domain.h"

static struct str
policy_name(struct arena *a, struct str domain)
{
	/* too long a name is refused where it is asked for */
	return arena_printf(a, "_dmarc.%.*s", STR_ARG(domain));
}

enum res
dmarc_look_up(struct arena *a, struct dns_session *dns, struct str domain,
    enum dmarc_look *out, struct dmarc_record *out_record)
{
	struct str name = policy_name(a, domain);
	if (name.ptr == NULL)
		return RES_NOMEM;
	const struct dns_answer *answer = dns_session_get(dns, name, DNS_TXT);
	if (dns_status_temporary(answer->status)) {
		*out = DMARC_LOOK_TEMPORARY;
		return RES_OK;
	}
	enum dmarc_look look = DMARC_LOOK_ABSENT;
	for (size_t i = 0; answer->status == DNS_OK && i < answer->count; i++) {
		struct dmarc_record record;
		enum res r =
		    dmarc_record_parse(a, answer->records[i].data, &record);
		if (r == RES_NOMEM)
			return r;
		if (r != RES_OK)
			continue;
		if (look == DMARC_LOOK_FOUND) {
			*out = DMARC_LOOK_SEVERAL;
			return RES_OK;
		}
		look = DMARC_LOOK_FOUND;
		*out_record = record;
	}
	*out = look;
	return RES_OK;
}

/* A walk from `start` to its top-level domain. */
#define WALK_MAX 8 /* queries, RFC 9989 §4.10 */

struct walk {
	struct str names[WALK_MAX]; /* asked, longest first */
	size_t name_count;
	struct {
		struct str domain;
		struct dmarc_record record;
	} found[WALK_MAX];
	size_t count;
	bool temporary; /* an answer is missing: nothing may be concluded */
};

/* The full name, then at most the right-most seven labels, one less each
 * time, down to a single one. */
static void
plan_walk(struct str start, struct walk *w)
{
	unsigned labels = domain_labels(start);
	w->names[w->name_count++] = start;
	for (unsigned n = labels < WALK_MAX ? labels - 1 : WALK_MAX - 1; n > 0;
	     n--)
		w->names[w->name_count++] = domain_last_labels(start, n);
}

/* The first step decides alone in most cases; the others are asked for
 * together, so that a long name costs two round trips, not eight. */
static enum res
prefetch_rest(struct arena *a, struct dns_session *dns, const struct walk *w)
{
	for (size_t i = 1; i < w->name_count; i++) {
		struct str name = policy_name(a, w->names[i]);
		if (name.ptr == NULL)
			return RES_NOMEM;
		dns_session_prefetch(dns, name, DNS_TXT);
	}
	return RES_OK;
}

/* Take the step `i`. False ends the walk: a record that says what it is, or
 * an answer that is missing. */
static enum res
take_step(struct arena *a, struct dns_session *dns, struct walk *w, size_t i,
    bool *out_go_on)
{
	struct dmarc_record record;
	enum dmarc_look look;
	enum res r = dmarc_look_up(a, dns, w->names[i], &look, &record);
	if (r != RES_OK)
		return r;
	*out_go_on = true;
	switch (look) {
	case DMARC_LOOK_TEMPORARY:
		w->temporary = true;
		*out_go_on = false;
		break;
	case DMARC_LOOK_FOUND:
		w->found[w->count].domain = w->names[i];
		w->found[w->count++].record = record;
		*out_go_on = record.psd == 'u';
		break;
	case DMARC_LOOK_ABSENT:
	case DMARC_LOOK_SEVERAL:
		break;
	}
	return RES_OK;
}

static enum res
walk_up(
    struct arena *a, struct dns_session *dns, struct str start, struct walk *w)
{
	bool go_on = true;
	enum res r = RES_OK;
	plan_walk(start, w);
	for (size_t i = 0; r == RES_OK && go_on && i < w->name_count; i++) {
		if (i == 1)
			r = prefetch_rest(a, dns, w);
		if (r == RES_OK)
			r = take_step(a, dns, w, i, &go_on);
	}
	return r;
}

/* ORG-01 to ORG-05, over a whole walk. */
static struct str
org_of_walk(const struct walk *w)
{
	struct str start = w->names[0], org = start;
	for (size_t i = 0; i < w->count; i++) {
		struct str at = w->found[i].domain;
		char psd = w->found[i].record.psd;
		if (psd == 'n')
			return at;
		if (psd == 'y' && !domain_equal(at, start))
			return domain_last_labels(start, domain_labels(at) + 1);
		org = at; /* the fewest labels come last */
	}
	return org;
}

static struct str
org_by_list(struct str domain)
{
	struct str org = psl_organizational(domain);
	return org.ptr != NULL ? org : domain; /* PSL-03 */
}

enum res
dmarc_org_domain(struct arena *a, struct dns_session *dns,
    enum org_method method, struct str domain, struct str *out)
{
	if (method == ORG_PSL) {
		*out = org_by_list(domain);
		return RES_OK;
	}
	struct walk *w = ARENA_NEW(a, struct walk);
	if (w == NULL)
		return RES_NOMEM;
	enum res r = walk_up(a, dns, domain, w);
	if (r != RES_OK)
		return r;
	if (w->temporary)
		return RES_AGAIN;
	*out = org_of_walk(w);
	return RES_OK;
}

static enum res
discover_by_list(struct arena *a, struct dns_session *dns, struct str domain,
    struct dmarc_discovery *d)
{
	d->org_domain = org_by_list(domain);
	d->record_domain = domain;
	enum res r = dmarc_look_up(a, dns, domain, &d->look, &d->record);
	if (r == RES_OK && d->look == DMARC_LOOK_ABSENT &&
	    !domain_equal(d->org_domain, domain)) {
		d->record_domain = d->org_domain;
		r = dmarc_look_up(a, dns, d->org_domain, &d->look, &d->record);
	}
	if (d->look == DMARC_LOOK_SEVERAL)
		d->look = DMARC_LOOK_ABSENT;
	return r;
}

/* The record of the organizational domain, else that of its public suffix
 * (psd=y, on which the walk ended). */
static void
choose_record(const struct walk *w, struct dmarc_discovery *d)
{
	size_t chosen = SIZE_MAX;
	for (size_t i = 0; i < w->count; i++)
		if (domain_equal(w->found[i].domain, d->org_domain))
			chosen = i;
	if (chosen == SIZE_MAX && w->count > 0 &&
	    w->found[w->count - 1].record.psd == 'y')
		chosen = w->count - 1;
	if (chosen == SIZE_MAX) {
		d->look = DMARC_LOOK_ABSENT;
		return;
	}
	d->look = DMARC_LOOK_FOUND;
	d->record = w->found[chosen].record;
	d->record_domain = w->found[chosen].domain;
}

static enum res
discover_by_walk(struct arena *a, struct dns_session *dns, struct str domain,
    struct dmarc_discovery *d)
{
	d->record_domain = domain;
	enum res r = dmarc_look_up(a, dns, domain, &d->look, &d->record);
	if (r != RES_OK || d->look == DMARC_LOOK_FOUND ||
	    d->look == DMARC_LOOK_TEMPORARY)
		return r;
	struct walk *w = ARENA_NEW(a, struct walk);
	if (w == NULL)
		return RES_NOMEM;
	r = walk_up(a, dns, domain, w);
	if (r != RES_OK)
		return r;
	if (w->temporary) {
		d->look = DMARC_LOOK_TEMPORARY;
		return RES_OK;
	}
	d->org_domain = org_of_walk(w);
	choose_record(w, d);
	return RES_OK;
}

enum res
dmarc_discover(struct arena *a, struct dns_session *dns, enum org_method method,
    struct str domain, struct dmarc_discovery *out)
{
	struct dmarc_discovery d = { .look = DMARC_LOOK_ABSENT };
	enum res r = method == ORG_PSL ? discover_by_list(a, dns, domain, &d)
				       : discover_by_walk(a, dns, domain, &d);
	if (r != RES_OK)
		return r;
	if (d.look != DMARC_LOOK_FOUND)
		d.record_domain = STR_EMPTY;
	*out = d;
	return RES_OK;
}

void
dmarc_prefetch(struct arena *a, struct dns_session *dns, struct str domain)
{
	struct str name = policy_name(a, domain);
	if (name.ptr != NULL)
		dns_session_prefetch(dns, name, DNS_TXT);
}

enum res
dmarc_accepts_reports(struct arena *a, struct dns_session *dns,
    struct str domain, struct str receiver, enum auth_result *out,
    struct dmarc_record *out_record)
{
	struct str name = arena_printf(
	    a, "%.*s._report._dmarc.%.*s", STR_ARG(domain), STR_ARG(receiver));
	if (name.ptr == NULL)
		return RES_NOMEM;
	const struct dns_answer *answer = dns_session_get(dns, name, DNS_TXT);
	if (dns_status_temporary(answer->status)) {
		*out = AUTH_TEMPERROR;
		return RES_OK;
	}
	*out = AUTH_FAIL;
	for (size_t i = 0; answer->status == DNS_OK && i < answer->count; i++) {
		struct dmarc_record record;
		enum res r =
		    dmarc_record_parse(a, answer->records[i].data, &record);
		if (r == RES_NOMEM)
			return r;
		if (r != RES_OK)
			continue;
		*out = AUTH_PASS;
		if (out_record != NULL)
			*out_record = record;
		break;
	}
	return RES_OK;
}

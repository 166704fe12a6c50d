#include "auth/spf.h"

#include "auth/spf_check.h"
#include "dns/name.h"
#include "mail/address.h"
#include "mail/domain.h"

/* Who is checked: SPF-01..06. */
struct sender {
	struct str local, domain;
	const char *none; /* why there is nothing to check */
};

static bool
has_8bit(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.ptr[i] > 0x7f)
			return true;
	}
	return false;
}

/* A name that check_host() may ask for: well formed, more than one label, no
 * address literal. The case stays as it is, macros show it. */
static const char *
check_domain(struct arena *a, struct str *domain, enum spf_identity identity)
{
	*domain = dns_name_chop(*domain);
	if (domain->len == 0)
		return "no domain";
	if (domain->ptr[0] == '[')
		return "address literal in place of a domain";
	/* HELO has to be ASCII already (RFC 8616 §4). */
	if (has_8bit(*domain) &&
	    (identity == SPF_HELO ||
		domain_normalize(a, *domain, domain) != RES_OK))
		return "not a domain name";
	if (!dns_name_ok(*domain))
		return "not a domain name";
	if (str_chr(*domain, '.') == SIZE_MAX)
		return "not a fully qualified domain name";
	return NULL;
}

static struct sender
find_sender(
    struct arena *a, const struct spf_request *rq, enum spf_identity identity)
{
	struct sender s = { .local = STR("postmaster"), .domain = rq->helo };
	struct str address, local;
	enum spf_identity kind = SPF_HELO;
	address_envelope(rq->mail_from, &address, &local, &s.domain);
	if (identity == SPF_HELO || address.len == 0) {
		s.domain = rq->helo;
	} else {
		kind = SPF_MAILFROM;
		if (local.len > 0)
			s.local = local;
	}
	s.none = check_domain(a, &s.domain, kind);
	return s;
}

static struct spf_check *
check_new(struct arena *a, struct dns_session *dns,
    const struct spf_request *rq, const struct sender *s)
{
	struct spf_check *c = ARENA_NEW(a, struct spf_check);
	if (c == NULL)
		return NULL;
	c->arena = a;
	c->dns = dns;
	c->void_limit = rq->void_limit;
	c->env = (struct spf_macro_env){ .local = s->local,
		.sender_domain = s->domain,
		.helo = rq->helo,
		.receiver = rq->receiver,
		.client = rq->client,
		.now_s = rq->now_s };
	return c;
}

/* Everything but the domain. */
static enum res
evaluate(struct spf_check *c, struct str domain, struct spf_result *out)
{
	struct spf_node *first = spf_node_first(c, domain);
	if (first != NULL) {
		enum res r = spf_lib_run(c, first, &out->result);
		if (r != RES_OK)
			return r;
	}
	out->local_part_used = c->env.local_used;
	if (c->no_memory)
		return RES_NOMEM;
	if (c->stopped) {
		out->result = c->verdict;
		out->reason = c->reason;
		return RES_OK;
	}
	if (out->result == AUTH_TEMPERROR || out->result == AUTH_PERMERROR) {
		out->reason = "libspf2 refuses the record";
		return RES_OK;
	}
	const struct spf_term *t = spf_deciding_term(c, first);
	if (t != NULL)
		out->mechanism = t->text;
	if (out->result == AUTH_FAIL)
		out->explanation = spf_explain(c);
	return RES_OK;
}

enum res
spf_check(struct arena *a, struct dns_session *dns,
    const struct spf_request *rq, enum spf_identity identity,
    struct spf_result *out)
{
	struct spf_result result = { .result = AUTH_NONE,
		.identity = identity };
	struct sender s = find_sender(a, rq, identity);
	if (s.none == NULL && rq->client.family == IP_NONE)
		s.none = "no client address";
	if (s.none == NULL) {
		result.domain = arena_lower(a, s.domain);
		struct spf_check *c = check_new(a, dns, rq, &s);
		if (c == NULL || result.domain.ptr == NULL)
			return RES_NOMEM;
		enum res r = evaluate(c, s.domain, &result);
		if (r != RES_OK)
			return r;
	} else {
		result.reason = s.none;
	}
	*out = result;
	return RES_OK;
}

void
spf_prefetch(struct arena *a, struct dns_session *dns,
    const struct spf_request *rq, enum spf_identity identity)
{
	struct sender s = find_sender(a, rq, identity);
	if (s.none == NULL)
		dns_session_prefetch(dns, s.domain, DNS_TXT);
}

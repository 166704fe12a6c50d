#include "auth/spf_check.h"

#include "dns/name.h"

void
spf_stop(struct spf_check *c, enum auth_result verdict, const char *reason)
{
	if (c->stopped)
		return;
	c->stopped = true;
	c->verdict = verdict;
	c->reason = reason;
}

static void
no_memory(struct spf_check *c)
{
	c->no_memory = true;
	spf_stop(c, AUTH_TEMPERROR, "out of memory");
}

/* ---- records ---------------------------------------------------------- */

/* The one SPF record among the answer's; stops otherwise (SPF §4.2 table). */
static bool
select_record(struct spf_check *c, const struct dns_answer *a, struct str *out)
{
	size_t found = 0;
	if (dns_status_temporary(a->status)) {
		spf_stop(c, AUTH_TEMPERROR,
		    "DNS failure when looking for the SPF record");
		return false;
	}
	for (size_t i = 0; i < a->count; i++) {
		if (spf_record_matches(a->records[i].data)) {
			*out = a->records[i].data;
			found++;
		}
	}
	if (found == 0)
		spf_stop(c, AUTH_NONE, "no SPF record");
	else if (found > 1)
		spf_stop(c, AUTH_PERMERROR, "several SPF records");
	return found == 1;
}

static struct spf_node *
node_new(struct spf_check *c, struct str domain, bool in_include)
{
	const struct dns_answer *a = dns_session_get(c->dns, domain, DNS_TXT);
	struct str text = STR_EMPTY;
	if (!select_record(c, a, &text))
		return NULL;
	struct spf_node *n = &c->nodes[c->node_count];
	*n = (struct spf_node){ .index = c->node_count,
		.domain = domain,
		.in_include = in_include };
	const char *reason = NULL;
	enum res r = spf_record_parse(c->arena, text, &n->record, &reason);
	if (r == RES_OK) {
		n->visits = arena_array(
		    c->arena, n->record.count + 1, sizeof(*n->visits));
		r = n->visits != NULL ? RES_OK : RES_NOMEM;
	}
	if (r == RES_NOMEM)
		no_memory(c);
	else if (r != RES_OK)
		spf_stop(c, AUTH_PERMERROR, reason);
	if (r != RES_OK)
		return NULL;
	c->node_count++;
	return n;
}

static struct str validated_name(void *arg);

struct spf_node *
spf_node_first(struct spf_check *c, struct str domain)
{
	c->env.validated = validated_name;
	c->env.arg = c;
	c->final = node_new(c, domain, false);
	return c->final;
}

/* ---- targets ---------------------------------------------------------- */

/* RFC 7208 §7.3: too long a name loses labels from the left. */
static struct str
cut_name(struct str name)
{
	name = dns_name_chop(name);
	while (name.len > DNS_MAX_NAME) {
		size_t dot = str_chr(name, '.');
		if (dot == SIZE_MAX)
			return STR_EMPTY;
		name = str_skip(name, dot + 1);
	}
	return name;
}

/* Count the term and find its target, once. False: stopped. */
static bool
visit(struct spf_check *c, struct spf_node *n, size_t term)
{
	struct spf_visit *v = &n->visits[term];
	if (v->asked || c->stopped)
		return !c->stopped;
	v->asked = true;
	if (++c->terms > SPF_MAX_LOOKUP_TERMS) {
		spf_stop(c, AUTH_PERMERROR, "more than 10 DNS look-up terms");
		return false;
	}
	v->target = n->domain;
	struct str spec = n->record.terms[term].domain;
	if (spec.len == 0)
		return true;
	c->env.domain = n->domain;
	struct str name = STR_EMPTY;
	enum res r =
	    spf_macro_expand(c->arena, spec, &c->env, SPF_MAX_EXPANSION, &name);
	if (r == RES_NOMEM)
		no_memory(c);
	/* RES_LIMIT: nobody has such a name (SPF-25). */
	v->target = r == RES_OK ? cut_name(name) : STR_EMPTY;
	if (!dns_name_ok(v->target))
		v->target = STR_EMPTY;
	return !c->stopped;
}

/* A look-up for a term; NULL: no data, or stopped. SPF-20, SPF-27. */
static const struct dns_answer *
term_lookup(struct spf_check *c, struct str name, enum dns_type type)
{
	if (name.len == 0)
		return NULL;
	const struct dns_answer *a = dns_session_get(c->dns, name, type);
	if (dns_status_temporary(a->status)) {
		spf_stop(c, AUTH_TEMPERROR, "DNS failure in a mechanism");
		return NULL;
	}
	if (a->status == DNS_OK)
		return a;
	if (a->status != DNS_BADNAME && ++c->voids > c->void_limit)
		spf_stop(c, AUTH_PERMERROR, "too many void DNS look-ups");
	return NULL;
}

static enum dns_type
client_type(const struct spf_check *c)
{
	return c->env.client.family == IP_V6 ? DNS_AAAA : DNS_A;
}

/* ---- what terms ask --------------------------------------------------- */

static bool
is_ascii(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((unsigned char)s.ptr[i] > 0x7f)
			return false;
	}
	return true;
}

struct spf_node *
spf_visit_record(struct spf_check *c, struct spf_node *n, size_t term)
{
	struct spf_visit *v = &n->visits[term];
	bool include = n->record.terms[term].kind == SPF_INCLUDE;
	if (!visit(c, n, term))
		return NULL;
	/* A non-ASCII local part makes a term that never matches (RFC 8616
	 * §4); any other bad name is a check_host() that gives none. */
	if (v->target.len == 0 && include && !is_ascii(c->env.local))
		return NULL;
	if (v->target.len == 0) {
		spf_stop(c, AUTH_PERMERROR,
		    include ? "include: of no valid domain name"
			    : "redirect= to no valid domain name");
		return NULL;
	}
	v->node = node_new(c, v->target, n->in_include || include);
	if (v->node == NULL && c->stopped && c->verdict == AUTH_NONE) {
		/* §5.2, §6.1: none becomes permerror. */
		c->verdict = AUTH_PERMERROR;
		c->reason = include
		    ? "include: of a domain without SPF record"
		    : "redirect= to a domain without SPF record";
	}
	if (v->node != NULL && !v->node->in_include)
		c->final = v->node;
	return v->node;
}

const struct dns_answer *
spf_visit_addresses(struct spf_check *c, struct spf_node *n, size_t term)
{
	struct spf_visit *v = &n->visits[term];
	if (!visit(c, n, term))
		return NULL;
	const struct dns_answer *a = term_lookup(c, v->target, client_type(c));
	for (size_t i = 0; a != NULL && i < a->count; i++)
		v->matched = v->matched ||
		    spf_address_matches(
			c, &n->record.terms[term], &a->records[i].ip);
	return a;
}

/* Keep the hosts with the lowest preferences, in their order. */
static void
sort_hosts(struct spf_visit *v, const struct dns_answer *a)
{
	const size_t max = sizeof(v->mx) / sizeof(v->mx[0]);
	for (size_t i = 0; i < a->count; i++) {
		const struct dns_record *r = &a->records[i];
		size_t at = v->mx_count;
		while (at > 0 && v->mx[at - 1]->preference > r->preference)
			at--;
		if (at == max)
			continue;
		if (v->mx_count < max)
			v->mx_count++;
		for (size_t j = v->mx_count - 1; j > at; j--)
			v->mx[j] = v->mx[j - 1];
		v->mx[at] = r;
	}
}

size_t
spf_visit_mx(struct spf_check *c, struct spf_node *n, size_t term)
{
	struct spf_visit *v = &n->visits[term];
	bool again = v->asked;
	if (!visit(c, n, term))
		return 0;
	const struct dns_answer *a =
	    again ? NULL : term_lookup(c, v->target, DNS_MX);
	if (a != NULL)
		sort_hosts(v, a);
	return v->mx_count;
}

const struct dns_answer *
spf_visit_mx_addresses(
    struct spf_check *c, struct spf_node *n, size_t term, size_t host)
{
	struct spf_visit *v = &n->visits[term];
	if (c->stopped || host >= v->mx_count)
		return NULL;
	if (host >= SPF_MAX_MX) {
		spf_stop(c, AUTH_PERMERROR, "more than 10 MX hosts");
		return NULL;
	}
	struct str name = v->mx[host]->data;
	const struct dns_answer *a = term_lookup(
	    c, dns_name_ok(name) ? name : STR_EMPTY, client_type(c));
	for (size_t i = 0; a != NULL && i < a->count; i++)
		v->matched = v->matched ||
		    spf_address_matches(
			c, &n->record.terms[term], &a->records[i].ip);
	return a;
}

/* Whether the name has the client's address. Failures are no match, and not
 * counted as void (SPF-20, SPF-27). */
static bool
name_validates(struct spf_check *c, struct str name)
{
	const struct dns_answer *a =
	    dns_session_get(c->dns, name, client_type(c));
	for (size_t i = 0; i < a->count; i++) {
		if (ip_eq(&a->records[i].ip, &c->env.client))
			return true;
	}
	return false;
}

static bool
equal_or_below(struct str name, struct str domain)
{
	return str_case_eq(name, domain) ||
	    (name.len > domain.len && str_case_ends(name, domain) &&
		name.ptr[name.len - domain.len - 1] == '.');
}

static const struct dns_answer *
client_names(struct spf_check *c)
{
	struct str name = dns_reverse_name(c->arena, &c->env.client);
	if (name.ptr == NULL) {
		no_memory(c);
		return NULL;
	}
	return dns_session_get(c->dns, name, DNS_PTR);
}

static bool
ptr_matches(struct spf_check *c, struct str target)
{
	const struct dns_answer *a = client_names(c);
	if (a == NULL)
		return false;
	/* It is one look-up, however many terms use it. */
	if ((a->status == DNS_NXDOMAIN || a->status == DNS_NODATA) &&
	    !c->ptr_void) {
		c->ptr_void = true;
		if (++c->voids > c->void_limit)
			spf_stop(
			    c, AUTH_PERMERROR, "too many void DNS look-ups");
	}
	/* Names outside the target need no look-up: they cannot match. */
	for (size_t i = 0; i < a->count && i < SPF_MAX_PTR; i++) {
		if (equal_or_below(a->records[i].data, target) &&
		    name_validates(c, a->records[i].data))
			return true;
	}
	return false;
}

bool
spf_visit_matches(struct spf_check *c, struct spf_node *n, size_t term)
{
	struct spf_visit *v = &n->visits[term];
	if (!visit(c, n, term) || v->target.len == 0)
		return false;
	if (n->record.terms[term].kind == SPF_PTR)
		v->matched = ptr_matches(c, v->target);
	else
		v->matched = term_lookup(c, v->target, DNS_A) != NULL;
	return v->matched;
}

bool
spf_address_matches(
    const struct spf_check *c, const struct spf_term *t, const struct ip *ip)
{
	struct ip_net net = { .ip = *ip,
		.prefix = ip->family == IP_V6 ? t->prefix6 : t->prefix4 };
	return ip_net_contains(&net, &c->env.client);
}

/* ---- afterwards ------------------------------------------------------- */

static bool
term_matched(const struct spf_check *c, const struct spf_node *n, size_t term)
{
	const struct spf_term *t = &n->record.terms[term];
	const struct spf_visit *v = &n->visits[term];
	switch (t->kind) {
	case SPF_ALL:
		return true;
	case SPF_IP4:
	case SPF_IP6:
		return ip_net_contains(&t->net, &c->env.client);
	case SPF_A:
	case SPF_MX:
	case SPF_PTR:
	case SPF_EXISTS:
		return v->matched;
	case SPF_INCLUDE:
		if (v->node != NULL) {
			const struct spf_term *in =
			    spf_deciding_term(c, v->node);
			return in != NULL && in->qualifier == '+';
		}
		return false;
	case SPF_REDIRECT:
	case SPF_EXP:
	case SPF_UNKNOWN_MODIFIER:
		return false;
	}
	return false;
}

const struct spf_term *
spf_deciding_term(const struct spf_check *c, const struct spf_node *n)
{
	for (size_t i = 0; i < n->record.count; i++) {
		if (term_matched(c, n, i))
			return &n->record.terms[i];
	}
	const struct spf_term *redirect = n->record.redirect;
	if (redirect != NULL) {
		const struct spf_node *to =
		    n->visits[redirect - n->record.terms].node;
		return to != NULL ? spf_deciding_term(c, to) : NULL;
	}
	return NULL;
}

/* %{p}: the domain itself, else a name below it, else any (SPF-32). Of several
 * the first; failures give "unknown". */
static struct str
validated_name(void *arg)
{
	struct spf_check *c = arg;
	struct str best = STR("unknown");
	int best_rank = 0;
	if (c->has_validated && str_eq(c->validated_domain, c->env.domain))
		return c->validated;
	const struct dns_answer *a = client_names(c);
	for (size_t i = 0; a != NULL && i < a->count && i < SPF_MAX_PTR; i++) {
		struct str name = a->records[i].data;
		int rank = str_case_eq(name, c->env.domain) ? 3
		    : equal_or_below(name, c->env.domain)   ? 2
							    : 1;
		if (rank > best_rank && name_validates(c, name)) {
			best = name;
			best_rank = rank;
		}
	}
	c->has_validated = true;
	c->validated_domain = c->env.domain;
	c->validated = best;
	return best;
}

struct str
spf_explain(struct spf_check *c)
{
	struct spf_node *n = c->final;
	struct str name, text;
	bool local_used = c->env.local_used;
	if (n == NULL || n->record.exp == NULL)
		return STR_EMPTY;
	c->env.domain = n->domain;
	if (spf_macro_expand(c->arena, n->record.exp->domain, &c->env,
		SPF_MAX_EXPANSION, &name) != RES_OK)
		return STR_EMPTY;
	const struct dns_answer *a =
	    dns_session_get(c->dns, cut_name(name), DNS_TXT);
	if (a->status != DNS_OK || a->count != 1 ||
	    !spf_macro_valid(a->records[0].data, SPF_IN_EXPLANATION) ||
	    spf_macro_expand(c->arena, a->records[0].data, &c->env,
		SPF_MAX_EXPLANATION, &text) != RES_OK)
		text = STR_EMPTY;
	/* The sender wrote parts of it. */
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < 0x20 || text.ptr[i] > 0x7e)
			text = STR_EMPTY;
	}
	c->env.local_used = local_used;
	return text;
}

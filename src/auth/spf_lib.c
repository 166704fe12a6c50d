/* libspf2 as the evaluator. It has crashed on what DNS can say, and gets much
 * of RFC 7208 wrong, so it is given neither: records are rewritten from checked
 * terms, and every name in them is a placeholder that leads its look-ups back
 * to the term that asks:
 *
 *   f.n0.q         the first record
 *   t3.n1.q        what term 3 of record 1 is about (TXT, MX, A, AAAA)
 *   x2.t3.n1.q     host 2 of that term's MX answer
 *
 * So macros, name syntax, limits and failures are ours (auth/spf_check.h);
 * libspf2 walks the terms, compares networks, and maps include, redirect and
 * qualifiers. No exp= is ever in a record: expanding one can overrun its stack.
 *
 *   all, include, redirect   as they are; redirect last, none beside all
 *   a, mx                    with the prefix of the client's family
 *   a/0, mx/0, ptr           exists: of the placeholder; we say if it matches
 *   ip4, ip6                 as they are if the client is in them ("all" for
 *                            /0), else left out
 *   exp=, unknown modifiers  left out
 *
 * libspf2 passes any client on a loopback address. Such clients, and with them
 * all networks and addresses, are shown to it with one bit flipped: that leaves
 * every comparison as it was. */
#include "auth/spf_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>

#define HAVE_NS_TYPE 1
#include <spf2/spf.h>

#include "base/buf.h"

#define MAX_REWRITTEN   1024 /* at most 13 terms of 70 bytes */
#define MAX_PLACEHOLDER 64

struct run {
	struct spf_check *check;
	struct buf text;
	SPF_dns_rr_t *spare; /* libspf2 aborts when it gets no answer */
};

/* ---- placeholders ----------------------------------------------------- */

struct place {
	struct spf_node *node;
	size_t term; /* SIZE_MAX: the record itself */
	size_t host; /* SIZE_MAX: not an MX host */
};

/* "cNUMBER." at the start of *s. */
static bool
take_number(struct str *s, char c, size_t *out)
{
	struct str part;
	uint64_t v;
	struct str rest = *s;
	if (!str_split(&rest, '.', &part) || part.len < 2 || part.ptr[0] != c ||
	    str_to_u64(str_skip(part, 1), 65535, &v) != RES_OK)
		return false;
	*out = (size_t)v;
	*s = rest;
	return true;
}

static bool
read_place(struct spf_check *c, struct str name, struct place *out)
{
	size_t node;
	*out = (struct place){ .term = SIZE_MAX, .host = SIZE_MAX };
	if (str_starts(name, STR("f.")))
		name = str_skip(name, 2);
	else {
		take_number(&name, 'x', &out->host);
		if (!take_number(&name, 't', &out->term))
			return false;
	}
	if (!take_number(&name, 'n', &node) || node >= c->node_count)
		return false;
	out->node = &c->nodes[node];
	return out->term == SIZE_MAX || out->term < out->node->record.count;
}

/* ---- the client's disguise -------------------------------------------- */

static struct ip
disguise(const struct spf_check *c, struct ip ip)
{
	if (ip_is_loopback(&c->env.client))
		ip.bytes[0] ^= 0x40;
	return ip;
}

/* ---- rewriting -------------------------------------------------------- */

static bool
client_is(const struct spf_check *c, enum ip_family family)
{
	return c->env.client.family == family;
}

static void
add_placeholder(struct buf *b, const struct spf_node *n, size_t term)
{
	buf_addf(b, "t%zu.n%zu.q", term, n->index);
}

/* A network that has the client in it. */
static void
add_network(struct buf *b, const struct spf_check *c, const struct spf_term *t)
{
	bool v4 = t->kind == SPF_IP4;
	buf_addf(b, " %c", t->qualifier);
	if (t->net.prefix == 0) {
		buf_add_c(b, "all");
		return;
	}
	struct ip ip = disguise(c, t->net.ip);
	char text[INET6_ADDRSTRLEN];
	buf_add_c(b, v4 ? "ip4:" : "ip6:");
	buf_add_c(b,
	    inet_ntop(v4 ? AF_INET : AF_INET6, ip.bytes, text, sizeof(text)));
	buf_addf(b, "/%u", t->net.prefix);
}

static void
add_addresses(struct buf *b, const struct spf_check *c,
    const struct spf_node *n, size_t term)
{
	const struct spf_term *t = &n->record.terms[term];
	bool v4 = client_is(c, IP_V4);
	unsigned prefix = v4 ? t->prefix4 : t->prefix6;
	buf_addf(b, " %c%s:", t->qualifier,
	    prefix == 0             ? "exists"
		: t->kind == SPF_MX ? "mx"
				    : "a");
	add_placeholder(b, n, term);
	if (prefix > 0)
		buf_addf(b, "%s%u", v4 ? "/" : "//", prefix);
}

/* What a term is to libspf2. */
enum role {
	NOTHING,
	ASKS,
	DECIDES
};

static enum role
add_term(struct buf *b, const struct spf_check *c, const struct spf_node *n,
    size_t term)
{
	const struct spf_term *t = &n->record.terms[term];
	switch (t->kind) {
	case SPF_ALL:
		buf_addf(b, " %call", t->qualifier);
		return DECIDES;
	case SPF_INCLUDE:
		buf_addf(b, " %cinclude:", t->qualifier);
		add_placeholder(b, n, term);
		return ASKS;
	case SPF_A:
	case SPF_MX:
		add_addresses(b, c, n, term);
		return ASKS;
	case SPF_PTR:
	case SPF_EXISTS:
		buf_addf(b, " %cexists:", t->qualifier);
		add_placeholder(b, n, term);
		return ASKS;
	case SPF_IP4:
	case SPF_IP6:
		if (!ip_net_contains(&t->net, &c->env.client))
			return NOTHING;
		add_network(b, c, t);
		return DECIDES;
	case SPF_REDIRECT:
	case SPF_EXP:
	case SPF_UNKNOWN_MODIFIER:
		break;
	}
	return NOTHING;
}

/* libspf2 evaluates the first 64 terms of a record and says nothing about
 * others. So it gets only what can matter: no network without the client,
 * nothing behind what decides for sure, and of those that ask the DNS one more
 * than may be asked. */
static void
rewrite(struct buf *b, const struct spf_check *c, const struct spf_node *n)
{
	size_t asking = 0;
	buf_reset(b);
	buf_add_c(b, "v=spf1");
	for (size_t i = 0;
	     i < n->record.count && asking <= SPF_MAX_LOOKUP_TERMS; i++) {
		enum role role = add_term(b, c, n, i);
		if (role == DECIDES)
			return;
		asking += role == ASKS;
	}
	if (n->record.redirect != NULL) {
		buf_add_c(b, " redirect=");
		add_placeholder(
		    b, n, (size_t)(n->record.redirect - n->record.terms));
	} else {
		buf_add_c(b, " ?all"); /* SPF-24; nothing is no record */
	}
}

/* ---- answers ---------------------------------------------------------- */

static SPF_dns_rr_t *
rr_new(struct run *run, SPF_dns_server_t *server, const char *name,
    ns_type type, SPF_dns_stat_t status)
{
	SPF_dns_rr_t *rr = SPF_dns_rr_new_init(server, name, type, 0, status);
	if (rr == NULL) {
		run->check->no_memory = true;
		rr = run->spare;
		run->spare = NULL;
		if (rr != NULL)
			rr->herrno = TRY_AGAIN;
	}
	return rr;
}

/* Room for one more; NULL without memory, and the answer is a failure. */
static SPF_dns_rr_data_t *
rr_add(struct run *run, SPF_dns_rr_t *rr, size_t size)
{
	if (size < sizeof(SPF_dns_rr_data_t))
		size = sizeof(SPF_dns_rr_data_t);
	if (rr->herrno != NETDB_SUCCESS)
		return NULL;
	if (SPF_dns_rr_buf_realloc(rr, rr->num_rr, size) != SPF_E_SUCCESS) {
		run->check->no_memory = true;
		rr->herrno = TRY_AGAIN;
		return NULL;
	}
	return rr->rr[rr->num_rr++];
}

static void
rr_add_text(struct run *run, SPF_dns_rr_t *rr, struct str text)
{
	SPF_dns_rr_data_t *d = rr_add(run, rr, text.len + 1);
	if (d == NULL)
		return;
	memcpy(d->txt, text.ptr, text.len);
	d->txt[text.len] = '\0';
}

static void
rr_add_addresses(struct run *run, SPF_dns_rr_t *rr, const struct dns_answer *a)
{
	const struct spf_check *c = run->check;
	for (size_t i = 0; a != NULL && i < a->count; i++) {
		struct ip ip = disguise(c, a->records[i].ip);
		SPF_dns_rr_data_t *d = client_is(c, ip.family)
		    ? rr_add(run, rr, sizeof(*d))
		    : NULL;
		if (d == NULL)
			continue;
		if (ip.family == IP_V4)
			memcpy(&d->a, ip.bytes, sizeof(d->a));
		else
			memcpy(&d->aaaa, ip.bytes, sizeof(d->aaaa));
	}
}

static void
answer_txt(struct run *run, SPF_dns_rr_t *rr, const struct place *p)
{
	struct spf_node *n = p->node;
	if (p->term != SIZE_MAX)
		n = spf_visit_record(run->check, p->node, p->term);
	if (n != NULL)
		rewrite(&run->text, run->check, n);
	if (run->text.error != RES_OK) {
		run->check->no_memory = true;
		rr->herrno = TRY_AGAIN;
	} else if (!run->check->stopped) {
		rr_add_text(run, rr,
		    n != NULL ? buf_str(&run->text) : STR("v=spf1 ?all"));
	}
}

static void
answer_mx(struct run *run, SPF_dns_rr_t *rr, const struct place *p)
{
	size_t count = spf_visit_mx(run->check, p->node, p->term);
	for (size_t i = 0; i < count; i++) {
		char name[MAX_PLACEHOLDER];
		snprintf(name, sizeof(name), "x%zu.t%zu.n%zu.q", i, p->term,
		    p->node->index);
		rr_add_text(run, rr, str_c(name));
	}
}

/* What is left to us to decide: any address says yes. */
static void
answer_match(struct run *run, SPF_dns_rr_t *rr, const struct place *p)
{
	struct spf_check *c = run->check;
	const struct spf_term *t = &p->node->record.terms[p->term];
	const struct spf_visit *v = &p->node->visits[p->term];
	if (t->kind == SPF_A) {
		(void)spf_visit_addresses(c, p->node, p->term);
	} else if (t->kind == SPF_MX) {
		size_t count = spf_visit_mx(c, p->node, p->term);
		for (size_t i = 0; i < count && !v->matched; i++)
			(void)spf_visit_mx_addresses(c, p->node, p->term, i);
	} else {
		(void)spf_visit_matches(c, p->node, p->term);
	}
	if (v->matched && !c->stopped) {
		SPF_dns_rr_data_t *d = rr_add(run, rr, sizeof(*d));
		if (d != NULL)
			d->a.s_addr = htonl(INADDR_LOOPBACK);
	}
}

static void
answer_address(struct run *run, SPF_dns_rr_t *rr, const struct place *p)
{
	struct spf_check *c = run->check;
	const struct spf_term *t = &p->node->record.terms[p->term];
	unsigned prefix = client_is(c, IP_V4) ? t->prefix4 : t->prefix6;
	if (p->host != SIZE_MAX)
		rr_add_addresses(run, rr,
		    spf_visit_mx_addresses(c, p->node, p->term, p->host));
	else if (t->kind == SPF_A && prefix > 0)
		rr_add_addresses(
		    run, rr, spf_visit_addresses(c, p->node, p->term));
	else
		answer_match(run, rr, p);
}

static SPF_dns_rr_t *
lookup(SPF_dns_server_t *server, const char *domain, ns_type type, int cache)
{
	struct run *run = server->hook;
	struct spf_check *c = run->check;
	struct place p;
	bool known = read_place(c, str_c(domain), &p) && !c->stopped;
	SPF_dns_rr_t *rr = rr_new(run, server, domain, type, NETDB_SUCCESS);
	if (rr == NULL)
		return NULL;
	if (known && type == ns_t_txt)
		answer_txt(run, rr, &p);
	else if (known && type == ns_t_mx && p.term != SIZE_MAX)
		answer_mx(run, rr, &p);
	else if (known && (type == ns_t_a || type == ns_t_aaaa) &&
	    p.term != SIZE_MAX)
		answer_address(run, rr, &p);
	/* TRY_AGAIN ends the evaluation; what we decided stands. */
	if (c->stopped || c->no_memory)
		rr->herrno = TRY_AGAIN;
	else if (rr->num_rr == 0 && rr->herrno == NETDB_SUCCESS)
		rr->herrno = NO_DATA;
	return rr;
}

/* ---- running it ------------------------------------------------------- */

static bool
request_set(SPF_request_t *rq, const struct spf_check *c)
{
	struct ip ip = disguise(c, c->env.client);
	SPF_errcode_t e;
	if (ip.family == IP_V4) {
		struct in_addr a;
		memcpy(&a, ip.bytes, sizeof(a));
		e = SPF_request_set_ipv4(rq, a);
	} else {
		struct in6_addr a;
		memcpy(&a, ip.bytes, sizeof(a));
		e = SPF_request_set_ipv6(rq, a);
	}
	return e == SPF_E_SUCCESS &&
	    SPF_request_set_helo_dom(rq, "f.n0.q") == SPF_E_SUCCESS &&
	    SPF_request_set_env_from(rq, "p@f.n0.q") == SPF_E_SUCCESS;
}

/* libspf2 takes a record it has no memory for as one with an error. */
static bool
lacked_memory(SPF_errcode_t e, SPF_response_t *r)
{
	if (e == SPF_E_NO_MEMORY || SPF_response_errcode(r) == SPF_E_NO_MEMORY)
		return true;
	for (int i = 0; i < SPF_response_messages(r); i++)
		if (SPF_error_code(SPF_response_message(r, i)) ==
		    SPF_E_NO_MEMORY)
			return true;
	return false;
}

static enum auth_result
map_result(const SPF_response_t *response)
{
	SPF_response_t *r = (SPF_response_t *)response; /* not const there */
	switch (SPF_response_result(r)) {
	case SPF_RESULT_PASS:
		return AUTH_PASS;
	case SPF_RESULT_FAIL:
		return AUTH_FAIL;
	case SPF_RESULT_SOFTFAIL:
		return AUTH_SOFTFAIL;
	case SPF_RESULT_NEUTRAL:
		return AUTH_NEUTRAL;
	case SPF_RESULT_NONE:
		return AUTH_NONE;
	case SPF_RESULT_TEMPERROR:
		return AUTH_TEMPERROR;
	case SPF_RESULT_PERMERROR:
		return AUTH_PERMERROR;
	case SPF_RESULT_INVALID:
		break;
	}
	return SPF_response_errcode(r) == SPF_E_DNS_ERROR ? AUTH_TEMPERROR
							  : AUTH_PERMERROR;
}

/* A server of libspf2 costs as much to make as half a check: it asks the
 * system for the host name and compiles texts that nobody reads. So each
 * thread keeps one; what differs from check to check is behind `dns.hook`. */
struct evaluator {
	SPF_dns_server_t dns;
	SPF_server_t *server;
};

static pthread_key_t evaluator_key;
static pthread_once_t evaluator_once = PTHREAD_ONCE_INIT;
static bool have_key;

static void
evaluator_free(void *arg)
{
	struct evaluator *e = arg;
	if (e->server != NULL)
		SPF_server_free(e->server);
	free(e);
}

static _Thread_local jmp_buf *escape;

/* libspf2 never gets this back. It calls it where it has no memory for what
 * came of an included record; its own would end the process. (An attribute,
 * since _Noreturn is no part of the pointer's type.) */
static void give_up(const char *file, int line, const char *text)
    __attribute__((noreturn));

static void
give_up(const char *file, int line, const char *text)
{
	if (escape != NULL)
		longjmp(*escape, 1);
	SPF_error_stdio(file, line, text);
}

static void
make_key(void)
{
	SPF_error_handler = give_up;
	have_key = pthread_key_create(&evaluator_key, evaluator_free) == 0;
}

static struct evaluator *
evaluator_new(void)
{
	struct evaluator *e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	e->dns = (SPF_dns_server_t){ .name = "hanaper", .lookup = lookup };
	e->server = SPF_server_new_dns(&e->dns, 0);
	/* One MX more than allowed, so that we see the one too many. */
	if (e->server != NULL &&
	    SPF_server_set_rec_dom(e->server, "f.n0.q") == SPF_E_SUCCESS &&
	    SPF_server_set_sanitize(e->server, 0) == SPF_E_SUCCESS &&
	    SPF_server_set_max_dns_mx(e->server, SPF_MAX_MX + 1) ==
		SPF_E_SUCCESS &&
	    pthread_setspecific(evaluator_key, e) == 0)
		return e;
	evaluator_free(e);
	return NULL;
}

/* This thread's; NULL without memory. */
static struct evaluator *
evaluator_get(void)
{
	pthread_once(&evaluator_once, make_key);
	if (!have_key)
		return NULL;
	struct evaluator *e = pthread_getspecific(evaluator_key);
	return e != NULL ? e : evaluator_new();
}

/* What libspf2 had made is lost with a jump: some hundred bytes. */
static enum res
query(struct evaluator *e, SPF_request_t *rq, struct run *run,
    SPF_response_t **out)
{
	jmp_buf here;
	enum res r = RES_NOMEM;
	*out = NULL;
	escape = &here;
	e->dns.hook = run;
	if (setjmp(here) == 0) {
		SPF_errcode_t error = SPF_request_query_mailfrom(rq, out);
		if (*out != NULL && !lacked_memory(error, *out))
			r = RES_OK;
	} else {
		*out = NULL;
	}
	e->dns.hook = NULL;
	escape = NULL;
	return r;
}

enum res
spf_lib_run(struct spf_check *c, struct spf_node *first, enum auth_result *out)
{
	struct run run = { .check = c, .spare = SPF_dns_rr_new() };
	struct evaluator *e = evaluator_get();
	SPF_request_t *rq = e != NULL ? SPF_request_new(e->server) : NULL;
	SPF_response_t *response = NULL;
	enum res r = RES_NOMEM;
	buf_init(&run.text, MAX_REWRITTEN);
	if (rq != NULL && run.spare != NULL && request_set(rq, c)) {
		r = query(e, rq, &run, &response);
		if (c->no_memory)
			r = RES_NOMEM;
		if (r == RES_OK)
			*out = map_result(response);
	}
	if (response != NULL)
		SPF_response_free(response);
	if (rq != NULL)
		SPF_request_free(rq);
	if (run.spare != NULL)
		SPF_dns_rr_free(run.spare);
	buf_done(&run.text);
	return r;
}

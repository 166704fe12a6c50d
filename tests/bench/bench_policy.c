/* make bench: SPF and DMARC beside the bare libraries, and the judgement of a
 * whole inbound message, all from memory. */
#include <sys/types.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/dmarc.h"
#include "auth/spf.h"
#include "bench.h"
#include "engine.h"
#include "flow/message.h"

/* Behind our headers: they bring <resolv.h> and its RES_ macros along. */
#include <arpa/nameser.h>
#include <netdb.h>
#define HAVE_NS_TYPE 1
#include <opendmarc/dmarc.h>
#include <spf2/spf.h>
#include <spf2/spf_dns_zone.h>

#define CLIENT "192.0.2.1"
#define DOMAIN "bench.example"
#define SENDER "sender@" DOMAIN

static struct engine engine;

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

/* --- SPF ------------------------------------------------------------------ */

static void
our_spf(void *context)
{
	struct arena *a = arena_new(0);
	struct spf_request rq = { .helo = STR("client." DOMAIN),
		.mail_from = STR(SENDER),
		.receiver = STR("mx." DOMAIN),
		.void_limit = 2 };
	struct spf_result result;
	(void)context;
	if (ip_parse(STR(CLIENT), &rq.client) != RES_OK ||
	    spf_check(a, engine_session(&engine, a), &rq, SPF_MAILFROM,
		&result) != RES_OK ||
	    result.result != AUTH_PASS)
		die("SPF does not pass");
	arena_free(&a);
}

static void
bare_spf(void *context)
{
	SPF_request_t *rq = SPF_request_new(context);
	SPF_response_t *response = NULL;
	if (SPF_request_set_ipv4_str(rq, CLIENT) != SPF_E_SUCCESS ||
	    SPF_request_set_helo_dom(rq, "client." DOMAIN) != SPF_E_SUCCESS ||
	    SPF_request_set_env_from(rq, SENDER) != SPF_E_SUCCESS ||
	    SPF_request_query_mailfrom(rq, &response) != SPF_E_SUCCESS ||
	    SPF_response_result(response) != SPF_RESULT_PASS)
		die("libspf2 does not pass");
	SPF_response_free(response);
	SPF_request_free(rq);
}

static void
part_spf(void)
{
	SPF_dns_server_t *zone = SPF_dns_zone_new(NULL, "bench", 0);
	if (zone == NULL ||
	    SPF_dns_zone_add_str(zone, DOMAIN, ns_t_txt, NETDB_SUCCESS,
		ENGINE_SPF) != SPF_E_SUCCESS ||
	    SPF_dns_zone_add_str(zone, "_spf." DOMAIN, ns_t_txt, NETDB_SUCCESS,
		ENGINE_SPF_INCLUDED) != SPF_E_SUCCESS)
		die("zone");
	SPF_server_t *server = SPF_server_new_dns(zone, 0);
	if (server == NULL)
		die("libspf2");
	struct bench_work w[] = {
		{ .name = "bare libspf2",
		    .run = bare_spf,
		    .context = server,
		    .cpu = true },
		{ .name = "SPF", .run = our_spf, .cpu = true },
	};
	bench_run("SPF, include that passes", w, 2);
	bench_target("spf-us", w[1].median_ns / 1e3, 6, false);
	bench_target("spf-libspf2", 1 / bench_ratio(&w[0], &w[1]), 2.5, false);
	SPF_server_free(server);
}

/* --- DMARC ---------------------------------------------------------------- */

static void
our_dmarc(void *context)
{
	struct arena *a = arena_new(0);
	struct str from = STR(DOMAIN);
	struct dmarc_identifier dkim = { STR(DOMAIN), AUTH_PASS };
	struct dmarc_input in = { .from_domains = &from,
		.from_count = 1,
		.spf = dkim, /* the same domain */
		.dkim = &dkim,
		.dkim_count = 1,
		.method = ORG_TREEWALK };
	struct dmarc_result result;
	(void)context;
	if (dmarc_evaluate(a, engine_session(&engine, a), &in, &result) !=
		RES_OK ||
	    result.result != AUTH_PASS)
		die("DMARC does not pass");
	arena_free(&a);
}

static void
bare_dmarc(void *context)
{
	u_char ip[] = CLIENT, from[] = DOMAIN, record[] = ENGINE_DMARC;
	u_char selector[] = "s1", human[] = "pass";
	DMARC_POLICY_T *p =
	    opendmarc_policy_connect_init(ip, DMARC_POLICY_IP_TYPE_IPV4);
	(void)context;
	if (p == NULL ||
	    opendmarc_policy_store_from_domain(p, from) != DMARC_PARSE_OKAY ||
	    opendmarc_policy_store_dmarc(p, record, from, NULL) !=
		DMARC_PARSE_OKAY ||
	    opendmarc_policy_store_spf(p, from, DMARC_POLICY_SPF_OUTCOME_PASS,
		DMARC_POLICY_SPF_ORIGIN_MAILFROM, human) != DMARC_PARSE_OKAY ||
	    opendmarc_policy_store_dkim(p, from, selector,
		DMARC_POLICY_DKIM_OUTCOME_PASS, human) != DMARC_PARSE_OKAY ||
	    opendmarc_get_policy_to_enforce(p) != DMARC_POLICY_PASS)
		die("libopendmarc does not pass");
	(void)opendmarc_policy_connect_shutdown(p);
}

static void
part_dmarc(void)
{
	static OPENDMARC_LIB_T library = { .tld_type =
					       OPENDMARC_TLD_TYPE_NONE };
	if (opendmarc_policy_library_init(&library) != DMARC_PARSE_OKAY)
		die("libopendmarc");
	struct bench_work w[] = {
		{ .name = "bare libopendmarc", .run = bare_dmarc, .cpu = true },
		{ .name = "DMARC", .run = our_dmarc, .cpu = true },
	};
	bench_run("DMARC, aligned pass", w, 2);
	bench_target("dmarc-us", w[1].median_ns / 1e3, 3, false);
	bench_target(
	    "dmarc-libopendmarc", 1 / bench_ratio(&w[0], &w[1]), 2.5, false);
}

/* --- a whole message ------------------------------------------------------- */

struct inbound {
	struct flow_env env;
	struct flow_counters counters;
	struct session *session;
	struct bench_mail mail;
};

static void
judge(void *context)
{
	struct inbound *in = context;
	struct envelope e = { .mail_from = STR("<" SENDER ">") };
	struct message *m;
	if (message_begin(in->session, &e, &m) != RES_OK)
		die("message");
	message_rcpt(m, STR("<somebody@receiver.example>"));
	for (size_t i = 0; i < in->mail.field_count; i++)
		message_header(
		    m, in->mail.fields[i].name, in->mail.fields[i].value);
	message_end_of_header(m);
	message_body(m, in->mail.body, in->mail.body_len);
	const struct decision *d = message_finish(m, STR("4XyZ"));
	if (d->reply != REPLY_ACCEPT || !d->dmarc_done ||
	    d->dmarc.result != AUTH_PASS || d->dkim_count != 1 ||
	    d->dkim[0].result != AUTH_PASS ||
	    d->spf[d->spf_count - 1].result != AUTH_PASS)
		die("the message does not pass");
	message_free(&m);
}

static void
part_inbound(void)
{
	static struct inbound in;
	struct err err = { "" };
	struct session_facts facts = { .client_name = STR("client." DOMAIN),
		.client_ptr = STR("client." DOMAIN),
		.helo = STR("client." DOMAIN),
		.hostname = STR("mx.receiver.example"),
		.leading_space = true };
	if (config_from_text(STR_EMPTY, "bench", &err, &in.env.config) !=
		RES_OK ||
	    ip_parse(STR(CLIENT), &facts.client) != RES_OK)
		die(err.text);
	in.env.resolver = engine.resolver;
	in.env.keys = engine.keys;
	in.env.counters = &in.counters;
	in.env.clock = (struct clock){ (int64_t)ENGINE_NOW * 1000000 };
	in.env.judge_age = true;
	in.env.quiet = true;
	in.session = session_new(&in.env);
	if (in.session == NULL)
		die("session");
	session_set_facts(in.session, &facts);
	mail_make(&in.mail, 16384, BODY_TEXT);
	mail_prepend(
	    &in.mail, "DKIM-Signature", engine_sign(&engine, &in.mail));
	struct bench_work w[] = { { .name = "inbound 16 KB",
	    .run = judge,
	    .context = &in,
	    .cpu = true } };
	bench_run("DKIM, SPF, DMARC, ARC and policy of one message", w, 1);
	bench_target("inbound-16k-us", w[0].median_ns / 1e3, 60, false);
	session_free(&in.session);
	config_unref(&in.env.config);
	mail_free(&in.mail);
}

int
main(void)
{
	engine_open(&engine);
	if (bench_wanted("spf"))
		part_spf();
	if (bench_wanted("dmarc"))
		part_dmarc();
	if (bench_wanted("inbound"))
		part_inbound();
	engine_close(&engine);
	/* a short target is a finding, not a failure of the program */
	bench_finish();
	return 0;
}

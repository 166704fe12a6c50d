#include "helper.h"

#include <string.h>
#include <sysexits.h>

#include "auth/dmarc.h"
#include "auth/spf.h"
#include "mail/domain.h"

static bool
option_is(const struct options *o, const char *name, const char *value)
{
	const char *v = option(o, name);
	return v != NULL && strcmp(v, value) == 0;
}

void
run_spf(struct options *o)
{
	struct spf_request rq = {
		.helo = str_c(option(o, "helo")),
		.mail_from = str_c(option(o, "from")),
		.receiver = str_c(option(o, "receiver")),
		.now_s = option_number(o, "clock", 0),
		.void_limit = 2,
	};
	struct spf_result s;
	struct buf b;
	struct json j;
	if (ip_parse(str_c(option_needed(o, "ip")), &rq.client) != RES_OK)
		die(EX_DATAERR, "no IP address", option(o, "ip"));
	need(
	    spf_check(o->arena, session_open(o), &rq,
		option_is(o, "identity", "helo") ? SPF_HELO : SPF_MAILFROM, &s),
	    "spf_check");
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "result", auth_result_word(s.result));
	json_key_str(&j, "domain", s.domain);
	json_key_c(&j, "reason", s.reason);
	json_key_str(&j, "explanation", s.explanation);
	json_key_str(&j, "mechanism", s.mechanism);
	json_close(&j, '}');
	json_finish(&b);
}

static enum auth_result
result_of(struct str word)
{
	for (enum auth_result a = AUTH_NONE; a <= AUTH_PERMERROR; a++)
		if (str_eq(word, str_c(auth_result_word(a))))
			return a;
	die(EX_USAGE, "not a result", "");
}

/* What is no domain name authenticates nobody: empty. */
static struct str
normal(struct options *o, struct str domain)
{
	struct str out;
	if (domain_normalize(o->arena, domain, &out) != RES_OK)
		return str_c("");
	return out;
}

/* "domain=result" */
static struct dmarc_identifier
identifier(struct options *o, struct str text)
{
	size_t at = str_rchr(text, '=');
	if (at == SIZE_MAX)
		die(EX_USAGE, "DOMAIN=RESULT", "");
	return (struct dmarc_identifier){
		.domain = normal(o, str_sub(text, 0, at)),
		.result = result_of(str_skip(text, at + 1)),
	};
}

static void
put_record(struct json *j, const struct dmarc_record *rec)
{
	json_key_c(j, "p", rec->has_p ? dmarc_policy_word(rec->p) : NULL);
	json_key_c(j, "sp", rec->has_sp ? dmarc_policy_word(rec->sp) : NULL);
	json_key_c(j, "np", rec->has_np ? dmarc_policy_word(rec->np) : NULL);
	json_key_bool(j, "bad_policy", rec->bad_policy);
	json_key_bool(j, "testing", rec->testing);
	json_key_bool(j, "strict_dkim", rec->strict_dkim);
	json_key_bool(j, "strict_spf", rec->strict_spf);
	json_key_int(j, "rua", (int64_t)rec->rua_count);
	json_key_int(j, "ruf", (int64_t)rec->ruf_count);
	json_key_str(j, "text", rec->text);
}

static void
put_dmarc(struct json *j, const struct dmarc_result *d)
{
	json_open(j, '{');
	json_key_c(j, "result", auth_result_word(d->result));
	json_key_c(j, "reason", d->reason);
	json_key_c(j, "policy", dmarc_policy_word(d->policy));
	json_key_str(j, "org_domain", d->org_domain);
	json_key_bool(j, "dkim_aligned", d->dkim_aligned);
	json_key_bool(j, "spf_aligned", d->spf_aligned);
	json_key_str(j, "aligned_domain", d->aligned_domain);
	json_key_bool(j, "has_record", d->has_record);
	if (d->has_record) {
		json_key_c(j, "policy_tag", d->policy_tag);
		json_key_str(j, "record_domain", d->record_domain);
		put_record(j, &d->record);
	}
	json_close(j, '}');
}

void
run_dmarc(struct options *o)
{
	struct dmarc_input in = {
		.method =
		    option_is(o, "method", "psl") ? ORG_PSL : ORG_TREEWALK,
	};
	struct dmarc_result d;
	struct buf b;
	struct json j;
	size_t n;
	const struct str *from = option_list(o, "from", &in.from_count);
	struct str *domains =
	    have(arena_array(o->arena, in.from_count + 1, sizeof(*domains)));
	for (size_t i = 0; i < in.from_count; i++)
		domains[i] = normal(o, from[i]);
	in.from_domains = domains;
	const struct str *spf = option_list(o, "spf", &n);
	if (n > 0)
		in.spf = identifier(o, spf[0]);
	const struct str *dkim = option_list(o, "dkim", &in.dkim_count);
	struct dmarc_identifier *ids =
	    have(arena_array(o->arena, in.dkim_count + 1, sizeof(*ids)));
	for (size_t i = 0; i < in.dkim_count; i++)
		ids[i] = identifier(o, dkim[i]);
	in.dkim = ids;
	struct dns_session *dns = session_open(o);
	need(dmarc_evaluate(o->arena, dns, &in, &d), "dmarc_evaluate");
	/* only looked for where the verdict needs it */
	if (d.org_domain.len == 0 && d.from.len != 0 &&
	    dmarc_org_domain(o->arena, dns, in.method, d.from,
		&d.org_domain) != RES_OK)
		d.org_domain = STR_EMPTY;
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	put_dmarc(&j, &d);
	json_finish(&b);
}

void
run_dmarc_reports(struct options *o)
{
	enum auth_result result;
	struct buf b;
	struct json j;
	need(dmarc_accepts_reports(o->arena, session_open(o),
		 normal(o, str_c(option_needed(o, "domain"))),
		 normal(o, str_c(option_needed(o, "receiver"))), &result, NULL),
	    "dmarc_accepts_reports");
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_c(&j, "result", auth_result_word(result));
	json_close(&j, '}');
	json_finish(&b);
}

void
run_dmarc_record(struct options *o)
{
	struct dmarc_record rec;
	struct buf b;
	struct json j;
	enum res r = dmarc_record_parse(
	    o->arena, file_read(o->arena, only_file(o)), &rec);
	buf_init(&b, MAX_OUTPUT);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_bool(&j, "valid", r == RES_OK);
	if (r == RES_OK)
		put_record(&j, &rec);
	json_close(&j, '}');
	json_finish(&b);
}

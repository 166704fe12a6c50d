/* hanaper report list: what is due for a day, and what became of it. Asks
 * nothing of the DNS: who refuses is only found out when sending. */
#include <stdio.h>
#include <sysexits.h>

#include "base/json.h"
#include "cli/report.h"
#include "flow/rua.h"

static const char *
state_of(struct reports *sent, struct report_mail *m, int64_t now_s)
{
	int64_t until = 0;
	if (sent == NULL)
		return "due";
	if (reports_get(sent, m) != RES_OK ||
	    reports_dead_until(sent, m->address, &until) != RES_OK)
		return "unknown";
	if (m->state == REPORT_SENT)
		return "sent";
	if (m->state == REPORT_GIVEN_UP)
		return "given up";
	if (until > now_s)
		return "dead";
	return m->tries != 0 ? "to be tried again" : "due";
}

/* The addresses with a state of their own are those that mails went to. */
static void
list_targets(const struct report_options *o, const struct report *r,
    struct reports *sent, struct json *j)
{
	struct str uris[AGGREGATE_MAX_URIS], address;
	size_t n = aggregate_rua(r->aggregate, uris, AGGREGATE_MAX_URIS);
	for (size_t i = 0; i < n; i++) {
		struct report_mail m = {
			.domain = aggregate_domain(r->aggregate),
			.day = o->day_number };
		const char *state = "refused";
		/* the state is kept under the address the URI stands for */
		if (rua_address(r->arena, uris[i], &address) == RES_OK) {
			m.address = address;
			state = state_of(sent, &m, o->now_s);
		}
		if (j != NULL) {
			json_open(j, '{');
			json_key_str(j, "uri", uris[i]);
			json_key_c(j, "state", state);
			json_close(j, '}');
		} else {
			printf("    %.*s: %s\n", STR_ARG(uris[i]), state);
		}
	}
}

static int
list_domain(const struct report_options *o, struct str domain,
    uint64_t messages, struct reports *sent)
{
	struct err err = { "" };
	struct report r;
	bool excluded = report_excluded(o, domain);
	enum res res = report_read(o, domain, o->day_number, &err, &r);
	if (res == RES_NOTFOUND)
		return EX_OK; /* only damaged rows, or gone since */
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s", err.text[0] != '\0' ?
		    err.text : res_text(res));
	if (o->json) {
		struct buf out;
		struct json j;
		buf_init(&out, (size_t)1 << 20);
		json_init(&j, &out);
		json_open(&j, '{');
		json_key_str(&j, "domain", domain);
		json_key_str(&j, "day",
		    report_day_text(o->arena, o->day_number));
		json_key_int(&j, "messages", (int64_t)messages);
		json_key_bool(&j, "excluded", excluded);
		json_key(&j, "destinations");
		json_open(&j, '[');
		list_targets(o, &r, sent, &j);
		json_close(&j, ']');
		json_close(&j, '}');
		printf("%.*s\n", (int)out.len, out.ptr);
		buf_done(&out);
	} else {
		printf("%.*s: %llu message%s%s\n", STR_ARG(domain),
		    (unsigned long long)messages, messages == 1 ? "" : "s",
		    excluded ? ", excluded by report_exclude" : "");
		list_targets(o, &r, sent, NULL);
	}
	report_done(&r);
	return EX_OK;
}

int
report_list(struct report_options *o)
{
	struct err err = { "" };
	struct report_domains domains;
	struct reports *sent = NULL;
	int status = EX_OK;
	enum res r = report_domains(o, o->day_number, &err, &domains);
	if (r == RES_OK)
		r = reports_open(o->reports.ptr, true, &err, &sent);
	if (r == RES_NOTFOUND && err.text[0] == '\0')
		r = RES_OK; /* nothing was ever sent */
	if (r != RES_OK)
		status = cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	for (size_t i = 0; status == EX_OK && i < domains.count; i++)
		status = list_domain(
		    o, domains.items[i], domains.messages[i], sent);
	reports_close(&sent);
	return status;
}

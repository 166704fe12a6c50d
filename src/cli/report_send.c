/* hanaper report send: for cron or a timer, as often as one likes; each report
 * goes out once. Without --day it looks at the last REPORT_DAYS full days, so
 * that a host that was off does not lose a report, and sends nothing before
 * report_hour. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "archive/state/decisions.h"
#include "base/codec.h"
#include "cli/report.h"
#include "cli/sendmail.h"
#include "flow/aggregate_mail.h"
#include "flow/aggregate_row.h"
#include "flow/rua.h"
#include "keys/digest.h"

#define REPORT_DAYS 3

struct sending {
	struct report_options *o;
	struct reports *state; /* NULL: a dry run before anything was sent */
	int64_t day;
	bool pending; /* something is to be tried again */
	bool failed;  /* something was given up */
};

/* One line for each mail: what became of it, and why. */
static void
tell(const struct sending *s, struct str domain, const struct rua_target *t,
    const char *what, const char *why)
{
	if (!s->o->verbose && !s->o->dry_run)
		return;
	printf("%s %.*s %.*s: %s%s%s\n",
	    report_day_text(s->o->arena, s->day).ptr, STR_ARG(domain),
	    STR_ARG(t->address.len != 0 ? t->address : t->uri), what,
	    why != NULL ? ": " : "", why != NULL ? why : "");
}

/* --- one mail ------------------------------------------------------------------ */

static enum res
new_token(struct report_mail *m)
{
	uint8_t bytes[ROW_TOKEN_LEN / 2];
	struct buf hex;
	enum res r = RES_OK;
	if (m->token[0] != '\0')
		return RES_OK;
	r = digest_random(bytes, sizeof bytes);
	buf_init(&hex, ROW_TOKEN_LEN);
	hex_encode(&hex, bytes, sizeof bytes);
	if (r == RES_OK)
		memcpy(m->token, hex.ptr, hex.len);
	m->token[ROW_TOKEN_LEN] = '\0';
	buf_done(&hex);
	return r;
}

/* report_from with the token behind its local part. */
static struct str
envelope_sender(const struct sending *s, const struct report_mail *m)
{
	struct str from = s->o->offline.env.config->report_from;
	size_t at = str_rchr(from, '@');
	return arena_printf(s->o->arena, "%.*s+%s%.*s",
	    STR_ARG(str_sub(from, 0, at)), m->token,
	    STR_ARG(str_skip(from, at)));
}

static int
hand_over(struct sending *s, const struct report *r, struct str gzip,
    const struct report_mail *m)
{
	const struct config *c = s->o->offline.env.config;
	struct aggregate_mail mail = {
		.from = c->report_from,
		.to = m->address,
		.org = s->o->org,
		.submitter = s->o->submitter,
		.domain = m->domain,
		.report_id = r->facts.report_id,
		.file_name = r->file_name,
		.token = str_c(m->token),
		.begin_s = r->facts.begin_s,
		.now_s = s->o->now_s,
		.messages = aggregate_count(r->aggregate).messages,
		.gzip = gzip,
	};
	struct str sender = envelope_sender(s, m);
	struct buf text;
	int status = EX_OSERR;
	buf_init(&text, AGGREGATE_MAX_MAIL);
	if (sender.ptr != NULL && aggregate_mail_write(&mail, &text) == RES_OK)
		status =
		    sendmail_run(s->o->sendmail, sender.ptr, buf_str(&text));
	buf_done(&text);
	return status;
}

/* What the sendmail command says for good (sysexits(3)). */
static bool
is_permanent(int status)
{
	return status == EX_NOUSER || status == EX_NOHOST ||
	    status == EX_DATAERR;
}

static void
note_outcome(struct sending *s, struct report_mail *m,
    const struct rua_target *t, int status)
{
	char why[64];
	snprintf(why, sizeof why, "sendmail ended with status %d", status);
	m->tries++;
	if (status == EX_OK) {
		m->state = REPORT_SENT;
		tell(s, m->domain, t, "sent", NULL);
	} else if (is_permanent(status) || m->tries >= REPORTS_MAX_TRIES) {
		m->state = REPORT_GIVEN_UP;
		s->failed = true;
		tell(s, m->domain, t, "given up", why);
	} else {
		m->next_s = reports_next_s(m->tries, s->o->now_s);
		s->pending = true;
		tell(s, m->domain, t, "to be tried again", why);
	}
	if (status != EX_OK && !s->o->verbose)
		cli_fail(status, "report on %.*s to %.*s: %s",
		    STR_ARG(m->domain), STR_ARG(m->address), why);
}

/* True: there is nothing to do for this address (and it was said why). */
static bool
is_settled(struct sending *s, const struct report_mail *m,
    const struct rua_target *t)
{
	int64_t until = 0;
	if (t->state == RUA_REFUSED) {
		tell(s, m->domain, t, "refused", t->why);
	} else if (m->state == REPORT_SENT) {
		tell(s, m->domain, t, "sent already", NULL);
	} else if (m->state == REPORT_GIVEN_UP) {
		tell(s, m->domain, t, "given up before", NULL);
	} else if (t->state == RUA_LATER) {
		s->pending = true;
		tell(s, m->domain, t, "to be tried again", t->why);
	} else if (s->state != NULL &&
	    reports_dead_until(s->state, m->address, &until) == RES_OK &&
	    until > s->o->now_s) {
		tell(s, m->domain, t, "dead", "mail to it came back");
	} else if (m->next_s > s->o->now_s) {
		s->pending = true;
		tell(s, m->domain, t, "to be tried again", "not yet");
	} else {
		return false;
	}
	return true;
}

static enum res
send_to(struct sending *s, const struct report *r, struct str gzip,
    const struct rua_target *t)
{
	struct report_mail m = { .domain = aggregate_domain(r->aggregate),
		.address = t->address, .day = s->day };
	enum res res = s->state != NULL ? reports_get(s->state, &m) : RES_OK;
	if (res != RES_OK || is_settled(s, &m, t))
		return res;
	if (s->o->dry_run) {
		tell(s, m.domain, t, "would be sent", NULL);
		return RES_OK;
	}
	/* the token is on disk before a mail with it is under way */
	res = new_token(&m);
	if (res == RES_OK)
		res = reports_put(s->state, &m, s->o->now_s);
	if (res != RES_OK)
		return res;
	note_outcome(s, &m, t, hand_over(s, r, gzip, &m));
	return reports_put(s->state, &m, s->o->now_s);
}

/* --- one domain ---------------------------------------------------------------- */

static enum res
find_targets(const struct sending *s, const struct report *r,
    struct rua_target *out, size_t *out_count)
{
	const struct config *c = s->o->offline.env.config;
	struct dns_limits limits = { c->dns_timeout_us, c->dns_budget_us, 0 };
	struct str uris[AGGREGATE_MAX_URIS];
	size_t n = aggregate_rua(r->aggregate, uris, AGGREGATE_MAX_URIS);
	struct dns_session *dns = dns_session_new(
	    r->arena, s->o->offline.env.resolver, &limits);
	if (dns == NULL)
		return RES_NOMEM;
	return rua_targets(r->arena, dns,
	    c->org_domain == ORG_DOMAIN_PSL ? ORG_PSL : ORG_TREEWALK,
	    aggregate_domain(r->aggregate), uris, n, out, out_count);
}

static enum res
send_domain(struct sending *s, struct str domain, struct err *err)
{
	struct rua_target targets[RUA_MAX_TARGETS];
	size_t count = 0;
	struct report r;
	struct buf gzip;
	enum res res = report_read(s->o, domain, s->day, err, &r);
	if (res != RES_OK)
		return res == RES_NOTFOUND ? RES_OK : res;
	res = report_compress(&r, &gzip);
	if (res == RES_OK)
		res = find_targets(s, &r, targets, &count);
	for (size_t i = 0; res == RES_OK && i < count; i++)
		res = send_to(s, &r, buf_str(&gzip), &targets[i]);
	buf_done(&gzip);
	report_done(&r);
	return res;
}

static enum res
send_day(struct sending *s, struct err *err)
{
	struct report_domains domains;
	enum res r = report_domains(s->o, s->day, err, &domains);
	for (size_t i = 0; r == RES_OK && i < domains.count; i++)
		if (!report_excluded(s->o, domains.items[i]))
			r = send_domain(s, domains.items[i], err);
	return r;
}

/* --- bounces ------------------------------------------------------------------- */

static void
take_bounce(void *context, struct str domain, int64_t time_us, struct str row)
{
	struct sending *s = context;
	enum res r = reports_bounced(s->state, row, time_us / 1000000);
	if (r == RES_OK && s->o->verbose)
		printf("a report came back: %.*s\n", STR_ARG(row));
}

/* Bounces came through the milter as all mail; each counts once. */
static enum res
learn_bounces(struct sending *s, struct err *err)
{
	return decisions_rows(s->o->decisions.ptr, STR(ROW_BOUNCE_DOMAIN), 0,
	    (s->o->now_s + REPORT_DAY_S) * 1000000, err, take_bounce, s);
}

/* --- the command --------------------------------------------------------------- */

static int
check_settings(const struct report_options *o)
{
	const struct config *c = o->offline.env.config;
	if (c->report_from.len == 0)
		return cli_fail(EX_CONFIG, "report send needs report_from");
	if (c->report != REPORT_SEND && !o->dry_run)
		return cli_fail(EX_CONFIG, "report = send must be set; "
		    "--dry-run shows what would be sent");
	if (o->day_number >= o->now_s / REPORT_DAY_S)
		return cli_fail(EX_USAGE,
		    "--day %s: the day is not over", o->day);
	return EX_OK;
}

static enum res
open_state(struct sending *s, struct err *err)
{
	enum res r = reports_open(
	    s->o->reports.ptr, s->o->dry_run, err, &s->state);
	if (r == RES_NOTFOUND && s->o->dry_run)
		return RES_OK;
	if (r == RES_OK && !s->o->dry_run)
		r = reports_trim(s->state, s->o->now_s);
	if (r == RES_OK && !s->o->dry_run)
		r = learn_bounces(s, err);
	return r;
}

static enum res
send_days(struct sending *s, struct err *err)
{
	enum res r = RES_OK;
	int64_t hour = (int64_t)s->o->offline.env.config->report_hour;
	s->day = s->o->day_number;
	if (s->o->day != NULL)
		return send_day(s, err);
	if (s->o->now_s % REPORT_DAY_S < hour * 3600)
		return RES_OK;
	for (s->day -= REPORT_DAYS - 1;
	     r == RES_OK && s->day <= s->o->day_number; s->day++)
		r = send_day(s, err);
	return r;
}

int
report_send(struct report_options *o)
{
	struct sending s = { .o = o };
	struct err err = { "" };
	int status = check_settings(o);
	if (status != EX_OK)
		return status;
	/* nothing has been opened in it yet */
	status = cli_become_owner(o->offline.env.config->state_dir.ptr);
	if (status != EX_OK)
		return status;
	enum res r = open_state(&s, &err);
	if (r == RES_OK)
		r = send_days(&s, &err);
	reports_close(&s.state);
	if (r != RES_OK)
		return cli_fail(cli_status(r), "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	return s.pending ? EX_TEMPFAIL : s.failed ? 1 : EX_OK;
}

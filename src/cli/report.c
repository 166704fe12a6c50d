/* hanaper report: DMARC aggregate reports from the decision store. */
#include "cli/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "archive/state/decisions.h"

#define USAGE                                                               \
	"dmarc --domain DOMAIN [--day YYYY-MM-DD] [--preview] [-O FILE]\n"  \
	"       hanaper report dmarc --list [--day YYYY-MM-DD] [--json]\n"   \
	"       hanaper report list [--day YYYY-MM-DD] [--json]\n"          \
	"       hanaper report send [--day YYYY-MM-DD] [--dry-run]\n"       \
	"           [--verbose] [--sendmail PATH] [--zone FILE]\n"          \
	"       each with [-c CONFIG] [-o NAME=VALUE] [--clock SECONDS]"

/* --- report dmarc -------------------------------------------------------------- */

static int
write_out(const struct report_options *o, const struct report *r,
    struct str bytes)
{
	const char *name = o->out != NULL ? o->out : r->file_name.ptr;
	if (strcmp(name, "-") == 0) {
		fwrite(bytes.ptr, 1, bytes.len, stdout);
		return EX_OK;
	}
	FILE *f = fopen(name, "we");
	bool good = f != NULL &&
	    fwrite(bytes.ptr, 1, bytes.len, f) == bytes.len;
	int saved = errno;
	if (f != NULL && fclose(f) != 0 && good) {
		good = false;
		saved = errno;
	}
	if (!good)
		return cli_fail(
		    EX_CANTCREAT, "%s: %s", name, strerror(saved));
	if (o->out == NULL)
		puts(name);
	return EX_OK;
}

static int
print_report(const struct report_options *o, const struct report *r)
{
	struct aggregate_counts n = aggregate_count(r->aggregate);
	struct buf out;
	enum res res;
	if (n.damaged != 0)
		cli_fail(EX_OK, "%llu damaged rows are left out",
		    (unsigned long long)n.damaged);
	if (o->preview) {
		buf_init(&out, AGGREGATE_MAX_XML);
		res = aggregate_preview(r->aggregate, &r->facts, &out);
		(void)buf_write(&out, stdout);
		buf_done(&out);
		return res == RES_OK ? EX_OK :
		    cli_fail(cli_status(res), "%s", res_text(res));
	}
	res = report_compress(r, &out);
	int status = res == RES_OK ? write_out(o, r, buf_str(&out)) :
	    cli_fail(cli_status(res), "the report cannot be made: %s",
		res_text(res));
	buf_done(&out);
	return status;
}

static int
report_dmarc(struct report_options *o)
{
	struct err err = { "" };
	struct report r;
	struct str domain;
	if (o->list)
		return report_list(o);
	if (o->domain == NULL)
		return cli_fail(EX_USAGE, "report dmarc wants --domain");
	domain = arena_lower(o->arena, str_c(o->domain));
	if (domain.len == 0 || domain.ptr[0] == '!')
		return cli_fail(EX_USAGE, "--domain %s: not a domain",
		    o->domain);
	enum res res = report_read(o, domain, o->day_number, &err, &r);
	if (res != RES_OK && err.text[0] != '\0')
		return cli_fail(cli_status(res), "%s", err.text);
	if (res == RES_NOTFOUND)
		return cli_fail(1, "no mail of %s was counted for %s: rows are "
		    "kept under the domain of the policy record, with report = "
		    "collect or send",
		    report_day_text(o->arena, o->day_number).ptr, domain.ptr);
	if (res != RES_OK)
		return cli_fail(cli_status(res), "%s", res_text(res));
	int status = print_report(o, &r);
	report_done(&r);
	return status;
}

/* --- the command --------------------------------------------------------------- */

struct str
report_day_text(struct arena *a, int64_t day)
{
	time_t t = (time_t)(day * REPORT_DAY_S);
	char text[32] = "";
	struct tm tm;
	if (gmtime_r(&t, &tm) != NULL)
		strftime(text, sizeof text, "%Y-%m-%d", &tm);
	return arena_dup(a, str_c(text));
}

/* Only the form that is printed back the same is a day. */
static bool
parse_day(struct arena *a, const char *text, int64_t *out)
{
	uint64_t year, month, day;
	struct str s = str_c(text);
	if (s.len != 10 ||
	    str_to_u64(str_sub(s, 0, 4), 9999, &year) != RES_OK ||
	    str_to_u64(str_sub(s, 5, 2), 12, &month) != RES_OK ||
	    str_to_u64(str_sub(s, 8, 2), 31, &day) != RES_OK || month == 0)
		return false;
	struct tm tm = { .tm_year = (int)year - 1900,
		.tm_mon = (int)month - 1, .tm_mday = (int)day };
	*out = timegm(&tm) / REPORT_DAY_S;
	return year >= 1970 && str_eq(report_day_text(a, *out), s);
}

/* The name we report under is that of the mail that carries the report. */
static int
set_names(struct report_options *o)
{
	const struct config *c = o->offline.env.config;
	char host[256] = "";
	size_t at = str_rchr(c->report_from, '@');
	if (at != SIZE_MAX) {
		o->submitter =
		    arena_lower(o->arena, str_skip(c->report_from, at + 1));
	} else if (c->authserv_id.len != 0) {
		o->submitter = c->authserv_id;
	} else {
		if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
			strcpy(host, "localhost");
		o->submitter = arena_dup(o->arena, str_c(host));
	}
	o->org = c->report_org.len != 0 ? c->report_org : o->submitter;
	o->email = at != SIZE_MAX ? c->report_from :
	    arena_printf(o->arena, "postmaster@%.*s", STR_ARG(o->submitter));
	o->decisions = arena_printf(
	    o->arena, "%.*s/" DECISIONS_FILE, STR_ARG(c->state_dir));
	o->reports = arena_printf(
	    o->arena, "%.*s/" REPORTS_FILE, STR_ARG(c->state_dir));
	return o->decisions.ptr != NULL && o->reports.ptr != NULL ?
	    EX_OK : EX_OSERR;
}

static int
prepare(struct report_options *o, bool dns)
{
	int status = EX_OK;
	o->arena = arena_new(0);
	if (o->arena == NULL)
		return EX_OSERR;
	if (dns)
		status = offline_prepare(&o->offline);
	else if ((o->offline.env.config = cli_settings_load(
		      &o->offline.settings, &status)) == NULL)
		return status;
	else
		status = offline_clock(&o->offline);
	if (status != EX_OK)
		return status;
	o->now_s = clock_now_s(&o->offline.env.clock);
	o->day_number = o->now_s / REPORT_DAY_S - 1;
	if (o->day != NULL && !parse_day(o->arena, o->day, &o->day_number))
		return cli_fail(
		    EX_USAGE, "--day %s: not YYYY-MM-DD", o->day);
	return set_names(o);
}

static const struct option options[] = {
	{ "domain", required_argument, NULL, 'd' },
	{ "day", required_argument, NULL, 'D' },
	{ "preview", no_argument, NULL, 'p' },
	{ "output", required_argument, NULL, 'O' },
	{ "json", no_argument, NULL, 'j' },
	{ "list", no_argument, NULL, 'l' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "sendmail", required_argument, NULL, 's' },
	{ "zone", required_argument, NULL, 'z' },
	{ "clock", required_argument, NULL, 't' },
	{ NULL, 0, NULL, 0 },
};

static bool
take_option(struct report_options *o, int option)
{
	switch (option) {
	case 'd':
		o->domain = optarg;
		return true;
	case 'D':
		o->day = optarg;
		return true;
	case 'p':
		o->preview = true;
		return true;
	case 'O':
		o->out = optarg;
		return true;
	case 'j':
		o->json = true;
		return true;
	case 'l':
		o->list = true;
		return true;
	case 'n':
		o->dry_run = true;
		return true;
	case 'v':
		o->verbose = true;
		return true;
	case 's':
		o->sendmail = optarg;
		return true;
	}
	return offline_option(&o->offline, option, optarg);
}

int
cmd_report(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct report_options *o);
		bool dns;
	} commands[] = {
		{ "dmarc", report_dmarc, false },
		{ "list", report_list, false },
		{ "send", report_send, true },
	};
	struct report_options o = { .sendmail = "/usr/sbin/sendmail",
		.offline = { .mode = MODE_VERIFY } };
	int c, status = EX_USAGE;
	while ((c = getopt_long(argc, argv, "c:o:O:v", options, NULL)) != -1)
		if (!take_option(&o, c))
			return cli_usage("report", USAGE);
	if (optind + 1 != argc)
		return cli_usage("report", USAGE);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(argv[optind], commands[i].name) != 0)
			continue;
		status = prepare(&o, commands[i].dns);
		if (status == EX_OK)
			status = commands[i].run(&o);
		offline_done(&o.offline);
		arena_free(&o.arena);
		return status;
	}
	return cli_usage("report", USAGE);
}

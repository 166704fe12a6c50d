/* hanaper verify: all methods over message files, by the same path that mail
 * takes through the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "dns/unbound.h"
#include "dns/zone.h"
#include "flow/file.h"

#define USAGE                                                            \
	"[-c CONFIG] [-o NAME=VALUE] [--zone FILE] [--ip ADDRESS]\n"     \
	"       [--helo NAME] [--from ADDRESS] [--clock SECONDS|none]\n" \
	"       [--json] [FILE ...]"

struct verify {
	struct cli_settings settings;
	const char *zone, *ip, *helo, *from, *clock;
	bool json;
	struct flow_env env;
	struct flow_counters counters;
	struct session_facts facts;
};

static const struct option options[] = {
	{ "zone", required_argument, NULL, 'z' },
	{ "ip", required_argument, NULL, 'i' },
	{ "helo", required_argument, NULL, 'h' },
	{ "from", required_argument, NULL, 'f' },
	{ "clock", required_argument, NULL, 't' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

static int
parse_options(struct verify *v, int argc, char **argv)
{
	int c;
	while ((c = getopt_long(argc, argv, "c:o:", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			v->settings.path = optarg;
			break;
		case 'o':
			if (!cli_settings_add(&v->settings, optarg))
				return cli_fail(EX_USAGE,
				    "-o %s: not NAME=VALUE", optarg);
			break;
		case 'z':
			v->zone = optarg;
			break;
		case 'i':
			v->ip = optarg;
			break;
		case 'h':
			v->helo = optarg;
			break;
		case 'f':
			v->from = optarg;
			break;
		case 't':
			v->clock = optarg;
			break;
		case 'j':
			v->json = true;
			break;
		default:
			return cli_usage("verify", USAGE);
		}
	}
	return EX_OK;
}

static int
set_clock(struct verify *v)
{
	uint64_t seconds;
	v->env.clock = CLOCK_SYSTEM;
	v->env.judge_age = true;
	if (v->clock == NULL)
		return EX_OK;
	if (strcmp(v->clock, "none") == 0) {
		v->env.judge_age = false;
		return EX_OK;
	}
	if (str_to_u64(str_c(v->clock), INT64_MAX / 1000000, &seconds) !=
	    RES_OK)
		return cli_fail(EX_USAGE, "--clock %s: give seconds since "
		    "1970, or none", v->clock);
	v->env.clock = (struct clock){ (int64_t)seconds * 1000000 };
	return EX_OK;
}

static int
open_resolver(struct verify *v)
{
	struct err err = { "" };
	const struct config *c = v->env.config;
	enum res r;
	const char *zone = v->zone;
	if (zone == NULL && c->zone_file.len != 0)
		zone = c->zone_file.ptr;
	if (zone != NULL) {
		r = zone_open(zone, false, &err, &v->env.resolver);
	} else {
		struct unbound_options o = {
			.nameservers = c->nameservers.items,
			.nameserver_count = c->nameservers.count,
			.dnssec = DNSSEC_OFF,
		};
		r = unbound_new(&o, &err, &v->env.resolver, NULL);
	}
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(zone != NULL && r != RES_IO ? EX_DATAERR :
	    cli_status(r), "%s", err.text[0] != '\0' ? err.text : res_text(r));
}

static int
set_facts(struct verify *v)
{
	v->facts = (struct session_facts){ .helo = str_c(v->helo),
		.leading_space = true };
	if (v->ip != NULL &&
	    ip_parse(str_c(v->ip), &v->facts.client) != RES_OK)
		return cli_fail(EX_USAGE, "--ip %s: not an IP address", v->ip);
	return EX_OK;
}

static int
prepare(struct verify *v)
{
	int status = EX_OK;
	v->env.config = cli_settings_load(&v->settings, &status);
	if (v->env.config == NULL)
		return status;
	v->env.counters = &v->counters;
	v->env.keys = key_cache_new(0); /* without memory there is none */
	v->env.mode = MODE_VERIFY;
	v->env.quiet = true;
	status = set_clock(v);
	if (status == EX_OK)
		status = set_facts(v);
	if (status == EX_OK)
		status = open_resolver(v);
	return status;
}

/* --- output --------------------------------------------------------------- */

static bool
is_pass(const struct decision *d)
{
	bool pass = d->reply == REPLY_ACCEPT && d->dkim_count != 0;
	for (size_t i = 0; i < d->dkim_count; i++)
		pass = pass && d->dkim[i].result == AUTH_PASS;
	for (size_t i = 0; i < d->spf_count; i++)
		pass = pass && d->spf[i].result == AUTH_PASS;
	/* no chain and no DMARC record are nothing that could fail */
	if (d->arc_done && d->arc.result != AUTH_NONE)
		pass = pass && d->arc.result == AUTH_PASS;
	if (d->dmarc_done && d->dmarc.result != AUTH_NONE)
		pass = pass && d->dmarc.result == AUTH_PASS;
	return pass;
}

static void
json_dkim(struct json *j, const struct dkim_result *r)
{
	json_open(j, '{');
	json_key_c(j, "result", auth_result_word(r->result));
	json_key_str(j, "d", r->d);
	json_key_str(j, "s", r->s);
	json_key_str(j, "a", r->a);
	json_key_str(j, "i", r->i);
	json_key_c(j, "reason", r->reason);
	json_key_str(j, "diagnosis", r->diagnosis);
	json_key_int(j, "key_bits", r->key_bits);
	json_key_bool(j, "testing", r->testing);
	json_close(j, '}');
}

static void
json_rest(struct json *j, const struct decision *d)
{
	if (d->arc_done) {
		json_key(j, "arc");
		json_open(j, '{');
		json_key_c(j, "result", auth_result_word(d->arc.result));
		json_key_int(j, "i", d->arc.instances);
		json_key_int(j, "oldest_pass", d->arc.oldest_pass);
		json_key_c(j, "reason", d->arc.reason);
		json_close(j, '}');
	}
	json_key(j, "spf");
	json_open(j, '[');
	for (size_t i = 0; i < d->spf_count; i++) {
		const struct spf_result *r = &d->spf[i];
		json_open(j, '{');
		json_key_c(j, "result", auth_result_word(r->result));
		json_key_str(j, "domain", r->domain);
		json_key_c(j, "identity",
		    r->identity == SPF_HELO ? "helo" : "mailfrom");
		json_key_c(j, "reason", r->reason);
		json_key_str(j, "explanation", r->explanation);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (d->dmarc_done) {
		json_key(j, "dmarc");
		json_open(j, '{');
		json_key_c(j, "result", auth_result_word(d->dmarc.result));
		json_key_c(j, "policy", d->dmarc.has_record ?
		    dmarc_policy_word(d->dmarc.policy) : NULL);
		json_key_str(j, "domain", d->dmarc.from);
		json_key_str(j, "record_domain", d->dmarc.record_domain);
		json_key_str(j, "org_domain", d->dmarc.org_domain);
		json_key_c(j, "reason", d->dmarc.reason);
		json_close(j, '}');
	}
}

static void
print_json(const char *file, const struct decision *d)
{
	struct buf out;
	struct json j;
	buf_init(&out, (size_t)16 << 20);
	json_init(&j, &out);
	json_open(&j, '{');
	json_key_c(&j, "file", file);
	json_key_str(&j, "authentication_results", str_trim(d->results));
	json_key(&j, "dkim");
	json_open(&j, '[');
	for (size_t i = 0; i < d->dkim_count; i++)
		json_dkim(&j, &d->dkim[i]);
	json_close(&j, ']');
	json_rest(&j, d);
	json_key_c(&j, "refused", d->text);
	json_close(&j, '}');
	printf("%.*s\n", (int)out.len, out.ptr);
	buf_done(&out);
}

static void
print_text(const char *file, size_t files, const struct decision *d)
{
	if (files > 1)
		printf("%s\n", file);
	if (d->results.len != 0)
		printf("Authentication-Results:%.*s\n", (int)d->results.len,
		    d->results.ptr);
	for (size_t i = 0; i < d->dkim_count; i++)
		if (d->dkim[i].diagnosis.len != 0)
			printf("dkim %zu: %.*s\n", i + 1,
			    STR_ARG(d->dkim[i].diagnosis));
	if (d->reply != REPLY_ACCEPT)
		printf("refused: %s %s %s\n", d->code, d->enhanced, d->text);
}

/* --- one file --------------------------------------------------------------- */

static int
verify_file(struct verify *v, const char *file, size_t files)
{
	bool standard = strcmp(file, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_fail(errno == EACCES ? EX_NOPERM : EX_NOINPUT,
		    "%s: %s", file, strerror(errno));
	int status = EX_OSERR;
	struct message *m = NULL;
	struct envelope e = { .mail_from = str_c(v->from) };
	struct session *s = session_new(&v->env);
	if (s != NULL) {
		session_set_facts(s, &v->facts);
		if (message_begin(s, &e, &m) != RES_OK)
			m = NULL;
	}
	enum res r = m != NULL ? file_feed(m, fd, NULL) : RES_NOMEM;
	if (r != RES_OK) {
		status = cli_fail(cli_status(r), "%s: %s", file,
		    r == RES_IO ? strerror(errno) : res_text(r));
	} else {
		const struct decision *d = message_finish(m, STR_EMPTY);
		if (v->json)
			print_json(file, d);
		else
			print_text(file, files, d);
		status = is_pass(d) ? EX_OK : 1;
	}
	message_free(&m);
	session_free(&s);
	if (!standard)
		close(fd);
	return status;
}

int
cmd_verify(int argc, char **argv)
{
	struct verify v = { .settings = { .path = NULL } };
	static char standard[] = "-";
	static char *const only_standard[] = { standard };
	int status = parse_options(&v, argc, argv);
	if (status == EX_OK)
		status = prepare(&v);
	size_t files = (size_t)(argc - optind);
	char *const *names = argv + optind;
	if (files == 0) {
		files = 1;
		names = only_standard;
	}
	if (status == EX_OK)
		for (size_t i = 0; i < files; i++) {
			int one = verify_file(&v, names[i], files);
			/* an error outweighs "no pass" */
			if (one > status)
				status = one;
		}
	key_cache_free(&v.env.keys);
	resolver_free(&v.env.resolver);
	config_unref(&v.env.config);
	if (fflush(stdout) != 0)
		status = cli_fail(EX_IOERR, "standard output: %s",
		    strerror(errno));
	return status;
}

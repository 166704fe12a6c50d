/* Loading a configuration: defaults, each kind of value, and one clear line
 * with the place for everything that is wrong. */
#include "hn_test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"

static struct config *
load(const char *text)
{
	struct err err = { "" };
	struct config *c = NULL;
	enum res r = config_from_text(str_c(text), "test.conf", &err, &c);
	if (r != RES_OK)
		print_error("%s\n", err.text);
	assert_ok(r);
	return c;
}

/* Not a valid `text`, and the message is exactly `want`. */
static void
refuse(const char *text, const char *want)
{
	struct err err = { "" };
	struct config *c = NULL;
	enum res r = config_from_text(str_c(text), "test.conf", &err, &c);
	if (r == RES_OK || strcmp(err.text, want) != 0)
		print_error("for \"%s\"\n", text);
	assert_string_equal(err.text, want);
	assert_int_not_equal(r, RES_OK);
	assert_null(c);
}

static char *
dump(const struct config *c)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	config_dump(c, &b);
	char *copy = strdup(buf_cstr(&b));
	buf_done(&b);
	return copy;
}

static void
defaults_are_what_the_table_says(void **state)
{
	struct config *c = NULL;
	assert_ok(config_default(&c));
	char *text = dump(c), *line = text;
	assert_true(config_option_count() > 60);
	for (size_t i = 0; i < config_option_count(); i++) {
		char want[512];
		size_t n = (size_t)snprintf(want, sizeof want, "%s = %s\n",
		    config_option_name(i), config_option_default(i));
		if (strncmp(line, want, n) != 0)
			fail_msg(
			    "dump has \"%.60s\", the table %s", line, want);
		line += n;
	}
	assert_string_equal(line, "");
	free(text);
	config_unref(&c);
}

/* Against an independent list: what design and man page promise. */
static void
defaults_are_the_promised_ones(void **state)
{
	struct config *c = NULL;
	assert_ok(config_default(&c));
	assert_true(c->listen.is_unix);
	assert_str(c->listen.path, "/var/spool/postfix/hanaper/milter.sock");
	assert_int_equal(c->listen.mode, 0660);
	assert_str(c->listen.group, "postfix");
	assert_str(c->user, "hanaper");
	assert_str(c->state_dir, "/var/lib/hanaper/state");
	assert_str(c->key_dir, "/etc/hanaper/keys");
	assert_str(c->archive_dir, "/var/lib/hanaper/archive");
	assert_int_equal(c->max_message_size, 100 << 20);
	assert_int_equal(c->max_header_bytes, 1 << 20);
	assert_int_equal(c->on_internal_error, ON_ERROR_TEMPFAIL);
	assert_int_equal(c->on_dns_error, ON_ERROR_ACCEPT);
	assert_int_equal(c->archive_on_error, ON_ERROR_TEMPFAIL);
	assert_false(c->shadow);
	assert_int_equal(c->authserv_id.len, 0);
	assert_int_equal(c->metrics.len, 0);
	assert_int_equal(c->zone_file.len, 0);
	assert_int_equal(c->trusted_networks.count, 2);
	struct ip ip;
	assert_ok(ip_parse(STR("127.3.2.1"), &ip));
	assert_true(ip_net_contains(&c->trusted_networks.items[0], &ip));
	assert_ok(ip_parse(STR("::1"), &ip));
	assert_true(ip_net_contains(&c->trusted_networks.items[1], &ip));
	assert_true(c->trust_authenticated);
	assert_int_equal(c->dns_timeout_us, 5000000);
	assert_int_equal(c->dns_budget_us, 20000000);
	assert_int_equal(c->sign_headers.count, 0);
	assert_int_equal(c->oversign.count, 0);
	assert_true(c->header_relaxed && c->body_relaxed);
	assert_int_equal(c->signature_lifetime_s, 14 * 86400);
	assert_true(c->require_published_key);
	assert_false(c->require_login_match || c->sign_subdomains);
	assert_int_equal(c->max_signatures, 10);
	assert_int_equal(c->min_rsa_bits, 1024);
	assert_int_equal(c->body_length, BODY_LENGTH_SETTING_POLICY);
	assert_int_equal(c->clock_skew_s, 300);
	assert_int_equal(c->required_signed_headers.count, 1);
	assert_str(c->required_signed_headers.items[0], "from");
	assert_true(c->spf && c->spf_helo);
	assert_false(c->received_spf);
	assert_int_equal(c->spf_reject.count, 0);
	assert_int_equal(c->void_lookups, 2);
	assert_int_equal(c->dmarc, DMARC_ACTION_NOTE);
	assert_false(c->dmarc_shadow || c->multi_from_shadow);
	assert_int_equal(c->quarantine, QUARANTINE_HEADER);
	assert_int_equal(c->multi_from, MULTI_FROM_REJECT);
	assert_int_equal(c->org_domain, ORG_DOMAIN_TREEWALK);
	assert_int_equal(c->dmarc_lists, DMARC_LISTS_SOFTEN);
	assert_int_equal(c->arc, ARC_VERIFY);
	assert_int_equal(c->report, REPORT_OFF);
	assert_false(c->archive || c->archive_rejected);
	assert_int_equal(c->archive_scope, ARCHIVE_ALL);
	assert_int_equal(c->archive_roll_size, (uint64_t)8 << 30);
	assert_int_equal(c->override_count + c->archive_rule_count +
		c->retention_count + c->domain_count + c->sign_rule_count,
	    0);
	config_unref(&c);
}

static const char whole[] =
    "# a comment\n"
    "listen = inet:8891@127.0.0.1\n"
    "dmarc = shadow reject\n"
    "trusted_networks = 192.0.2.0/24,\n"
    "# inside\n"
    "\n"
    "\t2001:db8::/32 10.1.2.3\n"
    "spf_reject = shadow fail softfail\n"
    "strip_authserv_ids = none\n"
    "sign_headers = From To, Subject\r\n"
    "canonicalization = relaxed/simple\n"
    "dns_timeout = 250ms\n"
    "archive = on\n"
    "reject_text = No {from}; # not a comment {id}\n"
    "nameservers = 192.0.2.53 192.0.2.54@5353 2001:db8::53\n"
    "[domain Example.ORG]\n"
    "signature_lifetime = 7d\n"
    "require_published_key = no\n"
    "canonicalization = simple/simple\n"
    "[override friends]\n"
    "from_domain = Example.com .example.net\n"
    "client = 198.51.100.7\n"
    "recipient = Anna@example.org example.org\n"
    "direction = in\n"
    "dmarc = note\n"
    "spf_reject = none\n"
    "reason = they forward, broken\n"
    "[override lists]\n"
    "list_id = list.example.org\n"
    "multi_from = shadow quarantine\n"
    "[archive big]\n"
    "larger = 10M\n"
    "verdict = dmarc:fail spf:softfail\n"
    "header = X-Keep Precedence:bulk\n"
    "family = short\n"
    "[retention short]\n"
    "keep = forever\n"
    "[retention legal]\n"
    "keep = forever\n";

static void
a_whole_file_is_read(void **state)
{
	struct config *c = load(whole);
	assert_false(c->listen.is_unix);
	assert_str(c->listen.host, "127.0.0.1");
	assert_int_equal(c->listen.port, 8891);
	assert_int_equal(c->dmarc, DMARC_ACTION_REJECT);
	assert_true(c->dmarc_shadow);
	assert_int_equal(c->trusted_networks.count, 3);
	assert_int_equal(c->spf_reject.count, 2);
	assert_true(c->spf_reject_shadow);
	assert_int_equal(c->sign_headers.count, 3);
	assert_str(c->sign_headers.items[2], "subject");
	assert_true(c->header_relaxed);
	assert_false(c->body_relaxed);
	assert_int_equal(c->dns_timeout_us, 250000);
	assert_true(c->archive);
	assert_str(c->reject_text, "No {from}; # not a comment {id}");
	assert_int_equal(c->nameservers.count, 3);

	assert_int_equal(c->domain_count, 1);
	assert_str(c->domains[0].domain, "example.org");
	assert_str(c->domains[0].where, "test.conf:16");
	assert_int_equal(c->domains[0].signature_lifetime_s, 7 * 86400);
	assert_int_equal(c->domains[0].require_published_key, 0);
	assert_str(c->domains[0].canonicalization, "simple/simple");

	assert_int_equal(c->override_count, 2);
	const struct override_rule *o = &c->overrides[0];
	assert_str(o->name, "friends");
	assert_str(o->match.from_domain.items[0], "example.com");
	assert_str(o->match.recipient.items[0], "anna@example.org");
	assert_int_equal(o->match.client.count, 1);
	assert_str(o->match.direction, "in");
	assert_int_equal(o->dmarc, DMARC_ACTION_NOTE);
	assert_true(o->spf_reject_given);
	assert_int_equal(o->spf_reject.count, 0);
	assert_int_equal(o->quarantine, -1);
	assert_str(o->reason, "they forward, broken");
	o = &c->overrides[1];
	assert_int_equal(o->multi_from, MULTI_FROM_QUARANTINE);
	assert_true(o->multi_from_shadow);
	assert_false(o->spf_reject_given);
	assert_int_equal(o->dmarc, -1);
	assert_str(o->reason, "lists");

	assert_int_equal(c->archive_rule_count, 1);
	assert_int_equal(c->archive_rules[0].larger, 10 << 20);
	assert_int_equal(c->archive_rules[0].keep, -1);
	assert_int_equal(c->archive_rules[0].verdict.count, 2);
	assert_str(c->archive_rules[0].header.items[1], "Precedence:bulk");
	assert_str(c->archive_rules[0].family, "short");
	assert_int_equal(c->retention_count, 2);
	assert_true(c->retention[0].keep_s == RETENTION_FOREVER);
	assert_true(c->retention[1].keep_s == RETENTION_FOREVER);
	config_unref(&c);
}

static void
a_dump_reads_back(void **state)
{
	struct config *c = load(whole);
	char *first = dump(c);
	config_unref(&c);
	c = load(first);
	char *second = dump(c);
	assert_string_equal(first, second);
	assert_non_null(strstr(first, "\n[override friends]\n"));
	assert_non_null(strstr(first, "\nspf_reject = none\n"));
	assert_non_null(strstr(first, "\ndmarc = shadow reject\n"));
	config_unref(&c);
	free(first);
	free(second);
}

static const struct {
	const char *text, *want;
} wrong[] = {
	{ "dmarcs = note\n",
	    "test.conf:1: unknown option 'dmarcs', did you mean 'dmarc'?" },
	{ "# x\n\nTrusted-Networks = ::1\n",
	    "test.conf:3: unknown option 'Trusted-Networks', did you mean "
	    "'trusted_networks'?" },
	{ "colour = green\n", "test.conf:1: unknown option 'colour'" },
	{ "[override a]\nuser = x\n",
	    "test.conf:2: option 'user' stands in [override a]: put it above "
	    "the first section" },
	{ "[override a]\nfrom_domian = x\n",
	    "test.conf:2: unknown option 'from_domian' in [override a], did "
	    "you mean 'from_domain'?" },
	{ "user = a\nshadow = no\nuser = b\n",
	    "test.conf:3: 'user' is already set in line 1" },
	{ "user =\n", "test.conf:1: user: the value is empty" },
	{ "dmarc = shadow\n",
	    "test.conf:1: dmarc: 'shadow' is not one of: off note quarantine "
	    "reject" },
	{ "dmarc = shadow \n",
	    "test.conf:1: dmarc: 'shadow' is not one of: off note quarantine "
	    "reject" },
	{ "dmarc = Reject\n",
	    "test.conf:1: dmarc: 'Reject' is not one of: off note quarantine "
	    "reject" },
	{ "org_domain = shadow psl\n",
	    "test.conf:1: org_domain: 'shadow psl' is not one of: treewalk "
	    "psl" },
	{ "spf = y\n", "test.conf:1: spf: 'y' is not yes or no" },
	{ "max_signatures = 0\n",
	    "test.conf:1: max_signatures: '0' is outside 1 to 100" },
	{ "max_signatures = 101\n",
	    "test.conf:1: max_signatures: '101' is outside 1 to 100" },
	{ "max_signatures = -1\n",
	    "test.conf:1: max_signatures: '-1' is not a number" },
	{ "max_message_size = 99999999999999999999\n",
	    "test.conf:1: max_message_size: '99999999999999999999' is outside "
	    "1K to 16G" },
	{ "max_message_size = 18446744073709551615T\n",
	    "test.conf:1: max_message_size: '18446744073709551615T' is "
	    "outside 1K to 16G" },
	{ "max_message_size = 5MB\n",
	    "test.conf:1: max_message_size: '5MB' is not a size such as 50M "
	    "(units K, M, G, T)" },
	{ "clock_skew = 5\n",
	    "test.conf:1: clock_skew: '5' is not a time such as 5m (units s, "
	    "m, h, d, w, y)" },
	{ "dns_timeout = 1h\n",
	    "test.conf:1: dns_timeout: '1h' is not a time such as 5s (units "
	    "ms, s, m)" },
	{ "dns_budget = 10s\ndns_timeout = 30s\n",
	    "test.conf:2: dns_timeout is longer than dns_budget" },
	{ "listen = /tmp/x\n",
	    "test.conf:1: listen: '/tmp/x' is not unix:PATH [mode=0660] "
	    "[group=NAME] or inet:PORT@HOST" },
	{ "listen = unix:run/x\n",
	    "test.conf:1: listen: 'run/x' is not an absolute path of less "
	    "than 108 bytes" },
	{ "listen = unix:/x mode=0888\n",
	    "test.conf:1: listen: 'mode=0888' is not mode=0660 or "
	    "group=NAME" },
	{ "listen = inet:70000@::1\n",
	    "test.conf:1: listen: 'inet:70000@::1' is not unix:PATH "
	    "[mode=0660] [group=NAME] or inet:PORT@HOST" },
	{ "listen = inet:8891@::1 mode=0660\n",
	    "test.conf:1: listen: 'inet:8891@::1 mode=0660' is not unix:PATH "
	    "[mode=0660] [group=NAME] or inet:PORT@HOST" },
	{ "[archive a]\nverdict = auth:fail\nkeep = no\n",
	    "test.conf:2: verdict: 'auth:fail' is not METHOD:RESULT, such as "
	    "dmarc:fail" },
	{ "[archive a]\nheader = Subject: x\nkeep = no\n",
	    "test.conf:2: header: 'Subject:' is not NAME or NAME:TEXT "
	    "(without blanks)" },
	{ "[archive a]\nverdict = dmarc:bad\nkeep = no\n",
	    "test.conf:2: verdict: 'dmarc:bad' is not METHOD:RESULT, such as "
	    "dmarc:fail" },
	{ "listen = inet:8891\n",
	    "test.conf:1: listen: 'inet:8891' is not unix:PATH [mode=0660] "
	    "[group=NAME] or inet:PORT@HOST" },
	{ "metrics = 9100\n",
	    "test.conf:1: metrics: '9100' is not off or inet:PORT@HOST" },
	{ "metrics = inet:9100\n",
	    "test.conf:1: metrics: 'inet:9100' is not off or inet:PORT@HOST" },
	{ "state_dir = var/lib\n",
	    "test.conf:1: state_dir: 'var/lib' is not an absolute path" },
	{ "trusted_networks = localhost\n",
	    "test.conf:1: trusted_networks: 'localhost' is not a network such "
	    "as 192.0.2.0/24 or 2001:db8::/32" },
	{ "trusted_networks = 10.0.0.1/8\n",
	    "test.conf:1: trusted_networks: '10.0.0.1/8' has address bits set "
	    "behind the prefix" },
	{ "trusted_networks = ,\n",
	    "test.conf:1: trusted_networks: the list is empty" },
	{ "nameservers = dns.example.org\n",
	    "test.conf:1: nameservers: 'dns.example.org' is not an IP address "
	    "or ADDRESS@PORT" },
	{ "nameservers = 192.0.2.1@0\n",
	    "test.conf:1: nameservers: '192.0.2.1@0' is not an IP address or "
	    "ADDRESS@PORT" },
	{ "trusted_sealers = b\xc3\xbc.example\n",
	    "test.conf:1: trusted_sealers: 'b\xc3\xbc.example' is not a domain "
	    "(A-labels) or .domain" },
	{ "arc_domain = -x.example\n",
	    "test.conf:1: arc_domain: '-x.example' is not a domain name "
	    "(A-labels)" },
	{ "trusted_daemons = smtp # ours\n",
	    "test.conf:1: trusted_daemons: '#' is not a word (comments stand "
	    "on lines of their own)" },
	{ "sign_headers = to subject\n",
	    "test.conf:1: sign_headers must name from" },
	{ "sign_headers = from: to\n",
	    "test.conf:1: sign_headers: 'from:' is not a header field name" },
	{ "canonicalization = relaxed\n",
	    "test.conf:1: canonicalization: 'relaxed' is not HEADER/BODY, each "
	    "relaxed or simple" },
	{ "spf_reject = fail neutral\n",
	    "test.conf:1: spf_reject: 'neutral' is not one of: fail softfail "
	    "permerror" },
	{ "spf = no\nspf_reject = fail\n",
	    "test.conf:2: spf_reject needs spf = yes" },
	{ "arc = seal\n", "test.conf:1: arc seal needs arc_domain" },
	{ "arc_seal = example.org\n",
	    "test.conf:1: arc_seal needs arc = seal" },
	{ "arc = off\ntrusted_sealers = example.org\n",
	    "test.conf:2: trusted_sealers needs arc = verify or seal" },
	{ "arc = off\n[override a]\nsealer = b.example\ndmarc = off\n",
	    "test.conf:1: arc off conflicts with an override by sealer" },
	{ "report = send\n", "test.conf:1: report send needs report_from" },
	{ "report = collect\ndmarc = off\n",
	    "test.conf:1: report needs dmarc to be other than off" },
	{ "report = daily\n",
	    "test.conf:1: report: 'daily' is not one of: off collect send" },
	{ "report_hour = 24\n",
	    "test.conf:1: report_hour: '24' is outside 0 to 23" },
	{ "report_from = postmaster\n",
	    "test.conf:1: report_from: 'postmaster' is not user@domain" },
	{ "trust_authenticated = no\nrequire_login_match = yes\n",
	    "test.conf:2: require_login_match needs trust_authenticated = "
	    "yes" },
	{ "max_message_size = 10K\nmax_header_bytes = 11K\n",
	    "test.conf:2: max_header_bytes is larger than max_message_size" },
	{ "reject_text = see {queue}\n",
	    "test.conf:1: reject_text: '{queue}' is not one of: {from} {spf} "
	    "{dkim} {id}" },
	{ "reject_text = caf\xc3\xa9\n",
	    "test.conf:1: reject_text: only plain ASCII can be sent" },
	{ "user = a b\n",
	    "test.conf:1: user: 'a b' is not a single plain word" },
	{ "dmarc note\n",
	    "test.conf:1: expected 'name = value', got 'dmarc note'" },
	{ "  dmarc = note\n",
	    "test.conf:1: a line that begins with a blank continues an "
	    "option, but none stands before it" },
	{ "[override a]\n  dmarc = note\n",
	    "test.conf:2: a line that begins with a blank continues an "
	    "option, but none stands before it" },
	{ "user = a\n  dmarc = note\n",
	    "test.conf:2: an option must begin in the first column (a line "
	    "that begins with a blank continues 'user')" },
	{ "user = a\x01\n", "test.conf:1: the line holds a control byte" },
	{ "[override\n", "test.conf:1: a section is written [KIND NAME]" },
	{ "[overrides a]\n",
	    "test.conf:1: unknown section 'overrides': there are domain, "
	    "override, archive and retention" },
	{ "[override]\n", "test.conf:1: override: the value is empty" },
	{ "[domain ex ample]\n",
	    "test.conf:1: domain: 'ex ample' is not a domain name "
	    "(A-labels)" },
	{ "[retention a]\nkeep = forever\n[retention b]\nkeep = forever\n"
	  "[retention a]\nkeep = forever\n",
	    "test.conf:5: [retention a] already stands at test.conf:1" },
	{ "[retention a]\nkeep = forever\nkeep = forever\n",
	    "test.conf:3: 'keep' is already set in line 2" },
	{ "[retention a]\n", "test.conf:1: [retention a] says no keep" },
	{ "[retention a]\nkeep = 1h\n",
	    "test.conf:2: keep: '1h' is outside 1d to 200y" },
	{ "[retention hold]\nkeep = 7d\n",
	    "test.conf:1: [retention hold] names a family that is kept as "
	    "long as something holds it" },
	{ "[retention A]\n",
	    "test.conf:1: retention: 'A' is not a family name (a-z, 0-9, '-', "
	    "at most 31)" },
	{ "[override a]\ndmarc = note\n",
	    "test.conf:1: [override a] has no match list: name from_domain, "
	    "client, ptr, list_id, sealer, recipient or direction" },
	{ "[override a]\nptr = x.example\nreason = why\n",
	    "test.conf:1: [override a] overrides nothing: set dmarc, "
	    "quarantine, multi_from or spf_reject" },
	{ "[override a]\nptr = x.example\ndirection = up\n",
	    "test.conf:3: direction: 'up' is not one of: in out" },
	{ "[archive a]\nkeep = no\n",
	    "test.conf:1: [archive a] has no match list" },
	{ "[archive a]\nlarger = 1M\n",
	    "test.conf:1: [archive a] says neither keep nor family" },
	{ "[archive a]\nlarger = 1M\nkeep = no\nfamily = b\n",
	    "test.conf:1: [archive a] says keep = no and a family" },
	{ "[archive a]\nlarger = 1M\nfamily = audit\n",
	    "test.conf:1: [archive a] names a family that is reserved (audit, "
	    "hold, import)" },
	{ "[archive a]\nverdict = dmarc=fail\nkeep = no\n",
	    "test.conf:2: verdict: 'dmarc=fail' is not METHOD:RESULT, such as "
	    "dmarc:fail" },
	{ "[domain example.org]\n",
	    "test.conf:1: [domain example.org] is empty" },
	{ "[domain example.org]\nsign_headers = to\n",
	    "test.conf:1: sign_headers must name from" },
	{ "zone_file = /nonexistent/zone\n",
	    "test.conf:1: zone_file: /nonexistent/zone: No such file or "
	    "directory" },
	{ "sign_table = /nonexistent/table\n",
	    "test.conf:1: sign_table: /nonexistent/table: No such file or "
	    "directory" },
};

static void
every_mistake_names_its_place(void **state)
{
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		refuse(wrong[i].text, wrong[i].want);
}

/* Values at the edge of what is allowed. */
static void
limits_are_inclusive(void **state)
{
	static const char *const texts[] = { "max_signatures = 1\n",
		"max_signatures = 100\n", "max_message_size = 1k\n",
		"max_message_size = 16G\n", "max_message_size = 4096\n",
		"min_rsa_bits = 4096\n", "clock_skew = 0s\n",
		"clock_skew = 24h\n", "signature_lifetime = 60s\n",
		"signature_lifetime = 1y\n", "dns_timeout = 100ms\n",
		"dns_budget = 4m\n", "void_lookups = 0\n",
		"listen = inet:0@[::1]\n", "listen = inet:65535@mx.example\n",
		"reject_text = ~\n",
		("[archive a]\nverdict = dkim:pass spf:none spf.helo:none "
		 "arc:fail iprev:fail\nkeep = no\n"),
		"[archive a]\nlarger = 1\nkeep = yes\n" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct config *c = load(texts[i]);
		config_unref(&c);
	}
}

static enum res
many_items(unsigned n, struct err *err)
{
	struct buf b;
	struct config *c = NULL;
	buf_init(&b, 1 << 20);
	buf_add_c(&b, "trusted_daemons = ");
	for (unsigned i = 0; i < n; i++)
		buf_add_c(&b, i % 2 == 0 ? "x " : "y,");
	enum res r = config_from_text(buf_str(&b), "test.conf", err, &c);
	if (r == RES_OK)
		assert_int_equal(c->trusted_daemons.count, n);
	buf_done(&b);
	config_unref(&c);
	return r;
}

static void
lists_are_bounded(void **state)
{
	struct err err = { "" };
	assert_ok(many_items(99999, &err));
	assert_ok(many_items(100000, &err));
	assert_int_not_equal(many_items(100001, &err), RES_OK);
	assert_string_equal(
	    err.text, "test.conf:1: trusted_daemons: more than 100000 items");
}

static char directory[] = "/tmp/hanaper-config-XXXXXX";

static void
write_file(const char *name, const char *text, char *out_path, size_t size)
{
	snprintf(out_path, size, "%s/%s", directory, name);
	FILE *f = fopen(out_path, "w");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

static void
files_are_read_and_named(void **state)
{
	char conf[64], table[64], text[256], want[256];
	struct err err = { "" };
	struct config *c = NULL;
	assert_non_null(mkdtemp(directory));
	write_file("table", "example.org d=example.org\n* d=x s=y key=/k\n",
	    table, sizeof table);
	snprintf(text, sizeof text, "sign_table = %s\n", table);
	write_file("conf", text, conf, sizeof conf);
	assert_ok(config_load(conf, &err, &c));
	assert_int_equal(c->sign_rule_count, 2);
	assert_int_equal(c->sign_rules[0].kind, SIGN_DOMAIN);
	snprintf(want, sizeof want, "%s:2", table);
	assert_str(c->sign_rules[1].where, want);
	assert_str(c->path, conf);
	config_unref(&c);

	write_file(
	    "table", "example.org d=example.org\n* x=1\n", table, sizeof table);
	assert_int_equal(config_load(conf, &err, &c), RES_SYNTAX);
	snprintf(want, sizeof want,
	    "%s:2: expected d=, s=, i= or key=, got 'x=1'", table);
	assert_string_equal(err.text, want);

	err_clear(&err);
	assert_int_equal(config_load(directory, &err, &c), RES_IO);
	snprintf(want, sizeof want, "%s: not a regular file", directory);
	assert_string_equal(err.text, want);

	err_clear(&err);
	assert_int_equal(unlink(conf), 0);
	assert_int_equal(config_load(conf, &err, &c), RES_IO);
	snprintf(want, sizeof want, "%s: %s", conf, strerror(ENOENT));
	assert_string_equal(err.text, want);
	assert_int_equal(unlink(table), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void
references_are_counted(void **state)
{
	struct config *c = load("user = a\n");
	struct config *other = config_ref(c);
	config_unref(&c);
	assert_null(c);
	assert_str(other->user, "a");
	config_unref(&other);
	config_unref(&other);
}

static void
ipv6_and_paths_of_listen(void **state)
{
	struct config *c = load("listen = inet6:1@[2001:db8::1]\n");
	assert_str(c->listen.host, "2001:db8::1");
	char *text = dump(c);
	assert_non_null(strstr(text, "listen = inet:1@[2001:db8::1]\n"));
	free(text);
	config_unref(&c);
	c = load("listen = local:/run/x group=mail mode=600\n");
	assert_true(c->listen.is_unix);
	assert_str(c->listen.path, "/run/x");
	assert_str(c->listen.group, "mail");
	assert_int_equal(c->listen.mode, 0600);
	config_unref(&c);
	c = load("listen = unix:/run/x group=\n");
	assert_str(c->listen.group, "");
	config_unref(&c);
}

static void
a_default_yields_to_what_is_given(void **state)
{
	struct config *c = load("dns_budget = 2s\nmax_message_size = 10K\n");
	assert_int_equal(c->dns_timeout_us, 2000000);
	assert_int_equal(c->max_header_bytes, 10240);
	config_unref(&c);
	c = load("dns_timeout = 30s\n");
	assert_int_equal(c->dns_budget_us, 30000000);
	config_unref(&c);
}

static enum res
load_with(const char *path, const char *name, const char *value,
    struct err *err, struct config **out)
{
	struct config_setting s[] = { { str_c(name), STR("off") },
		{ str_c(name), str_c(value) } };
	/* the last wins */
	return config_load_with(path, strcmp(name, "dmarc") == 0 ? s : s + 1,
	    strcmp(name, "dmarc") == 0 ? 2 : 1, err, out);
}

static void
settings_stand_in_front_of_the_file(void **state)
{
	char conf[64];
	struct err err = { "" };
	struct config *c = NULL;
	memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
	assert_non_null(mkdtemp(directory));
	write_file("conf", "dmarc = quarantine\nuser = a\n", conf, sizeof conf);
	assert_ok(load_with(conf, "dmarc", " reject ", &err, &c));
	assert_int_equal(c->dmarc, DMARC_ACTION_REJECT);
	assert_str(c->user, "a");
	config_unref(&c);
	assert_ok(load_with(NULL, "trusted_networks", "none", &err, &c));
	assert_int_equal(c->trusted_networks.count, 0);
	config_unref(&c);

	static const struct {
		const char *name, *value, *want;
	} rows[] = {
		{ "dmarks", "off",
		    "-o dmarks: unknown option, did you mean 'dmarc'?" },
		{ "spf", "maybe", "-o spf: 'maybe' is not yes or no" },
		{ "arc", "seal", "-o arc seal needs arc_domain" },
		{ "sign_table", "/nonexistent/t",
		    "-o sign_table: /nonexistent/t: No such file or "
		    "directory" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		err_clear(&err);
		assert_int_not_equal(
		    load_with(conf, rows[i].name, rows[i].value, &err, &c),
		    RES_OK);
		assert_string_equal(err.text, rows[i].want);
	}
	/* what is covered must still be right */
	write_file("conf", "dmarc = quarantaine\n", conf, sizeof conf);
	err_clear(&err);
	assert_int_not_equal(
	    load_with(conf, "dmarc", "reject", &err, &c), RES_OK);
	assert_non_null(strstr(err.text, "conf:1: dmarc: 'quarantaine'"));
	assert_int_equal(unlink(conf), 0);
	assert_int_equal(rmdir(directory), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_what_the_table_says),
		cmocka_unit_test(defaults_are_the_promised_ones),
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_dump_reads_back),
		cmocka_unit_test(every_mistake_names_its_place),
		cmocka_unit_test(limits_are_inclusive),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(files_are_read_and_named),
		cmocka_unit_test(references_are_counted),
		cmocka_unit_test(a_default_yields_to_what_is_given),
		cmocka_unit_test(settings_stand_in_front_of_the_file),
		cmocka_unit_test(ipv6_and_paths_of_listen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

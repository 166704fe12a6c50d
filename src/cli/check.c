/* hanaper check: is the set-up right, before mail tells. */
#include <getopt.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "dns/session.h"
#include "dns/unbound.h"
#include "flow/keyfiles.h"
#include "flow/preflight.h"
#include "flow/published.h"
#include "keys/keyring.h"

#define USAGE "[-c CONFIG] [-o NAME=VALUE] [--dump] [--no-dns]"

struct check {
	struct cli_settings settings;
	struct config *config;
	bool dump, no_dns;
	enum finding worst;
};

static const struct option options[] = {
	{ "dump", no_argument, NULL, 'd' },
	{ "no-dns", no_argument, NULL, 'n' },
	{ NULL, 0, NULL, 0 },
};

static void
print_finding(void *context, enum finding level, const char *line)
{
	static const char *const words[] = { [FINDING_OK] = "ok",
		[FINDING_WARNING] = "warning", [FINDING_BAD] = "error" };
	struct check *c = context;
	printf("%-8s %s\n", words[level], line);
	if (level > c->worst)
		c->worst = level;
}

static void
dump(const struct config *config)
{
	struct buf out;
	buf_init(&out, (size_t)16 << 20);
	config_dump(config, &out);
	(void)buf_write(&out, stdout);
	buf_done(&out);
}

#define PROBE_WAIT_US 6000000

/* Whether the name servers let answers be validated. */
static void
check_dnssec(struct check *c, struct resolver *resolver)
{
	char line[ERR_MAX_TEXT];
	if (c->config->zone_file.len != 0 ||
	    c->config->dnssec == DNSSEC_SETTING_OFF)
		return;
	const char *note = unbound_dnssec_note(
	    resolver, clock_mono_us() + PROBE_WAIT_US);
	snprintf(line, sizeof line, "dnssec: %s%s",
	    note == NULL ? "answers are validated" :
	    "answers are not validated: ", note != NULL ? note : "");
	print_finding(c, note == NULL ? FINDING_OK : FINDING_WARNING, line);
}

static void
check_published(struct check *c, struct arena *a, struct dns_session *dns,
    struct published *p, const struct signing_key *key)
{
	char line[ERR_MAX_TEXT];
	bool changed;
	enum published_state state = published_look(p, a, dns, key, &changed);
	snprintf(line, sizeof line, "%.*s._domainkey.%.*s: %s%s",
	    STR_ARG(key->selector), STR_ARG(key->domain),
	    published_state_text(state), state == PUBLISHED_YES ? "" :
	    "; `hanaper key dns` prints what to publish");
	print_finding(c, state == PUBLISHED_YES ? FINDING_OK : FINDING_WARNING,
	    line);
}

/* Each key's public half, as receivers would find it. */
static void
check_dns(struct check *c)
{
	struct err err = { "" };
	struct arena *a = arena_new(0);
	struct resolver *resolver = NULL;
	struct signer *signer = NULL;
	struct keydir dir;
	struct published *p = published_new(NULL);
	enum res r = a != NULL && p != NULL ?
	    cli_resolver(c->config, NULL, &err, &resolver) : RES_NOMEM;
	if (r != RES_OK)
		print_finding(c, FINDING_BAD,
		    err.text[0] != '\0' ? err.text : res_text(r));
	else
		check_dnssec(c, resolver);
	if (r == RES_OK &&
	    keyfiles_open(c->config, a, &err, &dir) == RES_OK &&
	    keyring_from_keydir(&dir, &err, &signer) == RES_OK) {
		struct dns_limits limits = { c->config->dns_timeout_us,
			c->config->dns_budget_us, 0 };
		struct manifest *m = signer->manifest(signer);
		struct dns_session *dns = dns_session_new(a, resolver, &limits);
		for (size_t i = 0; dns != NULL && i < manifest_count(m); i++)
			check_published(c, a, dns, p, manifest_at(m, i));
		manifest_unref(&m);
	}
	signer_free(&signer);
	arena_free(&a);
	resolver_free(&resolver);
	published_free(&p);
}

int
cmd_check(int argc, char **argv)
{
	struct check c = { .settings = { .path = NULL } };
	int option, status = EX_OK;
	while ((option = getopt_long(argc, argv, "c:o:", options, NULL)) != -1) {
		if (option == 'c')
			c.settings.path = optarg;
		else if (option == 'o' &&
		    cli_settings_add(&c.settings, optarg))
			continue;
		else if (option == 'd')
			c.dump = true;
		else if (option == 'n')
			c.no_dns = true;
		else
			return cli_usage("check", USAGE);
	}
	if (optind != argc)
		return cli_usage("check", USAGE);
	c.config = cli_settings_load(&c.settings, &status);
	if (c.config == NULL)
		return status;
	if (c.dump) {
		dump(c.config);
	} else {
		preflight_run(c.config, NULL, print_finding, &c);
		if (!c.no_dns && c.config->mode != MODE_VERIFY)
			check_dns(&c);
	}
	config_unref(&c.config);
	return c.worst == FINDING_BAD ? EX_CONFIG : EX_OK;
}

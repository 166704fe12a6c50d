/* hanaper key check: does the DNS have each key, as receivers would find it. */
#include <stdio.h>
#include <sysexits.h>

#include "base/json.h"
#include "cli/key.h"
#include "dns/session.h"
#include "mail/domain.h"

#define QUEUE_S       (7 * 86400) /* MTAs give up after five days or so */
#define MAX_LINE      ((size_t)16 << 10)
#define MAX_NOTES     4

int64_t
key_keep_s(const struct config *c, struct str domain)
{
	int64_t lifetime_s = c->signature_lifetime_s;
	for (size_t i = 0; i < c->domain_count; i++)
		if (domain_equal(c->domains[i].domain, domain) &&
		    c->domains[i].signature_lifetime_s >= 0)
			lifetime_s = c->domains[i].signature_lifetime_s;
	return lifetime_s + QUEUE_S;
}

int
key_resolver(const struct key_options *o, struct resolver **out)
{
	struct err err = { "" };
	enum res r = cli_resolver(o->config, o->zone, &err, out);
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(cli_status(r), "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
}

/* Each key gets a budget of its own. */
static enum res
ask(const struct key_options *o, struct resolver *resolver,
    const struct signing_key *key, struct published_record *out)
{
	struct dns_limits limits = { o->config->dns_timeout_us,
		o->config->dns_budget_us, 0 };
	struct arena *a = arena_new(0);
	struct dns_session *dns =
	    a != NULL ? dns_session_new(a, resolver, &limits) : NULL;
	if (dns != NULL)
		published_ask(a, dns, key, out);
	arena_free(&a);
	return dns != NULL ? RES_OK : RES_NOMEM;
}

int
key_look(const struct key_options *o, struct resolver *resolver,
    const struct keyfile *f, struct key_look *out)
{
	struct err err = { "" };
	struct privkey *k = NULL;
	struct buf public;
	buf_init(&public, PRIVKEY_MAX_FILE);
	enum res r = keyfile_load(f, &err, &k);
	if (r == RES_OK)
		r = privkey_public(k, &public);
	if (r == RES_OK) {
		struct signing_key key = { .domain = f->domain,
			.selector = f->selector,
			.type = privkey_type(k),
			.bits = privkey_bits(k),
			.public_der = buf_str(&public) };
		*out = (struct key_look){ .type = key.type, .bits = key.bits };
		if (resolver != NULL)
			r = ask(o, resolver, &key, &out->record);
	}
	privkey_free(&k);
	buf_done(&public);
	if (r == RES_OK)
		return EX_OK;
	return cli_fail(cli_status(r), "%s",
	    err.text[0] != '\0' ? err.text : res_text(r));
}

/* --- one key --- */

static const char *
word(enum published_state s)
{
	switch (s) {
	case PUBLISHED_YES:
	case PUBLISHED_BEFORE:
		return "published";
	case PUBLISHED_UNKNOWN:
		return "unknown";
	case PUBLISHED_ABSENT:
		return "absent";
	case PUBLISHED_DIFFERENT:
		return "different";
	}
	return "";
}

/* What else is worth saying; the first of them explains the state. */
static size_t
find_notes(const struct key_look *l, const char *notes[MAX_NOTES])
{
	size_t n = 0;
	if (l->record.why != NULL)
		notes[n++] = l->record.why;
	if (l->record.testing)
		notes[n++] = "t=y: receivers may treat mail as unsigned";
	if (l->record.count > 1)
		notes[n++] = "several records: receivers may take any";
	if (l->type == KEY_RSA && l->bits < SIGNER_MIN_RSA_BITS)
		notes[n++] = "weak: under 2048 bits";
	return n;
}

static void
print_line(const struct keyfile *f, const struct key_look *l)
{
	const char *notes[MAX_NOTES];
	size_t count = find_notes(l, notes);
	printf(KEY_NAME ": %s, %s", KEY_NAME_ARG(f), key_state_word(f->state),
	    l->record.state == PUBLISHED_UNKNOWN ? "cannot be looked up" :
						   word(l->record.state));
	for (size_t i = 0; i < count; i++)
		printf("; %s", notes[i]);
	putchar('\n');
}

static void
print_object(const struct key_options *o, const struct keyfile *f,
    const struct key_look *l)
{
	const char *notes[MAX_NOTES];
	size_t count = find_notes(l, notes);
	struct buf line;
	struct json j;
	buf_init(&line, MAX_LINE);
	json_init(&j, &line);
	json_open(&j, '{');
	json_key_str(&j, "name", arena_printf(
	    o->arena, KEY_NAME, KEY_NAME_ARG(f)));
	json_key_str(&j, "domain", f->domain);
	json_key_str(&j, "selector", f->selector);
	json_key_c(&j, "state", key_state_word(f->state));
	json_key_c(&j, "dns", word(l->record.state));
	json_key_c(&j, "key_type", l->type == KEY_RSA ? "rsa" : "ed25519");
	json_key_int(&j, "bits", l->bits);
	json_key(&j, "notes");
	json_open(&j, '[');
	for (size_t i = 0; i < count; i++)
		json_str(&j, str_c(notes[i]));
	json_close(&j, ']');
	json_close(&j, '}');
	printf("%.*s\n", (int)line.len, line.ptr);
	buf_done(&line);
}

/* --- all --- */

/* Nothing that it signed is valid any more. */
static bool
may_be_absent(const struct key_options *o, const struct keyfile *f)
{
	return f->state == KEY_STATE_RETIRED &&
	    o->now_s - f->since_s >= key_keep_s(o->config, f->domain);
}

int
key_check(struct key_options *o)
{
	struct keydir d = { 0 };
	struct resolver *resolver = NULL;
	bool all = true;
	int status = key_open(o, &d);
	if (status == EX_OK)
		status = key_resolver(o, &resolver);
	for (size_t i = 0; i < d.count && status == EX_OK; i++) {
		struct key_look l;
		status = key_look(o, resolver, &d.files[i], &l);
		if (status != EX_OK)
			break;
		if (o->json)
			print_object(o, &d.files[i], &l);
		else
			print_line(&d.files[i], &l);
		all = all && (l.record.state == PUBLISHED_YES ||
		    may_be_absent(o, &d.files[i]));
	}
	resolver_free(&resolver);
	return status != EX_OK || all ? status : 1;
}

#include "config/check.h"

void
check_problem(struct err *err, const char *label, unsigned line,
    const char *name, const char *text)
{
	if (line == LINE_OF_SETTING)
		err_set(err, "-o %s%s", name, text);
	else if (line == 0)
		err_set(err, "%s: %s%s", label, name, text);
	else
		err_set(err, "%s:%u: %s%s", label, line, name, text);
}

static bool
has_match(const struct match_lists *m)
{
	return m->from_domain.count != 0 || m->ptr.count != 0 ||
	    m->list_id.count != 0 || m->sealer.count != 0 ||
	    m->recipient.count != 0 || m->client.count != 0 ||
	    m->direction.len != 0;
}

static const char *
check_override(struct override_rule *o)
{
	if (o->reason.len == 0)
		o->reason = o->name;
	if (!has_match(&o->match))
		return "has no match list: name from_domain, client, ptr, "
		       "list_id, sealer, recipient or direction";
	if (o->dmarc < 0 && o->quarantine < 0 && o->multi_from < 0 &&
	    !o->spf_reject_given)
		return "overrides nothing: set dmarc, quarantine, multi_from "
		       "or spf_reject";
	return NULL;
}

static const char *
check_archive(const struct archive_rule *r)
{
	if (!has_match(&r->match) && r->header.count == 0 &&
	    r->verdict.count == 0 && r->larger == 0)
		return "has no match list";
	if (r->keep < 0 && r->family.len == 0)
		return "says neither keep nor family";
	if (r->keep == 0 && r->family.len != 0)
		return "says keep = no and a family";
	if (str_eq(r->family, STR("audit")) ||
	    str_eq(r->family, STR("hold")) || str_eq(r->family, STR("import")))
		return "names a family that is reserved (audit, hold, import)";
	return NULL;
}

static const char *
check_domain(const struct domain_rule *d)
{
	if (d->sign_headers.count == 0 && d->oversign.count == 0 &&
	    d->signature_lifetime_s < 0 && d->require_published_key < 0 &&
	    d->canonicalization.len == 0)
		return "is empty";
	return NULL;
}

enum res
check_section(enum section_kind kind, void *base, const char *label,
    unsigned line, struct err *err)
{
	const char *wrong = NULL;
	switch (kind) {
	case SECTION_DOMAIN:
		wrong = check_domain(base);
		break;
	case SECTION_OVERRIDE:
		wrong = check_override(base);
		break;
	case SECTION_ARCHIVE:
		wrong = check_archive(base);
		break;
	case SECTION_RETENTION:
		if (((struct retention_rule *)base)->keep_s < 0)
			wrong = "says no keep";
		else if (str_eq(((struct retention_rule *)base)->family,
			     STR("hold")))
			wrong = "names a family that is kept as long as "
				"something holds it";
		break;
	case SECTION_COUNT:
		break;
	}
	if (wrong == NULL)
		return RES_OK;
	err_set(err, "%s:%u: [%s %.*s] %s", label, line,
	    config_sections[kind].kind, STR_ARG(*(struct str *)base), wrong);
	return RES_INVALID;
}

/* SIGN-01: a signature must cover From; a list of fields that leaves it out
 * is a mistake. */
static bool
leaves_out_from(const struct strlist *fields)
{
	for (size_t i = 0; i < fields->count; i++)
		if (str_eq(fields->items[i], STR("from")))
			return false;
	return fields->count != 0;
}

static bool
any_override_by_sealer(const struct config *c)
{
	for (size_t i = 0; i < c->override_count; i++)
		if (c->overrides[i].match.sealer.count != 0)
			return true;
	return false;
}

static const struct domain_rule *
domain_without_from(const struct config *c)
{
	for (size_t i = 0; i < c->domain_count; i++)
		if (leaves_out_from(&c->domains[i].sign_headers))
			return &c->domains[i];
	return NULL;
}

/* Rows are tried in order; the first that holds is told, with the place of
 * the option it names. */
struct conflict {
	bool holds;
	const char *option, *text;
};

static unsigned
line_of(const unsigned *lines, const char *name)
{
	const struct option *o = option_find(config_options, str_c(name));
	return o != NULL ? lines[o - config_options.rows] : 0;
}

static void
bend_defaults(struct config *c, const unsigned *lines)
{
	if (line_of(lines, "dns_timeout") == 0 &&
	    c->dns_timeout_us > c->dns_budget_us)
		c->dns_timeout_us = c->dns_budget_us;
	if (line_of(lines, "dns_budget") == 0 &&
	    c->dns_timeout_us > c->dns_budget_us)
		c->dns_budget_us = c->dns_timeout_us;
	if (line_of(lines, "max_header_bytes") == 0 &&
	    c->max_header_bytes > c->max_message_size)
		c->max_header_bytes = c->max_message_size;
}

enum res
check_config(
    struct config *c, const char *label, const unsigned *lines, struct err *err)
{
	bend_defaults(c, lines);
	const struct conflict conflicts[] = {
		{ c->dns_timeout_us > c->dns_budget_us, "dns_timeout",
		    " is longer than dns_budget" },
		{ c->max_header_bytes > c->max_message_size, "max_header_bytes",
		    " is larger than max_message_size" },
		{ c->zone_file.len != 0 && c->nameservers.count != 0,
		    "zone_file", " conflicts with nameservers: set one" },
		{ c->zone_file.len != 0 && c->dnssec == DNSSEC_SETTING_ON,
		    "dnssec", " on cannot be had from a zone_file" },
		{ c->require_login_match && !c->trust_authenticated,
		    "require_login_match", " needs trust_authenticated = yes" },
		{ leaves_out_from(&c->sign_headers), "sign_headers",
		    " must name from" },
		{ !c->spf && c->spf_reject.count != 0, "spf_reject",
		    " needs spf = yes" },
		{ c->arc == ARC_SEAL && c->arc_domain.len == 0, "arc",
		    " seal needs arc_domain" },
		{ c->arc != ARC_SEAL && c->arc_seal.count != 0, "arc_seal",
		    " needs arc = seal" },
		{ c->arc == ARC_OFF && c->trusted_sealers.count != 0,
		    "trusted_sealers", " needs arc = verify or seal" },
		{ c->arc == ARC_OFF && any_override_by_sealer(c), "arc",
		    " off conflicts with an override by sealer" },
		{ c->report == REPORT_SEND && c->report_from.len == 0, "report",
		    " send needs report_from" },
		{ c->report != REPORT_OFF && c->dmarc == DMARC_ACTION_OFF,
		    "report", " needs dmarc to be other than off" },
	};
	for (size_t i = 0; i < sizeof conflicts / sizeof *conflicts; i++) {
		if (!conflicts[i].holds)
			continue;
		check_problem(err, label, line_of(lines, conflicts[i].option),
		    conflicts[i].option, conflicts[i].text);
		return RES_INVALID;
	}
	const struct domain_rule *d = domain_without_from(c);
	if (d != NULL) {
		err_set(err, "%.*s: sign_headers must name from",
		    STR_ARG(d->where));
		return RES_INVALID;
	}
	return RES_OK;
}

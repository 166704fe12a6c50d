#include "config/options.h"

#define AT(field) offsetof(struct config, field)
#define KIB       ((uint64_t)1 << 10)
#define MIB       ((uint64_t)1 << 20)
#define GIB       ((uint64_t)1 << 30)
#define TIB       ((uint64_t)1 << 40)
#define SECOND    ((uint64_t)1000000)
#define DAY       ((uint64_t)86400)

/* OPT_CANON writes a pair. */
_Static_assert(AT(body_relaxed) == AT(header_relaxed) + sizeof(bool),
    "the two halves of canonicalization stand side by side");
/* OPT_WORD writes every enum as an int. */
_Static_assert(sizeof(enum dmarc_action) == sizeof(int), "enums are ints");

/* In the order of `hanaper check --dump` and of hanaper.conf(5). */
static const struct option global[] = {
	/* process */
	{ "listen", "process", OPT_LISTEN,
	    "unix:/var/spool/postfix/hanaper/milter.sock mode=0660 "
	    "group=postfix",
	    AT(listen), .help = "where the MTA connects" },
	{ "user", "process", OPT_NAME, "hanaper", AT(user),
	    .help = "the account the daemon runs as" },
	{ "state_dir", "process", OPT_PATH, "/var/lib/hanaper/state",
	    AT(state_dir), .help = "key records seen, decisions, marks" },
	{ "max_sessions", "process", OPT_COUNT, "500", AT(max_sessions),
	    .help = "MTA connections at a time; more get a 4xx", .min = 1,
	    .max = 100000 },
	{ "max_message_size", "process", OPT_SIZE, "100M", AT(max_message_size),
	    .help = "larger mail is refused for good", .min = KIB,
	    .max = 16 * GIB },
	{ "max_header_bytes", "process", OPT_SIZE, "1M", AT(max_header_bytes),
	    .help = "a larger header is refused for good", .min = KIB,
	    .max = 64 * MIB },
	{ "on_internal_error", "process", OPT_WORD, "tempfail",
	    AT(on_internal_error),
	    .help = "when memory or a part of us is missing",
	    .words = "tempfail accept" },
	{ "log", "process", OPT_WORD, "syslog", AT(log), .help = "where to log",
	    .words = "syslog stderr" },
	{ "log_format", "process", OPT_WORD, "text", AT(log_format),
	    .help = "the line of each message", .words = "text json" },
	{ "metrics", "process", OPT_METRICS, "off", AT(metrics),
	    .help = "Prometheus endpoint", .empty = "off" },
	{ "shadow", "process", OPT_BOOL, "no", AT(shadow),
	    .help = "judge and log, but enforce nothing" },
	/* who is ours */
	{ "authserv_id", "identity", OPT_NAME, "auto", AT(authserv_id),
	    .help = "our name in Authentication-Results", .empty = "auto" },
	{ "strip_authserv_ids", "identity", OPT_NAMES, "none",
	    AT(strip_authserv_ids),
	    .help = "further ids whose results are removed", .empty = "none" },
	{ "trusted_networks", "identity", OPT_NETS, "127.0.0.0/8 ::1",
	    AT(trusted_networks), .help = "clients whose mail is outbound",
	    .empty = "none" },
	{ "trust_authenticated", "identity", OPT_BOOL, "yes",
	    AT(trust_authenticated),
	    .help = "mail of logged-in users is outbound" },
	{ "trusted_daemons", "identity", OPT_NAMES, "none", AT(trusted_daemons),
	    .help = "values of {daemon_name} whose mail is outbound",
	    .empty = "none" },
	{ "trusted_relays", "identity", OPT_NETS, "none", AT(trusted_relays),
	    .help = "our other MX hosts: judge as of the hop before",
	    .empty = "none" },
	{ "reinjection", "identity", OPT_WORD, "no", AT(reinjection),
	    .help = "recognise mail that a filter hands back",
	    .words = "no token" },
	{ "mode", "identity", OPT_WORD, "auto", AT(mode),
	    .help = "verify, sign, or by direction",
	    .words = "auto sign verify" },
	/* dns */
	{ "nameservers", "dns", OPT_SERVERS, "system", AT(nameservers),
	    .help = "resolvers to ask", .empty = "system" },
	{ "dns_timeout", "dns", OPT_MICROS, "5s", AT(dns_timeout_us),
	    .help = "for one look-up", .min = SECOND / 10, .max = 60 * SECOND },
	{ "dns_budget", "dns", OPT_MICROS, "20s", AT(dns_budget_us),
	    .help = "for all look-ups of one message", .min = SECOND / 10,
	    .max = 240 * SECOND },
	{ "dnssec", "dns", OPT_WORD, "auto", AT(dnssec),
	    .help = "validate answers", .words = "auto off on" },
	{ "zone_file", "dns", OPT_FILE, "none", AT(zone_file),
	    .help = "answer from this file instead of the DNS",
	    .empty = "none" },
	{ "on_dns_error", "dns", OPT_WORD, "accept", AT(on_dns_error),
	    .help = "when a decisive look-up fails",
	    .words = "tempfail accept" },
	/* sign */
	{ "key_dir", "sign", OPT_PATH, "/etc/hanaper/keys", AT(key_dir),
	    .help = "DOMAIN/SELECTOR.pem below it" },
	{ "sign_table", "sign", OPT_PATH, "none", AT(sign_table),
	    .help = "rules for what the key folder cannot say",
	    .empty = "none" },
	{ "sign_headers", "sign", OPT_FIELDS, "default", AT(sign_headers),
	    .help = "fields to sign when present", .empty = "default" },
	{ "oversign", "sign", OPT_FIELDS, "default", AT(oversign),
	    .help = "fields to sign once more than present",
	    .empty = "default" },
	{ "canonicalization", "sign", OPT_CANON, "relaxed/relaxed",
	    AT(header_relaxed), .help = "header/body" },
	{ "signature_lifetime", "sign", OPT_SECONDS, "14d",
	    AT(signature_lifetime_s), .help = "x= of our signatures", .min = 60,
	    .max = 365 * DAY },
	{ "already_signed", "sign", OPT_WORD, "skip", AT(already_signed),
	    .help = "when a signature of the same domain is there",
	    .words = "skip add" },
	{ "require_login_match", "sign", OPT_BOOL, "no",
	    AT(require_login_match),
	    .help = "sign only when the login is the From address" },
	{ "sign_subdomains", "sign", OPT_BOOL, "no", AT(sign_subdomains),
	    .help = "a domain's key also signs names below it" },
	{ "long_lines", "sign", OPT_WORD, "warn", AT(long_lines),
	    .help = "header lines over 998 bytes",
	    .words = "warn refold tempfail" },
	{ "require_published_key", "sign", OPT_BOOL, "yes",
	    AT(require_published_key),
	    .help = "sign only once the public record was seen" },
	/* verify */
	{ "max_signatures", "verify", OPT_COUNT, "10", AT(max_signatures),
	    .help = "checked per message", .min = 1, .max = 100 },
	{ "min_rsa_bits", "verify", OPT_COUNT, "1024", AT(min_rsa_bits),
	    .help = "weaker keys give policy", .min = 1024, .max = 4096 },
	{ "body_length", "verify", OPT_WORD, "policy", AT(body_length),
	    .help = "signatures that leave a tail unsigned",
	    .words = "policy accept refuse" },
	{ "clock_skew", "verify", OPT_SECONDS, "5m", AT(clock_skew_s),
	    .help = "tolerated at t= and x=", .max = DAY },
	{ "required_signed_headers", "verify", OPT_FIELDS, "from",
	    AT(required_signed_headers),
	    .help = "a signature without them gives policy" },
	/* spf */
	{ "spf", "spf", OPT_BOOL, "yes", AT(spf), .help = "check MAIL FROM" },
	{ "spf_helo", "spf", OPT_BOOL, "yes", AT(spf_helo),
	    .help = "check HELO" },
	{ "received_spf", "spf", OPT_BOOL, "no", AT(received_spf),
	    .help = "add a Received-SPF field" },
	{ "spf_reject", "spf", OPT_WORDS, "none", AT(spf_reject),
	    .help = "results of MAIL FROM that are refused",
	    .words = "fail softfail permerror", .empty = "none",
	    .shadow = AT(spf_reject_shadow) },
	{ "void_lookups", "spf", OPT_COUNT, "2", AT(void_lookups),
	    .help = "empty answers before permerror", .max = 10 },
	/* dmarc */
	{ "dmarc", "dmarc", OPT_WORD, "note", AT(dmarc),
	    .help = "what a failing message gets at most",
	    .words = "off note quarantine reject", .shadow = AT(dmarc_shadow) },
	{ "quarantine", "dmarc", OPT_WORD, "header", AT(quarantine),
	    .help = "what quarantine means", .words = "header hold" },
	{ "multi_from", "dmarc", OPT_WORD, "reject", AT(multi_from),
	    .help = "several or unparsable From fields",
	    .words = "reject quarantine evaluate",
	    .shadow = AT(multi_from_shadow) },
	{ "org_domain", "dmarc", OPT_WORD, "treewalk", AT(org_domain),
	    .help = "how organizational domains are found",
	    .words = "treewalk psl" },
	{ "dmarc_lists", "dmarc", OPT_WORD, "soften", AT(dmarc_lists),
	    .help = "failing mail of mailing lists",
	    .words = "soften enforce" },
	{ "reject_text", "dmarc", OPT_REPLY,
	    "Email rejected per DMARC policy for {from}; SPF: {spf}; "
	    "DKIM: {dkim}; id {id}",
	    AT(reject_text), .help = "told to the sender", .max = 300 },
	/* arc */
	{ "arc", "arc", OPT_WORD, "verify", AT(arc),
	    .help = "chains of forwarders", .words = "off verify seal" },
	{ "arc_domain", "arc", OPT_DOMAIN, "none", AT(arc_domain),
	    .help = "the domain that seals", .empty = "none" },
	{ "arc_seal", "arc", OPT_PATTERNS, "none", AT(arc_seal),
	    .help = "recipients whose mail leaves again and is sealed",
	    .empty = "none" },
	{ "trusted_sealers", "arc", OPT_DOMAINS, "none", AT(trusted_sealers),
	    .help = "sealers whose passing chain overrides a DMARC fail",
	    .empty = "none" },
	/* results */
	{ "outbound_results", "results", OPT_BOOL, "no", AT(outbound_results),
	    .help = "add auth= to outbound mail" },
	/* report */
	{ "report", "report", OPT_WORD, "off", AT(report),
	    .help = "DMARC aggregate reports", .words = "off collect send" },
	{ "report_from", "report", OPT_ADDRESS, "none", AT(report_from),
	    .help = "sender of reports", .empty = "none" },
	{ "report_org", "report", OPT_TEXT, "none", AT(report_org),
	    .help = "our organization's name in reports", .empty = "none",
	    .max = 200 },
	{ "report_exclude", "report", OPT_DOMAINS, "none", AT(report_exclude),
	    .help = "domains that get no report", .empty = "none" },
	{ "report_hour", "report", OPT_COUNT, "1", AT(report_hour),
	    .help = "hour of the day (UTC) for sending", .max = 23 },
	/* archive */
	{ "archive", "archive", OPT_BOOL, "off", AT(archive),
	    .help = "store each accepted message before the reply" },
	{ "archive_dir", "archive", OPT_PATH, "/var/lib/hanaper/archive",
	    AT(archive_dir), .help = "the store" },
	{ "archive_scope", "archive", OPT_WORD, "all", AT(archive_scope),
	    .help = "which mail", .words = "all inbound outbound" },
	{ "archive_on_error", "archive", OPT_WORD, "tempfail",
	    AT(archive_on_error), .help = "when it cannot be stored now",
	    .words = "tempfail accept" },
	{ "archive_rejected", "archive", OPT_BOOL, "no", AT(archive_rejected),
	    .help = "store mail that we refuse, too" },
	{ "archive_roll", "archive", OPT_CHOICE, "month", AT(archive_roll),
	    .help = "period of one shard", .words = "month" },
	{ "archive_roll_size", "archive", OPT_SIZE, "8G", AT(archive_roll_size),
	    .help = "a shard of this size is closed early", .min = MIB,
	    .max = TIB },
	{ "archive_reserve", "archive", OPT_SIZE, "512M", AT(archive_reserve),
	    .help = "free space that is never used", .max = 64 * TIB },
	{ "archive_keys", "archive", OPT_PATH, "/etc/hanaper/archive-keys",
	    AT(archive_keys), .help = "private keys that sign checkpoints" },
	{ "archive_checkpoint", "archive", OPT_SECONDS, "1h",
	    AT(archive_checkpoint_s), .help = "how often they are signed",
	    .min = 60, .max = 7 * DAY },
};

#define DOMAIN_AT(field) offsetof(struct domain_rule, field)
static const struct option domain_options[] = {
	{ "sign_headers", "domain", OPT_FIELDS, NULL, DOMAIN_AT(sign_headers),
	    .help = "fields to sign when present" },
	{ "oversign", "domain", OPT_FIELDS, NULL, DOMAIN_AT(oversign),
	    .help = "fields to sign once more than present" },
	{ "canonicalization", "domain", OPT_CANON_TEXT, NULL,
	    DOMAIN_AT(canonicalization), .help = "header/body" },
	{ "signature_lifetime", "domain", OPT_SECONDS, NULL,
	    DOMAIN_AT(signature_lifetime_s), .help = "x= of our signatures",
	    .min = 60, .max = 365 * DAY },
	{ "require_published_key", "domain", OPT_WORD, NULL,
	    DOMAIN_AT(require_published_key),
	    .help = "sign only once the public record was seen",
	    .words = "no yes" },
};

/* The match lists of every kind of rule. */
#define MATCH_OPTIONS(rule, group)                                             \
	{ "from_domain", group, OPT_DOMAINS, NULL,                             \
		offsetof(struct rule, match.from_domain),                      \
		.help = "author domain" },                                     \
	    { "client", group, OPT_NETS, NULL,                                 \
		    offsetof(struct rule, match.client),                       \
		    .help = "client address" },                                \
	    { "ptr", group, OPT_DOMAINS, NULL,                                 \
		    offsetof(struct rule, match.ptr),                          \
		    .help = "verified client name" },                          \
	    { "list_id", group, OPT_DOMAINS, NULL,                             \
		    offsetof(struct rule, match.list_id), .help = "List-Id" }, \
	    { "sealer", group, OPT_DOMAINS, NULL,                              \
		    offsetof(struct rule, match.sealer),                       \
		    .help = "newest passing ARC seal" },                       \
	    { "recipient", group, OPT_PATTERNS, NULL,                          \
		    offsetof(struct rule, match.recipient),                    \
		    .help = "envelope recipient" },                            \
	{                                                                      \
		"direction", group, OPT_CHOICE, NULL,                          \
		    offsetof(struct rule, match.direction),                    \
		    .help = "in or out", .words = "in out"                     \
	}

#define OVERRIDE_AT(field) offsetof(struct override_rule, field)
static const struct option override_options[] = {
	MATCH_OPTIONS(override_rule, "override"),
	{ "reason", "override", OPT_TEXT, NULL, OVERRIDE_AT(reason),
	    .help = "told in log and reports", .max = 200 },
	{ "dmarc", "override", OPT_WORD, NULL, OVERRIDE_AT(dmarc),
	    .help = "what a failing message gets at most",
	    .words = "off note quarantine reject",
	    .shadow = OVERRIDE_AT(dmarc_shadow) },
	{ "quarantine", "override", OPT_WORD, NULL, OVERRIDE_AT(quarantine),
	    .help = "what quarantine means", .words = "header hold" },
	{ "multi_from", "override", OPT_WORD, NULL, OVERRIDE_AT(multi_from),
	    .help = "several or unparsable From fields",
	    .words = "reject quarantine evaluate",
	    .shadow = OVERRIDE_AT(multi_from_shadow) },
	{ "spf_reject", "override", OPT_WORDS, NULL, OVERRIDE_AT(spf_reject),
	    .help = "results of MAIL FROM that are refused",
	    .words = "fail softfail permerror", .empty = "none",
	    .shadow = OVERRIDE_AT(spf_reject_shadow),
	    .given = OVERRIDE_AT(spf_reject_given) },
};

#define ARCHIVE_AT(field) offsetof(struct archive_rule, field)
static const struct option archive_options[] = {
	MATCH_OPTIONS(archive_rule, "archive"),
	{ "header", "archive", OPT_HEADERS, NULL, ARCHIVE_AT(header),
	    .help = "a field that is there, or holds a text" },
	{ "verdict", "archive", OPT_VERDICTS, NULL, ARCHIVE_AT(verdict),
	    .help = "a result, such as dmarc:fail" },
	{ "larger", "archive", OPT_SIZE, NULL, ARCHIVE_AT(larger),
	    .help = "message size above", .min = 1, .max = 16 * GIB },
	{ "keep", "archive", OPT_WORD, NULL, ARCHIVE_AT(keep),
	    .help = "store it or not", .words = "no yes" },
	{ "family", "archive", OPT_FAMILY, NULL, ARCHIVE_AT(family),
	    .help = "the retention family it goes to" },
};

static const struct option retention_options[] = {
	{ "keep", "retention", OPT_SECONDS, NULL,
	    offsetof(struct retention_rule, keep_s),
	    .help = "how long mail of the family stays", .empty = "forever",
	    .min = DAY, .max = 200 * 365 * DAY },
};

#define TABLE(rows)                                                            \
	{                                                                      \
		rows, sizeof(rows) / sizeof(rows)[0]                           \
	}
_Static_assert(sizeof global / sizeof global[0] <= OPTIONS_MAX,
    "OPTIONS_MAX covers every table");

const struct option_table config_options = TABLE(global);
const struct section_type config_sections[SECTION_COUNT] = {
	[SECTION_DOMAIN] = { "domain", "DOMAIN", OPT_DOMAIN,
	    TABLE(domain_options) },
	[SECTION_OVERRIDE] = { "override", "NAME", OPT_NAME,
	    TABLE(override_options) },
	[SECTION_ARCHIVE] = { "archive", "NAME", OPT_NAME,
	    TABLE(archive_options) },
	[SECTION_RETENTION] = { "retention", "FAMILY", OPT_FAMILY,
	    TABLE(retention_options) },
};

const struct option *
option_find(struct option_table t, struct str name)
{
	for (size_t i = 0; i < t.count; i++)
		if (str_eq(str_c(t.rows[i].name), name))
			return &t.rows[i];
	return NULL;
}

#define MAX_GUESSED_NAME 40

static unsigned
smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Levenshtein's distance, any case, `-` as good as `_`; one row at a time. */
static unsigned
distance(struct str a, struct str b)
{
	unsigned row[MAX_GUESSED_NAME + 1];
	for (unsigned j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 0; i < a.len; i++) {
		unsigned corner = row[0];
		char x = a.ptr[i] == '-' ? '_' : ascii_lower(a.ptr[i]);
		row[0] = (unsigned)i + 1;
		for (size_t j = 0; j < b.len; j++) {
			unsigned above = row[j + 1];
			row[j + 1] = smallest(
			    above + 1, row[j] + 1, corner + (x != b.ptr[j]));
			corner = above;
		}
	}
	return row[b.len];
}

const char *
option_nearest(struct option_table t, struct str name)
{
	const char *best = NULL;
	unsigned best_distance = UINT32_MAX;
	if (name.len == 0 || name.len > MAX_GUESSED_NAME)
		return NULL;
	for (size_t i = 0; i < t.count; i++) {
		struct str candidate = str_c(t.rows[i].name);
		unsigned d = distance(name, candidate);
		/* a guess that shares less than half is no help */
		if (d < best_distance && d <= 1 + candidate.len / 3) {
			best = t.rows[i].name;
			best_distance = d;
		}
	}
	return best;
}

size_t
config_option_count(void)
{
	return config_options.count;
}

const char *
config_option_name(size_t i)
{
	return config_options.rows[i].name;
}

const char *
config_option_default(size_t i)
{
	return config_options.rows[i].fallback;
}

const char *
config_option_group(size_t i)
{
	return config_options.rows[i].group;
}

const char *
config_option_help(size_t i)
{
	return config_options.rows[i].help;
}

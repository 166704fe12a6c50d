/* The configuration: `name = value` lines in Postfix's manner, read into an
 * immutable, reference-counted snapshot (design §8). One option table drives
 * parser, defaults, dump and the test of hanaper.conf(5).
 *
 * Lower case names, `#` comments, continuation by a leading blank, durations
 * `10s 5m 2h 7d 2w`, sizes `50M`, lists separated by blanks or commas, values
 * to the end of the line without quoting. Sections `[domain D]`,
 * `[override NAME]`, `[archive NAME]`, `[retention FAMILY]`. Unknown names
 * (with the nearest one), duplicates, empty or bad values and conflicts are
 * errors with file:line. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"
#include "base/res.h"
#include "base/str.h"

struct strlist {
	size_t count;
	const struct str *items;
};
struct netlist {
	size_t count;
	const struct ip_net *items;
};

enum on_error { ON_ERROR_TEMPFAIL, ON_ERROR_ACCEPT };
enum run_mode { MODE_AUTO, MODE_SIGN, MODE_VERIFY };
enum dnssec_setting { DNSSEC_SETTING_AUTO, DNSSEC_SETTING_OFF, DNSSEC_SETTING_ON };
enum dmarc_action { DMARC_ACTION_OFF, DMARC_ACTION_NOTE, DMARC_ACTION_QUARANTINE,
	DMARC_ACTION_REJECT };
enum quarantine_way { QUARANTINE_HEADER, QUARANTINE_HOLD };
enum multi_from { MULTI_FROM_REJECT, MULTI_FROM_QUARANTINE, MULTI_FROM_EVALUATE };
enum dmarc_lists { DMARC_LISTS_SOFTEN, DMARC_LISTS_ENFORCE };
enum arc_mode { ARC_OFF, ARC_VERIFY, ARC_SEAL };
enum org_domain_setting { ORG_DOMAIN_TREEWALK, ORG_DOMAIN_PSL };
enum body_length_setting { BODY_LENGTH_SETTING_POLICY, BODY_LENGTH_SETTING_ACCEPT,
	BODY_LENGTH_SETTING_REFUSE };
enum already_signed { ALREADY_SIGNED_SKIP, ALREADY_SIGNED_ADD };
enum long_lines { LONG_LINES_WARN, LONG_LINES_REFOLD, LONG_LINES_TEMPFAIL };
enum archive_scope { ARCHIVE_ALL, ARCHIVE_INBOUND, ARCHIVE_OUTBOUND };
enum reinjection { REINJECTION_NO, REINJECTION_TOKEN };
enum log_setting { LOG_SETTING_SYSLOG, LOG_SETTING_STDERR };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum report_setting { REPORT_OFF, REPORT_COLLECT, REPORT_SEND };

/* `listen = unix:PATH [mode=0660] [group=postfix]` or `inet:PORT@HOST` (also
 * inet6:, IPv6 in brackets). */
struct listen_address {
	bool is_unix;
	struct str path;         /* unix */
	mode_t mode;             /* 0660 */
	struct str group;        /* "postfix"; empty: leave */
	struct str host;         /* inet */
	uint16_t port;
};

/* `sign_table` line: PATTERN d=DOMAIN [s=SELECTOR] [i=IDENTITY] [key=PATH] */
enum sign_pattern_kind { SIGN_USER, SIGN_DOMAIN, SIGN_SUBDOMAINS, SIGN_ANY };
struct sign_rule {
	enum sign_pattern_kind kind;
	struct str pattern;      /* "user@dom", "dom", "dom" (of ".dom"), "" */
	struct str domain, selector, identity, key_path; /* empty: not given */
	struct str where;        /* "file:line" */
};

/* The match lists every rule has (count 0: not named). All named ones must
 * match, one item of each is enough. Domains are in lower case: `dom` is that
 * name alone, `.dom` any name below it; recipients also `user@dom`. */
struct match_lists {
	struct strlist from_domain, ptr, list_id, sealer, recipient;
	struct netlist client;
	struct str direction;    /* "", "in", "out" */
};

struct override_rule {
	struct str name, where;
	struct str reason;       /* the section's name when none is given */
	struct match_lists match;
	/* what it overrides; -1: not given */
	int dmarc, quarantine, multi_from;
	bool dmarc_shadow, multi_from_shadow;
	bool spf_reject_given, spf_reject_shadow;
	struct strlist spf_reject;
};

struct archive_rule {
	struct str name, where;
	struct match_lists match;
	struct strlist header;   /* "Name" or "Name:text", any case */
	struct strlist verdict;  /* "dmarc:fail": method and result word */
	uint64_t larger;         /* bytes; 0: not named */
	int keep;                /* -1 not given, 0 no, 1 yes */
	struct str family;
};
struct retention_rule {
	struct str family, where;
	int64_t keep_s;          /* RETENTION_FOREVER: never dropped */
};
#define RETENTION_FOREVER INT64_MAX
/* `[domain D]`: values that differ for mail of one signing domain. */
struct domain_rule {
	struct str domain, where;
	struct strlist sign_headers, oversign; /* count 0: not given */
	int64_t signature_lifetime_s;          /* -1: not given */
	int require_published_key;             /* -1: not given */
	struct str canonicalization;           /* empty: not given */
};

struct config {
	/* process */
	struct listen_address listen;
	struct str user, state_dir;
	uint64_t max_sessions, max_message_size, max_header_bytes;
	enum on_error on_internal_error;
	enum log_setting log;
	enum log_format log_format;
	struct str metrics;      /* "off" is empty; else "inet:PORT@HOST" */
	bool shadow;
	/* who is ours */
	struct str authserv_id;  /* empty: the MTA's {j} */
	struct strlist strip_authserv_ids;
	struct netlist trusted_networks, trusted_relays;
	bool trust_authenticated;
	struct strlist trusted_daemons;
	enum reinjection reinjection;
	enum run_mode mode;
	/* dns */
	struct strlist nameservers;
	int64_t dns_timeout_us, dns_budget_us;
	enum dnssec_setting dnssec;
	struct str zone_file;
	enum on_error on_dns_error;
	/* sign */
	struct str key_dir, sign_table;
	size_t sign_rule_count;
	const struct sign_rule *sign_rules; /* of sign_table, most specific first */
	struct strlist sign_headers, oversign; /* count 0: the engine's default */
	bool header_relaxed, body_relaxed;
	int64_t signature_lifetime_s;
	enum already_signed already_signed;
	bool require_login_match, sign_subdomains, require_published_key;
	enum long_lines long_lines;
	/* verify */
	uint64_t max_signatures, min_rsa_bits;
	enum body_length_setting body_length;
	int64_t clock_skew_s;
	struct strlist required_signed_headers;
	/* spf */
	bool spf, spf_helo, received_spf;
	struct strlist spf_reject; /* of "fail", "softfail", "permerror" */
	bool spf_reject_shadow;
	uint64_t void_lookups;
	/* dmarc */
	enum dmarc_action dmarc;
	bool dmarc_shadow;
	enum quarantine_way quarantine;
	enum multi_from multi_from;
	bool multi_from_shadow;
	enum org_domain_setting org_domain;
	enum dmarc_lists dmarc_lists;
	struct str reject_text;  /* {from} {spf} {dkim} {id} stand for values */
	/* arc */
	enum arc_mode arc;
	struct str arc_domain;
	struct strlist arc_seal, trusted_sealers;
	/* results */
	bool outbound_results;
	/* report */
	enum report_setting report;
	struct str report_from, report_org;
	struct strlist report_exclude;
	uint64_t report_hour;
	/* archive */
	bool archive;
	struct str archive_dir;
	enum archive_scope archive_scope;
	enum on_error archive_on_error;
	bool archive_rejected;
	struct str archive_roll; /* "month" */
	uint64_t archive_roll_size, archive_reserve;
	struct str archive_keys;
	int64_t archive_checkpoint_s;
	/* sections */
	size_t override_count, archive_rule_count, retention_count, domain_count;
	const struct override_rule *overrides;
	const struct archive_rule *archive_rules;
	const struct retention_rule *retention;
	const struct domain_rule *domains;

	struct str path;         /* the file it was read from */
};

#define CONFIG_DEFAULT_PATH "/etc/hanaper/hanaper.conf"
#define CONFIG_MAX_FILE     ((size_t)16 << 20)

/* Read and check. `err` gets the first problem: "FILE:LINE: …".
 * RES_IO: unreadable; RES_SYNTAX/RES_INVALID: bad content. */
HN_CHECK enum res config_load(
    const char *path, struct err *err, struct config **out);
/* From memory; `label` stands for the file in errors. sign_table is still
 * read from its file. */
HN_CHECK enum res config_from_text(struct str text, const char *label,
    struct err *err, struct config **out);
/* All defaults, nothing read. */
HN_CHECK enum res config_default(struct config **out);

struct config_setting {
	struct str name, value;
};
/* The same with settings that stand in front of the file (`-o NAME=VALUE`);
 * `path` NULL: no file. Errors name "-o NAME". */
HN_CHECK enum res config_load_with(const char *path,
    const struct config_setting *settings, size_t count, struct err *err,
    struct config **out);

struct config *config_ref(struct config *c);
void config_unref(struct config **c);

/* Every effective value as `name = value` lines, in table order, then the
 * sections; reading it back gives the same configuration. The lines of the
 * sign_table are not part of it. */
void config_dump(const struct config *c, struct buf *out);

/* The option table's names, for tests and the man page check. */
size_t config_option_count(void);
const char *config_option_name(size_t i);
const char *config_option_default(size_t i);
const char *config_option_group(size_t i);
const char *config_option_help(size_t i);

#endif

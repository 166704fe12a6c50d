/* What happens to an inbound message: verdicts, facts and configuration in,
 * a decision out. A pure function (design §5): no clock, no DNS, no log, the
 * same answer every time, so that tests are tables and `whatif` can ask again
 * years later.
 *
 * For each recipient the settings are those of the file, replaced option by
 * option by the first `[override]` section that matches and sets it. Each
 * situation then asks for an action:
 *
 *   From    several From fields, or over DMARC_MAX_FROM_DOMAINS author
 *           domains: `multi_from`. No author domain at all (unparsable, none)
 *           is a permerror that nobody's policy covers: quarantined where
 *           `dmarc` says quarantine or reject, else delivered
 *   SPF     MAIL FROM result in `spf_reject`, unless DMARC passes or the
 *           newest seal of a passing chain is a trusted sealer's
 *   DMARC   fail: what the owner asks for, at most `dmarc`; a trusted sealer
 *           delivers it, a mailing list (dmarc_lists = soften) is never
 *           rejected but quarantined
 *   DNS     a temporary error of a result that these rest on: `on_dns_error`
 *
 * the strongest counts for the recipient, the mildest recipient for the
 * message (a milter has one reply for all). What `shadow` holds back is told
 * apart and not applied. Outbound and already judged mail is delivered. */
#ifndef FLOW_POLICY_H
#define FLOW_POLICY_H

#include "auth/arc_verify.h"
#include "auth/dkim_verify.h"
#include "auth/dmarc.h"
#include "auth/spf.h"
#include "config/config.h"
#include "flow/match.h"
#include "mail/address.h"

/* From the mildest to the strongest. */
enum policy_action {
	POLICY_DELIVER,
	POLICY_MARK,     /* quarantine = header */
	POLICY_HOLD,     /* quarantine = hold */
	POLICY_TEMPFAIL,
	POLICY_REJECT,
};
/* "deliver", "quarantine", "hold", "tempfail", "reject". */
const char *policy_action_word(enum policy_action a);

/* Why an action was asked for. */
enum policy_cause {
	POLICY_CAUSE_NONE,
	POLICY_CAUSE_FROM,
	POLICY_CAUSE_SPF,
	POLICY_CAUSE_DMARC,
	POLICY_CAUSE_DNS,
};
const char *policy_cause_word(enum policy_cause c); /* "from", "spf", … */

struct policy_facts {
	bool judged;           /* inbound and not judged before; else deliver */
	const struct str *recipients; /* addresses without brackets */
	size_t recipient_count;       /* 0: judged once, as for nobody */
	struct match_facts match;
	bool mailing_list;     /* a List-Id or List-Post field is there */
	enum from_state from_state;
	size_t from_domain_count;
	const struct dmarc_result *dmarc; /* NULL: not evaluated */
	const struct spf_result *spf;     /* of MAIL FROM; NULL: not checked */
	const struct dkim_result *dkim;
	size_t dkim_count;
	const struct arc_result *arc;     /* NULL: not evaluated */
	struct str id;         /* decision id, told in the reject text */
};

/* Longest reply text; the SMTP line stays below 512 bytes. */
#define POLICY_MAX_TEXT 400

struct policy_decision {
	enum policy_action action;   /* to be done */
	enum policy_cause cause;     /* of `action` */
	/* POLICY_TEMPFAIL and POLICY_REJECT: the reply. */
	const char *code, *enhanced; /* "550", "5.7.26"; else NULL */
	struct str text;             /* printable ASCII without '%' */
	/* What the file's own settings ask for, before exemptions, overrides
	 * and shadow. */
	enum policy_action asked;
	enum policy_cause asked_cause;
	/* Held back by `shadow`; POLICY_DELIVER: nothing was. */
	enum policy_action shadowed;
	/* Why a failing message got less than its author's domain asks for
	 * (or refused mail less than the file says), in the words of RFC
	 * 9990's PolicyOverrideType: "trusted_forwarder", "mailing_list",
	 * "local_policy", "policy_test_mode", "other"; NULL when nothing was
	 * overridden. Text for log and reports beside it. */
	const char *override_type;
	struct str override_reason;
	struct str override_name; /* of the section; empty: it was none */
	/* Recipients had different rules: the mildest one was applied. */
	bool recipients_differ;
	/* What DMARC alone came to, for the report's policy_evaluated. */
	enum dmarc_policy dmarc_disposition;
};

/* Does any setting look at DMARC, the file's or an override's? */
bool policy_wants_dmarc(const struct config *c);

/* RES_NOMEM only. Texts live in the arena or are the configuration's. */
HN_CHECK enum res policy_decide(struct arena *a, const struct config *c,
    const struct policy_facts *f, struct policy_decision *out);

#endif

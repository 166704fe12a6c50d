#include "flow/policy.h"

#include "flow/policy_text.h"

const char *
policy_action_word(enum policy_action a)
{
	switch (a) {
	case POLICY_DELIVER:
		return "deliver";
	case POLICY_MARK:
		return "quarantine";
	case POLICY_HOLD:
		return "hold";
	case POLICY_TEMPFAIL:
		return "tempfail";
	case POLICY_REJECT:
		return "reject";
	}
	return "deliver";
}

const char *
policy_cause_word(enum policy_cause c)
{
	switch (c) {
	case POLICY_CAUSE_NONE:
		return "none";
	case POLICY_CAUSE_FROM:
		return "from";
	case POLICY_CAUSE_SPF:
		return "spf";
	case POLICY_CAUSE_DMARC:
		return "dmarc";
	case POLICY_CAUSE_DNS:
		return "dns";
	}
	return "none";
}

bool
policy_wants_dmarc(const struct config *c)
{
	for (size_t i = 0; i < c->override_count; i++)
		if (c->overrides[i].dmarc > DMARC_ACTION_OFF)
			return true;
	return c->dmarc != DMARC_ACTION_OFF;
}

/* --- settings of one recipient ------------------------------------------- */

/* The file's settings with the overrides that hold; beside each option the
 * section that set it, or NULL. */
struct settings {
	enum dmarc_action dmarc;
	enum quarantine_way quarantine;
	enum multi_from multi_from;
	const struct strlist *spf_reject;
	bool dmarc_shadow, from_shadow, spf_shadow;
	const struct override_rule *dmarc_rule, *from_rule, *spf_rule,
	    *quarantine_rule;
};

static struct settings
file_settings(const struct config *c)
{
	return (struct settings){
		.dmarc = c->dmarc,
		.quarantine = c->quarantine,
		.multi_from = c->multi_from,
		.spf_reject = &c->spf_reject,
		.dmarc_shadow = c->shadow || c->dmarc_shadow,
		.from_shadow = c->shadow || c->multi_from_shadow,
		.spf_shadow = c->shadow || c->spf_reject_shadow,
	};
}

/* Option by option, the first section that sets it wins. */
static void
apply_rule(
    struct settings *s, const struct config *c, const struct override_rule *o)
{
	if (o->dmarc >= 0 && s->dmarc_rule == NULL) {
		s->dmarc = (enum dmarc_action)o->dmarc;
		s->dmarc_shadow = c->shadow || o->dmarc_shadow;
		s->dmarc_rule = o;
	}
	if (o->multi_from >= 0 && s->from_rule == NULL) {
		s->multi_from = (enum multi_from)o->multi_from;
		s->from_shadow = c->shadow || o->multi_from_shadow;
		s->from_rule = o;
	}
	if (o->spf_reject_given && s->spf_rule == NULL) {
		s->spf_reject = &o->spf_reject;
		s->spf_shadow = c->shadow || o->spf_reject_shadow;
		s->spf_rule = o;
	}
	if (o->quarantine >= 0 && s->quarantine_rule == NULL) {
		s->quarantine = (enum quarantine_way)o->quarantine;
		s->quarantine_rule = o;
	}
}

/* --- what each situation asks for ---------------------------------------- */

struct request {
	enum policy_action action; /* after exemptions */
	enum policy_action asked;  /* before them */
	enum policy_cause cause;
	bool shadow;
	const char *override_type, *override_reason;
};

static enum policy_action
quarantine_action(const struct settings *s)
{
	return s->quarantine == QUARANTINE_HOLD ? POLICY_HOLD : POLICY_MARK;
}

/* `sealer` is only set for a passing chain. */
static bool
is_trusted_sealer(const struct config *c, const struct policy_facts *f)
{
	for (size_t i = 0; i < c->trusted_sealers.count; i++)
		if (match_domain(c->trusted_sealers.items[i], f->match.sealer))
			return true;
	return false;
}

static void
exempt(struct request *r, enum policy_action to, const char *type,
    const char *reason)
{
	if (r->action <= to)
		return;
	r->action = to;
	r->override_type = type;
	r->override_reason = reason;
}

static enum policy_action
from_action(const struct settings *s, const struct policy_facts *f)
{
	switch (f->from_state) {
	case FROM_OK:
		return POLICY_DELIVER;
	case FROM_MANY_DOMAINS:
		if (f->from_domain_count <= DMARC_MAX_FROM_DOMAINS)
			return POLICY_DELIVER; /* judged as the worst of them */
		break;
	case FROM_MANY_FIELDS:
		break;
	case FROM_MISSING:
	case FROM_NO_DOMAIN:
	case FROM_UNPARSABLE:
		return s->dmarc >= DMARC_ACTION_QUARANTINE
		    ? quarantine_action(s)
		    : POLICY_DELIVER;
	}
	switch (s->multi_from) {
	case MULTI_FROM_REJECT:
		return POLICY_REJECT;
	case MULTI_FROM_QUARANTINE:
		return quarantine_action(s);
	case MULTI_FROM_EVALUATE:
		break;
	}
	return POLICY_DELIVER;
}

static struct request
ask_from(const struct settings *s, const struct policy_facts *f)
{
	enum policy_action action = from_action(s, f);
	/* without an author domain it is `dmarc` that asks */
	bool many = f->from_state == FROM_MANY_FIELDS ||
	    f->from_state == FROM_MANY_DOMAINS;
	return (struct request){ .action = action,
		.asked = action,
		.cause = POLICY_CAUSE_FROM,
		.shadow = many ? s->from_shadow : s->dmarc_shadow };
}

static bool
is_refused_spf(const struct settings *s, const struct policy_facts *f)
{
	struct str word = str_c(auth_result_word(f->spf->result));
	for (size_t i = 0; i < s->spf_reject->count; i++)
		if (str_eq(s->spf_reject->items[i], word))
			return true;
	return false;
}

static struct request
ask_spf(const struct settings *s, const struct config *c,
    const struct policy_facts *f)
{
	struct request r = { .cause = POLICY_CAUSE_SPF,
		.shadow = s->spf_shadow };
	if (f->spf == NULL || !is_refused_spf(s, f))
		return r;
	r.action = r.asked = POLICY_REJECT;
	if (f->dmarc != NULL && f->dmarc->result == AUTH_PASS)
		exempt(&r, POLICY_DELIVER, "local_policy", "dmarc passes");
	if (is_trusted_sealer(c, f))
		exempt(&r, POLICY_DELIVER, "trusted_forwarder",
		    "sealed by a trusted sealer");
	return r;
}

/* What the author's domain asks for, in our actions. */
static enum policy_action
owner_action(const struct settings *s, const struct dmarc_result *d)
{
	switch (d->policy) {
	case DMARC_NONE:
		return POLICY_DELIVER;
	case DMARC_QUARANTINE:
		return quarantine_action(s);
	case DMARC_REJECT:
		return POLICY_REJECT;
	}
	return POLICY_DELIVER;
}

static enum policy_action
dmarc_ceiling(const struct settings *s)
{
	switch (s->dmarc) {
	case DMARC_ACTION_OFF:
	case DMARC_ACTION_NOTE:
		return POLICY_DELIVER;
	case DMARC_ACTION_QUARANTINE:
		return quarantine_action(s);
	case DMARC_ACTION_REJECT:
		break;
	}
	return POLICY_REJECT;
}

/* Whether a trusted sealer stands for the message could not be told. */
static bool
is_sealer_unknown(const struct config *c, const struct policy_facts *f)
{
	return c->trusted_sealers.count != 0 && f->arc != NULL &&
	    f->arc->temporary;
}

static enum policy_action
dns_action(const struct config *c)
{
	return c->on_dns_error == ON_ERROR_TEMPFAIL ? POLICY_TEMPFAIL
						    : POLICY_DELIVER;
}

static struct request
ask_dmarc(const struct settings *s, const struct config *c,
    const struct policy_facts *f)
{
	struct request r = { .cause = POLICY_CAUSE_DMARC,
		.shadow = s->dmarc_shadow };
	if (f->dmarc == NULL || f->dmarc->result != AUTH_FAIL)
		return r;
	if (f->dmarc->record.testing &&
	    (f->dmarc->record.p != DMARC_NONE ||
		f->dmarc->policy != DMARC_NONE)) {
		r.override_type = "policy_test_mode";
		r.override_reason = "t=y";
	}
	r.action = owner_action(s, f->dmarc);
	exempt(&r, dmarc_ceiling(s), "local_policy",
	    s->dmarc == DMARC_ACTION_QUARANTINE ? "dmarc = quarantine"
		: s->dmarc == DMARC_ACTION_NOTE ? "dmarc = note"
						: "dmarc = off");
	r.asked = r.action;
	if (is_trusted_sealer(c, f))
		exempt(&r, POLICY_DELIVER, "trusted_forwarder",
		    "sealed by a trusted sealer");
	else if (is_sealer_unknown(c, f) && r.action > dns_action(c)) {
		exempt(&r, dns_action(c), "other",
		    "the ARC chain could not be checked now");
		r.cause = POLICY_CAUSE_DNS;
	}
	if (f->mailing_list && c->dmarc_lists == DMARC_LISTS_SOFTEN &&
	    r.action == POLICY_REJECT)
		exempt(&r, quarantine_action(s), "mailing_list",
		    "sent by a mailing list");
	return r;
}

/* Only what would be acted on, or is told to others, is decisive. */
static struct request
ask_dns(const struct settings *s, const struct config *c,
    const struct policy_facts *f)
{
	bool dmarc = f->dmarc != NULL && s->dmarc != DMARC_ACTION_OFF &&
	    f->dmarc->result == AUTH_TEMPERROR;
	bool spf = f->spf != NULL && s->spf_reject->count != 0 &&
	    f->spf->result == AUTH_TEMPERROR &&
	    (f->dmarc == NULL || f->dmarc->result != AUTH_PASS);
	enum policy_action action =
	    dmarc || spf ? dns_action(c) : POLICY_DELIVER;
	return (struct request){ .action = action,
		.asked = action,
		.cause = POLICY_CAUSE_DNS,
		.shadow = c->shadow };
}

/* --- one recipient ------------------------------------------------------- */

struct outcome {
	enum policy_action action, asked, shadowed;
	enum policy_cause cause, asked_cause;
	enum dmarc_policy dmarc_disposition;
	const char *override_type;
	struct str override_reason, override_name;
};

static enum dmarc_policy
as_disposition(enum policy_action a)
{
	return a == POLICY_REJECT                  ? DMARC_REJECT
	    : a == POLICY_MARK || a == POLICY_HOLD ? DMARC_QUARANTINE
						   : DMARC_NONE;
}

static void
count_request(struct outcome *o, const struct request *r)
{
	enum policy_action done = r->shadow ? POLICY_DELIVER : r->action;
	if (r->asked > o->asked) {
		o->asked = r->asked;
		o->asked_cause = r->cause;
	}
	if (done > o->action) {
		o->action = done;
		o->cause = r->cause;
	}
	if (r->shadow && r->action > o->shadowed)
		o->shadowed = r->action;
	if (r->override_type != NULL && o->override_type == NULL) {
		o->override_type = r->override_type;
		o->override_reason = str_c(r->override_reason);
	}
	if (r->cause == POLICY_CAUSE_DMARC)
		o->dmarc_disposition = as_disposition(done);
}

static struct outcome
decide_one(const struct settings *s, const struct config *c,
    const struct policy_facts *f)
{
	struct outcome o = { .action = POLICY_DELIVER };
	/* DMARC first: its override is the one that reports tell */
	const struct request requests[] = { ask_dmarc(s, c, f), ask_from(s, f),
		ask_spf(s, c, f), ask_dns(s, c, f) };
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		count_request(&o, &requests[i]);
	if (o.shadowed <= o.action)
		o.shadowed = POLICY_DELIVER;
	if (o.shadowed != POLICY_DELIVER && o.override_type == NULL) {
		o.override_type = "local_policy";
		o.override_reason = STR("shadow");
	}
	return o;
}

static const struct override_rule *
rule_for(const struct settings *s, enum policy_cause cause)
{
	switch (cause) {
	case POLICY_CAUSE_FROM:
		return s->from_rule != NULL ? s->from_rule : s->dmarc_rule;
	case POLICY_CAUSE_SPF:
		return s->spf_rule;
	case POLICY_CAUSE_DMARC:
		return s->dmarc_rule != NULL ? s->dmarc_rule
					     : s->quarantine_rule;
	case POLICY_CAUSE_DNS:
		return s->dmarc_rule != NULL ? s->dmarc_rule : s->spf_rule;
	case POLICY_CAUSE_NONE:
		break;
	}
	return NULL;
}

static const char *
rule_type(const struct override_rule *o)
{
	if (o->match.list_id.count != 0)
		return "mailing_list";
	if (o->match.client.count != 0 || o->match.ptr.count != 0 ||
	    o->match.sealer.count != 0)
		return "trusted_forwarder";
	return "local_policy";
}

/* A section that made the outcome another one is told as the reason. */
static void
name_override(
    struct outcome *o, const struct outcome *without, const struct settings *s)
{
	const struct override_rule *rule = NULL;
	if (o->action < without->action)
		rule = rule_for(s, without->cause);
	else if (o->action > without->action)
		rule = rule_for(s, o->cause);
	if (rule == NULL)
		return;
	o->override_type = rule_type(rule);
	o->override_reason = rule->reason;
	o->override_name = rule->name;
}

/* --- the message --------------------------------------------------------- */

struct rules {
	const struct override_rule **items; /* those that match the message */
	size_t count;
	bool by_recipient;
};

static enum res
collect_rules(struct arena *a, const struct config *c,
    const struct policy_facts *f, struct rules *out)
{
	out->items = arena_array(a, c->override_count, sizeof *out->items);
	if (out->items == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < c->override_count; i++) {
		const struct override_rule *o = &c->overrides[i];
		if (!match_message(&o->match, &f->match))
			continue;
		out->items[out->count++] = o;
		out->by_recipient |= o->match.recipient.count != 0;
	}
	return RES_OK;
}

/* `recipient` NULL: as for nobody, sections that name recipients do not
 * hold. */
static struct outcome
decide_for(const struct config *c, const struct policy_facts *f,
    const struct rules *rules, const struct outcome *without,
    const struct str *recipient)
{
	struct settings s = file_settings(c);
	for (size_t i = 0; i < rules->count; i++) {
		const struct override_rule *o = rules->items[i];
		if (o->match.recipient.count == 0 ||
		    (recipient != NULL &&
			match_recipient(&o->match, *recipient)))
			apply_rule(&s, c, o);
	}
	struct outcome o = decide_one(&s, c, f);
	name_override(&o, without, &s);
	return o;
}

static struct outcome
decide_mildest(const struct config *c, const struct policy_facts *f,
    const struct rules *rules, const struct outcome *without, bool *out_differ)
{
	bool each = rules->by_recipient && f->recipient_count != 0;
	struct outcome mildest = decide_for(c, f, rules, without,
	    f->recipient_count != 0 ? &f->recipients[0] : NULL);
	for (size_t i = 1; each && i < f->recipient_count; i++) {
		struct outcome o =
		    decide_for(c, f, rules, without, &f->recipients[i]);
		*out_differ |= o.action != mildest.action;
		if (o.action < mildest.action)
			mildest = o;
	}
	return mildest;
}

enum res
policy_decide(struct arena *a, const struct config *c,
    const struct policy_facts *f, struct policy_decision *out)
{
	struct policy_decision d = { .action = POLICY_DELIVER };
	struct rules rules = { .count = 0 };
	if (!f->judged) {
		*out = d;
		return RES_OK;
	}
	enum res r = collect_rules(a, c, f, &rules);
	if (r != RES_OK)
		return r;
	struct settings plain = file_settings(c);
	struct outcome without = decide_one(&plain, c, f);
	struct outcome o =
	    decide_mildest(c, f, &rules, &without, &d.recipients_differ);
	d.action = o.action;
	d.cause = o.cause;
	d.asked = without.asked;
	d.asked_cause = without.asked_cause;
	d.shadowed = o.shadowed;
	d.override_type = o.override_type;
	d.override_reason = o.override_reason;
	d.override_name = o.override_name;
	d.dmarc_disposition = o.dmarc_disposition;
	if (d.recipients_differ && d.override_type == NULL) {
		d.override_type = "local_policy";
		d.override_reason = STR("mildest of several recipients");
	}
	r = policy_reply(a, c, f, &d);
	if (r == RES_OK)
		*out = d;
	return r;
}

/* Which mail is archived, and in which family: archive_scope and the
 * `[archive]` sections. Whoever reads hanaper.conf must be able to tell what
 * becomes of a message, and `hanaper explain` says it in the same words. */
#include "flow/state.h"
#include "mail/encoded.h"

#define MAX_FIELD_TEXT ((size_t)4 << 20) /* a decoded field that is looked at */
#define FAMILY_MAIL    "mail"

static bool
in_scope(const struct message *m)
{
	switch (m->config->archive_scope) {
	case ARCHIVE_ALL:
		return true;
	case ARCHIVE_INBOUND:
		return m->direction == DIRECTION_IN;
	case ARCHIVE_OUTBOUND:
		return m->direction == DIRECTION_OUT;
	}
	return true;
}

bool
keep_wanted(const struct message *m)
{
	const struct config *c = m->config;
	bool wanted = in_scope(m);
	if (m->session->env->store == NULL || !c->archive || m->seen)
		return false; /* the first pass kept what was seen */
	/* rules look at size and verdicts too: known at end of message */
	for (size_t i = 0; i < c->archive_rule_count; i++)
		wanted = wanted || c->archive_rules[i].keep != 0;
	return wanted;
}

/* As a reader sees it: unfolded, encoded words decoded. What cannot be decoded
 * now holds nothing, so that a rule not to keep does not match. */
static bool
field_holds(struct message *m, struct str value, struct str text)
{
	struct buf plain;
	buf_init(&plain, MAX_FIELD_TEXT);
	encoded_decode(header_unfold(m->arena, value), &plain);
	bool holds = plain.error == RES_OK &&
	    str_case_find(buf_str(&plain), text) != SIZE_MAX;
	buf_done(&plain);
	return holds;
}

/* "Name" is there, or "Name:text" has the text in one of its fields. */
static bool
header_matches(struct message *m, struct str pattern)
{
	size_t colon = str_chr(pattern, ':');
	struct str name = str_sub(pattern, 0, colon);
	struct str text =
	    colon != SIZE_MAX ? str_skip(pattern, colon + 1) : STR_EMPTY;
	for (const struct field *f = header_find(m->header, name); f != NULL;
	     f = header_next_same(m->header, f))
		if (text.len == 0 || field_holds(m, f->value, text))
			return true;
	return false;
}

static bool
is_verdict(struct str pattern, const char *method, enum auth_result result)
{
	size_t colon = str_chr(pattern, ':');
	return str_eq(str_sub(pattern, 0, colon), str_c(method)) &&
	    str_eq(str_skip(pattern, colon + 1),
		str_c(auth_result_word(result)));
}

/* The methods mean what they mean in a search (add_verdicts in keep.c). */
static bool
verdict_matches(struct message *m, struct str pattern)
{
	const struct decision *d = &m->decision;
	for (size_t i = 0; i < d->dkim_count; i++)
		if (is_verdict(pattern, "dkim", d->dkim[i].result))
			return true;
	if (m->dkim_verify != NULL && d->dkim_count == 0 &&
	    is_verdict(pattern, "dkim", AUTH_NONE))
		return true;
	for (size_t i = 0; i < d->spf_count; i++)
		if (is_verdict(pattern,
			d->spf[i].identity == SPF_HELO ? "spf.helo" : "spf",
			d->spf[i].result))
			return true;
	return (d->iprev_done &&
		   is_verdict(pattern, "iprev", d->iprev.result)) ||
	    (d->arc_done && is_verdict(pattern, "arc", d->arc.result)) ||
	    (d->dmarc_done && is_verdict(pattern, "dmarc", d->dmarc.result));
}

static bool
any_of(struct message *m, const struct strlist *list,
    bool (*matches)(struct message *, struct str))
{
	for (size_t i = 0; i < list->count; i++)
		if (matches(m, list->items[i]))
			return true;
	return list->count == 0;
}

/* One copy is kept for all recipients. So a rule that keeps nothing speaks
 * only for mail that has no other recipient: naming one whose mail is not
 * kept must not make the others' mail vanish. */
static bool
recipients_match(const struct archive_rule *r, const struct message *m)
{
	size_t hits = 0;
	for (size_t i = 0; i < m->rcpt_count; i++)
		hits += match_recipient(&r->match, m->rcpts[i]);
	if (r->match.recipient.count == 0)
		return true;
	return r->keep == 0 ? hits != 0 && hits == m->rcpt_count : hits != 0;
}

static const struct archive_rule *
find_rule(struct message *m)
{
	const struct config *c = m->config;
	struct match_facts facts;
	judge_match_facts(m, &facts);
	for (size_t i = 0; i < c->archive_rule_count; i++) {
		const struct archive_rule *r = &c->archive_rules[i];
		if (m->bytes >= r->larger && match_message(&r->match, &facts) &&
		    recipients_match(r, m) &&
		    any_of(m, &r->header, header_matches) &&
		    any_of(m, &r->verdict, verdict_matches))
			return r;
	}
	return NULL;
}

/* The first section that matches decides; without one, archive_scope. */
static void
choose_by_rules(struct message *m, struct keep_choice *k)
{
	static const char *const scopes[] = { [ARCHIVE_ALL] = "all",
		[ARCHIVE_INBOUND] = "inbound",
		[ARCHIVE_OUTBOUND] = "outbound" };
	const struct archive_rule *r = find_rule(m);
	if (r == NULL) {
		k->kept = in_scope(m);
		k->why = arena_printf(m->arena, "archive_scope = %s",
		    scopes[m->config->archive_scope]);
		return;
	}
	k->kept = r->keep != 0;
	if (r->family.len != 0)
		k->family = r->family;
	k->why = arena_printf(m->arena, "[archive %.*s]%s", STR_ARG(r->name),
	    k->kept ? "" : " has keep = no");
}

void
keep_choose(struct message *m)
{
	struct keep_choice *k = &m->keep;
	*k = (struct keep_choice){ .family = STR(FAMILY_MAIL) };
	if (!m->config->archive)
		k->why = STR("archive = off");
	else if (m->seen)
		k->why = STR("it came back with a token, and the first pass "
			     "decided");
	else if (m->decision.reply != REPLY_ACCEPT &&
	    !m->config->archive_rejected)
		k->why = STR("it was not accepted, and archive_rejected = no");
	else
		choose_by_rules(m, k);
}

/* From verdicts to policy's questions, and from its answer to a reply. */
#include "flow/state.h"

/* What stands between the last "<" and ">" of List-Id (RFC 2919), or all. */
static struct str
list_id(struct message *m)
{
	const struct field *f = header_find(m->header, STR("List-Id"));
	if (f == NULL)
		return STR_EMPTY;
	struct str value = header_unfold(m->arena, f->value);
	size_t open = str_rchr(value, '<'), close = str_rchr(value, '>');
	if (open != SIZE_MAX && close != SIZE_MAX && open < close)
		value = str_sub(value, open + 1, close - open - 1);
	return str_trim(value);
}

void
judge_match_facts(struct message *m, struct match_facts *out)
{
	const struct decision *d = &m->decision;
	*out = (struct match_facts){
		.from_domains = m->from.domains,
		.from_count = m->from.count,
		.client = m->client,
		.list_id = list_id(m),
		.outbound = m->direction == DIRECTION_OUT,
	};
	/* the MTA's name is that of the relay, not of the client before it */
	if (ip_eq(&m->client, &m->session->facts.client))
		out->ptr = m->session->facts.client_name;
	if (d->arc_done && d->arc.result == AUTH_PASS && d->arc.sets != NULL)
		out->sealer = d->arc.sets[d->arc.instances - 1].d;
}

static void
to_reply(struct message *m)
{
	const struct policy_decision *p = &m->policy;
	struct decision *d = &m->decision;
	switch (p->action) {
	case POLICY_DELIVER:
	case POLICY_MARK:
		return;
	case POLICY_HOLD:
		d->quarantine = policy_cause_word(p->cause);
		return;
	case POLICY_TEMPFAIL:
	case POLICY_REJECT:
		break;
	}
	d->reply = p->action == POLICY_REJECT ? REPLY_REJECT : REPLY_TEMPFAIL;
	d->code = p->code;
	d->enhanced = p->enhanced;
	d->text = arena_cstr(m->arena, p->text);
	if (d->text == NULL)
		d->text = "Refused by policy";
}

void
judge_message(struct message *m)
{
	const struct decision *d = &m->decision;
	struct policy_facts f = {
		.judged = m->direction == DIRECTION_IN,
		.recipients = m->rcpts,
		.recipient_count = m->rcpt_count,
		.mailing_list =
		    header_find(m->header, STR("List-Id")) != NULL ||
		    header_find(m->header, STR("List-Post")) != NULL,
		.from_state = m->from.state,
		.from_domain_count = m->from.count,
		.dmarc = d->dmarc_done ? &d->dmarc : NULL,
		.dkim = d->dkim,
		.dkim_count = d->dkim_count,
		.arc = d->arc_done ? &d->arc : NULL,
		.id = m->id,
	};
	judge_match_facts(m, &f.match);
	for (size_t i = 0; i < d->spf_count; i++)
		if (d->spf[i].identity == SPF_MAILFROM)
			f.spf = &d->spf[i];
	if (policy_decide(m->arena, m->config, &f, &m->policy) != RES_OK)
		message_internal(m, "Out of memory");
	else
		to_reply(m);
}

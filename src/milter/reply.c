#include "milter/reply.h"

#include "base/log.h"

/* libmilter's prototypes lack const; it copies and changes nothing. */
static char *
writable(const char *text)
{
	return (char *)(uintptr_t)text;
}

static bool
send_edit(SMFICTX *ctx, const struct flow_edit *e, bool leading_space)
{
	const char *value = e->value;
	if (value != NULL && !leading_space && value[0] == ' ')
		value++;
	switch (e->kind) {
	case EDIT_KIND_INSERT:
		return smfi_insheader(ctx, (int)e->index, writable(e->name),
			   writable(value)) == MI_SUCCESS;
	case EDIT_KIND_CHANGE:
		return smfi_chgheader(ctx, writable(e->name), (int)e->index,
			   writable(value)) == MI_SUCCESS;
	case EDIT_KIND_DELETE:
		return smfi_chgheader(ctx, writable(e->name), (int)e->index,
			   NULL) == MI_SUCCESS;
	}
	return false;
}

static bool
send_changes(SMFICTX *ctx, const struct decision *d, bool leading_space)
{
	for (size_t i = 0; i < d->edit_count; i++)
		if (!send_edit(ctx, &d->edits[i], leading_space)) {
			log_error("the MTA does not take our change of the "
				  "header field %s", d->edits[i].name);
			return false;
		}
	if (d->quarantine != NULL &&
	    smfi_quarantine(ctx, writable(d->quarantine)) != MI_SUCCESS) {
		log_error("the MTA does not let us hold a message");
		return false;
	}
	return true;
}

static sfsistat
send_reply(SMFICTX *ctx, const char *code, const char *enhanced,
    const char *text, sfsistat otherwise)
{
	if (code != NULL &&
	    smfi_setreply(ctx, writable(code), writable(enhanced),
		writable(text)) != MI_SUCCESS)
		log_warning("the MTA does not take our reply %s", code);
	return otherwise;
}

sfsistat
reply_tempfail(
    SMFICTX *ctx, const char *code, const char *enhanced, const char *text)
{
	return send_reply(ctx, code, enhanced, text, SMFIS_TEMPFAIL);
}

sfsistat
reply_reject(
    SMFICTX *ctx, const char *code, const char *enhanced, const char *text)
{
	return send_reply(ctx, code, enhanced, text, SMFIS_REJECT);
}

sfsistat
reply_decision(SMFICTX *ctx, const struct decision *d, bool leading_space)
{
	switch (d->reply) {
	case REPLY_ACCEPT:
		if (send_changes(ctx, d, leading_space))
			return SMFIS_CONTINUE;
		return reply_tempfail(ctx, "451", "4.3.0",
		    "The mail filter's changes were not taken");
	case REPLY_TEMPFAIL:
		return send_reply(
		    ctx, d->code, d->enhanced, d->text, SMFIS_TEMPFAIL);
	case REPLY_REJECT:
		return send_reply(
		    ctx, d->code, d->enhanced, d->text, SMFIS_REJECT);
	}
	return SMFIS_TEMPFAIL;
}

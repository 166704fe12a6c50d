#include "milter/reply.h"

#include "base/log.h"

static void
add_edit(struct buf *out, const struct flow_edit *e, bool leading_space)
{
	struct str value = str_c(e->value);
	if (!leading_space && str_starts(value, STR(" ")))
		value = str_skip(value, 1);
	size_t mark = wire_open(out,
	    e->kind == EDIT_KIND_INSERT ? REPLY_CODE_INSERT :
					  REPLY_CODE_CHANGE);
	wire_add32(out, e->index);
	wire_add_text(out, str_c(e->name));
	wire_add_text(out, value); /* empty: deleted */
	wire_close(out, mark);
}

static bool
add_changes(struct buf *out, const struct decision *d, uint32_t actions,
    uint32_t steps)
{
	for (size_t i = 0; i < d->edit_count; i++) {
		const struct flow_edit *e = &d->edits[i];
		uint32_t needs = e->kind == EDIT_KIND_INSERT ?
		    WIRE_ADD_HEADERS : WIRE_CHANGE_HEADERS;
		if ((actions & needs) == 0) {
			log_error("the MTA does not take our change of the "
				  "header field %s", e->name);
			return false;
		}
		add_edit(out, e, (steps & WIRE_LEADING_SPACE) != 0);
	}
	if (d->quarantine == NULL)
		return true;
	if ((actions & WIRE_QUARANTINE) == 0) {
		log_error("the MTA does not let us hold a message");
		return false;
	}
	size_t mark = wire_open(out, REPLY_CODE_QUARANTINE);
	wire_add_text(out, str_c(d->quarantine));
	wire_close(out, mark);
	return true;
}

void
reply_text(struct buf *out, const char *code, const char *enhanced,
    const char *text)
{
	size_t mark = wire_open(out, REPLY_CODE_TEXT);
	buf_addf(out, "%s %s %s", code, enhanced, text);
	buf_add_char(out, '\0');
	wire_close(out, mark);
}

void
reply_decision(struct buf *out, const struct decision *d, uint32_t actions,
    uint32_t steps)
{
	size_t begin = out->len;
	if (d->reply != REPLY_ACCEPT) {
		if (d->code != NULL)
			reply_text(out, d->code, d->enhanced, d->text);
		else
			wire_simple(out, REPLY_CODE_TEMPFAIL);
		return;
	}
	bool taken = add_changes(out, d, actions, steps);
	if (taken)
		wire_simple(out, REPLY_CODE_CONTINUE);
	if (!taken || out->error != RES_OK) {
		/* none of it */
		if (out->error != RES_OK)
			buf_reset(out);
		else
			out->len = begin;
		reply_text(out, "451", "4.3.0",
		    "The mail filter's changes were not taken");
	}
}

#include "flow/policy_text.h"

/* Names longer than this are shown by their end, which says whose they are. */
#define MAX_SHOWN_NAME 80
/* Signatures named in a reply. */
#define MAX_SHOWN_SIGNATURES 3
/* Of an explanation that the SPF record gives. */
#define MAX_SHOWN_EXPLANATION 150

/* Printable ASCII without "%", which libmilter takes for a format. */
static void
add_clean(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		bool fine =
		    s.ptr[i] >= ' ' && s.ptr[i] <= '~' && s.ptr[i] != '%';
		buf_add_char(b, fine ? s.ptr[i] : '?');
	}
}

static void
add_name(struct buf *b, struct str name)
{
	if (name.len > MAX_SHOWN_NAME) {
		buf_add_c(b, "...");
		name = str_skip(name, name.len - MAX_SHOWN_NAME);
	}
	add_clean(b, name);
}

static void
add_result(struct buf *b, enum auth_result result, struct str domain)
{
	buf_add_c(b, auth_result_word(result));
	if (domain.len == 0)
		return;
	buf_add_char(b, ' ');
	add_name(b, domain);
}

static void
add_dkim(struct buf *b, const struct policy_facts *f)
{
	if (f->dkim_count == 0)
		buf_add_c(b, "none");
	for (size_t i = 0; i < f->dkim_count; i++) {
		if (i == MAX_SHOWN_SIGNATURES) {
			buf_add_c(b, ", ...");
			break;
		}
		if (i != 0)
			buf_add_c(b, ", ");
		add_result(b, f->dkim[i].result, f->dkim[i].d);
	}
}

static void
add_mark(struct buf *b, struct str mark, const struct policy_facts *f)
{
	if (str_eq(mark, STR("from"))) {
		add_name(b, f->dmarc != NULL ? f->dmarc->from : STR_EMPTY);
	} else if (str_eq(mark, STR("id"))) {
		add_clean(b, f->id);
	} else if (str_eq(mark, STR("dkim"))) {
		add_dkim(b, f);
	} else if (f->spf != NULL) {
		add_result(b, f->spf->result, f->spf->domain);
	} else {
		buf_add_c(b, "not checked");
	}
}

/* Replace the {marks}; without {id} in the template it is added, since
 * `hanaper explain` needs it. */
static void
expand(struct buf *b, struct str template, const struct policy_facts *f)
{
	bool has_id = str_find(template, STR("{id}")) != SIZE_MAX;
	while (template.len != 0) {
		size_t open = str_chr(template, '{');
		add_clean(b, str_sub(template, 0, open));
		if (open == SIZE_MAX)
			break;
		template = str_skip(template, open + 1);
		size_t close = str_chr(template, '}');
		add_mark(b, str_sub(template, 0, close), f);
		template = close != SIZE_MAX ? str_skip(template, close + 1)
					     : STR_EMPTY;
	}
	if (!has_id) {
		buf_add_c(b, "; id ");
		add_clean(b, f->id);
	}
}

static const char short_text[] =
    "Email rejected per DMARC policy for {from}; id {id}";

static void
dmarc_text(struct buf *b, const struct config *c, const struct policy_facts *f)
{
	expand(b, c->reject_text, f);
	if (b->error == RES_LIMIT) {
		buf_reset(b);
		expand(b, str_c(short_text), f);
	}
}

static bool
any_dkim(const struct policy_facts *f, enum auth_result result)
{
	for (size_t i = 0; i < f->dkim_count; i++)
		if (f->dkim[i].result == result)
			return true;
	return false;
}

/* What of RFC 7372 §3 says most about a DMARC fail: a signature passes, only
 * not the author's; SPF passes for another domain, so that it is a signature
 * that is missing, or one that verifies is not acceptable; or all fails. */
static const char *
dmarc_code(const struct policy_facts *f)
{
	if (any_dkim(f, AUTH_PASS))
		return "5.7.22";
	if (f->spf == NULL || f->spf->result != AUTH_PASS)
		return "5.7.26";
	return any_dkim(f, AUTH_POLICY) ? "5.7.21" : "5.7.20";
}

static void
spf_text(struct buf *b, const struct policy_facts *f)
{
	buf_add_c(b, "SPF ");
	buf_add_c(b, auth_result_word(f->spf->result));
	buf_add_c(b, " for ");
	add_name(b, f->spf->domain);
	if (f->spf->explanation.len != 0) {
		buf_add_c(b, ", which says: ");
		add_clean(
		    b, str_sub(f->spf->explanation, 0, MAX_SHOWN_EXPLANATION));
		if (f->spf->explanation.len > MAX_SHOWN_EXPLANATION)
			buf_add_c(b, "...");
	}
}

static const char *
from_text(const struct policy_facts *f)
{
	return f->from_state == FROM_MANY_FIELDS
	    ? "Message has more than one From field"
	    : "Message has too many author domains";
}

/* Whose answer is missing. */
static const char *
dns_text(struct buf *b, const struct policy_facts *f)
{
	if (f->spf != NULL && f->spf->result == AUTH_TEMPERROR) {
		buf_add_c(b, "Temporary DNS failure while checking SPF of ");
		add_name(b, f->spf->domain);
		return "4.4.3";
	}
	for (size_t i = 0; i < f->dkim_count; i++)
		if (f->dkim[i].result == AUTH_TEMPERROR) {
			buf_add_c(b, "DKIM key unavailable now for ");
			add_name(b, f->dkim[i].d);
			return "4.7.5";
		}
	if (f->arc != NULL && f->arc->temporary) {
		buf_add_c(b, "ARC chain cannot be checked now");
		return "4.7.5";
	}
	buf_add_c(
	    b, "Temporary DNS failure while looking for the DMARC policy");
	if (f->dmarc != NULL && f->dmarc->from.len != 0) {
		buf_add_c(b, " of ");
		add_name(b, f->dmarc->from);
	}
	return "4.4.3";
}

static void
write_reply(struct buf *b, const struct config *c, const struct policy_facts *f,
    struct policy_decision *d)
{
	d->code = d->action == POLICY_REJECT ? "550" : "451";
	switch (d->cause) {
	case POLICY_CAUSE_DMARC:
		d->enhanced = dmarc_code(f);
		dmarc_text(b, c, f);
		return; /* has the id */
	case POLICY_CAUSE_SPF:
		d->enhanced =
		    f->spf->result == AUTH_PERMERROR ? "5.7.24" : "5.7.23";
		spf_text(b, f);
		break;
	case POLICY_CAUSE_DNS:
		d->enhanced = dns_text(b, f);
		break;
	case POLICY_CAUSE_FROM:
	case POLICY_CAUSE_NONE:
		d->enhanced = "5.7.1";
		buf_add_c(b, from_text(f));
		break;
	}
	buf_add_c(b, "; id ");
	add_clean(b, f->id);
}

enum res
policy_reply(struct arena *a, const struct config *c,
    const struct policy_facts *f, struct policy_decision *d)
{
	struct buf b;
	if (d->action != POLICY_TEMPFAIL && d->action != POLICY_REJECT)
		return RES_OK;
	buf_init(&b, POLICY_MAX_TEXT);
	write_reply(&b, c, f, d);
	d->text = arena_dup(a, buf_str(&b));
	enum res r =
	    d->text.ptr != NULL && b.error == RES_OK ? RES_OK : RES_NOMEM;
	buf_done(&b);
	return r;
}

/* The one Authentication-Results field: auth iprev spf dkim… arc dmarc
 * (design §4), from the verdicts in memory, never from other fields. */
#include <stdio.h>

#include "auth/authres.h"
#include "flow/state.h"

#define MIN_B            8 /* RFC 6008 §4: at least 8 characters of b= */
#define MAX_VALUE        256
#define RECEIVED_SPF_MAX 4096

struct str
results_authserv_id(const struct message *m)
{
	struct str id = m->config->authserv_id;
	if (id.len == 0)
		id = m->session->facts.hostname;
	return id.len != 0 ? id : STR("localhost");
}

/* How much of b= tells this signature from the others of the message. */
static struct str
b_prefix(const struct decision *d, size_t which)
{
	struct str b = d->dkim[which].b;
	size_t len = MIN_B;
	for (size_t i = 0; i < d->dkim_count; i++) {
		if (i == which || str_eq(d->dkim[i].b, b))
			continue;
		while (len < b.len &&
		    str_eq(str_sub(b, 0, len), str_sub(d->dkim[i].b, 0, len)))
			len++;
	}
	return str_sub(b, 0, len);
}

static void
add_dkim(struct authres *w, const struct decision *d, size_t i)
{
	const struct dkim_result *r = &d->dkim[i];
	authres_result(w, "dkim", r->result);
	if (r->testing)
		authres_comment(w, "test mode");
	if (r->result != AUTH_PASS && r->reason != NULL)
		authres_reason(w, r->reason);
	if (r->d.len != 0)
		authres_address(w, "header", "d", r->d);
	if (r->i.len != 0)
		authres_address(w, "header", "i", r->i);
	if (r->s.len != 0)
		authres_value(w, "header", "s", r->s);
	if (r->a.len != 0)
		authres_value(w, "header", "a", r->a);
	if (r->b.len != 0)
		authres_value(w, "header", "b", b_prefix(d, i));
}

/* The local part is shown only where the record's macros looked at it. */
static void
add_mailfrom(struct authres *w, const struct message *m,
    const struct spf_result *r)
{
	if (m->mail_from.len == 0 || r->domain.len == 0)
		return;
	if (r->local_part_used)
		authres_address(w, "smtp", "mailfrom", m->mail_from);
	else
		authres_address(w, "smtp", "mailfrom", r->domain);
}

static void
add_helo(struct authres *w, const struct message *m)
{
	if (m->helo.len != 0)
		authres_address(w, "smtp", "helo", m->helo);
}

/* HELO and MAIL FROM share one result when they have the same; else each
 * tells its own. A null sender is judged by its HELO name. */
static void
add_spf(struct authres *w, const struct message *m)
{
	const struct decision *d = &m->decision;
	const struct spf_result *helo = NULL, *from = NULL;
	for (size_t i = 0; i < d->spf_count; i++)
		*(d->spf[i].identity == SPF_HELO ? &helo : &from) = &d->spf[i];
	if (from != NULL) {
		authres_result(w, "spf", from->result);
		if (from->result != AUTH_PASS && from->reason != NULL)
			authres_reason(w, from->reason);
		add_mailfrom(w, m, from);
		if (m->mail_from.len == 0 ||
		    (helo != NULL && helo->result == from->result))
			add_helo(w, m);
	}
	if (helo != NULL && (from == NULL || helo->result != from->result)) {
		authres_result(w, "spf", helo->result);
		if (helo->result != AUTH_PASS && helo->reason != NULL)
			authres_reason(w, helo->reason);
		add_helo(w, m);
	}
}

static void
add_iprev(struct authres *w, const struct message *m)
{
	const struct iprev_result *r = &m->decision.iprev;
	struct buf ip;
	buf_init(&ip, IP_MAX_TEXT);
	ip_format(&ip, &m->client);
	authres_result(w, "iprev", r->result);
	if (r->reason != NULL)
		authres_reason(w, r->reason);
	authres_value(w, "policy", "iprev", buf_str(&ip));
	buf_done(&ip);
}

static void
add_arc(struct authres *w, const struct arc_result *r)
{
	authres_result(w, "arc", r->result);
	if (r->result == AUTH_FAIL && r->reason != NULL)
		authres_reason(w, r->reason);
	if (r->result == AUTH_PASS) {
		char number[12];
		snprintf(number, sizeof number, "%u", r->oldest_pass);
		authres_value(w, "header", "oldest-pass", str_c(number));
	}
}

static void
add_dmarc(struct authres *w, const struct dmarc_result *r)
{
	authres_result(w, "dmarc", r->result);
	if (r->result != AUTH_PASS && r->reason != NULL)
		authres_reason(w, r->reason);
	if (r->has_record &&
	    (r->result == AUTH_PASS || r->result == AUTH_FAIL))
		authres_value(w, "policy", "dmarc",
		    str_c(dmarc_policy_word(r->policy)));
	if (r->from.len != 0)
		authres_address(w, "header", "from", r->from);
}

struct str
results_make(struct message *m, struct str *out_payload)
{
	const struct decision *d = &m->decision;
	struct authres *w = authres_begin(m->arena, results_authserv_id(m));
	if (w == NULL)
		return STR_EMPTY;
	if (m->direction == DIRECTION_OUT && m->auth.len != 0) {
		authres_result(w, "auth", AUTH_PASS);
		/* a login name need not be an address */
		if (str_chr(m->auth, '@') != SIZE_MAX)
			authres_address(w, "smtp", "auth", m->auth);
		else
			authres_value(w, "smtp", "auth", m->auth);
	}
	if (d->iprev_done)
		add_iprev(w, m);
	add_spf(w, m);
	for (size_t i = 0; i < d->dkim_count; i++)
		add_dkim(w, d, i);
	if (m->direction == DIRECTION_IN && d->dkim_count == 0 &&
	    m->dkim_verify != NULL)
		authres_result(w, "dkim", AUTH_NONE);
	if (d->arc_done)
		add_arc(w, &d->arc);
	if (d->dmarc_done)
		add_dmarc(w, &d->dmarc);
	struct str value = authres_finish(w);
	*out_payload = authres_payload(w);
	return value;
}

/* A quoted-string of at most 256 bytes; control bytes are left out. */
static void
add_quoted(struct buf *out, struct str s)
{
	buf_add_char(out, '"');
	for (size_t i = 0; i < s.len && i < MAX_VALUE; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c < 0x20 || c == 0x7f)
			continue;
		if (c == '"' || c == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, (char)c);
	}
	buf_add_char(out, '"');
}

struct str
results_received_spf(struct message *m)
{
	const struct decision *d = &m->decision;
	const struct spf_result *r = NULL;
	for (size_t i = 0; i < d->spf_count; i++)
		if (r == NULL || d->spf[i].identity == SPF_MAILFROM)
			r = &d->spf[i];
	if (r == NULL)
		return STR_EMPTY;
	struct buf out;
	buf_init(&out, RECEIVED_SPF_MAX);
	buf_addf(&out, " %s client-ip=\"", auth_result_word(r->result));
	ip_format(&out, &m->client);
	buf_add_c(&out, "\";\n\tenvelope-from=");
	add_quoted(&out, m->mail_from);
	buf_add_c(&out, ";\n\thelo=");
	add_quoted(&out, m->helo);
	buf_add_c(&out, ";\n\treceiver=");
	add_quoted(&out, results_authserv_id(m));
	buf_addf(&out, ";\n\tidentity=%s;",
	    r->identity == SPF_HELO ? "helo" : "mailfrom");
	struct str value = out.error == RES_OK ?
	    arena_dup(m->arena, buf_str(&out)) : STR_EMPTY;
	buf_done(&out);
	return value;
}

/* Outbound: which keys sign this message, whether receivers can find their
 * public halves, and the fields themselves (design §5, §6; SIGN-*). A message
 * that is not signed says why in its log line. */
#include "auth/dkim_sign.h"
#include "base/log.h"
#include "flow/longline.h"
#include "flow/published.h"
#include "flow/state.h"
#include "mail/domain.h"
#include "mail/taglist.h"

/* --- who signs ------------------------------------------------------------ */

/* Mostly one; all are of the one domain that from.state FROM_OK means. */
static struct address_list
authors(struct message *m)
{
	struct address_list list = { 0 };
	const struct field *f = header_find(m->header, STR("From"));
	if (f == NULL ||
	    address_parse_list(m->arena, f->value, &list) != RES_OK)
		list.count = 0;
	return list;
}

static struct str
author_address(struct message *m, const struct address *author)
{
	return arena_printf(m->arena, "%.*s@%.*s", STR_ARG(author->local),
	    STR_ARG(m->from.domains[0]));
}

static bool
rule_matches(const struct sign_rule *r, struct str address, struct str domain)
{
	switch (r->kind) {
	case SIGN_USER:
		return str_case_eq(r->pattern, address);
	case SIGN_DOMAIN:
		return domain_equal(r->pattern, domain);
	case SIGN_SUBDOMAINS:
		return domain_is_below(domain, r->pattern);
	case SIGN_ANY:
		return true;
	}
	return false;
}

static void
add_keys(struct message *m, struct str domain, struct str selector,
    struct str identity)
{
	size_t n = 0;
	const struct signing_key *keys =
	    manifest_find(m->manifest, domain, &n);
	for (size_t i = 0; i < n; i++)
		if ((selector.len == 0 ? !keys[i].by_rule :
			str_case_eq(selector, keys[i].selector)) &&
		    m->signing_count < FLOW_MAX_SIGNATURES)
			m->signings[m->signing_count++] =
			    (struct signing){ .key = &keys[i],
				    .identity = identity };
}

/* The most specific rule wins; its fellows of the same pattern mean several
 * signatures. False: no rule speaks of this author. */
static bool
by_table(struct message *m, struct str address, struct str domain)
{
	const struct sign_rule *first = NULL;
	for (size_t i = 0; i < m->config->sign_rule_count; i++) {
		const struct sign_rule *r = &m->config->sign_rules[i];
		if (!rule_matches(r, address, domain))
			continue;
		if (first == NULL)
			first = r;
		if (r->kind == first->kind &&
		    str_case_eq(r->pattern, first->pattern))
			add_keys(m, r->domain, r->selector, r->identity);
	}
	return first != NULL;
}

static void
by_folder(struct message *m, struct str domain)
{
	add_keys(m, domain, STR_EMPTY, STR_EMPTY);
	for (unsigned n = domain_labels(domain); n > 2 &&
	     m->signing_count == 0 && m->config->sign_subdomains; n--)
		add_keys(m, domain_last_labels(domain, n - 1), STR_EMPTY,
		    STR_EMPTY);
}

/* A signature of the same domain is there already. */
static bool
is_signed(struct message *m, struct str domain)
{
	for (const struct field *f =
		 header_find(m->header, STR("DKIM-Signature"));
	     f != NULL; f = header_next_same(m->header, f)) {
		struct taglist tags;
		struct str d;
		if (taglist_parse(f->value, true, &tags) == RES_OK &&
		    domain_normalize(m->arena, taglist_get(&tags, "d"), &d) ==
			RES_OK &&
		    domain_equal(d, domain))
			return true;
	}
	return false;
}

/* Nobody but the one who logged in is an author. */
static bool
login_matches(struct message *m, const struct address_list *list)
{
	bool whole = str_chr(m->auth, '@') != SIZE_MAX, all = m->auth.len != 0;
	for (size_t i = 0; all && i < list->count; i++)
		all = str_case_eq(m->auth,
		    whole ? author_address(m, &list->items[i]) :
			    list->items[i].local);
	return all && list->count != 0;
}

/* NULL: sign; else why not. */
static const char *
choose(struct message *m)
{
	struct signer *signer = m->session->env->signer;
	if (signer == NULL)
		return "no signer";
	if (m->from.state != FROM_OK)
		return from_state_text(m->from.state);
	m->manifest = signer->manifest(signer);
	if (m->manifest == NULL) {
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.0", "signer",
		    "Signing is not available now");
		return "signer unavailable";
	}
	struct address_list list = authors(m);
	if (m->config->require_login_match && !login_matches(m, &list))
		return "login does not match the author";
	struct str address = list.count != 0 ?
	    author_address(m, &list.items[0]) : STR_EMPTY;
	if (!by_table(m, address, m->from.domains[0]))
		by_folder(m, m->from.domains[0]);
	if (m->signing_count == 0)
		return "no key for the author's domain";
	if (m->config->already_signed == ALREADY_SIGNED_SKIP &&
	    is_signed(m, m->signings[0].key->domain))
		return "already signed";
	return NULL;
}

/* --- long lines ------------------------------------------------------------ */

/* A header line that a later hop would break. */
static bool
has_long_line(const struct field *f)
{
	struct str rest = f->value, line;
	size_t used = f->name.len + 1;
	while (str_split(&rest, '\n', &line)) {
		size_t cr = str_ends(line, STR("\r"));
		if (used + line.len - cr > LONGLINE_MAX_OCTETS)
			return true;
		used = 0;
	}
	return false;
}

/* The same value folded before blanks, LF form, or ptr NULL when some stretch
 * without a blank is too long. No line is made of blanks alone: some hops
 * would take it for the end of the header. */
static struct str
refold(struct arena *a, const struct field *f)
{
	struct buf out;
	buf_init(&out, 2 * f->value.len + 16);
	size_t line = f->name.len + 1, i = 0;
	bool good = true, blank = false; /* of the line so far */
	while (i < f->value.len) {
		char c = f->value.ptr[i];
		if (c == '\r' && i + 1 < f->value.len &&
		    f->value.ptr[i + 1] == '\n') {
			buf_add_char(&out, '\n');
			line = 0;
			blank = true;
			i += 2;
			continue;
		}
		size_t word = 1;
		while (i + word < f->value.len &&
		    strchr(" \t\r", f->value.ptr[i + word]) == NULL)
			word++;
		bool has_text = word > 1 || !ascii_is_wsp(c);
		if (ascii_is_wsp(c) && has_text && !blank &&
		    line + word > 76 && i > 0)
			line = 0, buf_add_char(&out, '\n');
		blank = blank && !has_text;
		good = good && line + word <= LONGLINE_MAX_OCTETS;
		buf_add(&out, f->value.ptr + i, word);
		line += word;
		i += word;
	}
	struct str folded = STR_EMPTY;
	if (good && out.error == RES_OK)
		folded = arena_dup(a, buf_str(&out));
	buf_done(&out);
	return folded;
}

/* What cannot be mended, in header or body. */
static void
complain(struct message *m, struct str where)
{
	if (m->config->long_lines == LONG_LINES_TEMPFAIL)
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.6.0", "long line",
		    "A line is too long to be signed");
	else
		log_warning("id=%.*s %.*s has a line of more than %d octets: "
		    "a later hop may break the signature", STR_ARG(m->id),
		    STR_ARG(where), LONGLINE_MAX_OCTETS);
}

static void
treat_long_lines(struct message *m)
{
	for (size_t i = 0; i < header_count(m->header); i++) {
		const struct field *f = header_at(m->header, i);
		if (!has_long_line(f) || edits_touch(m, f))
			continue;
		struct str folded = STR_EMPTY;
		if (m->config->long_lines == LONG_LINES_REFOLD)
			folded = refold(m->arena, f);
		char *name = arena_cstr(m->arena, f->name);
		if (folded.ptr != NULL && name != NULL)
			edits_add(m, EDIT_KIND_CHANGE, (unsigned)f->occurrence,
			    name, folded);
		else
			complain(m, f->name);
	}
	if (m->long_body_line)
		complain(m, STR("the body"));
}

/* --- signing ---------------------------------------------------------------- */

static const struct domain_rule *
domain_rule(const struct config *c, struct str domain)
{
	for (size_t i = 0; i < c->domain_count; i++)
		if (domain_equal(c->domains[i].domain, domain))
			return &c->domains[i];
	return NULL;
}

static struct dkim_sign_options
sign_options(const struct message *m, const struct signing *s)
{
	const struct config *c = m->config;
	const struct domain_rule *rule = domain_rule(c, s->key->domain);
	struct dkim_sign_options o = {
		.header_canon = s->header_canon,
		.body_canon = s->body_canon,
		.now_s = m->time_us / 1000000,
		.lifetime_s = c->signature_lifetime_s,
		.identity = s->identity,
		.headers = c->sign_headers.items,
		.header_count = c->sign_headers.count,
		.oversign = c->oversign.items,
		.oversign_count = c->oversign.count,
	};
	if (rule != NULL && rule->signature_lifetime_s >= 0)
		o.lifetime_s = rule->signature_lifetime_s;
	if (rule != NULL && rule->sign_headers.count != 0) {
		o.headers = rule->sign_headers.items;
		o.header_count = rule->sign_headers.count;
	}
	if (rule != NULL && rule->oversign.count != 0) {
		o.oversign = rule->oversign.items;
		o.oversign_count = rule->oversign.count;
	}
	return o;
}

static void
choose_canon(const struct config *c, struct signing *s)
{
	const struct domain_rule *rule = domain_rule(c, s->key->domain);
	bool header = c->header_relaxed, body = c->body_relaxed;
	if (rule != NULL && rule->canonicalization.len != 0) {
		header = str_starts(rule->canonicalization, STR("relaxed"));
		body = str_ends(rule->canonicalization, STR("/relaxed"));
	}
	s->header_canon = header ? CANON_RELAXED : CANON_SIMPLE;
	s->body_canon = body ? CANON_RELAXED : CANON_SIMPLE;
}

void
sign_begin(struct message *m)
{
	m->unsigned_why = choose(m);
	if (m->unsigned_why != NULL)
		return;
	for (size_t i = 0; i < m->signing_count; i++) {
		struct signing *s = &m->signings[i];
		choose_canon(m->config, s);
		if (bodyhash_want(m->hashes, s->body_canon, BODYHASH_WHOLE,
			&s->body_index) != RES_OK)
			message_internal(m, "Out of memory");
		struct str name =
		    published_name(m->arena, m->signings[i].key);
		if (name.ptr != NULL && m->config->require_published_key)
			dns_session_prefetch(m->dns, name, DNS_TXT);
	}
}

/* Whether receivers can find this key. */
static bool
may_sign(struct message *m, const struct signing *s)
{
	const struct domain_rule *rule = domain_rule(m->config, s->key->domain);
	bool required = m->config->require_published_key, changed;
	if (rule != NULL && rule->require_published_key >= 0)
		required = rule->require_published_key != 0;
	if (!required || m->session->env->published == NULL)
		return true;
	enum published_state state = published_look(m->session->env->published,
	    m->arena, m->dns, s->key, &changed);
	if (changed && state != PUBLISHED_YES)
		log_warning("key %.*s._domainkey.%.*s: %s",
		    STR_ARG(s->key->selector), STR_ARG(s->key->domain),
		    published_state_text(state));
	switch (state) {
	case PUBLISHED_YES:
	case PUBLISHED_BEFORE:
		return true;
	case PUBLISHED_UNKNOWN:
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.7.5", "dns",
		    "Signing key cannot be looked up now");
		return false;
	case PUBLISHED_ABSENT:
	case PUBLISHED_DIFFERENT:
		m->unsigned_why = published_state_text(state);
		return false;
	}
	return false;
}

void
sign_failed(struct message *m, enum res r, const char *what)
{
	if (r == RES_AGAIN || r == RES_NOTFOUND || r == RES_TIMEOUT)
		message_refuse(m, REPLY_TEMPFAIL, "451", "4.3.0", "signer",
		    "Signing is not available now");
	else
		message_internal(m, what);
}

static void
sign_one(struct message *m, const struct header *h, struct signing *s)
{
	struct dkim_sign_options o = sign_options(m, s);
	struct str value;
	enum res r = dkim_sign_field(m->arena, h, &o, m->hashes, s->body_index,
	    m->session->env->signer, s->key, &value);
	if (r != RES_OK) {
		sign_failed(m, r, "Message could not be signed");
		return;
	}
	edits_add(m, EDIT_KIND_INSERT, 1, "DKIM-Signature", value);
	m->signed_count++;
}

void
sign_finish(struct message *m)
{
	if (m->unsigned_why != NULL)
		return;
	treat_long_lines(m);
	struct header *h = edits_header_after(m);
	if (h == NULL) {
		message_internal(m, "Out of memory");
		return;
	}
	size_t ready = 0;
	for (size_t i = 0; i < m->signing_count; i++)
		if (may_sign(m, &m->signings[i]))
			m->signings[ready++] = m->signings[i];
	m->signing_count = ready;
	/* inserted at one place, the last one made stands on top: RSA first */
	for (size_t i = ready; i > 0; i--)
		sign_one(m, h, &m->signings[i - 1]);
}

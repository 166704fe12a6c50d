/* Sealing for mail that leaves again: aliases and lists (design §4). Rules
 * are recipients or their domains; one stable domain seals (RFC 8617 §5.1). */
#include "auth/arc_seal.h"
#include "base/log.h"
#include "flow/state.h"
#include "mail/domain.h"

static bool
rule_matches(struct str rule, struct str rcpt)
{
	size_t at = str_rchr(rcpt, '@');
	struct str domain = at != SIZE_MAX ? str_skip(rcpt, at + 1) : STR_EMPTY;
	if (str_chr(rule, '@') != SIZE_MAX)
		return str_case_eq(rule, rcpt);
	if (str_starts(rule, STR(".")))
		return str_case_ends(domain, rule);
	return str_eq(rule, STR("*")) || str_case_eq(rule, domain);
}

static bool
is_wanted(const struct message *m)
{
	const struct strlist *rules = &m->config->arc_seal;
	if (m->config->arc != ARC_SEAL || m->config->arc_domain.len == 0)
		return false;
	for (size_t i = 0; i < rules->count; i++)
		for (size_t j = 0; j < m->rcpt_count; j++)
			if (rule_matches(rules->items[i], m->rcpts[j]))
				return true;
	return false;
}

void
seal_begin(struct message *m)
{
	struct signer *signer = m->session->env->signer;
	size_t count = 0;
	/* mail that will come back is sealed when it leaves for good */
	if (!is_wanted(m) || signer == NULL ||
	    (m->config->reinjection == REINJECTION_TOKEN && !m->seen))
		return;
	m->manifest = signer->manifest(signer);
	if (m->manifest == NULL)
		return;
	const struct signing_key *keys =
	    manifest_find(m->manifest, m->config->arc_domain, &count);
	for (size_t i = 0; i < count && m->seal_key == NULL; i++)
		if (keys[i].type == KEY_RSA && !keys[i].by_rule) /* ARC-08 */
			m->seal_key = &keys[i];
	if (m->seal_key == NULL)
		log_warning("arc_domain = %.*s has no RSA key: not sealed",
		    STR_ARG(m->config->arc_domain));
	else if (bodyhash_want(m->hashes, CANON_RELAXED, BODYHASH_WHOLE,
		     &m->seal_body_index) != RES_OK)
		message_internal(m, "Out of memory");
}

void
seal_finish(struct message *m)
{
	const struct decision *d = &m->decision;
	struct str aar, ams, as;
	if (m->seal_key == NULL || !d->arc_done || d->arc.temporary)
		return;
	struct header *h = edits_header_after(m);
	if (h == NULL) {
		message_internal(m, "Out of memory");
		return;
	}
	struct arc_seal_options o = {
		.authserv_id = results_authserv_id(m),
		.results = m->payload,
		.now_s = m->time_us / 1000000,
		.header_canon = CANON_RELAXED,
		.body_canon = CANON_RELAXED,
	};
	enum res r = arc_seal_fields(m->arena, h, &d->arc, &o, m->hashes,
	    m->seal_body_index, m->session->env->signer, m->seal_key, &aar, &ams,
	    &as);
	if (r == RES_INVALID) /* a chain that must not grow (RFC 8617 §5.1) */
		return;
	if (r != RES_OK) {
		sign_failed(m, r, "Message could not be sealed");
		return;
	}
	edits_add(m, EDIT_KIND_INSERT, 0, "ARC-Authentication-Results", aar);
	edits_add(m, EDIT_KIND_INSERT, 0, "ARC-Message-Signature", ams);
	edits_add(m, EDIT_KIND_INSERT, 0, "ARC-Seal", as);
	m->sealed = true;
}

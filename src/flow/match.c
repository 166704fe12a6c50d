#include "flow/match.h"

/* "b.example" is below "example", "xexample" is not (DOM-03). */
static bool
is_below(struct str domain, struct str parent)
{
	return domain.len > parent.len + 1 && str_case_ends(domain, parent) &&
	    domain.ptr[domain.len - parent.len - 1] == '.';
}

static struct str
without_dot(struct str domain)
{
	if (domain.len > 1 && domain.ptr[domain.len - 1] == '.')
		domain.len--;
	return domain;
}

bool
match_domain(struct str pattern, struct str domain)
{
	domain = without_dot(domain);
	if (domain.len == 0)
		return false;
	if (str_starts(pattern, STR(".")))
		return is_below(domain, str_skip(pattern, 1));
	return str_case_eq(pattern, domain);
}

bool
match_address(struct str pattern, struct str address)
{
	size_t at = str_rchr(address, '@');
	if (at == SIZE_MAX)
		return false;
	if (str_eq(pattern, STR("*")))
		return true;
	if (str_chr(pattern, '@') != SIZE_MAX)
		return str_case_eq(pattern, address);
	return match_domain(pattern, str_skip(address, at + 1));
}

static bool
any_domain(const struct strlist *list, struct str domain)
{
	for (size_t i = 0; i < list->count; i++)
		if (match_domain(list->items[i], domain))
			return true;
	return false;
}

/* Every author domain must be a listed one: a second, unlisted author must
 * not travel on the first one's exemption. */
static bool
authors_match(const struct strlist *list, const struct match_facts *f)
{
	for (size_t i = 0; i < f->from_count; i++)
		if (!any_domain(list, f->from_domains[i]))
			return false;
	return f->from_count != 0;
}

static bool
client_matches(const struct netlist *list, const struct ip *client)
{
	for (size_t i = 0; i < list->count; i++)
		if (ip_net_contains(&list->items[i], client))
			return true;
	return false;
}

bool
match_message(const struct match_lists *m, const struct match_facts *f)
{
	if (m->from_domain.count != 0 && !authors_match(&m->from_domain, f))
		return false;
	if (m->client.count != 0 && !client_matches(&m->client, &f->client))
		return false;
	if (m->ptr.count != 0 && !any_domain(&m->ptr, f->ptr))
		return false;
	if (m->list_id.count != 0 && !any_domain(&m->list_id, f->list_id))
		return false;
	if (m->sealer.count != 0 && !any_domain(&m->sealer, f->sealer))
		return false;
	return m->direction.len == 0 ||
	    str_eq(m->direction, f->outbound ? STR("out") : STR("in"));
}

bool
match_recipient(const struct match_lists *m, struct str recipient)
{
	for (size_t i = 0; i < m->recipient.count; i++)
		if (match_address(m->recipient.items[i], recipient))
			return true;
	return m->recipient.count == 0;
}

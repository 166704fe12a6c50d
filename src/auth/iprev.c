#include "auth/iprev.h"

void
iprev_prefetch(struct arena *a, struct dns_session *dns, const struct ip *client)
{
	struct str name = dns_reverse_name(a, client);
	if (name.ptr != NULL)
		dns_session_prefetch(dns, name, DNS_PTR);
}

static bool
leads_to(const struct dns_answer *answer, const struct ip *client)
{
	for (size_t i = 0; i < answer->count; i++)
		if (ip_eq(&answer->records[i].ip, client))
			return true;
	return false;
}

enum res
iprev_check(struct arena *a, struct dns_session *dns, const struct ip *client,
    struct iprev_result *out)
{
	enum dns_type forward = client->family == IP_V4 ? DNS_A : DNS_AAAA;
	struct str reverse = dns_reverse_name(a, client);
	if (reverse.ptr == NULL)
		return RES_NOMEM;
	const struct dns_answer *ptr = dns_session_get(dns, reverse, DNS_PTR);
	*out = (struct iprev_result){ AUTH_PERMERROR, "no PTR record",
		STR_EMPTY };
	if (dns_status_temporary(ptr->status))
		*out = (struct iprev_result){ AUTH_TEMPERROR,
			"PTR record unavailable", STR_EMPTY };
	if (ptr->status != DNS_OK)
		return RES_OK;
	size_t names = ptr->count < IPREV_MAX_NAMES ? ptr->count :
						      IPREV_MAX_NAMES;
	*out = (struct iprev_result){ AUTH_FAIL, "name leads elsewhere",
		ptr->records[0].data };
	for (size_t i = 0; i < names; i++) {
		struct str name = ptr->records[i].data;
		const struct dns_answer *back =
		    dns_session_get(dns, name, forward);
		if (back->status == DNS_OK && leads_to(back, client)) {
			*out = (struct iprev_result){ AUTH_PASS, NULL, name };
			return RES_OK;
		}
		if (dns_status_temporary(back->status)) {
			out->result = AUTH_TEMPERROR;
			out->reason = "address record unavailable";
		}
	}
	return RES_OK;
}

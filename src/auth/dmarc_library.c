/* libopendmarc behind our own discovery, parsing and alignment. It never sees
 * what came from outside but one domain in normal form: its parser takes
 * records that are none, its alignment lets public suffixes and, with
 * adkim=s, subdomains pass, and its result depends on the order of signatures.
 * So it gets a canonical record with the policy that we found, strict
 * alignment, and for an identifier that we found aligned the author domain
 * itself. Its resolver is never called.
 *
 * A context belongs to one call; the library's one global is set once. */
#include "auth/dmarc.h"

#include "mail/domain.h"

/* Behind our headers: it brings <resolv.h> and its RES_ macros along. */
#include <sys/types.h>

#include <opendmarc/dmarc.h>
#include <pthread.h>
#include <stdio.h>

static OPENDMARC_LIB_T library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static OPENDMARC_STATUS_T library_status;

static void
library_open(void)
{
	library.tld_type = OPENDMARC_TLD_TYPE_NONE;
	library_status = opendmarc_policy_library_init(&library);
}

/* Its functions take unsigned, non-const text, but change none of it. */
struct text {
	u_char bytes[DOMAIN_MAX + 1];
};

static enum res
status_to_res(OPENDMARC_STATUS_T status)
{
	if (status == DMARC_PARSE_OKAY)
		return RES_OK;
	return status == DMARC_PARSE_ERROR_NO_ALLOC ? RES_NOMEM : RES_INVALID;
}

static enum res
store_all(
    DMARC_POLICY_T *context, const struct dmarc_result *ours, struct text *from)
{
	u_char record[80], selector[] = "s", human[] = "pass";
	snprintf((char *)record, sizeof record,
	    "v=DMARC1; p=%s; adkim=s; aspf=s", dmarc_policy_word(ours->policy));
	enum res r = status_to_res(
	    opendmarc_policy_store_from_domain(context, from->bytes));
	if (r == RES_OK)
		r = status_to_res(opendmarc_policy_store_dmarc(
		    context, record, from->bytes, NULL));
	if (r == RES_OK && ours->spf_aligned)
		r = status_to_res(opendmarc_policy_store_spf(context,
		    from->bytes, DMARC_POLICY_SPF_OUTCOME_PASS,
		    DMARC_POLICY_SPF_ORIGIN_MAILFROM, human));
	if (r == RES_OK && ours->dkim_aligned)
		r = status_to_res(
		    opendmarc_policy_store_dkim(context, from->bytes, selector,
			DMARC_POLICY_DKIM_OUTCOME_PASS, human));
	return r;
}

static enum res
read_verdict(
    DMARC_POLICY_T *context, bool *out_pass, enum dmarc_policy *out_policy)
{
	*out_pass = false;
	*out_policy = DMARC_NONE;
	switch (opendmarc_get_policy_to_enforce(context)) {
	case DMARC_POLICY_PASS:
		*out_pass = true;
		return RES_OK;
	case DMARC_POLICY_NONE:
		return RES_OK;
	case DMARC_POLICY_QUARANTINE:
		*out_policy = DMARC_QUARANTINE;
		return RES_OK;
	case DMARC_POLICY_REJECT:
		*out_policy = DMARC_REJECT;
		return RES_OK;
	default:
		return RES_INVALID;
	}
}

enum res
dmarc_library_verdict(const struct dmarc_result *ours, bool *out_pass,
    enum dmarc_policy *out_policy)
{
	struct text from;
	u_char ip[] = "127.0.0.1"; /* part of its reports only */
	bool pass;
	enum dmarc_policy policy;
	if ((ours->result != AUTH_PASS && ours->result != AUTH_FAIL) ||
	    !domain_valid(ours->from))
		return RES_INVALID;
	memcpy(from.bytes, ours->from.ptr, ours->from.len);
	from.bytes[ours->from.len] = '\0';
	pthread_once(&library_once, library_open);
	enum res r = status_to_res(library_status);
	if (r != RES_OK)
		return r;
	DMARC_POLICY_T *context =
	    opendmarc_policy_connect_init(ip, DMARC_POLICY_IP_TYPE_IPV4);
	if (context == NULL)
		return RES_NOMEM;
	r = store_all(context, ours, &from);
	if (r == RES_OK)
		r = read_verdict(context, &pass, &policy);
	(void)opendmarc_policy_connect_shutdown(context);
	if (r != RES_OK)
		return r;
	*out_pass = pass;
	*out_policy = policy;
	return RES_OK;
}

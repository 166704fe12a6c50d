/* A whole SPF check over any records: line n of the input is the TXT record of
 * dn.example (n from 0), the first byte chooses the client. All other answers
 * follow from the name asked for. libspf2 must come through, and its result
 * must be that of the term which our own notes say decided. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/spf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct resolver resolver;
	struct str text;
};

static struct dns_answer *
txt_answer(const struct world *w, struct str name)
{
	struct str rest = w->text, line = STR_EMPTY;
	struct dns_record r = { .preference = 0 };
	if (name.len != 10 || !str_ends(name, STR(".example")) ||
	    name.ptr[0] != 'd' || !ascii_is_digit(name.ptr[1]))
		return dns_answer_new(name, DNS_TXT, DNS_NXDOMAIN, 1, NULL, 0);
	for (int n = name.ptr[1] - '0'; n >= 0; n--) {
		if (!str_split(&rest, '\n', &line))
			return dns_answer_new(
			    name, DNS_TXT, DNS_NODATA, 1, NULL, 0);
	}
	r.data = line;
	return dns_answer_new(name, DNS_TXT, DNS_OK, 1, &r, 1);
}

static struct dns_answer *
other_answer(struct str name, enum dns_type type)
{
	static const enum dns_status failed[] = { DNS_NXDOMAIN, DNS_NODATA,
		DNS_SERVFAIL, DNS_TIMEOUT };
	struct dns_record r[12] = { { .preference = 0 } };
	unsigned h = (unsigned)type;
	for (size_t i = 0; i < name.len; i++)
		h = h * 31 + (unsigned char)name.ptr[i];
	size_t count = h % 16;
	if (count >= 12)
		return dns_answer_new(
		    name, type, failed[count - 12], 1, NULL, 0);
	for (size_t i = 0; i < count; i++) {
		r[i].data = i == 0 ? STR("d0.example") : STR("x.example");
		r[i].preference = (h >> 4) & 3;
		r[i].ip.family = type == DNS_AAAA ? IP_V6 : IP_V4;
		r[i].ip.bytes[0] = type == DNS_AAAA ? 0x20 : 192;
		r[i].ip.bytes[3] = (uint8_t)i;
	}
	return dns_answer_new(
	    name, type, count > 0 ? DNS_OK : DNS_NODATA, 1, r, count);
}

static enum res
start(struct resolver *r, struct str name, enum dns_type type,
    struct dns_query **out)
{
	struct world *w = (struct world *)r;
	struct dns_answer *a =
	    type == DNS_TXT ? txt_answer(w, name) : other_answer(name, type);
	*out = (struct dns_query *)a;
	return a != NULL ? RES_OK : RES_NOMEM;
}

static struct dns_answer *
wait_for(struct resolver *r, struct dns_query *q, int64_t deadline_us)
{
	return dns_answer_ref((struct dns_answer *)q);
}

static void
release(struct resolver *r, struct dns_query **q)
{
	struct dns_answer *a = (struct dns_answer *)*q;
	dns_answer_unref(&a);
	*q = NULL;
}

static void
check(const struct spf_result *s)
{
	enum auth_result want = AUTH_NEUTRAL;
	switch (s->result) {
	case AUTH_NONE:
	case AUTH_TEMPERROR:
	case AUTH_PERMERROR:
		if (s->reason == NULL ||
		    str_eq(str_c(s->reason), STR("libspf2 refuses the record")))
			abort();
		return;
	case AUTH_PASS:
	case AUTH_FAIL:
	case AUTH_SOFTFAIL:
	case AUTH_NEUTRAL:
		break;
	case AUTH_POLICY:
		abort();
	}
	if (s->mechanism.len > 0)
		want = s->mechanism.ptr[0] == '-' ? AUTH_FAIL
		    : s->mechanism.ptr[0] == '~'  ? AUTH_SOFTFAIL
		    : s->mechanism.ptr[0] == '?'  ? AUTH_NEUTRAL
						  : AUTH_PASS;
	if (s->result != want)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ip clients[] = {
		{ IP_V4, { 192, 0, 0, 0 } },
		{ IP_V4, { 192, 0, 0, 200 } },
		{ IP_V4, { 127, 0, 0, 1 } },
		{ IP_V6, { 0x20 } },
		{ IP_V6, { [15] = 1 } },
	};
	static const struct dns_limits limits = { .lookup_us = 1000000,
		.budget_us = 20000000 };
	struct arena *a = arena_new(0);
	struct spf_result s;
	if (a == NULL || size < 1) {
		arena_free(&a);
		return 0;
	}
	struct world w = { .resolver = { .start = start,
			       .wait = wait_for,
			       .release = release },
		.text = str_of(data + 1, size - 1) };
	struct spf_request rq = { .client = clients[data[0] % 5],
		.helo = STR("h.example"),
		.mail_from = STR("a-b@d0.example"),
		.void_limit = 2 };
	struct dns_session *dns = dns_session_new(a, &w.resolver, &limits);
	if (dns != NULL && spf_check(a, dns, &rq, SPF_MAILFROM, &s) == RES_OK)
		check(&s);
	arena_free(&a);
	return 0;
}

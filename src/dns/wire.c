#include "dns/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/codec.h"
#include "dns/name.h"

#define WIRE_MAX_NAME 255 /* octets, RFC 1035 §2.3.4 */
#define CLASS_IN      1
#define HEADER_LEN    12
#define RR_FIXED      10 /* type, class, TTL, RDLENGTH */

/* A name without compression: lower-case labels with their lengths, the root
 * label last. */
struct wire_name {
	size_t len;
	uint8_t bytes[WIRE_MAX_NAME];
};

struct message {
	const uint8_t *p;
	size_t len;
	struct str asked;
	enum dns_type type;
	struct wire_name owner; /* whose records are wanted: the question's
	                           name, then what its CNAMEs lead to */
	unsigned rcode, ancount, nscount;
	size_t answers; /* where the answer section begins */
	uint32_t ttl;
	struct buf data; /* record data, in order */
};

struct rr {
	struct wire_name owner;
	unsigned type, class;
	uint32_t ttl;
	size_t rdata, rdlen;
};

static bool
name_eq(const struct wire_name *a, const struct wire_name *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* The name at *at; *at moves behind it. Compression pointers must lead
 * backwards, each further than the one before, so that it ends. */
static bool
read_name(const struct message *m, size_t *at, struct wire_name *out)
{
	size_t pos = *at, lowest = *at;
	bool jumped = false;
	out->len = 0;
	for (;;) {
		if (pos >= m->len)
			return false;
		unsigned n = m->p[pos];
		if (n >= 0xc0) {
			if (pos + 1 >= m->len)
				return false;
			size_t to = (size_t)(n & 0x3f) << 8 | m->p[pos + 1];
			if (to >= lowest)
				return false;
			if (!jumped)
				*at = pos + 2;
			jumped = true;
			pos = lowest = to;
			continue;
		}
		if (n > DNS_MAX_LABEL || m->len - pos < 1 + n ||
		    out->len + 1 + n > WIRE_MAX_NAME)
			return false;
		out->bytes[out->len++] = (uint8_t)n;
		for (size_t i = 1; i <= n; i++)
			out->bytes[out->len++] =
			    (uint8_t)ascii_lower((char)m->p[pos + i]);
		pos += 1 + n;
		if (n == 0)
			break;
	}
	if (!jumped)
		*at = pos;
	return true;
}

static bool
name_from_text(struct str text, struct wire_name *out)
{
	if (!dns_name_ok(text))
		return false;
	size_t length_at = 0;
	out->len = 1;
	for (size_t i = 0; i <= text.len; i++) {
		if (i == text.len || text.ptr[i] == '.') {
			out->bytes[length_at] =
			    (uint8_t)(out->len - length_at - 1);
			length_at = out->len++;
			continue;
		}
		out->bytes[out->len++] = (uint8_t)ascii_lower(text.ptr[i]);
	}
	out->bytes[length_at] = 0;
	return true;
}

/* Text with dots between labels; what would be ambiguous as \DDD. */
static void
name_to_text(const struct wire_name *n, struct buf *out)
{
	for (size_t at = 0; at < n->len && n->bytes[at] != 0;) {
		if (at > 0)
			buf_add_char(out, '.');
		size_t end = at + 1 + n->bytes[at];
		for (at++; at < end; at++) {
			uint8_t c = n->bytes[at];
			if (c < 0x20 || c > 0x7e || c == '.' || c == '\\')
				buf_addf(out, "\\%03u", c);
			else
				buf_add_char(out, (char)c);
		}
	}
}

static bool
read_rr(const struct message *m, size_t *at, struct rr *out)
{
	if (!read_name(m, at, &out->owner) || m->len - *at < RR_FIXED)
		return false;
	const uint8_t *p = m->p + *at;
	out->type = get_be16(p);
	out->class = get_be16(p + 2);
	out->ttl = get_be32(p + 4);
	if (out->ttl > INT32_MAX) /* RFC 2181 §8 */
		out->ttl = 0;
	out->rdlen = get_be16(p + 8);
	out->rdata = *at + RR_FIXED;
	if (m->len - out->rdata < out->rdlen)
		return false;
	*at = out->rdata + out->rdlen;
	return true;
}

static void
take_ttl(struct message *m, uint32_t ttl)
{
	if (ttl < m->ttl)
		m->ttl = ttl;
}

/* A name that fills the rest of the record's data. */
static bool
rdata_name(const struct message *m, const struct rr *rr, size_t skip,
    struct wire_name *out)
{
	size_t at = rr->rdata + skip;
	return rr->rdlen > skip && read_name(m, &at, out) &&
	    at == rr->rdata + rr->rdlen;
}

static bool
rdata_txt(struct message *m, const struct rr *rr)
{
	const uint8_t *p = m->p + rr->rdata;
	size_t left = rr->rdlen;
	if (left == 0)
		return false;
	while (left > 0) {
		size_t n = *p;
		if (left < 1 + n)
			return false;
		buf_add(&m->data, p + 1, n);
		p += 1 + n;
		left -= 1 + n;
	}
	return true;
}

static bool
rdata_address(
    const struct message *m, const struct rr *rr, struct dns_record *out)
{
	size_t want = m->type == DNS_A ? 4 : 16;
	if (rr->rdlen != want)
		return false;
	out->ip.family = m->type == DNS_A ? IP_V4 : IP_V6;
	memcpy(out->ip.bytes, m->p + rr->rdata, want);
	return true;
}

/* Data goes to m->data; out->data.len says how much of it. */
static bool
read_rdata(struct message *m, const struct rr *rr, struct dns_record *out)
{
	size_t before = m->data.len;
	struct wire_name name;
	*out = (struct dns_record){ .preference = 0 };
	switch (m->type) {
	case DNS_A:
	case DNS_AAAA:
		return rdata_address(m, rr, out);
	case DNS_TXT:
		if (!rdata_txt(m, rr))
			return false;
		break;
	case DNS_MX:
		if (!rdata_name(m, rr, 2, &name))
			return false;
		out->preference = get_be16(m->p + rr->rdata);
		name_to_text(&name, &m->data);
		break;
	case DNS_PTR:
	case DNS_NS:
	case DNS_CNAME:
		if (!rdata_name(m, rr, 0, &name))
			return false;
		name_to_text(&name, &m->data);
		break;
	case DNS_SOA:
	case DNS_DNSKEY:
		buf_add(&m->data, m->p + rr->rdata, rr->rdlen);
		break;
	}
	out->data.len = m->data.len - before;
	return true;
}

static const char malformed[] = "malformed answer";

/* Header and question, up to m->answers. NULL when all is well. */
static const char *
read_head(struct message *m)
{
	static const char *const rcodes[] = { NULL, "FORMERR", "SERVFAIL", NULL,
		"NOTIMP", "REFUSED" };
	if (m->len < HEADER_LEN)
		return malformed;
	unsigned flags = get_be16(m->p + 2);
	m->rcode = flags & 15;
	m->ancount = get_be16(m->p + 6);
	m->nscount = get_be16(m->p + 8);
	if ((flags & 0xf800) != 0x8000) /* a response to a QUERY */
		return malformed;
	if (m->rcode != 0 && m->rcode != 3)
		return m->rcode < sizeof(rcodes) / sizeof(rcodes[0])
		    ? rcodes[m->rcode]
		    : "unknown response code";
	if ((flags & 0x0200) != 0)
		return "truncated answer";
	struct wire_name asked;
	size_t at = HEADER_LEN;
	if (get_be16(m->p + 4) != 1 || !read_name(m, &at, &asked) ||
	    m->len - at < 4)
		return malformed;
	if (!name_eq(&asked, &m->owner) ||
	    get_be16(m->p + at) != (unsigned)m->type ||
	    get_be16(m->p + at + 2) != CLASS_IN)
		return "answer to another question";
	m->answers = at + 4;
	return NULL;
}

/* The CNAME of m->owner, if there is one. False: malformed. */
static bool
find_cname(const struct message *m, struct rr *out, bool *out_found)
{
	size_t at = m->answers;
	struct rr rr;
	*out_found = false;
	for (unsigned i = 0; i < m->ancount; i++) {
		if (!read_rr(m, &at, &rr))
			return false;
		if (rr.type != DNS_CNAME || rr.class != CLASS_IN ||
		    !name_eq(&rr.owner, &m->owner))
			continue;
		if (*out_found)
			return false; /* RFC 2181 §10.1: only one */
		*out = rr;
		*out_found = true;
	}
	return true;
}

static const char *
follow_cnames(struct message *m)
{
	if (m->type == DNS_CNAME)
		return NULL;
	for (unsigned hops = 0; hops <= WIRE_MAX_CNAMES; hops++) {
		struct rr rr;
		bool found;
		if (!find_cname(m, &rr, &found))
			return malformed;
		if (!found)
			return NULL;
		take_ttl(m, rr.ttl);
		if (!rdata_name(m, &rr, 0, &m->owner))
			return malformed;
	}
	return "CNAME loop or too many CNAMEs";
}

static const char *
read_records(struct message *m, struct dns_record *records, size_t *out_count)
{
	size_t at = m->answers, count = 0;
	struct rr rr;
	for (unsigned i = 0; i < m->ancount; i++) {
		if (!read_rr(m, &at, &rr))
			return malformed;
		if (rr.type != (unsigned)m->type || rr.class != CLASS_IN)
			continue;
		if (!name_eq(&rr.owner, &m->owner))
			return "answer for another name";
		if (count == DNS_MAX_RECORDS)
			return "too many records";
		if (!read_rdata(m, &rr, &records[count]))
			return malformed;
		take_ttl(m, rr.ttl);
		count++;
	}
	*out_count = count;
	return count > 0 && m->rcode == 3 ? malformed : NULL;
}

/* RFC 2308 §5: the smaller of the SOA's TTL and its MINIMUM field. */
static const char *
read_negative_ttl(struct message *m)
{
	size_t at = m->answers;
	struct rr rr;
	for (unsigned i = 0; i < m->ancount; i++) {
		if (!read_rr(m, &at, &rr))
			return malformed;
	}
	for (unsigned i = 0; i < m->nscount; i++) {
		if (!read_rr(m, &at, &rr))
			return malformed;
		if (rr.type != DNS_SOA || rr.class != CLASS_IN ||
		    rr.rdlen < 22) /* two root names and five numbers */
			continue;
		take_ttl(m, rr.ttl);
		take_ttl(m, get_be32(m->p + rr.rdata + rr.rdlen - 4));
		return NULL;
	}
	take_ttl(m, WIRE_BARE_TTL);
	return NULL;
}

static const char *
read_message(struct message *m, struct dns_record *records, size_t *out_count)
{
	const char *bad = read_head(m);
	if (bad == NULL)
		bad = follow_cnames(m);
	if (bad == NULL)
		bad = read_records(m, records, out_count);
	if (bad == NULL && *out_count == 0)
		bad = read_negative_ttl(m);
	return bad;
}

struct dns_answer *
wire_answer(const void *packet, size_t len, struct str name, enum dns_type type)
{
	struct message m = { .p = packet,
		.len = len,
		.asked = name,
		.type = type,
		.ttl = WIRE_MAX_TTL };
	struct dns_record *records = calloc(DNS_MAX_RECORDS, sizeof(*records));
	if (records == NULL)
		return NULL;
	/* Text can be four times as long as the bytes it stands for. */
	buf_init(&m.data, 4 * (size_t)65536);
	size_t count = 0;
	const char *bad = name_from_text(name, &m.owner)
	    ? read_message(&m, records, &count)
	    : "not a domain name";
	enum dns_status status = DNS_OK;
	if (bad == NULL && m.data.error == RES_LIMIT)
		bad = "too much data";
	if (bad != NULL)
		status = DNS_SERVFAIL;
	else if (count == 0)
		status = m.rcode == 3 ? DNS_NXDOMAIN : DNS_NODATA;
	size_t at = 0;
	for (size_t i = 0; i < count; i++) {
		struct str all = buf_str(&m.data);
		records[i].data = str_sub(all, at, records[i].data.len);
		at += records[i].data.len;
	}
	struct dns_answer *a = m.data.error == RES_NOMEM
	    ? NULL
	    : dns_answer_new(name, type, status, bad != NULL ? 0 : m.ttl,
		  records, bad != NULL ? 0 : count);
	if (a != NULL)
		a->detail = bad;
	buf_done(&m.data);
	free(records);
	return a;
}

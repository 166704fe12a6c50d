#include "auth/spf_record.h"

#include <arpa/inet.h>

#include "auth/spf_macro.h"

static const struct mechanism {
	const char *name;
	enum spf_kind kind;
	bool cidr;           /* dual-cidr-length may follow */
	bool domain, needed; /* ":" domain-spec may, must follow */
} mechanisms[] = {
	{ "all", SPF_ALL, false, false, false },
	{ "include", SPF_INCLUDE, false, true, true },
	{ "a", SPF_A, true, true, false },
	{ "mx", SPF_MX, true, true, false },
	{ "ptr", SPF_PTR, false, true, false },
	{ "ip4", SPF_IP4, false, false, true },
	{ "ip6", SPF_IP6, false, false, true },
	{ "exists", SPF_EXISTS, false, true, true },
};

bool
spf_record_matches(struct str text)
{
	return str_case_starts(text, STR("v=spf1")) &&
	    (text.len == 6 || text.ptr[6] == ' ');
}

/* The digits of a prefix length, without leading zeros. */
static bool
read_prefix(struct str digits, unsigned max, unsigned *out)
{
	uint64_t v;
	if (digits.len > 1 && digits.ptr[0] == '0')
		return false;
	if (str_to_u64(digits, max, &v) != RES_OK)
		return false;
	*out = (unsigned)v;
	return true;
}

/* Take "//" prefix and then "/" prefix off the end of `s`, where there. What
 * does not parse stays and fails as part of a domain-spec (SPF-17). */
static void
take_dual_cidr(struct str *s, struct spf_term *t)
{
	size_t slash = str_rchr(*s, '/');
	if (slash != SIZE_MAX && slash > 0 && s->ptr[slash - 1] == '/' &&
	    read_prefix(str_skip(*s, slash + 1), 128, &t->prefix6)) {
		s->len = slash - 1;
		slash = str_rchr(*s, '/');
	}
	if (slash != SIZE_MAX &&
	    read_prefix(str_skip(*s, slash + 1), 32, &t->prefix4))
		s->len = slash;
}

/* Four numbers of 0..255 without leading zeros. */
static bool
read_ip4(struct str s, struct ip *out)
{
	*out = (struct ip){ .family = IP_V4 };
	struct str part;
	for (size_t i = 0; i < 4; i++) {
		unsigned v;
		if (!str_split(&s, '.', &part) || !read_prefix(part, 255, &v))
			return false;
		out->bytes[i] = (uint8_t)v;
	}
	return s.ptr == NULL;
}

static bool
read_ip6(struct str s, struct ip *out)
{
	char c[IP_MAX_TEXT];
	if (s.len >= sizeof(c))
		return false;
	memcpy(c, s.ptr, s.len);
	c[s.len] = '\0';
	*out = (struct ip){ .family = IP_V6 };
	return inet_pton(AF_INET6, c, out->bytes) == 1;
}

static const char *
read_network(struct str s, struct spf_term *t)
{
	unsigned bits = t->kind == SPF_IP4 ? 32 : 128;
	t->net.prefix = bits;
	size_t slash = str_chr(s, '/');
	if (slash != SIZE_MAX) {
		if (!read_prefix(str_skip(s, slash + 1), bits, &t->net.prefix))
			return "bad prefix length";
		s.len = slash;
	}
	if (t->kind == SPF_IP4 ? !read_ip4(s, &t->net.ip)
			       : !read_ip6(s, &t->net.ip))
		return "bad IP network";
	return NULL;
}

/* What follows the mechanism's name, with its ":" or "/". */
static const char *
read_argument(const struct mechanism *m, struct str s, struct spf_term *t)
{
	if (m->cidr)
		take_dual_cidr(&s, t);
	if (s.len == 0)
		return m->needed ? "a mechanism lacks its argument" : NULL;
	if (s.ptr[0] != ':' || (!m->domain && !m->needed))
		return "a mechanism has an argument it must not have";
	s = str_skip(s, 1);
	if (t->kind == SPF_IP4 || t->kind == SPF_IP6)
		return read_network(s, t);
	if (!spf_domain_spec_valid(s))
		return "bad domain-spec";
	t->domain = s;
	return NULL;
}

static const char *
read_mechanism(struct str s, struct spf_term *t)
{
	size_t n = 0;
	while (n < s.len && s.ptr[n] != ':' && s.ptr[n] != '/')
		n++;
	struct str name = str_sub(s, 0, n);
	for (size_t i = 0; i < sizeof(mechanisms) / sizeof(mechanisms[0]);
	     i++) {
		const struct mechanism *m = &mechanisms[i];
		if (!str_case_eq(name, str_c(m->name)))
			continue;
		t->kind = m->kind;
		t->prefix4 = 32;
		t->prefix6 = 128;
		return read_argument(m, str_skip(s, n), t);
	}
	return "unknown mechanism";
}

/* The length of a modifier's name when "=" follows it, else 0. */
static size_t
modifier_name(struct str s)
{
	size_t n = 0;
	if (s.len == 0 || !ascii_is_alpha(s.ptr[0]))
		return 0;
	while (n < s.len &&
	    (ascii_is_alpha(s.ptr[n]) || ascii_is_digit(s.ptr[n]) ||
		s.ptr[n] == '-' || s.ptr[n] == '_' || s.ptr[n] == '.'))
		n++;
	return n < s.len && s.ptr[n] == '=' ? n : 0;
}

static const char *
read_modifier(struct str name, struct str value, struct spf_term *t)
{
	if (str_case_eq(name, STR("redirect")))
		t->kind = SPF_REDIRECT;
	else if (str_case_eq(name, STR("exp")))
		t->kind = SPF_EXP;
	else
		t->kind = SPF_UNKNOWN_MODIFIER;
	t->domain = value;
	if (t->kind == SPF_UNKNOWN_MODIFIER)
		return spf_macro_valid(value, SPF_IN_MODIFIER)
		    ? NULL
		    : "bad macro in a modifier";
	return spf_domain_spec_valid(value) ? NULL : "bad domain-spec";
}

static const char *
read_term(struct str s, struct spf_term *t)
{
	t->text = s;
	t->qualifier = '+';
	size_t n = modifier_name(s);
	if (n > 0)
		return read_modifier(str_sub(s, 0, n), str_skip(s, n + 1), t);
	if (strchr("+-?~", s.ptr[0]) != NULL) {
		t->qualifier = s.ptr[0];
		s = str_skip(s, 1);
	}
	return read_mechanism(s, t);
}

static bool
printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e)
			return false;
	}
	return true;
}

/* Remember the terms that stand for themselves. */
static const char *
note_term(struct spf_record *rec, const struct spf_term *t)
{
	if (t->kind == SPF_ALL && rec->all == NULL)
		rec->all = t;
	if (t->kind == SPF_REDIRECT) {
		if (rec->redirect != NULL)
			return "redirect= is given twice";
		rec->redirect = t;
	}
	if (t->kind == SPF_EXP) {
		if (rec->exp != NULL)
			return "exp= is given twice";
		rec->exp = t;
	}
	return NULL;
}

/* At least as many as there are words, at most what is allowed. */
static size_t
room_for_terms(struct str text)
{
	size_t room = 1;
	for (size_t i = 0; i < text.len && room < SPF_MAX_TERMS; i++)
		room += text.ptr[i] == ' ';
	return room;
}

enum res
spf_record_parse(struct arena *a, struct str text, struct spf_record *out,
    const char **out_reason)
{
	struct spf_record rec = { .count = 0 };
	if (text.len > SPF_MAX_RECORD) {
		*out_reason = "record too long";
		return RES_LIMIT;
	}
	if (!spf_record_matches(text) || !printable(text)) {
		*out_reason = "record with bytes that are not printable ASCII";
		return RES_SYNTAX;
	}
	rec.terms = arena_array(a, room_for_terms(text), sizeof(*rec.terms));
	text = arena_dup(a, str_skip(text, 6));
	if (rec.terms == NULL || text.ptr == NULL)
		return RES_NOMEM;
	struct str word;
	while (str_split(&text, ' ', &word)) {
		if (word.len == 0)
			continue;
		if (rec.count == SPF_MAX_TERMS) {
			*out_reason = "too many terms in the record";
			return RES_LIMIT;
		}
		struct spf_term *t = &rec.terms[rec.count];
		const char *bad = read_term(word, t);
		if (bad == NULL)
			bad = note_term(&rec, t);
		if (bad != NULL) {
			*out_reason = bad;
			return RES_SYNTAX;
		}
		rec.count++;
	}
	if (rec.all != NULL)
		rec.redirect = NULL;
	*out = rec;
	return RES_OK;
}

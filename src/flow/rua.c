#include "flow/rua.h"

#include "base/codec.h"
#include "mail/domain.h"

#define MAX_LOCAL 64 /* RFC 5321 §4.5.3.1.1 */

static bool
is_local_part(struct str s)
{
	if (s.len == 0 || s.len > MAX_LOCAL || s.ptr[0] == '.' ||
	    s.ptr[s.len - 1] == '.' || str_find(s, STR("..")) != SIZE_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!ascii_is_alpha(s.ptr[i]) && !ascii_is_digit(s.ptr[i]) &&
		    str_chr(STR("!#$%&'*+-/=?^_`{|}~."), s.ptr[i]) == SIZE_MAX)
			return false;
	return true;
}

static enum res
percent_decode(struct str s, struct buf *out)
{
	while (s.len != 0) {
		if (s.ptr[0] != '%') {
			buf_add_char(out, s.ptr[0]);
			s = str_skip(s, 1);
			continue;
		}
		int high = s.len > 2 ? hex_digit(s.ptr[1]) : -1;
		int low = s.len > 2 ? hex_digit(s.ptr[2]) : -1;
		if (high < 0 || low < 0)
			return RES_SYNTAX;
		buf_add_char(out, (char)(high << 4 | low));
		s = str_skip(s, 3);
	}
	return out->error == RES_LIMIT ? RES_SYNTAX : out->error;
}

enum res
rua_address(struct arena *a, struct str uri, struct str *out_address)
{
	struct str domain;
	struct buf text;
	if (!str_case_starts(uri, STR("mailto:")))
		return RES_UNSUPPORTED;
	uri = str_skip(uri, 7);
	size_t query = str_chr(uri, '?');
	if (query != SIZE_MAX)
		uri = str_sub(uri, 0, query);
	buf_init(&text, MAX_LOCAL + 1 + DOMAIN_MAX);
	enum res r = percent_decode(uri, &text);
	size_t at = str_rchr(buf_str(&text), '@');
	if (r == RES_OK &&
	    (at == SIZE_MAX || !is_local_part(str_sub(buf_str(&text), 0, at))))
		r = RES_SYNTAX;
	if (r == RES_OK)
		r = domain_normalize(
		    a, str_skip(buf_str(&text), at + 1), &domain);
	if (r == RES_OK) {
		struct str address = arena_printf(
		    a, "%.*s@%.*s", (int)at, text.ptr, STR_ARG(domain));
		if (address.ptr != NULL)
			*out_address = address;
		else
			r = RES_NOMEM;
	}
	buf_done(&text);
	return r;
}

static struct str
host_of(struct str address)
{
	return str_skip(address, str_rchr(address, '@') + 1);
}

/* --- one record's destinations ----------------------------------------------- */

struct finding {
	struct arena *arena;
	struct dns_session *dns;
	enum org_method method;
	struct str domain;
	struct rua_target *targets;
	size_t count;
};

static void
add(struct finding *f, struct str uri, struct str address,
    enum rua_state state, const char *why)
{
	for (size_t i = 0; i < f->count; i++)
		if (address.len != 0 &&
		    str_eq(f->targets[i].address, address))
			return;
	if (f->count < RUA_MAX_TARGETS)
		f->targets[f->count++] =
		    (struct rua_target){ uri, address, state, why };
}

/* Within one organization nobody need be asked. RES_AGAIN: unknown now. */
static enum res
is_internal(struct finding *f, struct str host, bool *out)
{
	struct str ours, theirs;
	*out = domain_equal(host, f->domain);
	if (*out)
		return RES_OK;
	enum res r =
	    dmarc_org_domain(f->arena, f->dns, f->method, f->domain, &ours);
	if (r == RES_OK)
		r = dmarc_org_domain(
		    f->arena, f->dns, f->method, host, &theirs);
	if (r == RES_OK)
		*out = domain_equal(ours, theirs);
	return r;
}

/* The receiver's own list stands for the address, as far as it stays at the
 * same host (RFC 9990 §4 step 7). */
static enum res
add_replacements(struct finding *f, struct str uri, struct str host,
    const struct dmarc_record *record)
{
	bool any = false;
	for (size_t i = 0; i < record->rua_count; i++) {
		struct str address;
		enum res r = rua_address(f->arena, record->rua[i], &address);
		if (r == RES_NOMEM)
			return r;
		if (r != RES_OK || !domain_equal(host_of(address), host))
			continue;
		add(f, record->rua[i], address, RUA_ACCEPTED, NULL);
		any = true;
	}
	if (!any)
		add(f, uri, STR_EMPTY, RUA_REFUSED,
		    "it names addresses of another host");
	return RES_OK;
}

static enum res
add_external(struct finding *f, struct str uri, struct str address)
{
	struct str host = host_of(address);
	enum auth_result accepts;
	struct dmarc_record record;
	enum res r = dmarc_accepts_reports(
	    f->arena, f->dns, f->domain, host, &accepts, &record);
	if (r != RES_OK)
		return r;
	if (accepts == AUTH_TEMPERROR)
		add(f, uri, address, RUA_LATER, "the DNS does not answer");
	else if (accepts != AUTH_PASS)
		add(f, uri, address, RUA_REFUSED,
		    "it has not agreed to get reports about this domain");
	else if (record.rua_count != 0)
		return add_replacements(f, uri, host, &record);
	else
		add(f, uri, address, RUA_ACCEPTED, NULL);
	return RES_OK;
}

static enum res
add_uri(struct finding *f, struct str uri)
{
	struct str address;
	bool internal = false;
	enum res r = rua_address(f->arena, uri, &address);
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK) {
		add(f, uri, STR_EMPTY, RUA_REFUSED,
		    r == RES_UNSUPPORTED ? "only mailto is supported"
					 : "not a plain address");
		return RES_OK;
	}
	r = is_internal(f, host_of(address), &internal);
	if (r == RES_AGAIN) {
		add(f, uri, address, RUA_LATER, "the DNS does not answer");
		return RES_OK;
	}
	if (r != RES_OK)
		return r;
	if (!internal)
		return add_external(f, uri, address);
	add(f, uri, address, RUA_ACCEPTED, NULL);
	return RES_OK;
}

enum res
rua_targets(struct arena *a, struct dns_session *dns, enum org_method method,
    struct str domain, const struct str *uris, size_t count,
    struct rua_target out[RUA_MAX_TARGETS], size_t *out_count)
{
	struct finding f = { a, dns, method, domain, out, 0 };
	enum res r = RES_OK;
	for (size_t i = 0; r == RES_OK && i < count && f.count < RUA_MAX_TARGETS;
	     i++)
		r = add_uri(&f, uris[i]);
	if (r == RES_OK)
		*out_count = f.count;
	return r;
}

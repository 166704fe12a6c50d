/* Mail through another MX of ours is judged as of the hop before it: the
 * Received fields are walked from the top while the client is a trusted
 * relay, taking the name and the bracketed address of each "from" part. The
 * relay's own HELO says nothing of that hop: judged against its address it
 * would fail. */
#include <string.h>

#include "flow/state.h"

#define MAX_HOPS 32

/* "by" stands at `at`, as a word. */
static bool
is_by(struct str s, size_t at)
{
	return at > 0 && at + 2 < s.len && ascii_is_wsp(s.ptr[at - 1]) &&
	    ascii_is_wsp(s.ptr[at + 2]) &&
	    str_case_starts(str_skip(s, at), STR("by"));
}

/* The "from" part: what is in front of the line that begins with "by". That
 * line end nobody but the relay can make; HELO names and recipients, which
 * hold blanks with some MTAs, can have a "by" of their own. In one line
 * therefore only one "by" may follow a bracket. Empty: it cannot be told. */
static struct str
from_part(struct str value)
{
	size_t found = SIZE_MAX;
	for (size_t lf = str_chr(value, '\n'); lf < value.len; lf++) {
		size_t at = lf + 1;
		if (value.ptr[lf] != '\n')
			continue;
		while (at < value.len && ascii_is_wsp(value.ptr[at]))
			at++;
		if (is_by(value, at))
			return str_trim(str_sub(value, 0, lf));
	}
	for (size_t at = 1; at < value.len; at++) {
		struct str before = str_trim(str_sub(value, 0, at));
		if (!is_by(value, at) || before.len == 0 ||
		    strchr(")]", before.ptr[before.len - 1]) == NULL)
			continue;
		if (found != SIZE_MAX)
			return STR_EMPTY;
		found = before.len;
	}
	return str_trim(str_sub(value, 0, found == SIZE_MAX ? 0 : found));
}

/* The last brackets, save those behind "=", which hold what the client called
 * itself ("helo=[192.0.2.1]"). */
static enum res
bracketed_address(struct str s, struct ip *out)
{
	size_t close;
	while ((close = str_rchr(s, ']')) != SIZE_MAX) {
		size_t open = str_rchr(str_sub(s, 0, close), '[');
		if (open == SIZE_MAX)
			return RES_SYNTAX;
		if (open == 0 || s.ptr[open - 1] != '=')
			return ip_parse(
			    str_sub(s, open + 1, close - open - 1), out);
		s = str_sub(s, 0, open);
	}
	return RES_SYNTAX;
}

/* "from NAME (… [ADDRESS])\n by …": the address, and what the client called
 * itself. */
static enum res
hop_of_received(struct arena *a, const struct field *f, struct ip *out,
    struct str *out_helo)
{
	struct str value = from_part(str_trim(f->value));
	if (!str_case_starts(value, STR("from ")))
		return RES_SYNTAX;
	/* what a client's certificate says comes on lines behind the first */
	struct str first = str_sub(value, 0, str_chr(value, '\n'));
	enum res r = bracketed_address(first, out);
	if (r != RES_OK)
		r = bracketed_address(value, out);
	struct str name = header_unfold(a, str_trim(str_skip(value, 5)));
	size_t end = 0;
	while (end < name.len && !ascii_is_wsp(name.ptr[end]))
		end++;
	*out_helo = str_sub(name, 0, end);
	return r;
}

void
relay_find(struct message *m)
{
	const struct field *f = header_find(m->header, STR("Received"));
	m->client = m->session->facts.client;
	m->helo = m->session->facts.helo;
	for (int hop = 0; direction_is_relay(m, &m->client); hop++) {
		if (f == NULL || hop == MAX_HOPS ||
		    hop_of_received(m->arena, f, &m->client, &m->helo) !=
			RES_OK) {
			m->client = (struct ip){ .family = IP_NONE };
			m->helo = STR_EMPTY;
			return;
		}
		f = header_next_same(m->header, f);
	}
}

/* Mail through another MX of ours is judged as of the hop before it: the
 * Received fields are walked from the top while the client is a trusted
 * relay, taking the name and the bracketed address of each "from" part
 * (design §8). The relay's own HELO says nothing of that hop: judged against
 * its address it would fail. */
#include "flow/state.h"

#define MAX_HOPS 32

/* Where the word "by" stands alone, or SIZE_MAX. */
static size_t
find_by(struct str s)
{
	for (size_t i = 1; i + 3 < s.len; i++)
		if (ascii_is_wsp(s.ptr[i - 1]) && ascii_is_wsp(s.ptr[i + 2]) &&
		    str_case_starts(str_skip(s, i), STR("by")))
			return i;
	return SIZE_MAX;
}

/* "from NAME (… [ADDRESS]) by …": the address in the last brackets before
 * "by", and what the client called itself. */
static enum res
hop_of_received(struct arena *a, const struct field *f, struct ip *out,
    struct str *out_helo)
{
	struct str value = header_unfold(a, f->value);
	size_t by = find_by(value);
	if (!str_case_starts(value, STR("from ")) || by == SIZE_MAX)
		return RES_SYNTAX;
	value.len = by;
	size_t close = str_rchr(value, ']');
	size_t open = close != SIZE_MAX ?
	    str_rchr(str_sub(value, 0, close), '[') : SIZE_MAX;
	if (open == SIZE_MAX)
		return RES_SYNTAX;
	struct str name = str_trim(str_skip(value, 5));
	size_t end = 0;
	while (end < name.len && !ascii_is_wsp(name.ptr[end]))
		end++;
	*out_helo = str_sub(name, 0, end);
	return ip_parse(str_sub(value, open + 1, close - open - 1), out);
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

/* What the MTA is asked to change, as data. Changes come first, then deletes,
 * then inserts, so that occurrences count the fields as they arrived; several
 * fields of one name are deleted from the highest occurrence down, whether
 * the MTA renumbers or not (AR-R-07). A change of a field that is not there
 * would add it. */
#include "auth/authres.h"
#include "dns/psl.h"
#include "flow/state.h"
#include "flow/token.h"
#include "mail/domain.h"

/* Fields that later hops trust us for: nobody else may bring them. */
static const char PRIVATE_PREFIX[] = "X-Hanaper-";

#define MAX_IDS 64

void
edits_add(struct message *m, enum flow_edit_kind kind, unsigned index,
    const char *name, struct str value)
{
	struct edit_list *l = &m->edits;
	if (l->count >= FLOW_MAX_EDITS) {
		l->over = true;
		return;
	}
	if (l->items == NULL)
		l->items = arena_array(
		    m->arena, FLOW_MAX_EDITS, sizeof *l->items);
	char *copy = NULL;
	if (l->items != NULL && kind != EDIT_KIND_DELETE)
		copy = arena_cstr(m->arena, value);
	if (l->items == NULL || (kind != EDIT_KIND_DELETE && copy == NULL)) {
		l->nomem = true;
		return;
	}
	size_t at = l->count++;
	if (kind == EDIT_KIND_CHANGE) {
		memmove(l->items + 1, l->items, at * sizeof *l->items);
		at = 0;
	}
	l->items[at] = (struct flow_edit){ kind, index, name, copy };
}

static size_t
our_ids(const struct message *m, struct str ids[MAX_IDS])
{
	size_t n = 0;
	ids[n++] = results_authserv_id(m);
	if (m->session->facts.hostname.len != 0)
		ids[n++] = m->session->facts.hostname;
	const struct strlist *more = &m->config->strip_authserv_ids;
	for (size_t i = 0; i < more->count && n < MAX_IDS; i++)
		ids[n++] = more->items[i];
	return n;
}

/* Names around our id that nobody else has a claim to; empty when the id is
 * no domain name. */
static struct str
our_organization(struct arena *a, struct str id)
{
	struct str name;
	if (domain_normalize(a, id, &name) != RES_OK)
		return STR_EMPTY;
	struct str org = psl_organizational(name);
	return org.len != 0 ? org : name;
}

static bool
is_forged(struct message *m, const struct field *f, const struct str *ids,
    size_t id_count, struct str org)
{
	/* our first pass wrote the others */
	if (m->seen)
		return str_case_eq(f->name, STR(TOKEN_FIELD));
	if (str_case_eq(f->name, STR("Authentication-Results")))
		return authres_is_ours(m->arena, f->value, ids, id_count, org);
	return str_case_starts(f->name, str_c(PRIVATE_PREFIX));
}

void
edits_strip_forged(struct message *m)
{
	struct str ids[MAX_IDS];
	size_t id_count = our_ids(m, ids);
	if (direction_is_relay(m, &m->session->facts.client))
		return; /* another MX of ours may bring our results */
	struct str org = our_organization(m->arena, ids[0]);
	for (size_t i = header_count(m->header); i > 0; i--) {
		const struct field *f = header_at(m->header, i - 1);
		if (!is_forged(m, f, ids, id_count, org))
			continue;
		char *name = arena_cstr(m->arena, f->name);
		if (name == NULL) {
			m->edits.nomem = true;
			return;
		}
		edits_add(m, EDIT_KIND_DELETE, (unsigned)f->occurrence, name,
		    STR_EMPTY);
		if (m->edits.over)
			return;
	}
}

/* The edit that touches this field, or NULL. */
static const struct flow_edit *
edit_of(const struct edit_list *l, const struct field *f)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].kind != EDIT_KIND_INSERT &&
		    l->items[i].index == f->occurrence &&
		    str_case_eq(str_c(l->items[i].name), f->name))
			return &l->items[i];
	return NULL;
}

bool
edits_touch(const struct message *m, const struct field *f)
{
	return edit_of(&m->edits, f) != NULL;
}

struct header *
edits_header_after(struct message *m)
{
	if (m->edits.count == 0)
		return m->header;
	struct header *after =
	    header_new(m->arena, (size_t)m->config->max_header_bytes * 2);
	if (after == NULL)
		return NULL;
	for (size_t i = 0; i < header_count(m->header); i++) {
		const struct field *f = header_at(m->header, i);
		const struct flow_edit *e = edit_of(&m->edits, f);
		if (e != NULL && e->kind == EDIT_KIND_DELETE)
			continue;
		struct str value = e != NULL ? str_c(e->value) : f->value;
		if (header_add(after, f->name, value) != RES_OK)
			return NULL;
	}
	return after;
}

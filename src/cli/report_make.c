/* One domain's report of a day, and which domains want one. */
#include <stdio.h>
#include <sysexits.h>

#include "archive/state/decisions.h"
#include "archive/state/gzip.h"
#include "cli/report.h"
#include "flow/aggregate_mail.h"
#include "flow/aggregate_row.h"
#include "flow/match.h"

/* --- one domain's report ------------------------------------------------------- */

static void
take_row(void *context, struct str domain, int64_t time_us, struct str row)
{
	aggregate_add(context, row);
}

enum res
report_read(const struct report_options *o, struct str domain, int64_t day,
    struct err *err, struct report *out)
{
	struct report r = { .arena = arena_new(AGGREGATE_MEMORY) };
	r.aggregate = r.arena != NULL ? aggregate_new(r.arena) : NULL;
	enum res res = r.aggregate != NULL ? RES_OK : RES_NOMEM;
	if (res == RES_OK)
		res = decisions_rows(o->decisions.ptr, domain,
		    day * REPORT_DAY_S * 1000000, (day + 1) * REPORT_DAY_S * 1000000, err,
		    take_row, r.aggregate);
	if (res == RES_OK && aggregate_count(r.aggregate).records == 0)
		res = RES_NOTFOUND;
	if (res == RES_OK) {
		r.facts = (struct aggregate_facts){ o->org, o->email,
			aggregate_report_id(
			    r.arena, o->submitter, domain, day * REPORT_DAY_S),
			day * REPORT_DAY_S, (day + 1) * REPORT_DAY_S - 1 };
		r.file_name = aggregate_file_name(r.arena, o->submitter,
		    domain, r.facts.begin_s, r.facts.end_s, r.facts.report_id);
		if (r.facts.report_id.ptr == NULL || r.file_name.ptr == NULL)
			res = RES_NOMEM;
	}
	if (res == RES_OK)
		*out = r;
	else
		report_done(&r);
	return res;
}

void
report_done(struct report *r)
{
	arena_free(&r->arena);
}

/* Records of the fewest messages are left out until it fits. */
enum res
report_compress(const struct report *r, struct buf *out)
{
	enum res res = RES_LIMIT;
	buf_init(out, AGGREGATE_MAX_GZIP);
	for (size_t max = AGGREGATE_MAX_XML;
	     res == RES_LIMIT && max > AGGREGATE_MAX_GZIP / 8; max /= 2) {
		struct buf xml;
		buf_init(&xml, max);
		buf_reset(out);
		res = aggregate_xml(r->aggregate, &r->facts, max, &xml);
		if (res == RES_OK)
			res = gzip_compress(buf_str(&xml), out);
		buf_done(&xml);
	}
	return res;
}

/* --- the domains of a day ------------------------------------------------------ */

struct collecting {
	struct report_domains *found;
	struct arena *arena;
	bool full;
};

static void
take_domain(void *context, struct str domain, int64_t time_us, struct str row)
{
	struct collecting *c = context;
	struct report_domains *f = c->found;
	if (str_eq(domain, STR(ROW_BOUNCE_DOMAIN)))
		return;
	if (f->count == 0 || !str_eq(f->items[f->count - 1], domain)) {
		struct str copy = arena_dup(c->arena, domain);
		c->full = c->full || f->count == REPORT_MAX_DOMAINS ||
		    copy.ptr == NULL;
		if (c->full)
			return;
		f->messages[f->count] = 0;
		f->items[f->count++] = copy;
	}
	f->messages[f->count - 1]++;
}

enum res
report_domains(const struct report_options *o, int64_t day, struct err *err,
    struct report_domains *out)
{
	struct report_domains found = { .count = 0 };
	struct collecting c = { &found, o->arena, false };
	found.items =
	    arena_array(o->arena, REPORT_MAX_DOMAINS, sizeof *found.items);
	found.messages =
	    arena_array(o->arena, REPORT_MAX_DOMAINS, sizeof *found.messages);
	if (found.items == NULL || found.messages == NULL)
		return RES_NOMEM;
	enum res r = decisions_rows(o->decisions.ptr, STR_EMPTY,
	    day * REPORT_DAY_S * 1000000, (day + 1) * REPORT_DAY_S * 1000000, err,
	    take_domain, &c);
	if (r == RES_OK && c.full)
		cli_fail(EX_OK, "more domains asked for reports than %d: the "
		    "others get none", REPORT_MAX_DOMAINS);
	if (r == RES_OK)
		*out = found;
	return r;
}

bool
report_excluded(const struct report_options *o, struct str domain)
{
	const struct strlist *l = &o->offline.env.config->report_exclude;
	for (size_t i = 0; i < l->count; i++)
		if (match_domain(l->items[i], domain))
			return true;
	return false;
}

#include "cli/each.h"

#include <sysexits.h>

/* What one page could not search is missing from the whole. */
static void
add_coverage(
    struct search_coverage *all, const struct search_coverage *page)
{
	all->shards += page->shards;
	all->offline += page->offline;
	all->messages += page->messages;
	all->unapplied += page->unapplied;
	all->damaged += page->damaged;
	all->incomplete = all->incomplete || page->incomplete;
	if (all->why.text[0] == '\0')
		all->why = page->why;
	if (all->note.text[0] == '\0')
		all->note = page->note;
}

static enum res
one_page(struct archive_reader *r, const struct query *q, each_page_fn begin,
    each_fn fn, void *context, char cursor[256],
    struct search_coverage *coverage, int *status, struct err *err)
{
	const struct search_options o = { .limit = EACH_PAGE,
		.cursor = str_c(cursor),
		.batch = true,
		.going_on = true };
	struct search_coverage page = { 0 };
	struct search_hit *hits;
	size_t count = 0;
	struct str next = STR_EMPTY;
	struct arena *a = arena_new((size_t)1 << 30);
	if (a == NULL)
		return RES_NOMEM;
	enum res res = archive_search(
	    r, a, q, &o, err, &hits, &count, &next, &page);
	add_coverage(coverage, &page);
	if (res == RES_OK && count > 0 && begin != NULL)
		*status = begin(context, hits, count);
	if (*status != EX_OK)
		res = RES_AGAIN; /* told */
	for (size_t i = 0; res == RES_OK && i < count; i++)
		res = fn(context, a, &hits[i]);
	if (res == RES_OK && next.len >= 256)
		res = RES_LIMIT;
	if (res == RES_OK) {
		if (next.len > 0)
			memcpy(cursor, next.ptr, next.len);
		cursor[next.len] = '\0';
	}
	arena_free(&a);
	return res;
}

int
each_message(struct archive_reader *r, const struct query *q,
    each_page_fn page, each_fn fn, void *context,
    struct search_coverage *out_coverage)
{
	struct err err = { "" };
	char cursor[256] = "";
	int status = EX_OK;
	enum res res;
	*out_coverage = (struct search_coverage){ 0 };
	do
		res = one_page(
		    r, q, page, fn, context, cursor, out_coverage, &status,
		    &err);
	while (res == RES_OK && cursor[0] != '\0');
	if (res == RES_OK || status != EX_OK)
		return status;
	return cli_fail(cli_status(res), "%s",
	    err.text[0] != '\0' ? err.text : res_text(res));
}

#include "cli/withdrawn.h"

#include <stdlib.h>
#include <sysexits.h>

#include "archive/keeping/audit.h"

#define AT_ONCE 1000 /* ids of one event */

void
withdrawn_add(struct withdrawals *w, uint64_t id)
{
	if (w->count == w->cap) {
		size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
		uint64_t *more = realloc(w->ids, cap * sizeof *more);
		if (more == NULL) {
			w->incomplete = true;
			return;
		}
		w->ids = more;
		w->cap = cap;
	}
	w->ids[w->count++] = id;
}

void
withdrawn_done(struct withdrawals *w)
{
	free(w->ids);
	*w = (struct withdrawals){ .ids = NULL };
}

static int
by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* An event that is there already: its ids are marked. */
static bool
take_known(void *context, const struct audit_entry *e)
{
	struct withdrawals *w = context;
	if (!str_eq(e->event.action, STR("withdrawn")))
		return true;
	for (size_t i = 0; i < e->event.id_count; i++) {
		uint64_t *known = bsearch(&e->event.ids[i], w->ids, w->count,
		    sizeof *w->ids, by_id);
		if (known != NULL)
			w->ids[w->count + (size_t)(known - w->ids)] = 1;
	}
	return true;
}

/* Sorted, each once, without those that have an event. */
static enum res
leave_new(struct withdrawals *w, const char *dir, struct err *err)
{
	uint64_t unreadable;
	size_t n = 0;
	qsort(w->ids, w->count, sizeof *w->ids, by_id);
	for (size_t i = 0; i < w->count; i++)
		if (n == 0 || w->ids[i] != w->ids[n - 1])
			w->ids[n++] = w->ids[i];
	w->count = n;
	/* behind the ids, whether each is known */
	uint64_t *more = realloc(w->ids, 2 * n * sizeof *more);
	if (more == NULL)
		return RES_NOMEM;
	w->ids = more;
	w->cap = 2 * n;
	for (size_t i = 0; i < n; i++)
		w->ids[n + i] = 0;
	enum res r = audit_walk(
	    dir, 0, 0, false, take_known, w, &unreadable, err);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (w->ids[n + i] == 0)
			w->ids[kept++] = w->ids[i];
	w->count = kept;
	return r;
}

void
withdrawn_write(struct withdrawals *w, const struct archive_place *p,
    const char *dir)
{
	struct err err = { "" };
	enum res r = w->count > 0 ? leave_new(w, dir, &err) : RES_OK;
	if (r != RES_OK || w->incomplete)
		(void)cli_fail(EX_OK, "what was withdrawn is not all written "
		    "down: %s",
		    err.text[0] != '\0' ? err.text :
		    r != RES_OK		 ? res_text(r) :
					   "out of memory");
	while (r == RES_OK && w->written < w->count) {
		size_t n = w->count - w->written;
		const struct archive_event e = { .action = "withdrawn",
			.reason = STR("refused by the MTA or a later filter, "
				      "as its log says"),
			.ids = w->ids + w->written,
			.id_count = n < AT_ONCE ? n : AT_ONCE };
		if (archive_write_event(p, dir, &e) != EX_OK)
			break;
		w->written += e.id_count;
	}
}

/* What the decision store keeps of a message. */
#include "flow/aggregate_row.h"
#include "flow/state.h"
#include "flow/trace.h"

#define MAX_TRACE ((size_t)4 << 20)

_Static_assert(DECISIONS_MAX_ROWS >= DMARC_MAX_FROM_DOMAINS, "one row for each");

/* Rows in the message's arena. One that does not fit is left out. */
static size_t
make_rows(struct message *m, struct decision_row out[DECISIONS_MAX_ROWS])
{
	struct str token;
	size_t n = 0, count = aggregate_row_count(m);
	if (aggregate_row_bounce(m, &token)) {
		out[0] = (struct decision_row){ STR(ROW_BOUNCE_DOMAIN), token };
		return 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct record row;
		struct str domain;
		record_init(&row, ROW_MAX);
		if (aggregate_row_encode(m, i, &row, &domain) &&
		    row.buf.error == RES_OK) {
			out[n].domain = domain;
			out[n].row = arena_dup(m->arena, buf_str(&row.buf));
			n += out[n].row.ptr != NULL;
		}
		record_done(&row);
	}
	return n;
}

void
remember(struct message *m)
{
	struct decisions *store = m->session->env->decisions;
	struct decision_row rows[DECISIONS_MAX_ROWS];
	struct record trace, evidence;
	if (store == NULL)
		return;
	record_init(&trace, MAX_TRACE);
	record_init(&evidence, MAX_TRACE);
	trace_encode(m, &trace);
	trace_evidence(m, &evidence);
	struct decision_entry e = {
		.id = m->id,
		.queue_id = m->queue_id,
		.time_us = m->time_us,
		.trace = buf_str(&trace.buf),
		.rows = rows,
		.row_count = make_rows(m, rows),
	};
	/* without its evidence a decision can still be told */
	if (evidence.buf.error == RES_OK)
		e.evidence = buf_str(&evidence.buf);
	if (trace.buf.error == RES_OK)
		decisions_put(store, &e);
	record_done(&trace);
	record_done(&evidence);
}

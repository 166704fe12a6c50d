/* What the decision store keeps of a message. */
#include "flow/aggregate_row.h"
#include "flow/state.h"
#include "flow/trace.h"

#define MAX_TRACE ((size_t)4 << 20)

void
remember(struct message *m)
{
	struct decisions *store = m->session->env->decisions;
	struct record trace, evidence, row;
	if (store == NULL)
		return;
	record_init(&trace, MAX_TRACE);
	record_init(&evidence, MAX_TRACE);
	record_init(&row, ROW_MAX);
	trace_encode(m, &trace);
	trace_evidence(m, &evidence);
	struct decision_entry e = {
		.id = m->id,
		.queue_id = m->queue_id,
		.time_us = m->time_us,
		.trace = buf_str(&trace.buf),
	};
	/* without its evidence a decision can still be told */
	if (evidence.buf.error == RES_OK)
		e.evidence = buf_str(&evidence.buf);
	if (aggregate_row_bounce(m, &e.row))
		e.domain = STR(ROW_BOUNCE_DOMAIN);
	else if (aggregate_row_encode(m, &row, &e.domain) &&
	    row.buf.error == RES_OK)
		e.row = buf_str(&row.buf);
	if (trace.buf.error == RES_OK)
		decisions_put(store, &e);
	record_done(&trace);
	record_done(&evidence);
	record_done(&row);
}

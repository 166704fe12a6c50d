/* Mail that comes back from a content filter or list manager of this host:
 * recognized by its token, not judged, signed or archived once more; sealed
 * on its way out by what was found at arrival. */
#include "flow/state.h"
#include "flow/token.h"
#include "flow/trace.h"

static enum auth_result
arc_word(struct str word)
{
	if (str_eq(word, STR("pass")))
		return AUTH_PASS;
	return str_eq(word, STR("none")) ? AUTH_NONE : AUTH_FAIL;
}

/* The chain as it was at arrival: a filter may have broken it since. */
static void
recall_chain(struct message *m, struct str trace)
{
	struct str arc = record_find(trace, TRACE_ARC);
	m->recalled_arc = arc_word(record_find(arc, PART_RESULT));
	m->recalled_arc_temporary =
	    record_find(arc, PART_TEMPORARY).len != 0;
}

static bool
recall(struct message *m, struct str id)
{
	struct decision_entry e;
	struct decisions *store = m->session->env->decisions;
	if (store == NULL || decisions_get(store, m->arena, id, &e) != RES_OK)
		return false;
	m->direction = str_eq(record_find(e.trace, TRACE_DIRECTION),
	    STR("out")) ? DIRECTION_OUT : DIRECTION_IN;
	m->direction_why = "judged before";
	m->payload = record_find(e.trace, TRACE_RESULTS);
	m->first_id = arena_dup(m->arena, id);
	recall_chain(m, e.trace);
	return true;
}

void
reinject_recognize(struct message *m)
{
	const struct flow_env *env = m->session->env;
	const struct field *f = header_find(m->header, STR(TOKEN_FIELD));
	struct str id;
	if (m->config->reinjection != REINJECTION_TOKEN || !env->has_secret ||
	    f == NULL || !m->trusted)
		return;
	if (token_check(m->arena, env->secret, f->value, m->time_us / 1000000,
		&id) == RES_OK)
		m->seen = recall(m, id);
}

void
reinject_mark(struct message *m)
{
	const struct flow_env *env = m->session->env;
	if (m->config->reinjection != REINJECTION_TOKEN || !env->has_secret ||
	    m->seen)
		return;
	struct str value = token_make(
	    m->arena, env->secret, m->id, m->time_us / 1000000);
	if (value.ptr == NULL)
		message_internal(m, "Out of memory");
	else
		edits_add(m, EDIT_KIND_INSERT, 0, TOKEN_FIELD, value);
}

#include "milter/connection.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

/* Messages under way from which each new one lets the others go first:
 * libmilter gives every busy connection a thread, and one whose MTA sends on
 * at once would take several messages in one turn of the processor. */
#define CROWD 4

struct connection *
connection_new(struct milter *m, void *ctx)
{
	struct connection *c = calloc(1, sizeof *c);
	if (c == NULL)
		return NULL;
	c->ctx = ctx;
	c->leading_space = atomic_load(&m->last_leading_space);
	c->no_reply = atomic_load(&m->last_no_reply);
	c->actions = atomic_load(&m->last_actions);
	atomic_fetch_add(&m->sessions, 1);
	return c;
}

void
connection_free(struct milter *m, struct connection **cp)
{
	struct connection *c = *cp;
	*cp = NULL;
	if (c == NULL)
		return;
	transaction_end(m, c);
	session_free(&c->session);
	if (c->env != NULL)
		m->options.env_give(m->options.context, c->env);
	atomic_fetch_sub(&m->sessions, 1);
	free(c);
}

void
connection_open(struct milter *m, struct connection *c,
    const struct session_facts *facts)
{
	if (atomic_load(&m->draining) || c->session != NULL)
		return;
	if (c->env == NULL)
		c->env = m->options.env_take(m->options.context);
	if (c->env == NULL ||
	    atomic_load(&m->sessions) > c->env->config->max_sessions)
		return;
	c->session = session_new(c->env);
	if (c->session != NULL)
		session_set_facts(c->session, facts);
}

void
transaction_begin(
    struct milter *m, struct connection *c, const struct envelope *e)
{
	transaction_end(m, c);
	c->in_transaction = true;
	c->refused = false;
	c->mark = 0;
	pthread_mutex_lock(&m->lock);
	bool crowded = ++m->transactions > CROWD;
	c->stopping = atomic_load(&m->draining);
	pthread_mutex_unlock(&m->lock);
	if (crowded)
		sched_yield();
	if (!c->stopping && c->session != NULL &&
	    message_begin(c->session, e, &c->message) != RES_OK)
		log_error("a message is put off: out of memory");
}

void
transaction_end(struct milter *m, struct connection *c)
{
	message_free(&c->message);
	if (!c->in_transaction)
		return;
	c->in_transaction = false;
	pthread_mutex_lock(&m->lock);
	m->last_end_us = clock_mono_us();
	if (--m->transactions == 0)
		pthread_cond_broadcast(&m->idle);
	pthread_mutex_unlock(&m->lock);
}

bool
step_begin(struct milter *m, struct connection *c, struct str piece)
{
	struct guard *g = m->options.guard;
	if (c->message == NULL || c->refused)
		return false;
	if (g == NULL)
		return true;
	c->mark = c->mark == 0 ? guard_begin(g, piece) :
				 guard_add(c->mark, piece);
	if (guard_refuses(g, c->mark)) {
		c->refused = true;
		log_error("a message that crashed this process %d times is "
			  "refused", GUARD_CRASHES);
		return false;
	}
	c->slot = guard_enter(g, c->mark);
	return true;
}

void
step_end(struct milter *m, struct connection *c)
{
	if (m->options.guard != NULL)
		guard_leave(m->options.guard, c->slot);
}

void
answering_begin(struct milter *m, struct connection *c)
{
	c->answering_since_us = clock_mono_us();
	pthread_mutex_lock(&m->lock);
	c->next_waiting = m->waiting;
	m->waiting = c;
	pthread_mutex_unlock(&m->lock);
}

void
answering_end(struct milter *m, struct connection *c)
{
	pthread_mutex_lock(&m->lock);
	struct connection **at = &m->waiting;
	while (*at != c)
		at = &(*at)->next_waiting;
	*at = c->next_waiting;
	pthread_mutex_unlock(&m->lock);
}

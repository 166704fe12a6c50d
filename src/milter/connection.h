/* What is kept per connection of the MTA, and the counting that goes with
 * it. One thread at a time works on a connection, not always the same. */
#ifndef MILTER_CONNECTION_H
#define MILTER_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "flow/message.h"
#include "milter/macros.h"
#include "milter/milter.h"

struct connection {
	int fd;
	struct connection *next, **at;   /* in milter.connections */
	_Atomic int64_t active_us;       /* when the MTA was last heard */
	char *partial;                   /* of a packet not yet whole, or NULL */
	size_t partial_len;
	struct connection *next_waiting; /* in milter.waiting */
	int64_t answering_since_us;
	struct macros *macros;
	const struct flow_env *env;
	struct session *session;  /* NULL: refused, or before connect */
	struct message *message;  /* NULL: none, or it could not begin */
	bool in_transaction;      /* counted as one */
	bool refused;             /* it crashed us before: not looked at */
	uint64_t mark;            /* of what came of the message so far */
	unsigned slot;            /* where the mark stands during a step */
	bool negotiated;
	uint32_t actions, steps;  /* what was granted; 0 before */
};

struct milter {
	struct milter_options options;
	atomic_uint sessions;
	atomic_bool draining, running;
	atomic_bool told_missing; /* actions that were not granted */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;  /* transactions became 0 */
	unsigned transactions;
	struct connection *connections;
	struct connection *waiting; /* those whose answer is being made */
};

/* Takes the socket over. NULL without memory: it is closed. Counts the
 * session. */
struct connection *connection_new(struct milter *m, int fd);
/* Frees message and session, gives the environment back, closes. */
void connection_free(struct milter *m, struct connection **c);
/* Another client follows on it: all is forgotten but what was negotiated. */
void connection_reset(struct milter *m, struct connection *c);
/* Hang up those that were silent since then; their threads free them. */
void connections_expire(struct milter *m, int64_t silent_since_us);

/* False (refuse for now): too many sessions, stopping, or no memory. */
bool connection_open(struct milter *m, struct connection *c,
    const struct session_facts *facts);
/* False when stopping. */
bool transaction_begin(struct milter *m, struct connection *c);
/* Frees the message; may be called without one. To be called once the answer
 * is on its way: then the process may end. */
void transaction_end(struct milter *m, struct connection *c);

/* Around each step of a message, with what came: true when flow may see it.
 * step_end only after true. */
bool step_begin(struct milter *m, struct connection *c, struct str piece);
void step_end(struct milter *m, struct connection *c);

/* Between these the MTA is told now and then that we are still at it. */
void answering_begin(struct milter *m, struct connection *c);
void answering_end(struct milter *m, struct connection *c);

#endif

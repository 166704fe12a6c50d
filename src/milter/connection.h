/* What is kept per connection of the MTA, behind libmilter's private
 * pointer, and the counting that goes with it. */
#ifndef MILTER_CONNECTION_H
#define MILTER_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "flow/message.h"
#include "milter/milter.h"

struct connection {
	struct connection *next_waiting; /* in milter.waiting */
	void *ctx;                       /* libmilter's */
	int64_t answering_since_us;
	const struct flow_env *env;
	struct session *session;  /* NULL: refused, or before connect */
	struct message *message;  /* NULL: none, or it could not begin */
	bool in_transaction;      /* counted as one */
	bool stopping;            /* it began too late to be taken */
	bool refused;             /* it crashed us before: not looked at */
	uint64_t mark;            /* of what came of the message so far */
	unsigned slot;            /* where the mark stands during a step */
	bool leading_space;       /* SMFIP_HDR_LEADSPC was granted */
	unsigned long no_reply;   /* SMFIP_NR_* that were granted */
	unsigned long actions;    /* SMFIF_* that were granted */
};

/* The one object libmilter forces to be global. Set before its threads. */
struct milter {
	struct milter_options options;
	atomic_uint sessions;
	atomic_bool draining, running;
	/* What the last negotiation granted: for connections that follow on a
	 * QUIT_NC and do not negotiate again. */
	atomic_bool last_leading_space;
	atomic_ulong last_no_reply, last_actions;
	atomic_bool told_missing; /* actions that were not granted */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle;  /* transactions became 0 */
	unsigned transactions;
	int64_t last_end_us;  /* of a transaction; 0: none yet */
	struct connection *waiting; /* those whose answer is being made */
};

/* NULL without memory. Counts the session. */
struct connection *connection_new(struct milter *m, void *ctx);
/* Frees message and session, gives the environment back. NULL is fine. */
void connection_free(struct milter *m, struct connection **c);

/* Sets c->session, which stays NULL (its mail is put off) with too many
 * sessions, when stopping, and without memory. */
void connection_open(struct milter *m, struct connection *c,
    const struct session_facts *facts);
/* Sets c->message, which stays NULL when stopping, without a session or
 * without memory; counted even so, as its end is to be answered. */
void transaction_begin(
    struct milter *m, struct connection *c, const struct envelope *e);
/* Frees the message; may be called without one. */
void transaction_end(struct milter *m, struct connection *c);

/* Around each step of a message, with what came: true when flow may see it.
 * step_end only after true. */
bool step_begin(struct milter *m, struct connection *c, struct str piece);
void step_end(struct milter *m, struct connection *c);

/* Between these the MTA is told now and then that we are still at it. */
void answering_begin(struct milter *m, struct connection *c);
void answering_end(struct milter *m, struct connection *c);

#endif

/* An archived message judged again: the session and the envelope as META has
 * them, the clock of then, and of the DNS only the answers kept with it. With
 * the configuration of today or any other, and nothing is kept or sent. */
#ifndef FLOW_REPLAY_H
#define FLOW_REPLAY_H

#include "flow/evidence.h"
#include "flow/message.h"

struct replay_options {
	struct config *config;
	struct str meta;         /* decoded */
	struct evidence_options evidence;
	int64_t time_us;
	/* push the presented bytes and finish */
	enum res (*pour)(void *context, struct sink *out);
	void *context;
};

struct replay {
	/* "accept", "quarantine", "hold", "tempfail", "reject"; and why */
	const char *disposition, *cause;
	const struct decision *decision;
	/* an answer was asked for that was not kept: then the results may be
	 * temporary errors that nobody saw */
	struct str missing;
	/* inside */
	struct flow_env env;
	struct flow_counters counters;
	struct session *session;
	struct message *message;
};

/* RES_CORRUPT: META or EVIDENCE cannot be read; else what `pour` says. In any
 * case replay_done. */
HN_CHECK enum res replay_run(
    const struct replay_options *o, struct replay *out);
void replay_done(struct replay *r);

#endif

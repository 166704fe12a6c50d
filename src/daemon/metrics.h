/* The endpoint of `metrics = inet:PORT@HOST`: what `hanaper status` tells, as
 * Prometheus reads it (text format 0.0.4, GET /metrics).
 *
 * One thread serves one client after the other; each has METRICS_TALK_US to
 * ask and to read, so that nobody who is slow or many keeps memory. It tells
 * numbers only, nothing of any mail, to whoever can connect. */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "base/err.h"
#include "flow/env.h"

#define METRICS_TALK_US     2000000
#define METRICS_MAX_REQUEST ((size_t)8192)
#define METRICS_MAX_ANSWER  ((size_t)1 << 20)

struct metrics;

struct metrics_options {
	struct str address; /* "inet:PORT@HOST" as the configuration has it */
	int64_t started_us; /* of the process: wall clock */
	/* The environment of now, to be given back; any thread. */
	const struct flow_env *(*env_take)(void *context);
	void (*env_give)(void *context, const struct flow_env *env);
	void *context;
};

/* Bind and serve; else a line in `err`. Mail does not depend on it. */
HN_CHECK enum res metrics_start(
    const struct metrics_options *o, struct err *err, struct metrics **out);
/* Waits for the client that is being served, at most METRICS_TALK_US. */
void metrics_stop(struct metrics **m);
/* The address it was started with. */
struct str metrics_address(const struct metrics *m);

#endif

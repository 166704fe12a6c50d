/* The DNS thread: a libevent loop with libunbound's contexts in it. Every
 * ub_* call is made on this thread, but for those that set a context up before
 * the thread exists. Used by dns/unbound.c only. */
#ifndef DNS_ENGINE_H
#define DNS_ENGINE_H

#include "base/err.h"
#include "dns/dns.h"
#include "dns/unbound.h"

struct engine;

struct engine_hooks {
	/* On the DNS thread, after engine_wake: hand over what is queued. */
	void (*work)(void *arg);
	/* On the DNS thread, once per engine_resolve, maybe from inside it.
	 * A reference the hook owns; NULL without memory. */
	void (*done)(void *arg, void *lookup, struct dns_answer *a);
	void *arg;
};

/* Contexts made, thread not yet started: nothing calls a hook before
 * engine_start. */
HN_CHECK enum res engine_new(const struct unbound_options *o,
    const struct engine_hooks *hooks, struct err *err, struct engine **out);
HN_CHECK enum res engine_start(struct engine *e, struct err *err);
/* Stop the thread, free. Look-ups under way end without `done`. */
void engine_free(struct engine **e);

/* From any thread. */
void engine_wake(struct engine *e);
const char *engine_dnssec_note(struct engine *e, int64_t deadline_us);
bool engine_probing(struct engine *e);

/* On the DNS thread only. `name` stays the caller's until `done`. */
void engine_resolve(
    struct engine *e, struct str name, enum dns_type type, void *lookup);

#endif

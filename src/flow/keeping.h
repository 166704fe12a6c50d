/* Erasing, expiring, holding and events as requests of named values, so that
 * the daemon does for a client of its control socket exactly what `hanaper`
 * does itself while no daemon runs.
 *
 *   erase         id=7.123 … reason=TEXT      → frames#, before#
 *   expire        plan#1 or nothing           → one record a shard
 *   hold_add      name=, query=               →
 *   hold_release  name=                       →
 *   event         action=, query=, id= …      → (what readers do)
 */
#ifndef FLOW_KEEPING_H
#define FLOW_KEEPING_H

#include <stdatomic.h>

#include "archive/keeping/audit.h"
#include "base/fields.h"
#include "config/config.h"

struct keeping_call {
	struct store *store;
	const struct config *config;
	struct arena *arena;
	const struct fields *request;
	struct audit_who who;
	const atomic_bool *stop; /* NULL: never */
	struct buf *answer;      /* whole records */
};

/* RES_UNSUPPORTED: no such command; else what the archive says, with a line
 * in `err`. */
HN_CHECK enum res keeping_run(
    const char *command, struct keeping_call *call, struct err *err);

#endif

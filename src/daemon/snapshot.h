/* What sessions of one configuration work with. Immutable; each session holds
 * a reference, so that a reload never changes rules within it. Parts that a
 * reload leaves alone (archive, resolver, memory of published keys) are
 * shared between snapshots. */
#ifndef DAEMON_SNAPSHOT_H
#define DAEMON_SNAPSHOT_H

#include "base/err.h"
#include "base/res.h"
#include "flow/env.h"

struct snapshot;

/* Read `text` (its file's name is `path`), open what it names. `previous` may
 * be NULL. `signer` outlives the snapshot. On failure `err` has a line. */
HN_CHECK enum res snapshot_new(struct str text, const char *path,
    struct signer *signer, struct snapshot *previous, struct err *err,
    struct snapshot **out);
struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot **s);

const struct flow_env *snapshot_env(const struct snapshot *s);
/* The snapshot that an environment is of. */
struct snapshot *snapshot_of(const struct flow_env *env);
/* Close its archive and decisions in order, whoever still holds the snapshot: the process
 * is about to end and nothing is under way. */
void snapshot_close_stores(struct snapshot *s);

#endif

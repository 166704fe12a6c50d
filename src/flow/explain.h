/* A decision in plain words: what was seen, which rule decided, what would
 * have to change, and the DNS answers used. Reads the trace record, so that a
 * message of last week and a file of today read the same. */
#ifndef FLOW_EXPLAIN_H
#define FLOW_EXPLAIN_H

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

/* Append the text. `evidence` may be empty. Hostile bytes are shown as '?'.
 * RES_CORRUPT when a record is damaged (what was read stays in `out`). */
HN_CHECK enum res explain_render(
    struct str trace, struct str evidence, struct buf *out);

#endif

/* What the files of explain share: reading a trace record (flow/trace.h) and
 * showing its texts, which come from mail, harmlessly. */
#ifndef FLOW_EXPLAIN_PART_H
#define FLOW_EXPLAIN_PART_H

#include <stdbool.h>

#include "archive/format/record.h"
#include "base/buf.h"

uint64_t explain_number(struct str record, unsigned tag); /* 0: not there */
bool explain_is(struct str record, unsigned tag, const char *word);
bool explain_has(struct str record, unsigned tag);

/* Bytes that are no printable ASCII become '?'; long texts are cut. */
void explain_show(struct buf *out, struct str s);
/* `before` and the value, when there is one. */
void explain_pair(
    struct buf *out, const char *before, struct str record, unsigned tag);

/* Which rule decided (inbound), and what would have to change. */
void explain_policy(struct buf *out, struct str trace);
void explain_advice(struct buf *out, struct str trace);

#endif

/* What is said to the MTA about a message: header edits and a reply. */
#ifndef MILTER_REPLY_H
#define MILTER_REPLY_H

#include "flow/message.h"
#include "milter/wire.h"

/* At end of message only. Edits are sent in the order given; if one cannot be
 * sent, the MTA would queue something else than what was signed and archived,
 * so that the message is tempfailed. `actions` and `steps` as negotiated:
 * without WIRE_LEADING_SPACE the MTA adds the space that values begin with. */
void reply_decision(struct buf *out, const struct decision *d,
    uint32_t actions, uint32_t steps);

/* A refusal with a text. */
void reply_text(struct buf *out, const char *code, const char *enhanced,
    const char *text);

#endif

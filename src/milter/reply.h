/* A decision, told to the MTA: header edits and a reply. */
#ifndef MILTER_REPLY_H
#define MILTER_REPLY_H

#include <libmilter/mfapi.h>

#include "flow/message.h"

/* In the end-of-message callback only. Edits are sent in the order given; if
 * one cannot be sent, the MTA would queue something else than what was signed
 * and archived, so that the message is tempfailed. `leading_space` as
 * negotiated: without it the MTA adds the space that values begin with. */
sfsistat reply_decision(
    SMFICTX *ctx, const struct decision *d, bool leading_space);

/* A refusal with a text, for now or for good, at end of message. */
sfsistat reply_tempfail(
    SMFICTX *ctx, const char *code, const char *enhanced, const char *text);
sfsistat reply_reject(
    SMFICTX *ctx, const char *code, const char *enhanced, const char *text);

#endif

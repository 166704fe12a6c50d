/* What the MTA says, packet by packet, turned into calls of flow. */
#ifndef MILTER_COMMAND_H
#define MILTER_COMMAND_H

#include "milter/connection.h"
#include "milter/wire.h"

enum command_after {
	COMMAND_GO_ON,
	COMMAND_ANSWERED, /* once `out` is sent the transaction has ended */
	COMMAND_CLOSE,    /* said so, or broke the protocol */
};

/* One whole packet: what it is and its data. Replies are added to `out`. */
enum command_after command_take(struct milter *m, struct connection *c,
    char what, struct str data, struct buf *out);

#endif

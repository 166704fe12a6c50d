/* Control packets between supervisor and a role, over SOCK_SEQPACKET: one
 * byte of type, a payload, at most one descriptor. */
#ifndef DAEMON_IPC_H
#define DAEMON_IPC_H

#include <stddef.h>

#include "base/err.h"
#include "base/res.h"
#include "base/str.h"

#define IPC_MAX_PACKET ((size_t)8 << 10)
#define IPC_BY_RULE    0x80 /* of a key's state: keyfile.by_rule */
#define IPC_NOTES      0x40 /* … and keyfile.notes */
#define IPC_CHILD_FD   3 /* a role finds its end here */

enum ipc_type {
	/* to the signer */
	/* state8 (+ 128: by rule, + 64: for notes) len16×3 domain selector
	 * path, with its file */
	IPC_KEY = 'K',
	IPC_LOAD = 'L',   /* the keys since the last IPC_LOAD are all; answered */
	IPC_PEER = 'P',   /* a connection from the milter process */
	/* to the milter process */
	IPC_LISTEN = 'F', /* the MTA's socket; once */
	IPC_MARKS = 'G',  /* memory of messages under way; before IPC_COMMIT */
	IPC_SIGNER = 'S', /* a connection to the signer */
	IPC_CONFIG = 'C', /* path, with its text: prepare; answered */
	IPC_COMMIT = 'A', /* use what was prepared; answered */
	IPC_CANCEL = 'X', /* forget it */
	IPC_DRAIN = 'D',  /* finish what is under way, then exit */
	/* from the milter process, of its own accord */
	IPC_PARTED = 'Z', /* the connection to the signer has ended */
	/* from both */
	IPC_DONE = 'O',
	IPC_ERROR = 'E',  /* one line of text */
};

/* `fd` < 0: none; it stays the caller's. RES_AGAIN: the peer does not read;
 * RES_IO: it is gone. */
HN_CHECK enum res ipc_send(
    int control, enum ipc_type type, struct str payload, int fd);

struct ipc_packet {
	enum ipc_type type;
	struct str payload; /* in `bytes` */
	int fd;             /* the receiver's, or -1 */
	char bytes[IPC_MAX_PACKET];
};
/* Blocks. RES_NOTFOUND: the peer closed; RES_IO; RES_SYNTAX: no packet of
 * ours. On any error nothing is to be closed. */
HN_CHECK enum res ipc_receive(int control, struct ipc_packet *out);

/* A role's answer to the supervisor, with why when it is no RES_OK. Ends the
 * process when there is no supervisor. */
void ipc_answer(enum res r, const struct err *err);

#endif

/* A signer whose private keys are in another process, over a SOCK_SEQPACKET
 * socket pair: any number of threads on the asking side, REMOTE_LANES on the
 * signing side. Neither side lets the other take memory or time without
 * bound; the signing side takes nothing but small requests.
 *
 * The pair is for the key list. With the first packet come lanes: sockets,
 * each with a thread of its own at the far end, for one request at a time, so
 * that nobody stands between the thread that asks and the one that signs.
 *
 * Packets begin with one byte of type, integers are little-endian:
 *
 *   'L'                               with the descriptors of the lanes
 *   'M' generation32 count32          a new key list begins, `count` keys
 *   'K' { id32 type8 bits16 len16×3 domain selector public }…
 *           (type: 0 RSA, 1 Ed25519; + 128 by rule; + 64 for notes only)
 *   'E' generation32                  the key list is complete
 * and in a lane
 *   'S' request32 generation32 id32 digest[32]      (to the signing side)
 *   'N' request32 generation32 id32 text            (to it: a note)
 *   'R' request32 outcome8 signature                (from it)
 *
 * The list is sent when a connection begins and after each reload. Ids are
 * good within one generation of one connection: a request with another is
 * answered "stale", and the asking side repeats it after the list that is on
 * its way. A key is never used under another's name: between generations it
 * is found again by domain, selector and public half. */
#ifndef KEYS_REMOTE_H
#define KEYS_REMOTE_H

#include "keys/signer.h"

#define REMOTE_MAX_PACKET  ((size_t)16 << 10)
#define REMOTE_MAX_KEYS    400000
#define REMOTE_LANES       32
#define REMOTE_TIMEOUT_US  10000000 /* an RSA-8192 signature takes 10 ms */
/* Of a note: Ed25519 takes 0.1 ms, mail may wait for the shard it is about,
 * and what is not signed now is signed later. */
#define REMOTE_NOTE_TIMEOUT_US 1000000

/* --- asking side --- */

/* A signer without a connection: its key list is NULL and it answers
 * RES_AGAIN. A request waits `timeout_us` at most (0: the default), one for a
 * note never longer than REMOTE_NOTE_TIMEOUT_US. Starts a thread. */
HN_CHECK enum res remote_new(int64_t timeout_us, struct signer **out);
/* Use this connection (taken over) from now on; the one before is closed,
 * what waits on it gets RES_AGAIN. The key list of before stays until the new
 * one is complete, so that no domain looks like one without keys. */
HN_CHECK enum res remote_attach(struct signer *s, int fd);
/* Whether there is one that has not ended; its key list may be on its way. */
bool remote_connected(struct signer *s);
/* Wait until the present connection's key list is complete. RES_TIMEOUT. */
HN_CHECK enum res remote_wait_ready(struct signer *s, int64_t deadline_us);

/* --- signing side --- */

struct remote_server;

/* Serve `ring` (kept by the caller, who frees it later) on this connection,
 * taken over: sends lanes and the key list and starts their threads. */
HN_CHECK enum res remote_server_new(
    struct signer *ring, int fd, struct remote_server **out);
/* Send the list again: `ring` was reloaded. RES_IO: the other side is gone. */
HN_CHECK enum res remote_server_push(struct remote_server *v);
/* Closes the connection, waits for the threads. */
void remote_server_free(struct remote_server **v);

#endif

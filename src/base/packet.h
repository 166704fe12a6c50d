/* Packets over SOCK_SEQPACKET sockets, with descriptors if need be. */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

#include <stddef.h>

#include "base/res.h"
#include "base/str.h"

#define PACKET_MAX_FDS 64

/* Send `head` and `rest` as one packet. The `count` descriptors are
 * duplicated for the peer and stay the caller's. RES_AGAIN: the peer does
 * not read (the socket's time limit); RES_LIMIT; RES_IO: it is gone. */
HN_CHECK enum res packet_send(int socket, struct str head, struct str rest,
    const int *fds, size_t count);

/* Blocks. *len bytes of at most `room`, and *count descriptors, close on
 * exec, of at most `max` (others that came are closed). RES_NOTFOUND: the
 * peer closed; RES_SYNTAX: longer than `room`, or more descriptors than a
 * packet can have; RES_AGAIN: the socket's time limit; RES_IO. On any error
 * nothing is to be closed. */
HN_CHECK enum res packet_receive(int socket, void *bytes, size_t room,
    size_t *len, int *fds, size_t max, size_t *count);

#endif

#include "base/packet.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(PACKET_MAX_FDS * sizeof(int))];
};

enum res
packet_send(int socket, struct str head, struct str rest, const int *fds,
    size_t count)
{
	struct iovec parts[] = { { (void *)(uintptr_t)head.ptr, head.len },
		{ (void *)(uintptr_t)rest.ptr, rest.len } };
	struct msghdr m = { .msg_iov = parts,
		.msg_iovlen = rest.len > 0 ? 2 : 1 };
	union control room;
	if (count > PACKET_MAX_FDS)
		return RES_LIMIT;
	if (count > 0) {
		memset(&room, 0, sizeof room);
		m.msg_control = room.bytes;
		m.msg_controllen = CMSG_SPACE(count * sizeof *fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof *fds);
		memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
	}
	ssize_t n;
	do
		n = sendmsg(socket, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)(head.len + rest.len))
		return RES_OK;
	return n < 0 && errno == EAGAIN ? RES_AGAIN : RES_IO;
}

/* Into `fds` as far as there is room; others are closed. */
static size_t
take_descriptors(struct msghdr *m, int *fds, size_t max)
{
	size_t kept = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL;
	     c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t came = (c->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
		for (size_t i = 0; i < came; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (kept < max)
				fds[kept++] = fd;
			else
				close(fd);
		}
	}
	return kept;
}

enum res
packet_receive(int socket, void *bytes, size_t room, size_t *len, int *fds,
    size_t max, size_t *count)
{
	struct iovec part = { bytes, room };
	union control control;
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control };
	ssize_t n;
	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return RES_NOTFOUND;
	if (n < 0)
		return errno == EAGAIN ? RES_AGAIN : RES_IO;
	size_t kept = take_descriptors(&m, fds, max);
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		for (size_t i = 0; i < kept; i++)
			close(fds[i]);
		return RES_SYNTAX;
	}
	*len = (size_t)n;
	*count = kept;
	return RES_OK;
}

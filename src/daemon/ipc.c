#include "daemon/ipc.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union descriptor {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

enum res
ipc_send(int control, enum ipc_type type, struct str payload, int fd)
{
	char byte = (char)type;
	struct iovec parts[] = { { &byte, 1 },
		{ (void *)(uintptr_t)payload.ptr, payload.len } };
	union descriptor room = { .bytes = { 0 } };
	struct msghdr m = { .msg_iov = parts,
		.msg_iovlen = payload.len > 0 ? 2 : 1 };
	if (payload.len + 1 > IPC_MAX_PACKET)
		return RES_LIMIT;
	if (fd >= 0) {
		m.msg_control = room.bytes;
		m.msg_controllen = sizeof room.bytes;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	ssize_t n;
	do
		n = sendmsg(control, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)payload.len + 1)
		return RES_OK;
	return n < 0 && errno == EAGAIN ? RES_AGAIN : RES_IO;
}

/* The first descriptor is kept; more are not ours and are closed. */
static int
take_descriptor(struct msghdr *m)
{
	int kept = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL;
	     c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (kept < 0)
				kept = fd;
			else
				close(fd);
		}
	}
	return kept;
}

enum res
ipc_receive(int control, struct ipc_packet *out)
{
	struct iovec part = { out->bytes, sizeof out->bytes };
	union descriptor room;
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1,
		.msg_control = room.bytes, .msg_controllen = sizeof room };
	ssize_t n;
	do
		n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return RES_NOTFOUND;
	if (n < 0)
		return RES_IO;
	out->fd = take_descriptor(&m);
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		if (out->fd >= 0)
			close(out->fd);
		return RES_SYNTAX;
	}
	out->type = (enum ipc_type)out->bytes[0];
	out->payload = str_of(out->bytes + 1, (size_t)n - 1);
	return RES_OK;
}

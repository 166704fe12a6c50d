#include "daemon/ipc.h"

#include <unistd.h>

#include "base/packet.h"

enum res
ipc_send(int control, enum ipc_type type, struct str payload, int fd)
{
	char byte = (char)type;
	if (payload.len + 1 > IPC_MAX_PACKET)
		return RES_LIMIT;
	return packet_send(
	    control, str_of(&byte, 1), payload, &fd, fd >= 0 ? 1 : 0);
}

enum res
ipc_receive(int control, struct ipc_packet *out)
{
	size_t len, fds;
	enum res r = packet_receive(
	    control, out->bytes, sizeof out->bytes, &len, &out->fd, 1, &fds);
	if (r != RES_OK)
		return r == RES_AGAIN ? RES_IO : r;
	if (fds == 0)
		out->fd = -1;
	out->type = (enum ipc_type)out->bytes[0];
	out->payload = str_of(out->bytes + 1, len - 1);
	return RES_OK;
}

void
ipc_answer(enum res r, const struct err *err)
{
	const char *text = err->text[0] != '\0' ? err->text : res_text(r);
	enum res sent = r == RES_OK ?
	    ipc_send(IPC_CHILD_FD, IPC_DONE, STR_EMPTY, -1) :
	    ipc_send(IPC_CHILD_FD, IPC_ERROR, str_c(text), -1);
	if (sent != RES_OK)
		_exit(1);
}

#include "daemon/talk.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"

enum res
talk_await(int fd, short what, int stop_fd, int64_t deadline_us)
{
	struct pollfd p[] = { { fd, what, 0 }, { stop_fd, POLLIN, 0 } };
	int64_t left_us = deadline_us - clock_mono_us();
	if (left_us <= 0)
		return RES_TIMEOUT;
	int n = poll(p, 2, (int)(left_us / 1000) + 1);
	if (n < 0 && errno != EINTR)
		return RES_IO;
	if (n > 0 && p[1].revents != 0)
		return RES_AGAIN;
	return n == 0 ? RES_TIMEOUT : RES_OK;
}

void
talk_send(int fd, struct str s, int64_t deadline_us)
{
	while (s.len > 0 && talk_await(fd, POLLOUT, -1, deadline_us) == RES_OK) {
		ssize_t n = send(fd, s.ptr, s.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (n > 0)
			s = str_skip(s, (size_t)n);
	}
}

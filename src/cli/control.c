#include "cli/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define PROTOCOL    1
#define MAX_REQUEST ((size_t)1 << 20)
#define MAX_ANSWER  ((size_t)64 << 20)
#define MAX_RECORDS ((size_t)1 << 20)
#define PIECE       ((size_t)65536)

void
control_begin(struct buf *b, const char *command)
{
	buf_init(b, MAX_REQUEST);
	fields_text(b, "command", str_c(command));
	fields_number(b, "protocol", PROTOCOL);
}

static enum res
connect_to(struct str state_dir, struct err *err, int *out)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int n = snprintf(to.sun_path, sizeof to.sun_path, "%.*s/control.sock",
	    STR_ARG(state_dir));
	if (n < 0 || (size_t)n >= sizeof to.sun_path)
		return RES_NOTFOUND; /* the daemon could not make it either */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return RES_IO;
	if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) {
		*out = fd;
		return RES_OK;
	}
	int error = errno;
	close(fd);
	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
		return RES_NOTFOUND;
	err_set(err, "%s: %s%s", to.sun_path, strerror(error),
	    error == EACCES ? ": only root, the daemon's user and members of "
			      "its group may ask"
			    : "");
	return error == EACCES ? RES_DENIED : RES_IO;
}

static enum res
send_request(int fd, struct str s)
{
	while (s.len > 0) {
		ssize_t n = send(fd, s.ptr, s.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) /* what the daemon said before it hung up counts */
			return errno == EPIPE ? RES_OK : RES_IO;
		s = str_skip(s, (size_t)n);
	}
	return RES_OK;
}

static enum res
receive(int fd, int64_t deadline_us, struct buf *answer)
{
	for (;;) {
		struct pollfd p = { fd, POLLIN, 0 };
		int64_t left_us = deadline_us - clock_mono_us();
		if (left_us <= 0)
			return RES_TIMEOUT;
		int n = poll(&p, 1,
		    left_us > 3600000000 ? 3600000 : (int)(left_us / 1000) + 1);
		if (n < 0 && errno != EINTR)
			return RES_IO;
		if (n <= 0)
			continue;
		char *to = buf_reserve(answer, PIECE);
		if (to == NULL)
			return answer->error;
		ssize_t got = recv(fd, to, PIECE, 0);
		if (got == 0)
			return RES_OK;
		if (got < 0 && errno == ECONNRESET)
			return RES_OK;
		if (got < 0 && errno != EINTR)
			return RES_IO;
		if (got > 0)
			answer->len += (size_t)got;
	}
}

/* The records of an answer; the last one is the daemon's result. */
enum res
control_read(
    struct str s, struct arena *a, struct err *err, struct control_answer *out)
{
	size_t count = 0, cap = 0;
	struct fields *list = NULL;
	enum res r;
	struct fields one;
	while ((r = fields_read(&s, a, &one)) == RES_OK) {
		if (count == cap) {
			cap = cap == 0 ? 16 : cap * 2;
			struct fields *more = cap > MAX_RECORDS
			    ? NULL
			    : arena_array(a, cap, sizeof *more);
			if (more == NULL)
				return RES_NOMEM;
			if (count > 0)
				memcpy(more, list, count * sizeof *more);
			list = more;
		}
		list[count++] = one;
	}
	if (r != RES_NOTFOUND && r != RES_SYNTAX)
		return r;
	if (r == RES_SYNTAX || count == 0 || list[count - 1].count == 0 ||
	    !str_eq(list[count - 1].items[0].name, STR("result"))) {
		err_set(err,
		    "hanaperd broke the connection off: it is busy "
		    "or stopping; try again");
		return RES_AGAIN;
	}
	count--;
	r = (enum res)fields_get_number(&list[count], "result");
	struct str text = fields_get(&list[count], "error");
	if (r != RES_OK)
		err_set(err, "%.*s", STR_ARG(text));
	*out = (struct control_answer){ count, list };
	return r;
}

enum res
control_call(struct str state_dir, struct buf *request, int64_t wait_us,
    struct arena *a, struct err *err, struct control_answer *out)
{
	struct buf answer;
	int fd = -1;
	buf_init(&answer, MAX_ANSWER);
	fields_end(request);
	enum res r = request->error;
	if (r == RES_OK)
		r = connect_to(state_dir, err, &fd);
	if (r == RES_OK)
		r = send_request(fd, buf_str(request));
	if (r == RES_OK)
		r = receive(fd, clock_mono_us() + wait_us, &answer);
	if (r == RES_TIMEOUT)
		err_set(err, "hanaperd does not answer");
	if (r == RES_OK)
		r = control_read(buf_str(&answer), a, err, out);
	if (fd >= 0)
		close(fd);
	buf_done(&answer);
	buf_done(request);
	if (r != RES_OK && r != RES_NOTFOUND)
		err_set(err, "control socket: %s", res_text(r));
	return r;
}

#include "base/packet.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hn_test.h"

static void
make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
}

static int
open_count(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void
bytes_and_descriptors(void **state)
{
	int pair[2], file[2], got[2];
	char bytes[16];
	size_t len, count;
	(void)state;
	make_pair(pair);
	assert_int_equal(pipe(file), 0);
	assert_ok(packet_send(pair[0], STR("ab"), STR("cde"), file, 2));
	assert_ok(packet_receive(
	    pair[1], bytes, sizeof bytes, &len, got, 2, &count));
	assert_int_equal(len, 5);
	assert_memory_equal(bytes, "abcde", 5);
	assert_int_equal(count, 2);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(file[0], bytes, sizeof bytes), 1);
	assert_ok(packet_send(pair[0], STR("a"), STR_EMPTY, NULL, 0));
	assert_ok(packet_receive(
	    pair[1], bytes, sizeof bytes, &len, NULL, 0, &count));
	assert_int_equal(len, 1);
	assert_int_equal(count, 0);
	close(got[0]);
	close(got[1]);
	close(file[0]);
	close(file[1]);
	close(pair[0]);
	assert_int_equal(packet_receive(pair[1], bytes, sizeof bytes, &len,
			     NULL, 0, &count), RES_NOTFOUND);
	assert_int_equal(packet_send(pair[1], STR("a"), STR_EMPTY, NULL, 0),
	    RES_IO);
	close(pair[1]);
}

/* None of these may leave a descriptor open. */
static void
too_many(void **state)
{
	int pair[2], fds[PACKET_MAX_FDS + 1], got[3];
	char bytes[4];
	size_t len, count;
	(void)state;
	make_pair(pair);
	for (size_t i = 0; i < PACKET_MAX_FDS + 1; i++)
		fds[i] = pair[0];
	int before = open_count();
	assert_int_equal(packet_send(pair[0], STR("a"), STR_EMPTY, fds,
			     PACKET_MAX_FDS + 1), RES_LIMIT);
	assert_ok(packet_send(
	    pair[0], STR("a"), STR_EMPTY, fds, PACKET_MAX_FDS));
	assert_ok(packet_receive(
	    pair[1], bytes, sizeof bytes, &len, got, 3, &count));
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++)
		close(got[i]);
	assert_int_equal(open_count(), before);
	/* longer than there is room */
	assert_ok(packet_send(pair[0], STR("abcde"), STR_EMPTY, fds, 2));
	assert_int_equal(packet_receive(pair[1], bytes, sizeof bytes, &len,
			     got, 3, &count), RES_SYNTAX);
	assert_int_equal(open_count(), before);
	close(pair[0]);
	close(pair[1]);
}

static void
a_peer_that_does_not_read(void **state)
{
	int pair[2];
	const struct timeval limit = { 0, 10000 };
	char bytes[4];
	size_t len, count;
	enum res r = RES_OK;
	(void)state;
	make_pair(pair);
	for (int i = 0; i < 2; i++) {
		setsockopt(pair[i], SOL_SOCKET, SO_SNDTIMEO, &limit,
		    sizeof limit);
		setsockopt(pair[i], SOL_SOCKET, SO_RCVTIMEO, &limit,
		    sizeof limit);
	}
	assert_int_equal(packet_receive(pair[0], bytes, sizeof bytes, &len,
			     NULL, 0, &count), RES_AGAIN);
	for (int i = 0; i < 100000 && r == RES_OK; i++)
		r = packet_send(pair[0], STR("abcd"), STR_EMPTY, NULL, 0);
	assert_int_equal(r, RES_AGAIN);
	close(pair[0]);
	close(pair[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_descriptors),
		cmocka_unit_test(too_many),
		cmocka_unit_test(a_peer_that_does_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "hn_test.h"

#include <netinet/in.h>

#include "base/ip.h"

static void
check(const struct ip *ip, const char *want)
{
	struct buf b;
	buf_init(&b, 100);
	ip_format(&b, ip);
	assert_str(buf_str(&b), want);
	buf_done(&b);
}

static void
test_parse(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
		enum ip_family family;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", IP_V4 },
		{ "[192.0.2.1]", "192.0.2.1", IP_V4 },
		{ "2001:DB8:0:0::1", "2001:db8::1", IP_V6 },
		{ "IPv6:2001:db8::1", "2001:db8::1", IP_V6 },
		{ "[IPv6:2001:db8::1]", "2001:db8::1", IP_V6 },
		{ "fe80::1%eth0", "fe80::1", IP_V6 },
		{ "::ffff:192.0.2.1", "192.0.2.1", IP_V4 },
		{ "::ffff:c000:201", "192.0.2.1", IP_V4 },
		{ "::", "::", IP_V6 },
		{ "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", IP_V6 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct ip ip;
		assert_ok(ip_parse(str_c(rows[i].in), &ip));
		assert_int_equal(ip.family, rows[i].family);
		check(&ip, rows[i].out);
	}
	static const char *const bad[] = { "", "[]", "192.0.2", "192.0.2.256",
		"192.0.2.1.", " 192.0.2.1", "1::2::3", "12345::", "[192.0.2.1",
		"unknown", "IPv6:", "2001:db8::1/64",
		"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct ip ip = { .family = IP_V6, .bytes = { 9 } };
		assert_int_equal(ip_parse(str_c(bad[i]), &ip), RES_SYNTAX);
		assert_int_equal(ip.bytes[0], 9);
	}
	struct ip ip;
	assert_int_equal(ip_parse(str_of("1.2.3.4\0", 8), &ip), RES_SYNTAX);
	struct ip none = { .family = IP_NONE };
	check(&none, "");
}

static void
test_sockaddr(void **state)
{
	(void)state;
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0xc0000201) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr un = { .sa_family = AF_UNIX };
	struct ip ip;
	assert_ok(ip_from_sockaddr((struct sockaddr *)&in, &ip));
	check(&ip, "192.0.2.1");
	in6.sin6_addr.s6_addr[15] = 1;
	assert_ok(ip_from_sockaddr((struct sockaddr *)&in6, &ip));
	check(&ip, "::1");
	memcpy(in6.sin6_addr.s6_addr + 10, "\xff\xff\x0a\0\0\x01", 6);
	assert_ok(ip_from_sockaddr((struct sockaddr *)&in6, &ip));
	check(&ip, "10.0.0.1");
	assert_int_equal(ip_from_sockaddr(&un, &ip), RES_UNSUPPORTED);
	assert_int_equal(ip_from_sockaddr(NULL, &ip), RES_UNSUPPORTED);
}

static void
test_nets(void **state)
{
	(void)state;
	static const struct {
		const char *net, *ip;
		bool in;
	} rows[] = {
		{ "192.0.2.0/24", "192.0.2.255", true },
		{ "192.0.2.0/24", "192.0.3.0", false },
		{ "192.0.2.1", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "192.0.2.128/25", "192.0.2.127", false },
		{ "192.0.2.128/25", "192.0.2.128", true },
		{ "192.0.2.4/31", "192.0.2.5", true },
		{ "192.0.2.4/31", "192.0.2.6", false },
		{ "0.0.0.0/0", "203.0.113.9", true },
		{ "0.0.0.0/0", "::1", false },
		{ "::/0", "::1", true },
		{ "::/0", "192.0.2.1", false },
		{ "2001:db8::/33", "2001:db8:7fff::", true },
		{ "2001:db8::/33", "2001:db8:8000::", false },
		{ "2001:db8::1/128", "2001:db8::1", true },
		{ "192.0.2.0/24", "::ffff:192.0.2.9", true },
		{ "[2001:db8::]/32", "2001:db8::9", true },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct ip_net net;
		struct ip ip;
		assert_ok(ip_net_parse(str_c(rows[i].net), &net));
		assert_ok(ip_parse(str_c(rows[i].ip), &ip));
		assert_int_equal(ip_net_contains(&net, &ip), rows[i].in);
	}
	static const char *const bad[] = { "192.0.2.0/", "192.0.2.0/33",
		"192.0.2.0/-1", "192.0.2.0/x", "::/129", "/24", "x/24" };
	struct ip_net net;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_not_equal(ip_net_parse(str_c(bad[i]), &net), RES_OK);
	struct ip none = { .family = IP_NONE };
	net = (struct ip_net){ { .family = IP_NONE }, 0 };
	assert_false(ip_net_contains(&net, &none));
}

static void
test_eq_and_loopback(void **state)
{
	(void)state;
	static const struct {
		const char *ip;
		bool loopback;
	} rows[] = {
		{ "127.0.0.1", true },
		{ "127.255.0.9", true },
		{ "128.0.0.1", false },
		{ "::1", true },
		{ "::2", false },
		{ "::ffff:127.0.0.1", true },
		{ "1::1", false },
	};
	size_t n = sizeof rows / sizeof rows[0];
	for (size_t i = 0; i < n; i++) {
		struct ip a, b;
		assert_ok(ip_parse(str_c(rows[i].ip), &a));
		assert_int_equal(ip_is_loopback(&a), rows[i].loopback);
		for (size_t k = 0; k < n; k++) {
			assert_ok(ip_parse(str_c(rows[k].ip), &b));
			assert_int_equal(ip_eq(&a, &b),
			    i == k || (i == 0 && k == 5) || (i == 5 && k == 0));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_sockaddr),
		cmocka_unit_test(test_nets),
		cmocka_unit_test(test_eq_and_loopback),
	};
	return cmocka_run_group_tests_name("base/ip", tests, NULL, NULL);
}

#include "base/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct ip
from_v6(const uint8_t bytes[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ip ip = { .family = IP_V6 };
	if (memcmp(bytes, mapped, 12) == 0) {
		ip.family = IP_V4;
		memcpy(ip.bytes, bytes + 12, 4);
	} else {
		memcpy(ip.bytes, bytes, 16);
	}
	return ip;
}

enum res
ip_parse(struct str text, struct ip *out)
{
	char c[IP_MAX_TEXT];
	if (text.len >= 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']')
		text = str_sub(text, 1, text.len - 2);
	if (str_case_starts(text, STR("IPv6:")))
		text = str_skip(text, 5);
	size_t scope = str_chr(text, '%');
	if (scope != SIZE_MAX)
		text.len = scope;
	if (text.len == 0 || text.len >= sizeof c ||
	    str_chr(text, '\0') != SIZE_MAX)
		return RES_SYNTAX;
	memcpy(c, text.ptr, text.len);
	c[text.len] = '\0';
	uint8_t bytes[16];
	if (inet_pton(AF_INET, c, bytes) == 1) {
		*out = (struct ip){ .family = IP_V4 };
		memcpy(out->bytes, bytes, 4);
		return RES_OK;
	}
	if (inet_pton(AF_INET6, c, bytes) == 1) {
		*out = from_v6(bytes);
		return RES_OK;
	}
	return RES_SYNTAX;
}

enum res
ip_from_sockaddr(const struct sockaddr *sa, struct ip *out)
{
	if (sa != NULL && sa->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, sa, sizeof in);
		*out = (struct ip){ .family = IP_V4 };
		memcpy(out->bytes, &in.sin_addr, 4);
		return RES_OK;
	}
	if (sa != NULL && sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, sa, sizeof in6);
		*out = from_v6(in6.sin6_addr.s6_addr);
		return RES_OK;
	}
	return RES_UNSUPPORTED;
}

/* Several a message: inet_ntop prints. */
static void
format_v4(struct buf *out, const uint8_t bytes[4])
{
	char c[sizeof "255.255.255.255"];
	size_t n = 0;
	for (int i = 0; i < 4; i++) {
		unsigned b = bytes[i];
		if (i > 0)
			c[n++] = '.';
		if (b >= 100)
			c[n++] = (char)('0' + b / 100);
		if (b >= 10)
			c[n++] = (char)('0' + b / 10 % 10);
		c[n++] = (char)('0' + b % 10);
	}
	buf_add(out, c, n);
}

void
ip_format(struct buf *out, const struct ip *ip)
{
	char c[IP_MAX_TEXT];
	if (ip->family == IP_V4)
		format_v4(out, ip->bytes);
	else if (ip->family == IP_V6 &&
	    inet_ntop(AF_INET6, ip->bytes, c, sizeof c) != NULL)
		buf_add_c(out, c);
}

bool
ip_eq(const struct ip *a, const struct ip *b)
{
	return a->family == b->family &&
	    memcmp(a->bytes, b->bytes, a->family == IP_V4 ? 4 : 16) == 0;
}

enum res
ip_net_parse(struct str text, struct ip_net *out)
{
	struct ip_net net;
	size_t slash = str_chr(text, '/');
	enum res r = ip_parse(str_sub(text, 0, slash), &net.ip);
	if (r != RES_OK)
		return r;
	uint64_t bits = net.ip.family == IP_V4 ? 32 : 128;
	if (slash != SIZE_MAX) {
		r = str_to_u64(str_skip(text, slash + 1), bits, &bits);
		if (r != RES_OK)
			return r;
	}
	net.prefix = (unsigned)bits;
	*out = net;
	return RES_OK;
}

bool
ip_net_contains(const struct ip_net *net, const struct ip *ip)
{
	if (net->ip.family != ip->family || ip->family == IP_NONE)
		return false;
	unsigned whole = net->prefix / 8, rest = net->prefix % 8;
	if (memcmp(net->ip.bytes, ip->bytes, whole) != 0)
		return false;
	return rest == 0 ||
	    (net->ip.bytes[whole] ^ ip->bytes[whole]) >> (8 - rest) == 0;
}

bool
ip_is_loopback(const struct ip *ip)
{
	static const uint8_t one[16] = { [15] = 1 };
	if (ip->family == IP_V4)
		return ip->bytes[0] == 127;
	return ip->family == IP_V6 && memcmp(ip->bytes, one, 16) == 0;
}

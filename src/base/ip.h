/* IP addresses and networks. An IPv4-mapped IPv6 address (::ffff:a.b.c.d) is
 * IPv4 from the moment it is parsed (RFC 7208 §5). */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

enum ip_family { IP_NONE, IP_V4, IP_V6 };

struct ip {
	enum ip_family family;
	uint8_t bytes[16]; /* network order; the first 4 for IPv4 */
};

struct ip_net {
	struct ip ip;
	unsigned prefix; /* 0..32 or 0..128 */
};

#define IP_MAX_TEXT 46

/* "192.0.2.1", "2001:db8::1", "IPv6:2001:db8::1", "[...]" or with a scope id,
 * which is dropped. */
HN_CHECK enum res ip_parse(struct str text, struct ip *out);
HN_CHECK enum res ip_from_sockaddr(const struct sockaddr *sa, struct ip *out);
/* Canonical text (RFC 5952 for IPv6); nothing for IP_NONE. */
void ip_format(struct buf *out, const struct ip *ip);
bool ip_eq(const struct ip *a, const struct ip *b);

/* "192.0.2.0/24", or a bare address meaning all its bits. */
HN_CHECK enum res ip_net_parse(struct str text, struct ip_net *out);
/* Same family and equal in the first `prefix` bits. */
bool ip_net_contains(const struct ip_net *net, const struct ip *ip);

bool ip_is_loopback(const struct ip *ip);

#endif

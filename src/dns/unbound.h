/* The daemon's resolver: libunbound's event API on a libevent loop in one DNS
 * thread (every ub_* call happens there), with a cache of answers in front
 * that honours TTLs, so that the hot path never leaves the calling thread. */
#ifndef DNS_UNBOUND_H
#define DNS_UNBOUND_H

#include "base/err.h"
#include "dns/dns.h"

enum dnssec_mode { DNSSEC_OFF, DNSSEC_AUTO, DNSSEC_ON };

struct unbound_options {
	const struct str *nameservers; /* "192.0.2.1" or "192.0.2.1@5353" */
	size_t nameserver_count;       /* 0: /etc/resolv.conf */
	enum dnssec_mode dnssec; /* AUTO: on if `. DNSKEY` validates at start */
	size_t cache_entries;    /* 0 = 65,536 */
};

/* Starts the DNS thread. With AUTO the probe runs in that thread; until it is
 * done validation is off. *out_dnssec_note (may be NULL) gets static text when
 * validation is off and why. */
HN_CHECK enum res unbound_new(const struct unbound_options *o,
    struct err *err, struct resolver **out, const char **out_dnssec_note);

#endif

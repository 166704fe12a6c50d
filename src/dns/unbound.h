/* The daemon's resolver: libunbound's event API on a libevent loop in one DNS
 * thread (every ub_* call happens there), with a cache of answers in front
 * that honours TTLs, so that the hot path never leaves the calling thread.
 *
 * Equal questions under way are one. A question that nobody waits for any
 * longer is not taken back once libunbound has it (it would go on asking
 * anyway): its late answer goes to the cache, for the next message. The
 * number under way is bounded, those included; libunbound gives up on dead
 * servers after some 20 s. */
#ifndef DNS_UNBOUND_H
#define DNS_UNBOUND_H

#include "base/err.h"
#include "dns/dns.h"

enum dnssec_mode {
	DNSSEC_OFF,
	DNSSEC_AUTO,
	DNSSEC_ON
};

#define UNBOUND_MAX_UNDER_WAY 8192

struct unbound_options {
	const struct str *nameservers; /* "192.0.2.1" or "192.0.2.1@5353" */
	size_t nameserver_count;       /* 0: /etc/resolv.conf */
	enum dnssec_mode dnssec; /* AUTO: on if `. DNSKEY` validates at start */
	size_t cache_entries;    /* 0 = 65,536 */
	const char *trust_anchor; /* file; NULL: the one of dns-root-data */
	/* May be NULL. Called on the DNS thread when a probe has changed what
	 * unbound_dnssec_note says. */
	void (*dnssec_changed)(const char *note);
};

/* Starts the DNS thread. With AUTO the probe runs in that thread; until it is
 * done validation is off. A probe that fails is repeated, after a minute when
 * nobody answered, else after an hour. *out_dnssec_note (may be NULL) is what
 * unbound_dnssec_note says at this moment, NULL while the probe is under way. */
HN_CHECK enum res unbound_new(const struct unbound_options *o, struct err *err,
    struct resolver **out, const char **out_dnssec_note);

/* Static text when validation is off (or, with DNSSEC_ON, will find everything
 * bogus) and why, else NULL. Waits for the first probe's end until
 * `deadline_us` (clock_mono_us; 0: does not wait). `r` is from unbound_new. */
const char *unbound_dnssec_note(struct resolver *r, int64_t deadline_us);

#endif

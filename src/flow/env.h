/* What every message needs from outside, made once by daemon, cli or test and
 * passed down. Nothing in it changes while a session holds it, save what is
 * thread-safe by itself. */
#ifndef FLOW_ENV_H
#define FLOW_ENV_H

#include <stdatomic.h>

#include "archive/state/decisions.h"
#include "archive/store/store.h"
#include "auth/key_record.h"
#include "auth/result.h"
#include "base/clock.h"
#include "config/config.h"
#include "dns/dns.h"
#include "flow/token.h"
#include "keys/signer.h"

enum flow_method { METHOD_SPF, METHOD_DKIM, METHOD_DMARC, METHOD_ARC,
	FLOW_METHODS };

/* Since the start of the process. */
struct flow_counters {
	atomic_ullong messages, accepted, rejected, tempfailed, quarantined;
	atomic_ullong signed_messages, unsigned_outbound, archived, archive_errors;
	atomic_ullong aborted, internal_errors;
	/* results of judged mail; every DKIM signature counts */
	atomic_ullong verdicts[FLOW_METHODS][AUTH_PERMERROR + 1];
};

struct published; /* flow/published.h */

struct flow_env {
	struct config *config;      /* a reference is taken per session */
	struct resolver *resolver;  /* never NULL */
	struct key_cache *keys;     /* parsed key records; NULL: none kept */
	struct signer *signer;      /* NULL: this program does not sign */
	struct store *store;        /* NULL: no archive */
	struct decisions *decisions; /* NULL: decisions are not kept */
	bool has_secret;
	uint8_t secret[TOKEN_SECRET_LEN]; /* of re-injection tokens */
	struct clock clock;
	struct flow_counters *counters; /* never NULL */
	struct published *published; /* NULL: key records are not looked for */
	enum run_mode mode;         /* MODE_AUTO: as the configuration says */
	bool judge_age;             /* false: x= and t= are not judged (CLI) */
	bool quiet;                 /* write no log line (CLI) */
};

#endif

/* The signature engine as the benchmark drives it: a message text prepared
 * once, each operation from header and body in memory to a verdict or field,
 * as flow does it. The peer does the same work. */
#ifndef TESTS_BENCH_ENGINE_H
#define TESTS_BENCH_ENGINE_H

#include <stdbool.h>

#include "auth/arc_seal.h"
#include "auth/dkim_sign.h"
#include "auth/dkim_verify.h"
#include "dns/dns.h"
#include "keys/signer.h"

#define ENGINE_NOW 1700000000 /* seconds */

/* What the zone says about bench.example and _spf.bench.example. */
#define ENGINE_SPF          "v=spf1 include:_spf.bench.example -all"
#define ENGINE_SPF_INCLUDED "v=spf1 ip4:192.0.2.0/24 -all"
#define ENGINE_DMARC        "v=DMARC1; p=reject; rua=mailto:d@bench.example"

enum body_kind { BODY_TEXT, BODY_BASE64, BODY_DIRTY };

struct bench_field {
	struct str name, value;
};

struct bench_mail {
	size_t field_count;
	struct bench_field fields[16];
	char *body;
	size_t body_len;
};

struct engine {
	struct signer *signer;
	struct manifest *manifest;
	const struct signing_key *key;
	struct resolver *resolver;
	struct key_cache *keys; /* shared by all threads, as in the daemon */
	char *pem, *record; /* for peers */
};

void engine_open(struct engine *e);
void engine_close(struct engine *e);

/* An unsigned message with a body of `bytes`. */
void mail_make(struct bench_mail *m, size_t bytes, enum body_kind kind);
void mail_free(struct bench_mail *m);
/* Put a field on top. Takes over `value` (malloc'd, leading space). */
void mail_prepend(struct bench_mail *m, const char *name, char *value);

/* The look-ups of one message, from the zone. */
struct dns_session *engine_session(struct engine *e, struct arena *a);

/* malloc'd DKIM-Signature value. */
char *engine_sign(struct engine *e, const struct bench_mail *m);
/* Dies unless the result is pass. */
void engine_verify(struct engine *e, const struct bench_mail *m);
/* malloc'd values of one ARC set. */
void engine_seal(struct engine *e, const struct bench_mail *m, char *out[3]);
void engine_arc_verify(struct engine *e, const struct bench_mail *m);

/* libopendkim; false when it was not found at configure time. */
bool peer_open(const struct engine *e);
void peer_sign(const struct bench_mail *m);
void peer_verify(const struct bench_mail *m);
void peer_close(void);

#endif

/* Whole messages through DKIM and ARC verification with diagnosis: the body
 * in one piece and byte by byte must give the same results, each result its
 * reason, each diagnosis printable text. */
#include <stdlib.h>

#include "auth/arc_verify.h"
#include "auth/dkim_verify.h"
#include "dns/zone.h"
#include "mail/reader.h"
#include "tests/auth/vectors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct arena *arena;
	struct header *header;
	struct bodyhash_set *hashes;
	struct dns_session *dns;
	struct dkim_verify *dkim;
	struct arc_verify *arc;
	struct sink *body;
	const struct dkim_result *results;
	size_t count, step;
	struct arc_result chain;
};

static struct resolver *resolver;
static struct key_cache *keys;

static void
must(bool good)
{
	if (!good)
		abort();
}

static enum res
end_of_header(void *context, struct header *h)
{
	struct run *r = context;
	struct dkim_verify_options o = { .max_signatures = 4,
		.min_rsa_bits = 1024,
		.now_s = RFC8463_TIME,
		.clock_skew_s = 300,
		.keys = keys };
	r->header = h;
	must(dkim_verify_begin(r->arena, h, &o, r->dns, r->hashes, &r->dkim) ==
	    RES_OK);
	must(arc_verify_begin(r->arena, h, &o, r->dns, r->hashes, &r->arc) ==
	    RES_OK);
	r->body = bodyhash_sink(r->hashes);
	must(r->body != NULL);
	return RES_OK;
}

static void
body(void *context, const char *bytes, size_t len)
{
	struct run *r = context;
	size_t step = r->step == 0 ? len : r->step;
	for (size_t i = 0; i < len; i += step)
		sink_push(r->body, bytes + i, len - i < step ? len - i : step);
}

static void
run(struct run *r, const uint8_t *data, size_t size, size_t step)
{
	static const struct reader_ops ops = { end_of_header, body };
	static const struct dns_limits limits = { 1000000, 1000000, 0 };
	*r = (struct run){ .arena = arena_new(0), .step = step };
	must(r->arena != NULL);
	r->hashes = bodyhash_new(r->arena);
	r->dns = dns_session_new(r->arena, resolver, &limits);
	struct header *h = header_new(r->arena, 1 << 20);
	struct reader *reader = reader_new(r->arena, h, READER_AUTO, &ops, r);
	sink_push(reader_sink(reader), (const char *)data, size);
	must(sink_finish(reader_sink(reader)) == RES_OK);
	must(sink_finish(r->body) == RES_OK);
	must(dkim_verify_finish(r->dkim, &r->results, &r->count) == RES_OK);
	must(arc_verify_finish(r->arc, &r->chain) == RES_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run one, two;
	if (size > 100000)
		return 0;
	if (resolver == NULL) {
		struct err err = { "" };
		must(zone_from_text(STR(RFC8463_ZONE RFC6376_ZONE), "zone",
			 false, &err, &resolver) == RES_OK);
		keys = key_cache_new(0);
	}
	run(&one, data, size, 0);
	run(&two, data, size, 1);
	must(one.count == two.count);
	must(one.chain.result == two.chain.result);
	must(one.chain.oldest_pass == two.chain.oldest_pass);
	for (size_t i = 0; i < one.count; i++) {
		const struct dkim_result *a = &one.results[i],
					 *b = &two.results[i];
		must(a->result == b->result && a->result != AUTH_NONE);
		must((a->result == AUTH_PASS) == (a->reason == NULL));
		must(str_eq(a->diagnosis, b->diagnosis));
		must(a->result != AUTH_PASS || a->key_bits >= 256);
		for (size_t c = 0; c < a->diagnosis.len; c++)
			must(a->diagnosis.ptr[c] >= ' ' &&
			    a->diagnosis.ptr[c] < 0x7f);
	}
	arena_free(&one.arena);
	arena_free(&two.arena);
	return 0;
}

/* Any text as an SPF record: what the linter takes has terms inside the text's
 * bounds, and every macro-string in it can be expanded. */
#include <stdint.h>
#include <stdlib.h>

#include "auth/spf_macro.h"
#include "auth/spf_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str
validated(void *arg)
{
	return STR("ptr.example.org");
}

static void
expand(struct arena *a, struct str s)
{
	struct spf_macro_env env = { .local = STR("a-b.c"),
		.sender_domain = STR("Example.org"),
		.domain = STR("d.example.org"),
		.helo = STR("h.example.net"),
		.client = { .family = IP_V6, .bytes = { 0x20, 1, 0xd } },
		.validated = validated };
	struct str out = STR_EMPTY;
	enum res r = spf_macro_expand(a, s, &env, SPF_MAX_EXPANSION, &out);
	if (r == RES_OK && out.len > SPF_MAX_EXPANSION)
		abort();
}

static void
check(struct arena *a, const struct spf_record *rec)
{
	if (rec->count > SPF_MAX_TERMS)
		abort();
	for (size_t i = 0; i < rec->count; i++) {
		const struct spf_term *t = &rec->terms[i];
		if (t->domain.len > t->text.len || t->prefix4 > 32 ||
		    t->prefix6 > 128 || t->net.prefix > 128)
			abort();
		expand(a, t->domain);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(0);
	struct spf_record rec;
	const char *reason = NULL;
	if (a == NULL)
		return 0;
	struct str text = str_of(data, size);
	enum res r = spf_record_parse(a, text, &rec, &reason);
	if (r == RES_OK)
		check(a, &rec);
	else if (r != RES_NOMEM && reason == NULL)
		abort();
	if (spf_macro_valid(text, SPF_IN_EXPLANATION))
		expand(a, text);
	arena_free(&a);
	return 0;
}

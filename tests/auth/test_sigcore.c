#include "auth/sigcore.h"

#include "auth_test.h"

#define BH "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="
#define SIGNATURE(tags)                                                        \
	"DKIM-Signature: v=1; a=rsa-sha256; d=football.example.com; s=test; "  \
	"bh=" BH "; b=AAAA; " tags "\r\n"

struct work {
	struct fixture f;
	struct sigcore core;
	struct sig sig;
};

static void
work_open(struct work *w, const char *message, const char *zone)
{
	fixture_open(&w->f, str_c(message), zone);
	assert_ok(sigcore_init(
	    &w->core, w->f.arena, w->f.header, w->f.dns, w->f.hashes, NULL, 0));
	assert_ok(sig_parse(w->f.arena, SIG_DKIM,
	    header_find(w->f.header, STR("dkim-signature")), &w->sig));
	assert_true(sig_undecided(&w->sig));
	assert_ok(bodyhash_want(
	    w->f.hashes, w->sig.body_canon, w->sig.length, &w->sig.body_index));
	fixture_push(&w->f, 0);
}

static void
work_close(struct work *w)
{
	buf_done(&w->core.scratch);
	fixture_close(&w->f);
}

/* Bottom-up per name, each once, absent ones empty, never itself. */
static void
fields_of_h(void **state)
{
	static const char
	    message[] = SIGNATURE("h=to:from:TO:x:to:dkim-signature:To:dkim-"
				  "signature") "To: 1\r\nDKIM-Signature: "
					       "other\r\nTo: 2\r\nFrom: "
					       "3\r\nTo: 4\r\n"
					       "\r\nbody\r\n";
	static const int want[] = { 5, 4, 3, -1, 1, 2, -1, -1 };
	struct work w;
	const struct field **fields;
	work_open(&w, message, "");
	assert_ok(sig_fields(&w.core, &w.sig, &fields));
	assert_int_equal(w.sig.name_count, 8);
	for (size_t i = 0; i < 8; i++)
		assert_ptr_equal(fields[i],
		    want[i] < 0 ? NULL
				: header_at(w.f.header, (size_t)want[i]));
	work_close(&w);
}

/* The octets that are hashed, written out. */
static void
hashed_octets(void **state)
{
	static const struct {
		const char *tags, *octets;
	} rows[] = {
		{ "h=from:to; c=relaxed",
		    "from:a b\r\nto:x\r\ndkim-signature:v=1; a=rsa-sha256; "
		    "d=football.example.com; s=test; bh=" BH "; b=; "
		    "h=from:to; c=relaxed" },
		{ "h=to:from:to; c=simple",
		    "To :\tx\r\nFROM: a\r\n\t b \r\nDKIM-Signature: v=1; "
		    "a=rsa-sha256; d=football.example.com; s=test; bh=" BH
		    "; b=; h=to:from:to; c=simple" },
	};
	for (size_t i = 0; i < 2; i++) {
		char message[1024];
		uint8_t got[32], want[32];
		struct work w;
		snprintf(message, sizeof message,
		    SIGNATURE("%s") "To :\tx\r\nFROM: a\r\n\t b \r\n\r\n",
		    rows[i].tags);
		work_open(&w, message, "");
		assert_ok(sig_header_digest(&w.core, &w.sig, got));
		assert_ok(digest_sha256(
		    rows[i].octets, strlen(rows[i].octets), want));
		assert_memory_equal(got, want, 32);
		/* again: the scratch buffer starts anew */
		assert_ok(sig_header_digest(&w.core, &w.sig, got));
		assert_memory_equal(got, want, 32);
		work_close(&w);
	}
}

static void
decisions(void **state)
{
	static const struct {
		const char *zone, *reason;
		enum auth_result result;
		unsigned bits;
	} rows[] = {
		{ "", "no key", AUTH_PERMERROR, 0 },
		{ "test._domainkey.football.example.com TXT !SERVFAIL\n",
		    "key unavailable", AUTH_TEMPERROR, 0 },
		{ RFC8463_ZONE, "body hash did not verify", AUTH_FAIL, 1024 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t digest[32] = { 0 };
		struct work w;
		work_open(&w, SIGNATURE("h=from") "From: x\r\n\r\nother\r\n",
		    rows[i].zone);
		assert_false(sig_body_fits(&w.core, &w.sig));
		assert_ok(sig_judge(&w.core, &w.sig, digest));
		assert_int_equal(w.sig.result, rows[i].result);
		assert_string_equal(w.sig.reason, rows[i].reason);
		assert_int_equal(w.sig.key_bits, rows[i].bits);
		work_close(&w);
	}
}

/* A name too long to be asked for is an absent key, without a question. */
static void
overlong_key_name(void **state)
{
	char message[1024], label[64];
	uint8_t digest[32] = { 0 };
	struct work w;
	memset(label, 'a', 63);
	label[63] = '\0';
	snprintf(message, sizeof message,
	    "DKIM-Signature: v=1; a=rsa-sha256; d=%s.%s.example; s=%s.%s; "
	    "h=from; bh=" BH "; b=AAAA\r\n\r\nx\r\n",
	    label, label, label, label);
	work_open(&w, message, "");
	assert_ok(sig_judge(&w.core, &w.sig, digest));
	assert_int_equal(w.sig.result, AUTH_PERMERROR);
	assert_string_equal(w.sig.reason, "no key");
	work_close(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_h),
		cmocka_unit_test(hashed_octets),
		cmocka_unit_test(decisions),
		cmocka_unit_test(overlong_key_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "auth/dkim_verify.h"

#include "auth_test.h"

static const char *
message_8463(void)
{
	static char m[8192];
	snprintf(m, sizeof m, "%s%s%s\r\n%s", rfc8463_ed25519_signature,
	    rfc8463_rsa_signature, rfc8463_header, rfc8463_body);
	return m;
}

/* --- RFC 8463 appendix A --------------------------------------------------- */
static void
rfc8463_any_split(void **state)
{
	for (size_t step = 0; step < 60; step++) {
		struct fixture f;
		fixture_open(&f, str_c(message_8463()), RFC8463_ZONE);
		fixture_dkim(&f, step);
		assert_int_equal(f.count, 2);
		expect_result(&f, 0, "pass");
		expect_result(&f, 1, "pass");
		fixture_close(&f);
	}
}

static void
rfc8463_details(void **state)
{
	struct fixture f;
	fixture_open(&f, str_c(message_8463()), RFC8463_ZONE);
	fixture_dkim(&f, 0);
	const struct dkim_result *r = f.results;
	assert_str(r[0].a, "ed25519-sha256");
	assert_str(r[0].d, "football.example.com");
	assert_str(r[0].s, "brisbane");
	assert_str(r[0].i, "@football.example.com");
	assert_str(r[0].b,
	    "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus"
	    "Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==");
	assert_str(r[0].h, "from:to:subject:date:message-id:from:subject:date");
	assert_int_equal(r[0].key_bits, 256);
	assert_int_equal(r[0].signed_at, RFC8463_TIME);
	assert_int_equal(r[0].expires_at, -1);
	assert_false(r[0].aged);
	assert_false(r[0].testing);
	assert_null(r[0].reason);
	assert_int_equal(r[0].diagnosis.len, 0);
	assert_str(r[1].a, "rsa-sha256");
	assert_int_equal(r[1].key_bits, 1024);
	assert_ptr_equal(r[1].field, header_at(f.header, 1));
	fixture_close(&f);
}

#define SWAPPED_ZONE                                                           \
	"test._domainkey.football.example.com TXT "                            \
	"\"v=DKIM1; k=ed25519; p=" RFC8463_ED25519_P "\"\n"                    \
	"brisbane._domainkey.football.example.com TXT "                        \
	"\"v=DKIM1; k=rsa; p=" RFC8463_RSA_P "\"\n"

static const struct {
	const char *from, *to, *zone, *ed25519, *rsa;
} mutations[] = {
	{ "Subject: Is", "Subject: other\r\nSubject: Is", RFC8463_ZONE,
	    "fail (signature did not verify)",
	    "fail (signature did not verify)" },
	{ "<20030712040037.46341.5F8J@football.example.com>\r\n",
	    "<20030712040037.46341.5F8J@football.example.com>\r\n"
	    "Subject: other\r\n",
	    RFC8463_ZONE, "fail (signature did not verify)",
	    "fail (signature did not verify)" },
	{ "From: Joe", "X-Foo: bar\r\nFrom: Joe", RFC8463_ZONE, "pass",
	    "pass" },
	{ "game.  Are", "game. \t Are", RFC8463_ZONE, "pass", "pass" },
	{ "game.  Are", "game.Are", RFC8463_ZONE,
	    "fail (body hash did not verify)",
	    "fail (body hash did not verify)" },
	{ "c=relaxed/relaxed", "c=relaxed/simple", RFC8463_ZONE,
	    "fail (body hash did not verify)", "pass" },
	{ "c=relaxed/relaxed", "c=simple/relaxed", RFC8463_ZONE,
	    "fail (signature did not verify)", "pass" },
	{ "X", "X", SWAPPED_ZONE, "permerror (inappropriate key)",
	    "permerror (inappropriate key)" },
	{ "X", "X", "", "permerror (no key)", "permerror (no key)" },
	{ "X", "X",
	    "brisbane._domainkey.football.example.com TXT !SERVFAIL\n"
	    "test._domainkey.football.example.com TXT !TIMEOUT\n",
	    "temperror (key unavailable)", "temperror (key unavailable)" },
	{ "X", "X",
	    "brisbane._domainkey.football.example.com TXT !NODATA\n"
	    "test._domainkey.football.example.com A 192.0.2.1\n",
	    "permerror (no key)", "permerror (no key)" },
	{ "X", "X",
	    "brisbane._domainkey.football.example.com CNAME k.example\n"
	    "k.example TXT \"k=ed25519; p=" RFC8463_ED25519_P "\"\n",
	    "pass", "permerror (no key)" },
};

static void
rfc8463_mutations(void **state)
{
	for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
		const char *text = message_8463();
		if (mutations[i].from[1] != '\0')
			text =
			    replaced(text, mutations[i].from, mutations[i].to);
		struct fixture f;
		fixture_open(&f, str_c(text), mutations[i].zone);
		fixture_dkim(&f, 7);
		print_message("# mutation %zu: %s\n", i, mutations[i].to);
		expect_result(&f, 0, mutations[i].ed25519);
		expect_result(&f, 1, mutations[i].rsa);
		fixture_close(&f);
	}
}

/* --- RFC 6376 appendix A.2 -------------------------------------------------- */
static void
rfc6376_example(void **state)
{
	char m[4096];
	struct fixture f;
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc6376_signature, rfc6376_header,
	    rfc6376_body);
	fixture_open(&f, str_c(m), RFC6376_ZONE);
	fixture_dkim(&f, 1);
	assert_int_equal(f.count, 1);
	expect_result(&f, 0, "pass");
	assert_str(f.results[0].d, "example.com");
	assert_str(f.results[0].i, "joe@football.example.com");
	assert_str(f.results[0].s, "brisbane");
	fixture_close(&f);
	/* As printed in the RFC: five blanks; simple means every byte. */
	fixture_open(&f,
	    str_c(replaced(m, "\r\n      by submit", "\r\n     by submit")),
	    RFC6376_ZONE);
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "fail (signature did not verify)");
	fixture_close(&f);
}

/* --- the fields of a signature ---------------------------------------------- */
#define B64 "AAAA"
#define BH  "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="
#define GOOD                                                                   \
	"v=1; a=rsa-sha256; d=football.example.com; s=test; h=from:to; "       \
	"bh=" BH "; b=" B64

#define NAMES10 "a:b:c:d:e:f:g:h:i:j:"
#define NAMES100                                                               \
	NAMES10 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10        \
	    NAMES10 NAMES10

/* §2.9, row by row. "fail" stands for: held together, and judged. */
static const struct {
	const char *value, *want;
} fields[] = {
	{ GOOD, "fail (body hash did not verify)" },
	{ GOOD ";", "fail (body hash did not verify)" },
	{ GOOD "; unknown=tag; _x", "neutral (bad signature syntax)" },
	{ GOOD "; unknown=tag; x_1=", "fail (body hash did not verify)" },
	{ GOOD ";;", "neutral (bad signature syntax)" },
	{ ";" GOOD, "neutral (bad signature syntax)" },
	{ GOOD "; s=test", "neutral (bad signature syntax)" },
	{ "(comment) " GOOD, "neutral (bad signature syntax)" },
	{ "", "neutral (bad signature syntax)" },
	{ GOOD "; n=a\001b", "neutral (bad signature syntax)" },
	{ GOOD "; n=\xc3\xa9", "fail (body hash did not verify)" },
	{ GOOD "; n=\xc3", "neutral (bad signature syntax)" },
	/* required tags */
	{ "a=rsa-sha256; d=a.b; s=t; h=from; bh=" BH "; b=" B64,
	    "neutral (missing tag v)" },
	{ "v=1; d=a.b; s=t; h=from; bh=" BH "; b=" B64,
	    "neutral (missing tag a)" },
	{ "v=1; a=rsa-sha256; d=a.b; s=t; h=from; bh=" BH,
	    "neutral (missing tag b)" },
	{ "v=1; a=rsa-sha256; d=a.b; s=t; h=from; b=" B64,
	    "neutral (missing tag bh)" },
	{ "v=1; a=rsa-sha256; s=t; h=from; bh=" BH "; b=" B64,
	    "neutral (missing tag d)" },
	{ "v=1; a=rsa-sha256; d=a.b; s=t; bh=" BH "; b=" B64,
	    "neutral (missing tag h)" },
	{ "v=1; a=rsa-sha256; d=a.b; h=from; bh=" BH "; b=" B64,
	    "neutral (missing tag s)" },
	{ "V=1; " GOOD, "fail (body hash did not verify)" },
	{ "v=2", "neutral (incompatible version)" },
	{ "v=01; a=x", "neutral (incompatible version)" },
	{ "v=; a=x", "neutral (incompatible version)" },
#define WITH(tags)                                                             \
	"v=1; d=football.example.com; s=test; h=from; bh=" BH "; b=" B64       \
	"; a=rsa-sha256; " tags
#define A(tags)                                                                \
	"v=1; d=football.example.com; s=test; h=from; bh=" BH "; b=" B64       \
	"; a=" tags
	{ A("rsa-sha1"), "permerror (historic algorithm)" },
	{ A("rsa-sha512"), "neutral (unknown algorithm)" },
	{ A("RSA-SHA256"), "neutral (unknown algorithm)" },
	{ A(""), "neutral (bad signature syntax)" },
	{ WITH("c=simple"), "fail (body hash did not verify)" },
	{ WITH("c=relaxed/simple"), "fail (body hash did not verify)" },
	{ WITH("c="), "neutral (bad signature syntax)" },
	{ WITH("c=relaxed/"), "neutral (bad signature syntax)" },
	{ WITH("c=relaxed/relaxed/simple"), "neutral (bad signature syntax)" },
	{ WITH("c=nowsp"), "neutral (bad signature syntax)" },
	{ WITH("q=dns/txt"), "fail (body hash did not verify)" },
	{ WITH("q=http/x : dns/txt"), "fail (body hash did not verify)" },
	{ WITH("q=http"), "neutral (bad signature syntax)" },
	{ WITH("q="), "neutral (bad signature syntax)" },
	{ WITH("t=1"), "fail (body hash did not verify)" },
	{ WITH("t="), "neutral (bad signature syntax)" },
	{ WITH("t=-1"), "neutral (bad signature syntax)" },
	{ WITH("t=1 2"), "neutral (bad signature syntax)" },
	{ WITH("t=5; x=5"), "neutral (bad signature syntax)" },
	{ WITH("x=4; t=5"), "neutral (bad signature syntax)" },
	{ WITH("x=6; t=5"), "fail (body hash did not verify)" },
	{ WITH("t=5; x=9999999999999"), "fail (body hash did not verify)" },
	{ WITH("t=9999999999999; x=99999999999999"),
	    "fail (body hash did not verify)" },
	{ WITH("l=0"), "fail (body hash did not verify)" },
	{ WITH("l="), "neutral (bad signature syntax)" },
	{ WITH("l=1x"), "neutral (bad signature syntax)" },
	{ WITH("l=99999999999999999999999999999999999999999999"),
	    "fail (body hash did not verify)" },
	{ WITH("l=9999999999999999999999999999999999999999"
	       "9999999999999999999999999999999999999"),
	    "neutral (bad signature syntax)" },
	{ WITH("i=@football.example.com"), "fail (body hash did not verify)" },
	{ WITH("i=joe=20x@sub.football.EXAMPLE.com"),
	    "fail (body hash did not verify)" },
	{ WITH("i=@example.com"), "permerror (domain mismatch)" },
	{ WITH("i=@xfootball.example.com"), "permerror (domain mismatch)" },
	{ WITH("i="), "neutral (bad signature syntax)" },
	{ WITH("i=joe"), "neutral (bad signature syntax)" },
	{ WITH("i=joe@"), "neutral (bad signature syntax)" },
	{ WITH("i=jo=2@football.example.com"),
	    "neutral (bad signature syntax)" },
/* h= */
#define H(list)                                                                \
	"v=1; d=football.example.com; s=test; bh=" BH "; b=" B64               \
	"; a=rsa-sha256; h=" list
	{ H("From : \r\n\tTo"), "fail (body hash did not verify)" },
	{ H("FROM"), "fail (body hash did not verify)" },
	{ H("to:subject"), "permerror (From not signed)" },
	{ H(""), "neutral (bad signature syntax)" },
	{ H("from::to"), "neutral (bad signature syntax)" },
	{ H("from:"), "neutral (bad signature syntax)" },
	{ H("from:a b"), "neutral (bad signature syntax)" },
	{ H(NAMES100 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10 NAMES10
		  NAMES10 NAMES10 "a:b:c:d:e:f:g:h:i:from"),
	    "fail (body hash did not verify)" },
	{ H(NAMES100 NAMES100 "from"), "policy (too many signed fields)" },
/* d=, s= */
#define DS(tags) "v=1; h=from; bh=" BH "; b=" B64 "; a=rsa-sha256; " tags
	{ DS("d=; s=a"), "neutral (bad signature syntax)" },
	{ DS("d=a..b; s=a"), "neutral (bad signature syntax)" },
	{ DS("d=a b.example; s=a"), "neutral (bad signature syntax)" },
	{ DS("d=example.com; s="), "neutral (bad signature syntax)" },
	{ DS("d=example.com; s=a..b"), "neutral (bad signature syntax)" },
	{ DS("d=example.com; s=a/b"), "neutral (bad signature syntax)" },
	{ DS("d=com; s=a"), "policy (public suffix domain)" },
	{ DS("d=co.uk; s=a"), "policy (public suffix domain)" },
	{ DS("d=localhost; s=a"), "policy (public suffix domain)" },
	/* on the list's private part: organizations that sign for themselves */
	{ DS("d=homeoffice.gov.uk; s=a"), "permerror (no key)" },
	{ DS("d=github.io; s=a"), "permerror (no key)" },
	{ DS("d=FOOTBALL.example.com; s=TEST"),
	    "fail (body hash did not verify)" },
	{ DS("d=other.example; s=a.b"), "permerror (no key)" },
/* b=, bh= */
#define BBH(tags)                                                              \
	"v=1; d=football.example.com; s=test; h=from; a=rsa-sha256; " tags
	{ BBH("b=; bh=" BH), "neutral (bad signature syntax)" },
	{ BBH("b=AAA; bh=" BH), "neutral (bad signature syntax)" },
	{ BBH("b=A*AA; bh=" BH), "neutral (bad signature syntax)" },
	{ BBH("b=A A\r\n A\tA; bh=" BH), "fail (body hash did not verify)" },
	{ BBH("b=AAAA; bh="), "neutral (bad signature syntax)" },
	{ BBH("b=AAAA; bh=AAAA"), "neutral (bad signature syntax)" },
	{ BBH("b=AAAA; bh=!"), "neutral (bad signature syntax)" },
};

static void
every_field(void **state)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char m[8192];
		struct fixture f;
		snprintf(m, sizeof m,
		    "DKIM-Signature: %s\r\nFrom: a@b.c\r\n\r\nother\r\n",
		    fields[i].value);
		fixture_open(&f, str_c(m), RFC8463_ZONE);
		fixture_dkim(&f, 0);
		assert_int_equal(f.count, 1);
		print_message("# %.70s\n", fields[i].value);
		expect_result(&f, 0, fields[i].want);
		fixture_close(&f);
	}
}

static void
no_signature(void **state)
{
	struct fixture f;
	fixture_open(&f, STR("From: a@b.c\r\n\r\nx\r\n"), "");
	fixture_dkim(&f, 0);
	assert_int_equal(f.count, 0);
	assert_int_equal(dns_session_count(f.dns), 0);
	fixture_close(&f);
}

/* Nothing that is refused for what it is costs a look-up (DKIM-V-18). */
static void
no_look_up_for_the_refused(void **state)
{
	struct fixture f;
	fixture_open(&f,
	    STR("DKIM-Signature: " DS(
		"d=com; s=a") "\r\n"
			      "DKIM-Signature: " A(
				  "rsa-sha1") "\r\n"
					      "DKIM-Signature: " H(
						  "to") "\r\n"
							"DKIM-Signature: " WITH(
							    "t=5; x=5") "\r\n"
									"From: "
									"a@b."
									"c\r\n"
									"\r\nx"
									"\r\n"),
	    "");
	fixture_dkim(&f, 0);
	assert_int_equal(f.count, 4);
	assert_int_equal(dns_session_count(f.dns), 0);
	fixture_close(&f);
}

/* --- age --------------------------------------------------------------------- */
static void
age(void **state)
{
	static const struct {
		const char *tags;
		int64_t now;
		const char *want;
	} rows[] = {
		{ "t=1000; x=2000", -1, "fail (body hash did not verify)" },
		{ "t=1000; x=2000", 2300, "fail (body hash did not verify)" },
		{ "t=1000; x=2000", 2301, "policy (signature expired)" },
		{ "x=2000", 2301, "policy (signature expired)" },
		{ "t=1000", 700, "fail (body hash did not verify)" },
		{ "t=1000", 699, "policy (signature from the future)" },
		{ "t=1000; x=1001", 699, "policy (signature from the future)" },
		{ "x=9999999999999", INT64_MAX / 2,
		    "fail (body hash did not verify)" },
		{ "t=9999999999999", 5, "policy (signature from the future)" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char m[2048];
		struct fixture f;
		snprintf(m, sizeof m,
		    "DKIM-Signature: " WITH(
			"%s") "\r\nFrom: a@b.c\r\n\r\nother\r\n",
		    rows[i].tags);
		fixture_open(&f, str_c(m), RFC8463_ZONE);
		f.options.now_s = rows[i].now;
		fixture_dkim(&f, 0);
		expect_result(&f, 0, rows[i].want);
		fixture_close(&f);
	}
}

/* --- key records ------------------------------------------------------------- */
#define KEY_ZONE(text)   "test._domainkey.football.example.com TXT " text "\n"
#define RSA_RECORD(tags) KEY_ZONE("\"" tags "p=" RFC8463_RSA_P "\"")

static const struct {
	const char *zone, *want;
	bool testing;
} key_zones[] = {
	{ RSA_RECORD(""), "pass", false },
	{ RSA_RECORD("v=DKIM1; k=rsa; s=*; h=sha1:sha256; t=y; g=x; "), "pass",
	    true },
	{ RSA_RECORD("t=y:s; s=email; "), "pass", true },
	{ RSA_RECORD("k=ed25519; "), "permerror (key syntax error)", false },
	{ RSA_RECORD("h=sha1; "), "permerror (inappropriate key)", false },
	{ RSA_RECORD("s=tlsrpt; "), "permerror (inappropriate key)", false },
	{ RSA_RECORD("k=x; "), "permerror (inappropriate key)", false },
	{ RSA_RECORD("v=DKIM2; "), "permerror (key syntax error)", false },
	{ RSA_RECORD("k=rsa; v=DKIM1; "), "permerror (key syntax error)",
	    false },
	{ KEY_ZONE("\"v=DKIM1; p=\""), "permerror (key revoked)", false },
	{ KEY_ZONE("\"v=DKIM1; k=rsa\""), "permerror (key syntax error)",
	    false },
	{ KEY_ZONE("\"v=spf1 -all\""), "permerror (key syntax error)", false },
	{ KEY_ZONE("\"v=DKIM1; p=A*\""), "permerror (key syntax error)",
	    false },
	{ KEY_ZONE("\"k=ed25519; p=" RFC8463_ED25519_P "\""),
	    "permerror (inappropriate key)", false },
	/* several records: what verifies wins */
	{ KEY_ZONE("\"v=spf1 -all\"") RSA_RECORD("t=y; "), "pass", true },
	{ KEY_ZONE("\"p=" RFC6376_P "\"") RSA_RECORD(""), "pass", false },
	{ KEY_ZONE("\"v=spf1 -all\"") KEY_ZONE("\"p=" RFC6376_P "\""),
	    "fail (signature did not verify)", false },
	{ KEY_ZONE("\"p=\"") KEY_ZONE("\"p=" RFC6376_P "\""),
	    "permerror (key revoked)", false },
	{ KEY_ZONE("\"a=1\"") KEY_ZONE("\"a=2\"") KEY_ZONE("\"a=3\"")
		RSA_RECORD(""),
	    "pass", false },
	{ KEY_ZONE("\"a=1\"") KEY_ZONE("\"a=2\"") KEY_ZONE("\"a=3\"")
		KEY_ZONE("\"a=4\"") RSA_RECORD(""),
	    "permerror (key syntax error)", false },
};

static void
key_records(void **state)
{
	char m[4096];
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc8463_rsa_signature,
	    rfc8463_header, rfc8463_body);
	for (size_t i = 0; i < sizeof key_zones / sizeof *key_zones; i++) {
		struct fixture f;
		fixture_open(&f, str_c(m), key_zones[i].zone);
		fixture_dkim(&f, 0);
		print_message("# key records %zu\n", i);
		expect_result(&f, 0, key_zones[i].want);
		assert_int_equal(f.results[0].testing, key_zones[i].testing);
		fixture_close(&f);
	}
}

static void
key_flag_s(void **state)
{
	char m[4096];
	struct fixture f;
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc6376_signature, rfc6376_header,
	    rfc6376_body);
	fixture_open(&f, str_c(m),
	    "brisbane._domainkey.example.com TXT \"t=s; p=" RFC6376_P "\"\n");
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "permerror (domain mismatch)");
	fixture_close(&f);
}

/* The least option does not go below RFC 8301; a higher one is obeyed. */
static void
key_size(void **state)
{
	static const struct {
		unsigned min;
		const char *want;
	} rows[] = {
		{ 0, "pass" },
		{ 1024, "pass" },
		{ 1025, "permerror (key too small)" },
	};
	char m[4096];
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc8463_rsa_signature,
	    rfc8463_header, rfc8463_body);
	for (size_t i = 0; i < 3; i++) {
		struct fixture f;
		fixture_open(&f, str_c(m), RFC8463_ZONE);
		f.options.min_rsa_bits = rows[i].min;
		fixture_dkim(&f, 0);
		expect_result(&f, 0, rows[i].want);
		assert_int_equal(f.results[0].key_bits, 1024);
		fixture_close(&f);
	}
	struct fixture f; /* 768 bits */
	fixture_open(&f, str_c(m),
	    KEY_ZONE("\"p=MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhAK2yD+3fzqYQ+ocDeiOZ"
		     "fCyu5wnZ6TZWGV9qNsWsHw9yLNKRb6gJy/ozgpXkzoCq1cVQiTuZKCHt"
		     "vFdxLNGYzyDXhTRzNWzdf5B8KLJ0RylBJSvHCYJvbMNYpfFlFRQ93QID"
		     "AQAB\""));
	fixture_dkim(&f, 0);
	assert_int_equal(f.results[0].result, AUTH_PERMERROR);
	assert_string_equal(f.results[0].reason, "key too small");
	fixture_close(&f);
}

/* --- policy ------------------------------------------------------------------- */
/* RFC 8463's message, signed anew with what the options say, then `change`d. */
static void
sign_and_open(
    struct fixture *f, const char *tags, const char *from, const char *to)
{
	/* A field by hand, as our signer never writes l=. */
	struct fixture s;
	char m[16384];
	snprintf(m, sizeof m, "%s\r\n%s", rfc8463_header, rfc8463_body);
	fixture_open(&s, str_c(m), "");
	size_t index, whole;
	assert_ok(bodyhash_want(s.hashes, CANON_RELAXED,
	    strstr(tags, "l=20") != NULL ? 20 : BODYHASH_WHOLE, &index));
	assert_ok(
	    bodyhash_want(s.hashes, CANON_RELAXED, BODYHASH_WHOLE, &whole));
	fixture_push(&s, 0);
	struct buf bh, field;
	buf_init(&bh, 100);
	buf_init(&field, 4096);
	base64_encode(&bh, bodyhash_digest(s.hashes, index), 32);
	buf_addf(&field,
	    " v=1; a=rsa-sha256; c=relaxed/relaxed; d=football.example.com;"
	    " s=test; %s bh=%.*s; b=",
	    tags, (int)bh.len, bh.ptr);
	struct field self = { .name = STR("DKIM-Signature"),
		.raw_name = STR("DKIM-Signature"),
		.value = buf_str(&field) };
	struct buf data, sig;
	buf_init(&data, 65536);
	buf_init(&sig, 1024);
	struct sink *sink = sink_buf(s.arena, &data);
	canon_field(CANON_RELAXED, header_find(s.header, STR("from")), sink);
	canon_signature_field(CANON_RELAXED, &self, field.len, field.len, sink);
	uint8_t digest[32];
	assert_ok(digest_sha256(data.ptr, data.len, digest));
	struct signer *signer =
	    signer_from_pem(rfc8463_rsa_pem, "football.example.com", "test");
	struct manifest *man = signer->manifest(signer);
	assert_ok(signer->sign(signer, manifest_at(man, 0), digest, &sig));
	manifest_unref(&man);
	signer_free(&signer);
	base64_encode(&field, sig.ptr, sig.len);
	snprintf(m, sizeof m, "DKIM-Signature:%.*s\r\n%s\r\n%s", (int)field.len,
	    field.ptr, rfc8463_header, rfc8463_body);
	fixture_open(
	    f, str_c(from != NULL ? replaced(m, from, to) : m), RFC8463_ZONE);
	buf_done(&data);
	buf_done(&sig);
	buf_done(&bh);
	buf_done(&field);
	fixture_close(&s);
}

static void
body_length(void **state)
{
	static const struct {
		const char *tags, *from, *to;
		enum body_length option;
		const char *want;
	} rows[] = {
		{ "h=from; l=20;", NULL, NULL, BODY_LENGTH_POLICY,
		    "policy (unsigned body bytes)" },
		{ "h=from; l=20;", NULL, NULL, BODY_LENGTH_ACCEPT, "pass" },
		{ "h=from; l=20;", NULL, NULL, BODY_LENGTH_REFUSE,
		    "policy (body length not accepted)" },
		{ "h=from; l=20;", "hungry", "angry", BODY_LENGTH_ACCEPT,
		    "pass" },
		{ "h=from; l=20;", "Hi.", "Ho.", BODY_LENGTH_ACCEPT,
		    "fail (body hash did not verify)" },
		/* exactly the whole body: nothing is unsigned */
		{ "h=from; l=54;", NULL, NULL, BODY_LENGTH_POLICY, "pass" },
		{ "h=from; l=54;", "Joe.\r\n", "Joe.\r\n\r\n",
		    BODY_LENGTH_POLICY, "pass" },
		{ "h=from; l=54;", "Joe.\r\n", "Joe.\r\nmore\r\n",
		    BODY_LENGTH_POLICY, "policy (unsigned body bytes)" },
		/* more than there is (CANON-04) */
		{ "h=from; l=55;", NULL, NULL, BODY_LENGTH_ACCEPT,
		    "fail (body hash did not verify)" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		sign_and_open(&f, rows[i].tags, rows[i].from, rows[i].to);
		f.options.body_length = rows[i].option;
		fixture_dkim(&f, 3);
		print_message("# body length %zu\n", i);
		expect_result(&f, 0, rows[i].want);
		fixture_close(&f);
	}
}

static void
several_from(void **state)
{
	static const struct {
		const char *tags, *from, *to, *want;
	} rows[] = {
		{ "h=from;", NULL, NULL, "pass" },
		{ "h=from;", "From: Joe", "From: x@evil.example\r\nFrom: Joe",
		    "policy (multiple From)" },
		{ "h=from;", "To: Suz", "From: x@evil.example\r\nTo: Suz",
		    "fail (signature did not verify)" },
		{ "h=from:from;", "From: Joe",
		    "From: x@evil.example\r\nFrom: Joe",
		    "fail (signature did not verify)" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		sign_and_open(&f, rows[i].tags, rows[i].from, rows[i].to);
		fixture_dkim(&f, 0);
		expect_result(&f, 0, rows[i].want);
		fixture_close(&f);
	}
}

static void
required_fields(void **state)
{
	static const struct str required[] = { STR("Subject"), STR("List-Id") };
	struct fixture f;
	sign_and_open(&f, "h=from;", NULL, NULL);
	f.options.required_headers = required;
	f.options.required_count = 2;
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "policy (required field not signed)");
	fixture_close(&f);
	fixture_open(&f, str_c(message_8463()), RFC8463_ZONE);
	f.options.required_headers = required;
	f.options.required_count = 2; /* there is no List-Id */
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "pass");
	fixture_close(&f);
}

/* Other DKIM-Signature fields may be signed, the one verified is never taken
 * for them (HASH-02). */
static void
signs_another_signature(void **state)
{
	struct fixture f;
	sign_and_open(&f, "h=from:dkim-signature:dkim-signature;", NULL, NULL);
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "pass");
	fixture_close(&f);
	sign_and_open(&f, "h=from:dkim-signature:dkim-signature;", "From: Joe",
	    "DKIM-Signature: x\r\nFrom: Joe");
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "fail (signature did not verify)");
	expect_result(&f, 1, "neutral (bad signature syntax)");
	fixture_close(&f);
}

/* --- many --------------------------------------------------------------------- */
/* Junk that costs nothing does not keep a good signature from being seen; of
 * those that hold together only so many are. */
static void
too_many(void **state)
{
	for (unsigned max = 1; max <= 3; max++) {
		struct buf m;
		struct fixture f;
		buf_init(&m, 1 << 20);
		for (int i = 0; i < 5; i++)
			buf_add_c(&m, "DKIM-Signature: junk\r\n");
		buf_add_c(&m, "DKIM-Signature: " GOOD "\r\n");
		buf_add_c(&m, message_8463());
		fixture_open(&f, buf_str(&m), RFC8463_ZONE);
		f.options.max_signatures = max;
		fixture_dkim(&f, 0);
		assert_int_equal(f.count, 8);
		expect_result(&f, 0, "neutral (bad signature syntax)");
		expect_result(&f, 5, "fail (body hash did not verify)");
		expect_result(
		    &f, 6, max >= 2 ? "pass" : "policy (too many signatures)");
		expect_result(
		    &f, 7, max >= 3 ? "pass" : "policy (too many signatures)");
		fixture_close(&f);
		buf_done(&m);
	}
}

static void
ten_thousand(void **state)
{
	struct buf m;
	struct fixture f;
	buf_init(&m, 8 << 20);
	for (int i = 0; i < 10000; i++)
		buf_addf(&m, "DKIM-Signature: " GOOD "; l=%d\r\n", i);
	buf_add_c(&m, message_8463());
	fixture_open(&f, buf_str(&m), RFC8463_ZONE);
	f.options.max_signatures = 1000;
	fixture_dkim(&f, 0);
	assert_int_equal(f.count, DKIM_MAX_FIELDS);
	expect_result(&f, 31, "fail (body hash did not verify)");
	expect_result(&f, 32, "policy (too many signatures)");
	fixture_close(&f);
	buf_done(&m);
}

/* --- RFC 8616 ------------------------------------------------------------------ */
static void
u_labels(void **state)
{
	struct fixture f;
	fixture_open(&f,
	    STR("DKIM-Signature: v=1; a=rsa-sha256; h=from; bh=" BH
		"; b=AAAA; d=b\xc3\xbc"
		"cher.example; s=s\xc3\xa9l; i=j\xc3\xa9@x.b\xc3\xbc"
		"cher.example\r\nFrom: a@b.c\r\n\r\nx\r\n"),
	    "xn--sl-bja._domainkey.xn--bcher-kva.example TXT "
	    "\"p=" RFC8463_RSA_P "\"\n");
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "fail (body hash did not verify)");
	assert_str(f.results[0].d, "xn--bcher-kva.example");
	assert_str(f.results[0].s, "xn--sl-bja");
	assert_str(f.results[0].i, "j\xc3\xa9@x.xn--bcher-kva.example");
	fixture_close(&f);
}

/* --- shared with threads, remembered --------------------------------------------- */
static void
with_cache(void **state)
{
	struct key_cache *keys = key_cache_new(0);
	uint64_t asked, known;
	for (int i = 0; i < 3; i++) {
		struct fixture f;
		fixture_open(&f, str_c(message_8463()), RFC8463_ZONE);
		f.options.keys = keys;
		fixture_dkim(&f, 0);
		expect_result(&f, 0, "pass");
		expect_result(&f, 1, "pass");
		fixture_close(&f);
	}
	key_cache_counts(keys, &asked, &known);
	assert_int_equal(asked, 6);
	assert_int_equal(known, 4);
	key_cache_free(&keys);
}

/* Without memory nothing but RES_NOMEM comes out. */
static void
out_of_memory(void **state)
{
	for (size_t limit = 1000; limit < 400000; limit += 1009) {
		struct fixture f;
		struct dkim_verify *v;
		fixture_open(&f, str_c(message_8463()), RFC8463_ZONE);
		struct arena *small = arena_new(limit);
		struct bodyhash_set *set = bodyhash_new(small);
		enum res r = set == NULL ? RES_NOMEM
					 : dkim_verify_begin(small, f.header,
					       &f.options, f.dns, set, &v);
		struct sink *s = r == RES_OK ? bodyhash_sink(set) : NULL;
		if (s != NULL) {
			sink_push(s, f.body.ptr, f.body.len);
			assert_ok(sink_finish(s));
			r = dkim_verify_finish(v, &f.results, &f.count);
			if (r == RES_OK) {
				expect_result(&f, 0, "pass");
				expect_result(&f, 1, "pass");
			}
		}
		assert_true(r == RES_OK || r == RES_NOMEM);
		arena_free(&small);
		fixture_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc8463_any_split),
		cmocka_unit_test(rfc8463_details),
		cmocka_unit_test(rfc8463_mutations),
		cmocka_unit_test(rfc6376_example),
		cmocka_unit_test(every_field),
		cmocka_unit_test(no_signature),
		cmocka_unit_test(no_look_up_for_the_refused),
		cmocka_unit_test(age),
		cmocka_unit_test(key_records),
		cmocka_unit_test(key_flag_s),
		cmocka_unit_test(key_size),
		cmocka_unit_test(body_length),
		cmocka_unit_test(several_from),
		cmocka_unit_test(required_fields),
		cmocka_unit_test(signs_another_signature),
		cmocka_unit_test(too_many),
		cmocka_unit_test(ten_thousand),
		cmocka_unit_test(u_labels),
		cmocka_unit_test(with_cache),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "auth/arc_verify.h"

#include "auth_test.h"

static const char *
chain_message(const char *set2, const char *set1)
{
	static char m[16384];
	snprintf(m, sizeof m, "%s%s%s\r\n%s", set2, set1, rfc8463_header,
	    rfc8463_body);
	return m;
}

static void
expect_chain(struct fixture *f, const char *want)
{
	char got[256];
	snprintf(got, sizeof got, f->chain.reason != NULL ? "%s (%s)" : "%s",
	    auth_result_word(f->chain.result), f->chain.reason);
	assert_string_equal(got, want);
	assert_int_equal(f->chain.result == AUTH_FAIL, f->chain.reason != NULL);
}

static void
vector_any_split(void **state)
{
	for (size_t step = 0; step < 60; step++) {
		struct fixture f;
		fixture_open(
		    &f, str_c(chain_message(arc_set2, arc_set1)), RFC8463_ZONE);
		fixture_arc(&f, step);
		expect_chain(&f, "pass");
		assert_int_equal(f.chain.instances, 2);
		assert_int_equal(f.chain.oldest_pass, 0);
		assert_false(f.chain.temporary);
		assert_false(f.chain.sealed_fail);
		assert_non_null(f.chain.sets);
		assert_ptr_equal(f.chain.sets[0].as, header_at(f.header, 3));
		assert_ptr_equal(f.chain.sets[1].ams, header_at(f.header, 1));
		assert_ptr_equal(f.chain.sets[1].aar, header_at(f.header, 2));
		assert_str(f.chain.sets[1].d, "football.example.com");
		assert_str(f.chain.sets[1].s, "test");
		assert_str(f.chain.sets[1].ams_d, "football.example.com");
		fixture_close(&f);
	}
}

#define AMS_NEW  "ARC-Message-Signature i=2: "
#define SEAL_NEW "ARC-Seal i=2: "

/* Replace `from` in the message; the first one, so set 2 before set 1. */
static const struct {
	const char *from, *to, *want;
} mutations[] = {
	{ "Subject: Is", "Subject: Isnt",
	    "fail (" AMS_NEW "signature did not verify)" },
	{ "hungry", "angry", "fail (" AMS_NEW "body hash did not verify)" },
	{ "spf=pass smtp", "spf=fail smtp",
	    "fail (ARC-Seal i=1: signature did not verify)" },
	{ "header.oldest-pass=0", "header.oldest-pass=1",
	    "fail (" SEAL_NEW "signature did not verify)" },
	{ "From: Joe", "Received: x\r\nFrom: Joe", "pass" },
	{ "From: Joe", "DKIM-Signature: x\r\nFrom: Joe", "pass" },
	/* relaxed throughout */
	{ "ARC-Seal: i=2; a=", "arc-seal:\r\n i=2;  a=", "pass" },
	{ "i=2; mx2", "i=2;\r\n\tmx2", "pass" },
	{ "game.  Are", "game. Are", "pass" },
	/* structure */
	{ "ARC-Authentication-Results: i=2; mx2.example.org; arc=pass",
	    "ARC-Authentication-Results: i=2; x\r\n"
	    "ARC-Authentication-Results: i=2; mx2.example.org; arc=pass",
	    "fail (ARC-Authentication-Results twice)" },
	{ "ARC-Authentication-Results: i=2; mx2",
	    "X-ARC-Authentication-Results: i=2; mx2",
	    "fail (ARC set incomplete)" },
	{ "ARC-Message-Signature: i=2", "X-Message-Signature: i=2",
	    "fail (ARC set incomplete)" },
	{ "ARC-Seal: i=2", "X-Seal: i=2", "fail (ARC set incomplete)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=1; ", "fail (ARC-Seal twice)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: ", "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=; ", "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=0; ", "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=02; ", "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=51; ", "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=two; ",
	    "fail (ARC-Seal without i=)" },
	{ "ARC-Seal: i=2; ", "ARC-Seal: i=2; i=2; ",
	    "fail (" SEAL_NEW "bad signature syntax)" },
	{ "ARC-Message-Signature: i=2; ", "ARC-Message-Signature: ",
	    "fail (ARC-Message-Signature without i=)" },
	{ "ARC-Authentication-Results: i=2; ",
	    "ARC-Authentication-Results: x; i=2; ",
	    "fail (ARC-Authentication-Results without i=)" },
	{ "i=2; mx2.example.org;", "i=2 mx2.example.org;",
	    "fail (ARC-Authentication-Results without i=)" },
	/* cv= */
	{ "cv=pass", "cv=fail", "fail (the newest seal says cv=fail)" },
	{ "cv=pass", "cv=none", "fail (wrong cv=)" },
	{ "cv=none", "cv=pass", "fail (wrong cv=)" },
	{ "cv=none", "cv=fail", "fail (wrong cv=)" },
	{ "cv=pass", "cv=", "fail (" SEAL_NEW "bad signature syntax)" },
	{ "cv=pass", "cv=Pass", "fail (" SEAL_NEW "bad signature syntax)" },
	{ " cv=pass;", "", "fail (" SEAL_NEW "missing tag cv)" },
	/* seals */
	{ "cv=pass;", "cv=pass; h=from;",
	    "fail (" SEAL_NEW "bad signature syntax)" },
	{ "cv=pass;", "cv=pass; cv=pass;",
	    "fail (" SEAL_NEW "bad signature syntax)" },
	{ "cv=pass;", "cv=pass; x=y;",
	    "fail (" SEAL_NEW "signature did not verify)" },
	{ "cv=pass;", "cv=pass; t=;",
	    "fail (" SEAL_NEW "bad signature syntax)" },
	{ "a=rsa-sha256; cv", "a=rsa-sha1; cv",
	    "fail (" SEAL_NEW "historic algorithm)" },
	{ "a=rsa-sha256; cv", "cv", "fail (" SEAL_NEW "missing tag a)" },
	{ "d=football.example.com;", "d=;",
	    "fail (" SEAL_NEW "bad signature syntax)" },
	{ "s=test;", "", "fail (" SEAL_NEW "missing tag s)" },
	{ "s=test;", "s=other;", "fail (" SEAL_NEW "no key)" },
	/* the newest message signature */
	{ "h=from:to", "h=from:arc-seal:to",
	    "fail (" AMS_NEW "ARC-Seal in h=)" },
	{ " h=from:to:subject:date:message-id;", "",
	    "fail (" AMS_NEW "missing tag h)" },
	{ "c=relaxed/relaxed", "c=", "fail (" AMS_NEW "bad signature syntax)" },
	{ "c=relaxed/relaxed; d=", "d=",
	    "fail (" AMS_NEW "body hash did not verify)" },
	{ "bh=2j", "bh=", "fail (" AMS_NEW "bad signature syntax)" },
};

static void
vector_mutations(void **state)
{
	for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
		struct fixture f;
		fixture_open(&f,
		    str_c(replaced(chain_message(arc_set2, arc_set1),
			mutations[i].from, mutations[i].to)),
		    RFC8463_ZONE);
		fixture_arc(&f, 11);
		print_message(
		    "# %s -> %s\n", mutations[i].from, mutations[i].to);
		expect_chain(&f, mutations[i].want);
		assert_int_equal(f.chain.sealed_fail,
		    strstr(mutations[i].want, "newest seal") != NULL);
		fixture_close(&f);
	}
}

/* x= and t= of the newest message signature count like DKIM's; of an older
 * one only for oldest-pass; a seal has no x=. */
#define OLD "t=1528637909; h="
#define NEW "t=1000; x=2000; h="
static void
age(void **state)
{
	static const struct {
		const char *from, *to;
		int64_t now;
		const char *want;
	} rows[] = {
		{ OLD, NEW,
		    2301, "fail (" AMS_NEW "signature expired)" },
		{ OLD, NEW,
		    -1, "fail (" AMS_NEW "signature did not verify)" },
		{ OLD, NEW,
		    2300, "fail (" AMS_NEW "signature did not verify)" },
		{ OLD, NEW, 699,
		    "fail (" AMS_NEW "signature from the future)" },
		{ "", "", 1528637909 - 300, "pass" },
		{ "", "", 1528637909 - 301,
		    "fail (" AMS_NEW "signature from the future)" },
		/* an older one is only told by oldest-pass */
		{ "ARC-Message-Signature: i=1; a=rsa-sha256; "
		  "c=relaxed/relaxed; d=football.example.com; s=test; "
		  "t=1528637909;",
		    "ARC-Message-Signature: i=1; a=rsa-sha256; "
		    "c=relaxed/relaxed; d=football.example.com; s=test; "
		    "t=1000; x=2000;",
		    1528637909,
		    "fail (ARC-Seal i=1: signature did not verify)" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		const char *m = chain_message(arc_set2, arc_set1);
		fixture_open(&f,
		    str_c(rows[i].from[0] != '\0' ?
			    replaced(m, rows[i].from, rows[i].to) : m),
		    RFC8463_ZONE);
		f.options.now_s = rows[i].now;
		fixture_arc(&f, 0);
		expect_chain(&f, rows[i].want);
		fixture_close(&f);
	}
}

static void
sets_removed(void **state)
{
	static const struct {
		const char *set2, *set1, *want;
		unsigned instances;
	} rows[] = {
		{ "", "", "none", 0 }, { "", arc_set1, "pass", 1 },
		{ arc_set2, "", "fail (ARC set incomplete)", 2 },
		{ arc_set1, arc_set2, "pass", 2 }, /* order means nothing */
	};
	for (size_t i = 0; i < 4; i++) {
		struct fixture f;
		fixture_open(&f,
		    str_c(chain_message(rows[i].set2, rows[i].set1)),
		    RFC8463_ZONE);
		fixture_arc(&f, 0);
		expect_chain(&f, rows[i].want);
		assert_int_equal(f.chain.instances, rows[i].instances);
		if (rows[i].instances != 1 && i != 3)
			assert_int_equal(dns_session_count(f.dns), 0);
		fixture_close(&f);
	}
}

static void
comments_around_the_instance(void **state)
{
	/* They break the signature here, but not the structure. */
	struct fixture f;
	fixture_open(&f,
	    str_c(replaced(chain_message("", arc_set1), "ARC-Seal: i=1; ",
		"ARC-Seal: (a (b) \\) c) i (x) = (y) 1 (z) ; ")),
	    RFC8463_ZONE);
	fixture_arc(&f, 0);
	expect_chain(&f, "fail (ARC-Seal i=1: signature did not verify)");
	fixture_close(&f);
	fixture_open(&f,
	    str_c(replaced(chain_message("", arc_set1), "cv=none;",
		"cv=none; (no comments here)")),
	    RFC8463_ZONE);
	fixture_arc(&f, 0);
	expect_chain(&f, "fail (ARC-Seal i=1: bad signature syntax)");
	fixture_close(&f);
}

/* A DNS failure is fail and temporary; a definite failure is not. */
static void
dns_failures(void **state)
{
	static const struct {
		const char *zone, *want;
		bool temporary;
	} rows[] = {
		{ "test._domainkey.football.example.com TXT !SERVFAIL\n",
		    "fail (" AMS_NEW "key unavailable)", true },
		{ "test._domainkey.football.example.com TXT !TIMEOUT\n",
		    "fail (" AMS_NEW "key unavailable)", true },
		{ "test._domainkey.football.example.com TXT !NODATA\n",
		    "fail (" AMS_NEW "no key)", false },
		{ "test._domainkey.football.example.com TXT \"p=\"\n",
		    "fail (" AMS_NEW "key revoked)", false },
	};
	for (size_t i = 0; i < 4; i++) {
		struct fixture f;
		fixture_open(
		    &f, str_c(chain_message(arc_set2, arc_set1)), rows[i].zone);
		fixture_arc(&f, 0);
		expect_chain(&f, rows[i].want);
		assert_int_equal(f.chain.temporary, rows[i].temporary);
		fixture_close(&f);
	}
	struct fixture f;
	fixture_open(&f,
	    str_c(replaced(chain_message(arc_set2, arc_set1), "spf=pass smtp",
		"spf=fail smtp")),
	    RFC8463_ZONE
	    "gone._domainkey.football.example.com TXT !SERVFAIL\n");
	fixture_arc(&f, 0);
	expect_chain(&f, "fail (ARC-Seal i=1: signature did not verify)");
	fixture_close(&f);
	/* The newest message signature's key is not to be had, the oldest
	 * seal is broken: that is no temporary matter. */
	const char *m = replaced(chain_message(arc_set2, arc_set1),
	    "d=football.example.com; s=test; t=1528637909; h=from",
	    "d=football.example.com; s=gone; t=1528637909; h=from");
	fixture_open(&f, str_c(replaced(m, "spf=pass smtp", "spf=fail smtp")),
	    RFC8463_ZONE
	    "gone._domainkey.football.example.com TXT !SERVFAIL\n");
	fixture_arc(&f, 0);
	expect_chain(&f, "fail (ARC-Seal i=1: signature did not verify)");
	assert_false(f.chain.temporary);
	fixture_close(&f);
}

static void
too_many_sets(void **state)
{
	for (unsigned n = 50; n <= 51; n++) {
		struct buf m;
		struct fixture f;
		buf_init(&m, 1 << 20);
		for (unsigned i = 1; i <= n; i++)
			buf_addf(&m,
			    "ARC-Seal: i=%u; x=y\r\n"
			    "ARC-Message-Signature: i=%u; x=y\r\n"
			    "ARC-Authentication-Results: i=%u; x\r\n",
			    i, i, i);
		buf_add_c(&m, "From: a@b.c\r\n\r\nbody\r\n");
		fixture_open(&f, buf_str(&m), "");
		fixture_arc(&f, 0);
		expect_chain(&f,
		    n == 50 ? "fail (ARC-Seal i=1: missing tag a)"
			    : "fail (too many ARC sets)");
		assert_int_equal(f.chain.instances, 50);
		assert_int_equal(dns_session_count(f.dns), 0);
		fixture_close(&f);
		buf_done(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_any_split),
		cmocka_unit_test(vector_mutations),
		cmocka_unit_test(age),
		cmocka_unit_test(sets_removed),
		cmocka_unit_test(comments_around_the_instance),
		cmocka_unit_test(dns_failures),
		cmocka_unit_test(too_many_sets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

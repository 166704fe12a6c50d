#include "auth/sigcore.h"

#include "auth_test.h"

#define BH "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="

static void
instances(void **state)
{
	static const struct {
		const char *value;
		enum res want;
		unsigned instance;
		size_t rest;
	} rows[] = {
		{ "i=1;", RES_OK, 1, 4 },
		{ " i = 50 ; x", RES_OK, 50, 9 },
		{ "\r\n\ti=9\r\n ;", RES_OK, 9, 10 },
		{ "(a) i (b(c)) = (\\)) 7 (d) ;", RES_OK, 7, 27 },
		{ "i=51;", RES_INVALID, 0, 0 },
		{ "i=0;", RES_INVALID, 0, 0 },
		{ "i=01;", RES_INVALID, 0, 0 },
		{ "i=100;", RES_INVALID, 0, 0 },
		{ "i=;", RES_INVALID, 0, 0 },
		{ "i=-1;", RES_SYNTAX, 0, 0 },
		{ "i=1", RES_SYNTAX, 0, 0 },
		{ "i=1 2;", RES_SYNTAX, 0, 0 },
		{ "I=1;", RES_SYNTAX, 0, 0 },
		{ "x; i=1;", RES_SYNTAX, 0, 0 },
		{ "i", RES_SYNTAX, 0, 0 },
		{ "(i=1;", RES_SYNTAX, 0, 0 },
		{ "(\\", RES_SYNTAX, 0, 0 },
		{ "", RES_SYNTAX, 0, 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsigned instance = 0;
		size_t rest = 0;
		print_message("# %s\n", rows[i].value);
		assert_int_equal(
		    sig_instance(str_c(rows[i].value), &instance, &rest),
		    rows[i].want);
		assert_int_equal(instance, rows[i].instance);
		assert_int_equal(rest, rows[i].rest);
	}
	/* NUL and 8-bit bytes are no CFWS */
	unsigned instance;
	size_t rest;
	assert_int_equal(
	    sig_instance(str_of("\0i=1;", 5), &instance, &rest), RES_SYNTAX);
}

static struct sig
parsed(struct arena *a, enum sig_kind kind, const char *value)
{
	struct field *f = ARENA_NEW(a, struct field);
	struct sig s;
	f->name = f->raw_name = STR("x");
	f->value = str_c(value);
	assert_ok(sig_parse(a, kind, f, &s));
	assert_ptr_equal(s.field, f);
	return s;
}

/* The b= value is found wherever it stands, and is not bh=. */
static void
place_of_b(void **state)
{
	static const struct {
		enum sig_kind kind;
		const char *value, *b;
	} rows[] = {
		{ SIG_DKIM, "b=AA==", "AA==" },
		{ SIG_DKIM, " bh=AAAA; b =\r\n A A = =\t; v=1",
		    "\r\n A A = =\t" },
		{ SIG_DKIM, "b=; v=1", "" },
		{ SIG_AMS, "(x) i=1 (y); b= Zg== ;", " Zg== " },
		{ SIG_SEAL, "b=Zg==; i=3", "Zg==" },
	};
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sig s = parsed(a, rows[i].kind, rows[i].value);
		assert_str(
		    str_sub(str_c(rows[i].value), s.b_from, s.b_to - s.b_from),
		    rows[i].b);
	}
	arena_free(&a);
}

static void
values(void **state)
{
	struct arena *a = arena_new(0);
	struct sig s = parsed(a, SIG_DKIM,
	    "v=1; a=ed25519-sha256; d=Example.COM; s=A.b; c=relaxed; "
	    "l=0012; t=77; x=99999999999999; h= From : To:from; "
	    "bh=" BH "; b=Zm9v; i=a=40b@x.EXAMPLE.com");
	assert_true(sig_undecided(&s));
	assert_null(s.reason);
	assert_str(s.a, "ed25519-sha256");
	assert_int_equal(s.type, KEY_ED25519);
	assert_str(s.d, "example.com");
	assert_str(s.s, "a.b");
	assert_str(s.key_name, "a.b._domainkey.example.com");
	assert_str(s.i, "a@b@x.example.com");
	assert_str(s.i_domain, "x.example.com");
	assert_int_equal(s.header_canon, CANON_RELAXED);
	assert_int_equal(s.body_canon, CANON_SIMPLE);
	assert_true(s.has_length);
	assert_int_equal(s.length, 12);
	assert_int_equal(s.signed_at, 77);
	assert_true(s.expires_at == SIG_TIME_NEVER);
	assert_int_equal(s.name_count, 3);
	assert_str(s.names[0], "From");
	assert_str(s.names[1], "To");
	assert_str(s.names[2], "from");
	assert_str(s.h, "From:To:from");
	assert_str(s.signature, "foo");
	arena_free(&a);
}

static void
defaults(void **state)
{
	struct arena *a = arena_new(0);
	struct sig s = parsed(a, SIG_DKIM,
	    "v=1; a=rsa-sha256; d=example.com; s=s; h=from; bh=" BH "; b=Zm9v");
	assert_true(sig_undecided(&s));
	assert_int_equal(s.header_canon, CANON_SIMPLE);
	assert_int_equal(s.body_canon, CANON_SIMPLE);
	assert_false(s.has_length);
	assert_true(s.length == BODYHASH_WHOLE);
	assert_int_equal(s.signed_at, -1);
	assert_int_equal(s.expires_at, -1);
	assert_int_equal(s.i.len, 0);
	assert_str(s.i_domain, "example.com");
	arena_free(&a);
}

/* What each kind of field may and must hold. */
static void
kinds(void **state)
{
#define AMS_GOOD  "a=rsa-sha256; d=example.com; s=s; h=to; bh=" BH "; b=Zm9v"
#define SEAL_GOOD "a=rsa-sha256; cv=none; d=example.com; s=s; b=Zm9v"
	static const struct {
		enum sig_kind kind;
		const char *value, *reason;
		unsigned instance;
	} rows[] = {
		{ SIG_AMS, "i=2; " AMS_GOOD, NULL, 2 },
		{ SIG_AMS, AMS_GOOD "; i=3", NULL, 3 },
		{ SIG_AMS, AMS_GOOD "; i=3; v=7", NULL, 3 },
		{ SIG_AMS, AMS_GOOD "; i=3; cv=nonsense", NULL, 3 },
		{ SIG_AMS, AMS_GOOD, "bad signature syntax", 0 },
		{ SIG_AMS, "i=2; i=2; " AMS_GOOD, "bad signature syntax", 2 },
		{ SIG_AMS, "i=2;; " AMS_GOOD, "bad signature syntax", 2 },
		{ SIG_AMS, "i=2; " AMS_GOOD "; c=", "bad signature syntax", 2 },
		{ SIG_SEAL, "i=2; " SEAL_GOOD, NULL, 2 },
		{ SIG_SEAL, SEAL_GOOD "; i=50", NULL, 50 },
		{ SIG_SEAL, SEAL_GOOD "; i=51", "bad signature syntax", 0 },
		{ SIG_SEAL, "i=1; " SEAL_GOOD "; h=x", "bad signature syntax",
		    1 },
		{ SIG_SEAL, "i=1; " SEAL_GOOD "; bh=?; c=?; l=?; q=?", NULL,
		    1 },
		{ SIG_SEAL, "i=1; a=rsa-sha256; d=example.com; s=s; b=Zm9v",
		    "missing tag cv", 1 },
		{ SIG_SEAL, "i=1; cv=none; d=example.com; s=s; b=Zm9v",
		    "missing tag a", 1 },
	};
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sig s = parsed(a, rows[i].kind, rows[i].value);
		print_message("# %s\n", rows[i].value);
		assert_int_equal(s.instance, rows[i].instance);
		if (rows[i].reason == NULL)
			assert_null(s.reason);
		else
			assert_string_equal(s.reason, rows[i].reason);
		if (rows[i].kind == SIG_SEAL)
			assert_int_equal(s.header_canon, CANON_RELAXED);
	}
	arena_free(&a);
}

static void
first_decision_stays(void **state)
{
	struct sig s = { .result = AUTH_NONE };
	sig_decide(&s, AUTH_POLICY, "first");
	sig_decide(&s, AUTH_PASS, NULL);
	assert_int_equal(s.result, AUTH_POLICY);
	assert_string_equal(s.reason, "first");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instances),
		cmocka_unit_test(place_of_b),
		cmocka_unit_test(values),
		cmocka_unit_test(defaults),
		cmocka_unit_test(kinds),
		cmocka_unit_test(first_decision_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

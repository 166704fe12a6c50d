#include "auth/diagnose.h"

#include "auth_test.h"

static const char *
rsa_message(void)
{
	static char m[8192];
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc8463_rsa_signature,
	    rfc8463_header, rfc8463_body);
	return m;
}

static void
expect_diagnosis(const char *text, const char *zone, const char *want)
{
	for (size_t step = 1; step < 2000; step += 666) {
		struct fixture f;
		fixture_open(&f, str_c(text), zone);
		fixture_dkim(&f, step);
		assert_str(f.results[0].diagnosis, want);
		assert_int_not_equal(f.results[0].result, AUTH_PASS);
		fixture_close(&f);
	}
}

#define FOOTER                                                                 \
	"Joe.\r\n\r\n_______________________________________________\r\n"      \
	"list mailing list\r\n"

static const struct {
	const char *from, *to, *want;
} rows[] = {
	/* body */
	{ "Joe.\r\n", FOOTER, "body changed: 70 octets were added at the end" },
	{ "Joe.\r\n", "Joe.\r\n-- \r\nx\r\n",
	    "body changed: 7 octets were added at the end" },
	{ "hungry", "angry", "body changed" },
	{ "Hi.\r\n", "CAUTION: external\r\n\r\nHi.\r\n",
	    "body changed: 21 octets were added in front" },
	{ "hungry yet?", "hun=67ry =\r\nyet=3F",
	    "body changed: it was encoded as quoted-printable" },
	{ "Joe.\r\n", "Jim.\r\n", "body changed" },
	/* header */
	{ "Subject: Is", "Subject: [list] Is",
	    "header changed: Subject got \"[list]\"" },
	{ "Subject: Is", "Subject: ***** SPAM ***** Is",
	    "header changed: Subject got \"***** SPAM *****\"" },
	{ "Subject: Is", "Subject: Is [x\001\xc3\xa9\"] ",
	    "header changed: Subject got \"[x????]\"" },
	{ "Subject: Is dinner ready?", "Subject: was it lunch?",
	    "header changed" },
	{ "To: Suzie", "Subject: x\r\nTo: Suzie",
	    "header changed: a field was added: \"Subject\"" },
	{ "@football.example.com>\r\n\r\n",
	    "@football.example.com>\r\nSubject: x\r\n\r\n",
	    "header changed: a field was added: \"Subject\"" },
	{ "From: Joe SixPack <joe@football.example.com>",
	    "From: Joe via list <list@x.example>\r\n"
	    "Reply-To: Joe SixPack <joe@football.example.com>",
	    "header changed: From was rewritten, reply-to has the old one" },
	{ "To: Suzie Q <suzie@shopping.example.net>\r\n", "",
	    "header changed: to is not there" },
	{ "To: Suzie Q", "To: Suzi", "header changed" },
	/* both */
	{ "Subject: Is dinner ready?\r\nDate: Fri, 11 Jul 2003 21:00:37 -0700 "
	  "(PDT)\r\nMessage-ID: <20030712040037.46341.5F8J@football.example."
	  "com>\r\n\r\nHi.",
	    "Subject: [x] Is dinner ready?\r\nDate: Fri, 11 Jul 2003 21:00:37 "
	    "-0700 (PDT)\r\nMessage-ID: <20030712040037.46341.5F8J@football."
	    "example.com>\r\n\r\nHo.",
	    "body changed; header changed: Subject got \"[x]\"" },
	/* the signature itself */
	{ "b=F45d", "b=G45d", "not signed with this key, or b= was damaged" },
	{ "b=F45d",
	    "b=", "not signed with this key: it has 1024 bits, b= has 1000" },
};

static void
relaxed(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		print_message("# %s\n", rows[i].want);
		expect_diagnosis(
		    replaced(rsa_message(), rows[i].from, rows[i].to),
		    RFC8463_ZONE, rows[i].want);
	}
}

static void
rewritten_by_a_list(void **state)
{
	const char *m =
	    replaced(rsa_message(), "Subject: Is", "Subject: Re: [list] Is");
	expect_diagnosis(
	    m, RFC8463_ZONE, "header changed: Subject got \"Re: [list]\"");
	m = replaced(rsa_message(), "Subject: Is", "Subject: [list] Is");
	m = replaced(m, "From: Joe SixPack <joe@football.example.com>",
	    "From: Joe via list <list@x.example>\r\n"
	    "X-Original-From: Joe SixPack <joe@football.example.com>");
	m = replaced(m, "Joe.\r\n", FOOTER);
	expect_diagnosis(m, RFC8463_ZONE,
	    "body changed: 70 octets were added at the end; header changed: "
	    "Subject got \"[list]\", From was rewritten");
}

static void
another_key(void **state)
{
	expect_diagnosis(rsa_message(),
	    "test._domainkey.football.example.com TXT \"p=" RFC6376_P "\"\n",
	    "not signed with this key, or b= was damaged");
}

static void
key_hints(void **state)
{
	char m[8192];
	snprintf(m, sizeof m, "%s%s\r\n%s", rfc8463_ed25519_signature,
	    rfc8463_header, rfc8463_body);
	expect_diagnosis(m,
	    "brisbane._domainkey.football.example.com TXT \"k=ed25519; p="
	    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"\n",
	    "p= holds a SubjectPublicKeyInfo where the raw key belongs");
	expect_diagnosis(replaced(m, "Subject: Is", "Subject: [list] Is"),
	    RFC8463_ZONE, "header changed: Subject got \"[list]\"");
	expect_diagnosis(replaced(m, "b=/gCrinpcQOoI", "b=/gCr"), RFC8463_ZONE,
	    "b= has 58 bytes, not 64");
	expect_diagnosis(replaced(m, "Joe.\r\n", "Joe.\r\nx\r\n"), RFC8463_ZONE,
	    "body changed: 3 octets were added at the end");
}

static void
simple(void **state)
{
	static const struct {
		const char *from, *to, *want;
	} changes[] = {
		{ "Subject: Is", "Subject:  Is",
		    "header changed: white space was changed" },
		{ "ready?\r\n", "ready? \r\n",
		    "header changed: trailing blanks were added" },
		{ "Subject: Is dinner", "Subject: Is\r\n dinner",
		    "header changed: folds were added" },
		{ "\r\n      by", "\r\n\tby", "header changed" },
		{ "Message-ID:", "Message-Id:",
		    "header changed: the case of field names was changed" },
		{ "Subject: Is", "Subject: [x] Is",
		    "header changed: Subject got \"[x]\"" },
		{ "yet?\r\n", "yet? \t\r\n",
		    "body changed: trailing blanks were added" },
		{ "Are you", "Are\t you",
		    "body changed: white space was changed" },
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		char m[4096];
		snprintf(m, sizeof m, "%s%s\r\n%s", rfc6376_signature,
		    rfc6376_header, rfc6376_body);
		print_message("# %s\n", changes[i].to);
		/* The signature's own folds come first: change behind them. */
		char *head = strstr(m, "Received: from");
		const char *tail =
		    replaced(head, changes[i].from, changes[i].to);
		struct buf b;
		buf_init(&b, 65536);
		buf_add(&b, m, (size_t)(head - m));
		buf_add_c(&b, tail);
		expect_diagnosis(buf_cstr(&b), RFC6376_ZONE, changes[i].want);
		buf_done(&b);
	}
}

static void
length_and_age(void **state)
{
	struct fixture f;
	const char *m =
	    replaced(rsa_message(), "t=1528637909;", "t=1528637909; l=1000;");
	fixture_open(&f, str_c(m), RFC8463_ZONE);
	fixture_dkim(&f, 0);
	assert_str(f.results[0].diagnosis,
	    "body changed: l= covers 1000 octets, only 54 are left; "
	    "header changed");
	fixture_close(&f);
	m = replaced(
	    rsa_message(), "t=1528637909;", "t=1528637909; x=1528638909;");
	fixture_open(&f, str_c(m), RFC8463_ZONE);
	f.options.now_s = 1528640000;
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "policy (signature expired)");
	assert_str(f.results[0].diagnosis, "expired 1091 s before it arrived");
	fixture_close(&f);
	fixture_open(&f, str_c(rsa_message()), RFC8463_ZONE);
	f.options.now_s = 1528637000;
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "policy (signature from the future)");
	assert_str(f.results[0].diagnosis, "signed 909 s after it arrived");
	fixture_close(&f);
	/* past, but refused for something else */
	m = replaced(m, "d=football.example.com; i=@football.example.com",
	    "d=com");
	fixture_open(&f, str_c(m), RFC8463_ZONE);
	f.options.now_s = 1528640000;
	fixture_dkim(&f, 0);
	expect_result(&f, 0, "policy (public suffix domain)");
	assert_str(f.results[0].diagnosis, "");
	fixture_close(&f);
}

/* A hostile header is not searched for long. */
static void
bounded(void **state)
{
	struct buf m;
	struct fixture f;
	buf_init(&m, 8 << 20);
	for (int i = 0; i < 30; i++)
		buf_add_c(&m, rfc8463_rsa_signature);
	buf_add_c(&m, "Subject:");
	for (int i = 0; i < 20000; i++)
		buf_add_c(&m, " [a] b");
	buf_add_c(&m, "\r\n");
	buf_add_c(&m, rfc8463_header);
	for (int i = 0; i < 5000; i++)
		buf_add_c(&m, "Date: x\r\n");
	buf_add_c(&m, "\r\nx\r\n");
	fixture_open(&f, buf_str(&m), RFC8463_ZONE);
	f.options.max_signatures = 32;
	fixture_dkim(&f, 0);
	for (size_t i = 0; i < f.count; i++)
		assert_str(
		    f.results[i].diagnosis, "body changed; header changed");
	fixture_close(&f);
	buf_done(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relaxed),
		cmocka_unit_test(rewritten_by_a_list),
		cmocka_unit_test(another_key),
		cmocka_unit_test(key_hints),
		cmocka_unit_test(simple),
		cmocka_unit_test(length_and_age),
		cmocka_unit_test(bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

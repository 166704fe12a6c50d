#include "hn_test.h"

#include <stdio.h>

#include "auth/authres.h"
#include "mail/header.h"

static struct arena *arena;

static int
setup(void **state)
{
	(void)state;
	arena = arena_new(0);
	return arena == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* --- writing -------------------------------------------------------------- */
static void
test_write_sample(void **state)
{
	(void)state;
	struct authres *w = authres_begin(arena, STR("mx.example.org"));
	authres_result(w, "iprev", AUTH_PASS);
	authres_value(w, "policy", "iprev", STR("192.0.2.1"));
	authres_result(w, "spf", AUTH_PASS);
	authres_address(w, "smtp", "mailfrom", STR("example.net"));
	authres_value(w, "smtp", "helo", STR("mta.example.net"));
	authres_result(w, "dkim", AUTH_PASS);
	authres_comment(w, "test mode");
	authres_value(w, "header", "d", STR("example.net"));
	authres_value(w, "header", "s", STR("sel1"));
	authres_value(w, "header", "a", STR("rsa-sha256"));
	authres_value(w, "header", "b", STR("F45dVWDf"));
	authres_result(w, "dkim", AUTH_FAIL);
	authres_reason(w, "body hash did not verify");
	authres_value(w, "header", "d", STR("list.example"));
	authres_value(w, "header", "s", STR("k1"));
	authres_value(w, "header", "a", STR("rsa-sha256"));
	authres_value(w, "header", "b", STR("a/1bCdEf"));
	authres_result(w, "arc", AUTH_NONE);
	authres_result(w, "dmarc", AUTH_PASS);
	authres_value(w, "policy", "dmarc", STR("reject"));
	authres_value(w, "header", "from", STR("example.net"));
	assert_str(authres_finish(w),
	    " mx.example.org;\n"
	    "\tiprev=pass policy.iprev=192.0.2.1;\n"
	    "\tspf=pass smtp.mailfrom=example.net smtp.helo=mta.example.net;\n"
	    "\tdkim=pass (test mode) header.d=example.net header.s=sel1\n"
	    "\theader.a=rsa-sha256 header.b=F45dVWDf;\n"
	    "\tdkim=fail reason=\"body hash did not verify\" "
	    "header.d=list.example\n"
	    "\theader.s=k1 header.a=rsa-sha256 header.b=\"a/1bCdEf\";\n"
	    "\tarc=none;\n"
	    "\tdmarc=pass policy.dmarc=reject header.from=example.net");
	assert_str(authres_payload(w),
	    "iprev=pass policy.iprev=192.0.2.1; "
	    "spf=pass smtp.mailfrom=example.net smtp.helo=mta.example.net; "
	    "dkim=pass header.d=example.net header.s=sel1 header.a=rsa-sha256 "
	    "header.b=F45dVWDf; "
	    "dkim=fail reason=\"body hash did not verify\" "
	    "header.d=list.example header.s=k1 header.a=rsa-sha256 "
	    "header.b=\"a/1bCdEf\"; "
	    "arc=none; "
	    "dmarc=pass policy.dmarc=reject header.from=example.net");
}

static void
test_write_none(void **state)
{
	(void)state;
	struct authres *w = authres_begin(arena, STR("mx.example.org"));
	assert_str(authres_finish(w), " mx.example.org; none");
	assert_str(authres_payload(w), "none");
	w = authres_begin(arena, STR("mx \"example\""));
	assert_str(authres_finish(w), " \"mx \\\"example\\\"\"; none");
}

/* The one property of a field. */
static struct str
written(void (*write)(struct authres *, const char *, const char *,
	    struct str),
    struct str value)
{
	struct authres *w = authres_begin(arena, STR("m"));
	authres_result(w, "x", AUTH_PASS);
	write(w, "p", "q", value);
	assert_non_null(authres_finish(w).ptr);
	return str_skip(authres_payload(w), strlen("x=pass p.q="));
}

static void
test_write_values(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "abc+1.2-_", "abc+1.2-_" },
		{ "", "\"\"" },
		{ "2001:db8::1", "\"2001:db8::1\"" },
		{ "a b", "\"a b\"" },
		{ "a=b", "\"a=b\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "a;\r\n b=pass", "\"a; b=pass\"" },
		{ "a\tb\x7f\x01", "ab" },
		{ "b\xc3\xbc", "\"b??\"" },
		{ "example.net(.example.com", "\"example.net(.example.com\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_str(
		    written(authres_value, str_c(rows[i].in)), rows[i].out);
	assert_str(written(authres_value, str_of("a\0b", 3)), "ab");
	assert_str(written(authres_value, STR_EMPTY), "\"\"");
}

static void
test_write_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "user@Example.ORG.", "user@example.org" },
		{ "<user@example.org>", "user@example.org" },
		{ "@example.org", "@example.org" },
		{ "example.org", "example.org" },
		{ "b+x=y@example.org", "b+x=y@example.org" },
		{ "\"a b\"@example.org", "example.org" },
		{ "a..b@example.org", "example.org" },
		{ ".a@example.org", "example.org" },
		{ "a;b@example.org", "example.org" },
		{ "a@b@example.org", "example.org" },
		{ "j\xc3\xb6rg@example.org", "example.org" },
		{ "a@b\xc3\xbc" "cher.example", "a@xn--bcher-kva.example" },
		{ "a@[192.0.2.1]", "\"[192.0.2.1]\"" },
		{ "a@example.net(.example.com", "\"example.net(.example.com\"" },
		{ "a@x; dkim=pass", "\"x; dkim=pass\"" },
		{ "", "\"\"" },
		{ "<>", "\"\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_str(
		    written(authres_address, str_c(rows[i].in)), rows[i].out);
	assert_str(written(authres_address, str_of("a\0b@c.d", 7)), "c.d");
}

static void
test_write_limits(void **state)
{
	(void)state;
	char text[AUTHRES_MAX_VALUE + 2];
	memset(text, 'a', sizeof text);
	for (size_t n = AUTHRES_MAX_VALUE - 1; n <= AUTHRES_MAX_VALUE + 1; n++)
		assert_int_equal(
		    written(authres_value, str_of(text, n)).len,
		    n <= AUTHRES_MAX_VALUE ? n : AUTHRES_MAX_VALUE);

	for (size_t n = AUTHRES_MAX_COMMENT - 1; n <= AUTHRES_MAX_COMMENT + 1;
	     n++) {
		struct authres *w = authres_begin(arena, STR("m"));
		authres_result(w, "x", AUTH_PASS);
		text[n] = '\0';
		authres_comment(w, text);
		text[n] = 'a';
		assert_int_equal(str_chr(authres_finish(w), '(') != SIZE_MAX,
		    n <= AUTHRES_MAX_COMMENT);
	}
	/* Too much in all gives nothing, not a part. */
	struct authres *w = authres_begin(arena, STR("m"));
	for (size_t i = 0; i < AUTHRES_MAX_TEXT / 100; i++) {
		authres_result(w, "x", AUTH_PASS);
		authres_value(w, "p", "q", str_of(text, 100));
	}
	assert_null(authres_finish(w).ptr);
}

static void
test_write_comment_text(void **state)
{
	(void)state;
	static const char *const refused[] = { "", "a;b", "a=b", "(", "\"",
		"\\", "\xc3\xa9", "a\nb" };
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct authres *w = authres_begin(arena, STR("m"));
		authres_result(w, "x", AUTH_PASS);
		authres_comment(w, refused[i]);
		assert_str(authres_finish(w), " m;\n\tx=pass");
	}
}

static void
test_write_columns(void **state)
{
	(void)state;
	for (size_t n = 1; n < 120; n++) {
		struct authres *w = authres_begin(arena, STR("mx.example.org"));
		char text[120];
		memset(text, 'v', sizeof text);
		for (size_t i = 1; i <= 4; i++) {
			authres_result(w, "dkim", AUTH_PASS);
			authres_value(
			    w, "header", "b", str_of(text, n * i % 60 + 1));
			authres_value(
			    w, "header", "s", str_of(text, n * i % 37 + 1));
		}
		struct str rest = authres_finish(w), line;
		size_t lines = 0;
		while (str_split(&rest, '\n', &line)) {
			size_t columns =
			    lines++ == 0 ? line.len + 23 : line.len + 7;
			assert_true(columns < 78);
			assert_true(lines == 1 || line.ptr[0] == '\t');
		}
		assert_true(lines > 4);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_sample),
		cmocka_unit_test(test_write_none),
		cmocka_unit_test(test_write_values),
		cmocka_unit_test(test_write_addresses),
		cmocka_unit_test(test_write_limits),
		cmocka_unit_test(test_write_comment_text),
		cmocka_unit_test(test_write_columns),
	};
	return cmocka_run_group_tests_name(
	    "auth/authres", tests, setup, teardown);
}

#include "arena_test.h"

#include <stdio.h>

#include "auth/authres.h"
#include "mail/header.h"

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
written(void (*write)(struct authres *, const char *, const char *, struct str),
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
		{ "a@b\xc3\xbc"
		  "cher.example",
		    "a@xn--bcher-kva.example" },
		{ "a@[192.0.2.1]", "\"[192.0.2.1]\"" },
		{ "a@example.net(.example.com",
		    "\"example.net(.example.com\"" },
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
		assert_int_equal(written(authres_value, str_of(text, n)).len,
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

/* --- reading -------------------------------------------------------------- */
/* "id/version method/version=result reason comment ptype.property=value …" */
static struct str
shown(const struct authres_field *f)
{
	struct buf b;
	buf_init(&b, 100000);
	buf_addf(&b, "%.*s/%u", STR_ARG(f->id), f->version);
	if (f->none)
		buf_add_c(&b, " none");
	for (size_t i = 0; i < f->count; i++) {
		const struct authres_item *t = &f->items[i];
		buf_addf(&b, "; %.*s/%u=%.*s", STR_ARG(t->method), t->version,
		    STR_ARG(t->result));
		if (t->reason.ptr != NULL)
			buf_addf(&b, " [%.*s]", STR_ARG(t->reason));
		if (t->comment.ptr != NULL)
			buf_addf(&b, " (%.*s)", STR_ARG(t->comment));
		for (size_t k = 0; k < t->property_count; k++)
			buf_addf(&b, " %.*s|%.*s|%.*s",
			    STR_ARG(t->properties[k].ptype),
			    STR_ARG(t->properties[k].property),
			    STR_ARG(t->properties[k].value));
	}
	struct str s = arena_dup(arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static const struct read_row {
	const char *in;
	const char *strict, *lenient; /* NULL: refused */
} read_rows[] = {
	{ " m.org; none", "m.org/1 none", "m.org/1 none" },
	{ "m.org;NONE (x)", "m.org/1 none", "m.org/1 none" },
	{ "m.org 1; none", "m.org/1 none", "m.org/1 none" },
	{ "\"m.org\" 1 (c) ; none", "m.org/1 none", "m.org/1 none" },
	{ "m.org; spf=pass smtp.mailfrom=a@b.c",
	    "m.org/1; spf/1=pass smtp|mailfrom|a@b.c",
	    "m.org/1; spf/1=pass smtp|mailfrom|a@b.c" },
	{ "m.org;\r\n\tspf=pass\r\n\tsmtp.mailfrom=b.c;\r\n\tdkim=none",
	    "m.org/1; spf/1=pass smtp|mailfrom|b.c; dkim/1=none",
	    "m.org/1; spf/1=pass smtp|mailfrom|b.c; dkim/1=none" },
	{ "foo.example.net (foobar) 1 (baz); dkim (Because I like it) / 1 "
	  "(One yay) = (wait for it) fail policy (A dot can go here) . (like "
	  "that) expired (this surprised me) = (as I wasn't expecting it) "
	  "1362471462",
	    "foo.example.net/1; dkim/1=fail (A dot can go here) "
	    "policy|expired|1362471462",
	    "foo.example.net/1; dkim/1=fail (A dot can go here) "
	    "policy|expired|1362471462" },
	{ "m; dkim=fail reason=\"no \\\"key\\\"\" header.d=x",
	    "m/1; dkim/1=fail [no \"key\"] header|d|x",
	    "m/1; dkim/1=fail [no \"key\"] header|d|x" },
	{ "m; dkim=fail header.d=x reason=y", NULL,
	    "m/1; dkim/1=fail [y] header|d|x" },
	{ "m; dkim=pass header.b=gfT/i2HB", NULL,
	    "m/1; dkim/1=pass header|b|gfT/i2HB" },
	{ "m; dkim=pass header.b=\"gfT/i2HB\"",
	    "m/1; dkim/1=pass header|b|gfT/i2HB",
	    "m/1; dkim/1=pass header|b|gfT/i2HB" },
	{ "m; dkim=pass header.i=@b.c header.d=b.c",
	    "m/1; dkim/1=pass header|i|@b.c header|d|b.c",
	    "m/1; dkim/1=pass header|i|@b.c header|d|b.c" },
	{ "m; spf=pass smtp.mailfrom=x+y=z@b.c",
	    "m/1; spf/1=pass smtp|mailfrom|x+y=z@b.c",
	    "m/1; spf/1=pass smtp|mailfrom|x+y=z@b.c" },
	{ "m; spf=pass smtp.mailfrom=\"x y\"@b.c",
	    "m/1; spf/1=pass smtp|mailfrom|\"x y\"@b.c",
	    "m/1; spf/1=pass smtp|mailfrom|\"x y\"@b.c" },
	{ "m; spf=pass smtp.mailfrom=a@b..c", NULL,
	    "m/1; spf/1=pass smtp|mailfrom|a@b..c" },
	{ "m; spf=pass smtp.mailfrom=a..x@b.c", NULL,
	    "m/1; spf/1=pass smtp|mailfrom|a..x@b.c" },
	{ "m; spf=Pass", "m/1; spf/1=pass", "m/1; spf/1=pass" },
	{ "m; dkim=Pass", NULL, "m/1; dkim/1=pass" },
	{ "m; DKIM=pass", "m/1; dkim/1=pass", "m/1; dkim/1=pass" },
	{ "m; dkim=hardfail", NULL, "m/1; dkim/1=hardfail" },
	{ "m; dmarc=bestguesspass", NULL, "m/1; dmarc/1=bestguesspass" },
	{ "m; dkim=pas", NULL, "m/1; dkim/1=pas" },
	{ "m; x-new=whatever", "m/1; x-new/1=whatever",
	    "m/1; x-new/1=whatever" },
	{ "m; dkim/2=pass", "m/1; dkim/2=pass", "m/1; dkim/2=pass" },
	{ "m; spf=pass;", NULL, "m/1; spf/1=pass" },
	{ "m;", NULL, "m/1" },
	{ "m", NULL, "m/1" },
	{ "m; spf=pass; none", NULL, NULL },
	{ "m; none; spf=pass", NULL, NULL },
	{ "m; none spf=pass", NULL, NULL },
	{ "", NULL, NULL },
	{ "; spf=pass", NULL, NULL },
	{ "spf=pass (sender IP is 1) smtp.mailfrom=b.c; compauth=pass "
	  "reason=100",
	    NULL,
	    "/1; spf/1=pass (sender IP is 1) smtp|mailfrom|b.c; "
	    "compauth/1=pass [100]" },
	{ "m; dmarc=pass action=none header.from=b.c", NULL,
	    "m/1; dmarc/1=pass |action|none header|from|b.c" },
	{ "m;\ndmarc=fail (p=none)\nheader.from=.net", NULL,
	    "m/1; dmarc/1=fail (p=none) header|from|.net" },
	{ "\"m\";\"spf\"=\"fail\" \"smtp.mailfrom\"=\"t@b.c\" \"a\".\"b\"=\"\"",
	    NULL, "m/1; spf/1=fail smtp|mailfrom|t@b.c a|b|" },
	{ "m foo; x=y", NULL, "m/1; x/1=y" },
	{ "m; x = ", NULL, "m/1; x/1=" },
	{ "m; x= a=", NULL, "m/1; x/1=a=" },
	{ "m; x = = y", NULL, NULL },
	{ "m; x=y a.b= = c", NULL, NULL },
	{ "m; x==y", NULL, "m/1; x/1==y" },
	{ "m; x=y a.b==c@d.e", "m/1; x/1=y a|b|=c@d.e",
	    "m/1; x/1=y a|b|=c@d.e" },
	{ "m = = y", NULL, NULL },
	{ "m . a = y", NULL, NULL },
	{ "m foo / a = y", NULL, NULL },
	{ "m; x / a = y", NULL, NULL },
	{ "m; x/=y", NULL, NULL },
	{ "m; x", NULL, NULL },
	{ "m; x=y z", NULL, NULL },
	{ "m; x=y a.b", NULL, NULL },
	{ "m; x=y a.=b", NULL, NULL },
	{ "m; dkim=pass (a (b)) c) header.d=x", NULL, NULL },
	{ "m; dkim=pass ((a (b)) header.d=x", NULL, NULL },
	{ "m; dkim=pass header.d=\"x", NULL, NULL },
	{ "m; x_y=z", NULL, "m/1; x_y/1=z" },
	{ "m; -x=z-", NULL, "m/1; -x/1=z-" },
	{ "\xc3\xa9xample.org; none", NULL, "\xc3\xa9xample.org/1 none" },
	{ "m; bimi=pass policy.uri=https://x/y.pem", NULL,
	    "m/1; bimi/1=pass policy|uri|https://x/y.pem" },
};

static void
check_read(const char *in, enum authres_mode mode, const char *want)
{
	struct authres_field f = { .version = 77 };
	enum res r = authres_parse(arena, str_c(in), mode, &f);
	if (r != (want != NULL ? RES_OK : RES_SYNTAX))
		print_error("%d: %s\n", (int)mode, in);
	assert_int_equal(r, want != NULL ? RES_OK : RES_SYNTAX);
	if (want != NULL)
		assert_str(shown(&f), want);
	else
		assert_int_equal(f.version, 77);
}

static void
test_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof read_rows / sizeof read_rows[0]; i++) {
		const struct read_row *w = &read_rows[i];
		check_read(w->in, AUTHRES_STRICT, w->strict);
		check_read(w->in, AUTHRES_LENIENT, w->lenient);
	}
}

static void
test_read_versions(void **state)
{
	(void)state;
	static const char *const unknown[] = { "m 2; none", "m 0; x=y",
		"m 99999999999999999999; x=y" };
	struct authres_field f;
	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		for (enum authres_mode mode = AUTHRES_STRICT;
		     mode <= AUTHRES_LENIENT; mode++)
			assert_int_equal(
			    authres_parse(arena, str_c(unknown[i]), mode, &f),
			    RES_UNSUPPORTED);
	assert_ok(authres_parse(
	    arena, STR("m; x/99999999999=y"), AUTHRES_STRICT, &f));
	assert_int_equal(f.items[0].version, UINT32_MAX);
}

static void
test_read_limits(void **state)
{
	(void)state;
	for (int more = -1; more <= 1; more++) {
		struct authres_field f;
		struct buf b;
		buf_init(&b, 100000);
		buf_add_c(&b, "m");
		for (int i = 0; i < AUTHRES_MAX_RESULTS + more; i++)
			buf_add_c(&b, "; x=y");
		assert_int_equal(
		    authres_parse(arena, buf_str(&b), AUTHRES_STRICT, &f),
		    more <= 0 ? RES_OK : RES_LIMIT);
		buf_reset(&b);
		buf_add_c(&b, "m; x=y");
		for (int i = 0; i < AUTHRES_MAX_PROPERTIES + more; i++)
			buf_addf(&b, " a.b=%d", i);
		assert_int_equal(
		    authres_parse(arena, buf_str(&b), AUTHRES_STRICT, &f),
		    more <= 0 ? RES_OK : RES_LIMIT);
		if (more <= 0) {
			size_t n = f.items[0].property_count;
			assert_int_equal(n, AUTHRES_MAX_PROPERTIES + more);
			assert_str(f.items[0].properties[0].value, "0");
			assert_str(f.items[0].properties[10].value, "10");
		}
		buf_done(&b);
	}
}

/* Whatever we write, our strict reader reads back. */
static void
test_round_trip(void **state)
{
	(void)state;
	static const char *const values[] = { "a", "", "a b", "\"", "\\",
		"a;b=c", "(x", "a@b", "@", "2001:db8::1",
		"gfT/i2HB==", "\r\n\t", "\xc3\xa9" };
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct authres *w = authres_begin(arena, STR("mx.example.org"));
		struct str value = str_c(values[i]);
		authres_result(w, "dkim", AUTH_FAIL);
		authres_comment(w, "test mode");
		authres_reason(w, values[i]);
		authres_value(w, "header", "b", value);
		authres_address(w, "header", "i", value);
		authres_result(w, "spf", AUTH_SOFTFAIL);
		authres_address(w, "smtp", "mailfrom", STR("u=v@example.org"));

		/* As it comes back from an MTA. */
		struct header *h = header_new(arena, 0);
		struct authres_field f;
		assert_ok(header_add(
		    h, STR("Authentication-Results"), authres_finish(w)));
		assert_ok(authres_parse(
		    arena, header_at(h, 0)->value, AUTHRES_STRICT, &f));
		assert_str(f.id, "mx.example.org");
		assert_int_equal(f.count, 2);
		assert_str(f.items[0].comment, "test mode");
		assert_int_equal(f.items[0].property_count, 2);
		assert_true(
		    str_eq(f.items[0].reason, f.items[0].properties[0].value));
		assert_str(f.items[1].result, "softfail");
		assert_str(f.items[1].properties[0].value, "u=v@example.org");
	}
}

/* --- removing --------------------------------------------------------------- */
static const struct strip_row {
	const char *value;
	bool ours;
} strip_rows[] = {
	{ " mx.example.org; spf=pass", true },
	{ "MX.Example.ORG; spf=pass", true },
	{ "mx.example.org.; spf=pass", true },
	{ "\"mx.example.org\"; spf=pass", true },
	{ "\"m\\x.example.org\"; spf=pass", true },
	{ "\" mx.example.org \"; spf=pass", true },
	{ "(x) mx.example.org; spf=pass", true },
	{ "(x (y) \\) z)\r\n\tmx.example.org (w); spf=pass", true },
	{ "mx.example.org(x); spf=pass", true },
	{ "\r\n mx.example.org\r\n ;\r\n spf=pass", true },
	{ "mx.example.org 1; spf=pass", true },
	{ "mx.example.org 2; spf=pass", true },
	{ "mx.example.org/foo; spf=pass", true },
	{ "mx.example.org", true },
	{ "mx.example.org; none", true },
	{ "mx.example.org spf=pass", true },
	{ "mx.example.org;;; garbage", true },
	/* above and below inside our domain, but not beside */
	{ "example.org; spf=pass", true },
	{ "a.mx.example.org; spf=pass", true },
	{ "mx2.example.org; spf=pass", false },
	{ "org; spf=pass", false },
	{ "evilmx.example.org; spf=pass", false },
	{ "mx.example.org.evil.test; spf=pass", false },
	/* the second id is a U-label */
	{ "m\xc3\xbcx.example; spf=pass", true },
	{ "M\xc3\x9cX.example; spf=pass", true },
	{ "mu\xcc\x88x.example; spf=pass", true },
	{ "xn--mx-xka.example; spf=pass", true },
	{ "\xef\xbd\x8d\xef\xbd\x98.example.org; spf=pass", true },
	/* the third one is no domain name */
	{ "Our Gateway; spf=pass", true },
	{ "\"our  gateway\"; spf=pass", false },
	{ "\"Our GATEWAY\"; spf=pass", true },
	/* no id */
	{ "; spf=pass", true },
	{ " (x) ; spf=pass", true },
	{ "\"\"; spf=pass", true },
	{ "/x; spf=pass", true },
	{ "spf=pass smtp.mailfrom=mx.example.org; dkim=none", false },
	{ "", false },
	/* unknown versions */
	{ "other.test 2; spf=pass", true },
	{ "other.test 2 x; spf=pass", true },
	{ "other.test 99999999999; spf=pass", true },
	{ "other.test 1; spf=pass", false },
	/* what does not parse, with an id in it */
	{ "(x mx.example.org; spf=pass", true },
	{ "\"mx.example.org; spf=pass", true },
	{ "x mx.example.org; spf=pass", true },
	{ "1 mx.example.org; spf=pass", true },
	{ "x y; spf=pass", false },
	{ "(\r) mx.example.org; spf=pass", true },
	{ "(\r\n) x 2; spf=pass", true },
	{ "mx.(x)example.org; spf=pass", true },
	{ "mx.\r\n example.org; spf=pass", true },
	{ "=?utf-8?q?mx.example.org?=; spf=pass", true },
	{ "=?utf-8?q?other.test?=; spf=pass", false },
	{ "spf=pass x mx.example.org", true },
	{ "other.test; spf", false },
	{ "(other.test; spf=pass", false },
	/* and parsing ones that speak of us */
	{ "other.test; spf=pass smtp.helo=mx.example.org", false },
	{ "other.test; spf=pass (mx.example.org: fine)", false },
	{ "mx.google.com; spf=pass (google.com: a@mx.example.org) x.y=z",
	    false },
};

static void
test_strip(void **state)
{
	(void)state;
	const struct str ids[] = { STR("mx.example.org"),
		STR("m\xc3\xbcx.example"), STR("Our Gateway") };
	for (size_t i = 0; i < sizeof strip_rows / sizeof strip_rows[0]; i++) {
		bool ours = authres_is_ours(arena, str_c(strip_rows[i].value),
		    ids, 3, STR("example.org"));
		if (ours != strip_rows[i].ours)
			print_error("%s\n", strip_rows[i].value);
		assert_int_equal(ours, strip_rows[i].ours);
	}
	static const char nul[] = "mx.example\0.org; spf=pass";
	assert_true(authres_is_ours(
	    arena, str_of(nul, sizeof nul - 1), ids, 3, STR("example.org")));
}

static void
test_strip_without_org(void **state)
{
	(void)state;
	struct str id = STR("mx.example.org");
	assert_true(authres_is_ours(
	    arena, STR("mx.example.org; none"), &id, 1, STR_EMPTY));
	assert_false(authres_is_ours(
	    arena, STR("example.org; none"), &id, 1, STR_EMPTY));
	assert_false(authres_is_ours(
	    arena, STR("a.mx.example.org; none"), &id, 1, STR_EMPTY));
	assert_false(authres_is_ours(
	    arena, STR("mx.example.org; none"), NULL, 0, STR_EMPTY));
}

/* More than the reader takes: looked through as text, in a bounded way. */
static void
test_strip_huge(void **state)
{
	(void)state;
	struct str id = STR("mx.example.org");
	struct buf b;
	buf_init(&b, (size_t)1 << 20);
	buf_add_c(&b, "other.test");
	for (int i = 0; i < 20000; i++)
		buf_add_c(&b, "; a=b c.d=e");
	assert_false(authres_is_ours(arena, buf_str(&b), &id, 1, STR_EMPTY));
	buf_add_c(&b, "; x.y=mx.example.org");
	assert_true(authres_is_ours(arena, buf_str(&b), &id, 1, STR_EMPTY));
	buf_done(&b);
}

/* The n-th allocation fails: nothing instead of a part, and a field that is
 * ours stays ours. */
static void
test_no_memory(void **state)
{
	(void)state;
	struct str value = STR("\"mx.example.org\" (c); dkim=fail reason=\"a\""
			       " header.d=b.c header.i=@b.c; spf=pass (d)");
	struct str id = STR("MX.example.org");
	bool read = false, wrote = false;
	for (size_t max = 16; !read || !wrote; max += 16) {
		struct authres_field f = { .version = 77 };
		struct arena *a = arena_new(max);
		enum res r = authres_parse(a, value, AUTHRES_LENIENT, &f);
		assert_true(r == RES_OK || r == RES_NOMEM);
		assert_int_equal(f.version, r == RES_OK ? 1 : 77);
		read |= r == RES_OK;
		arena_free(&a);

		a = arena_new(max);
		assert_true(
		    authres_is_ours(a, value, &id, 1, STR("example.org")));
		arena_free(&a);

		a = arena_new(max);
		struct authres *w = authres_begin(a, id);
		if (w != NULL) {
			authres_result(w, "dkim", AUTH_FAIL);
			authres_reason(w, "x");
			authres_address(w, "header", "i", STR("@b.c"));
			struct str s = authres_finish(w);
			wrote |= s.ptr != NULL;
			if (s.ptr != NULL)
				assert_str(s,
				    " MX.example.org;\n\tdkim=fail "
				    "reason=\"x\" header.i=@b.c");
		}
		arena_free(&a);
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
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_versions),
		cmocka_unit_test(test_read_limits),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_strip),
		cmocka_unit_test(test_strip_without_org),
		cmocka_unit_test(test_strip_huge),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests_name(
	    "auth/authres", tests, setup, teardown);
}

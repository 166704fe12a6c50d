#include "arena_test.h"

#include <stdio.h>

#include "base/buf.h"
#include "mail/address.h"
#include "mail/scan.h"

/* "display|local|domain" per address, ";" between. */
static struct str
listed(const struct address_list *l)
{
	struct buf b;
	buf_init(&b, 100000);
	for (size_t i = 0; i < l->count; i++) {
		if (i != 0)
			buf_add_char(&b, ';');
		buf_add_str(&b, l->items[i].display);
		buf_add_char(&b, '|');
		buf_add_str(&b, l->items[i].local);
		buf_add_char(&b, '|');
		buf_add_str(&b, l->items[i].domain);
	}
	struct str s = arena_dup(arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
test_accepted(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "joe@joe.com", "|joe|joe.com" },
		{ " <joe@joe.com>", "|joe|joe.com" },
		{ "Joe Q.  Public <joe@joe.com>", "Joe Q. Public|joe|joe.com" },
		{ "J.R. <j@x.y>", "J.R.|j|x.y" },
		{ "\"Johnson, Joe <a@b.c>\" <joe@joe.com>",
		    "Johnson, Joe <a@b.c>|joe|joe.com" },
		{ "\"a \\\" b\\\\\" <x@y.z>", "a \" b\\|x|y.z" },
		{ "\"a\" b \"c\" <x@y.z>", "a b c|x|y.z" },
		{ "(Joe) joe@joe.com", "Joe|joe|joe.com" },
		{ "joe@joe.com (Joe (the) Man\\))",
		    "Joe (the) Man)|joe|joe.com" },
		{ "joe@joe.com(a)(b)", "a|joe|joe.com" },
		{ "Joe (c) <joe@joe.com> (d)", "Joe|joe|joe.com" },
		{ "a@b.c, d@e.f", "|a|b.c;|d|e.f" },
		{ "a@b.c,, ,(x), d@e.f,", "|a|b.c;|d|e.f" },
		{ "A <a@b.c>,D<d@e.f>", "A|a|b.c;D|d|e.f" },
		/* RFC 5322 appendix A.5 */
		{ "Pete(A nice \\) chap) <pete(his account)@silly.test"
		  "(his host)>",
		    "Pete|pete|silly.test" },
		{ "A Group(Some people)\r\n     :Chris Jones "
		  "<c@(Chris's host.)public.example>,\r\n         "
		  "joe@example.org,\r\n  John <jdoe@one.test> (my dear "
		  "friend); (the end of the group)",
		    "Chris Jones|c|public.example;|joe|example.org;"
		    "John|jdoe|one.test" },
		{ "Undisclosed recipients:;", "" },
		{ "(empty list)(start)Hidden:(nobody(that I know))  ;", "" },
		{ "g:a@b.c;, d@e.f", "|a|b.c;|d|e.f" },
		/* appendix A.6: obsolete forms */
		{ "Joe Q. Public <john.q.public@example.com>",
		    "Joe Q. Public|john.q.public|example.com" },
		{ "Mary Smith <@node.test:mary@example.net>, , "
		  "jdoe@test  . example",
		    "Mary Smith|mary|example.net;|jdoe|test.example" },
		{ "<@a.b,@c.d , ,@[1.2.3.4] :x@y.z>", "|x|y.z" },
		{ "<,@a.b:x@y.z>", "|x|y.z" },
		{ "a . b (c) . \"d e\" @ f . g", "c|a.b.d e|f.g" },
		{ "\"a.b\"@x.y", "|a.b|x.y" },
		{ "\"a@b\"@x.y", "|a@b|x.y" },
		{ "\"\"@x.y", "||x.y" },
		{ "a@[192.0.2.1]", "|a|[192.0.2.1]" },
		{ "a@[IPv6:2001:db8::1] (x)", "x|a|[IPv6:2001:db8::1]" },
		{ "a@x.y.", "|a|x.y." },
		{ "<user@example.com >", "|user|example.com" },
		{ "=?utf-8?Q?J=C3=B6?= =?x?= <a@b.c>",
		    "=?utf-8?Q?J=C3=B6?= =?x?=|a|b.c" },
		{ "J\xc3\xb6rg <j\xc3\xb6rg@b\xc3\xbc"
		  "cher.example>",
		    "J\xc3\xb6rg|j\xc3\xb6rg|b\xc3\xbc"
		    "cher.example" },
		{ "J\xf6rg <a@b.c>", "J\xf6rg|a|b.c" },
		{ "\"\x1b$B%F\" <a@b.c>", "\x1b$B%F|a|b.c" },
		{ "\r\n Joe\r\n <a@b.c>\r\n", "Joe|a|b.c" },
		{ "\"Joe\r\n Doe\" <a@b.c>", "Joe Doe|a|b.c" },
		{ "!#$%&'*+-/=?^_`{|}~@x", "|!#$%&'*+-/=?^_`{|}~|x" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct address_list l;
		assert_ok(address_parse_list(arena, str_c(rows[i].in), &l));
		assert_str(listed(&l), rows[i].out);
	}
}

static void
test_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"",
		" ",
		",",
		"(comment)",
		"joe",
		"\"Test 1.1.5\"",
		"joe@",
		"@joe.com",
		"<>",
		"<joe>",
		"joe@joe.com>", /* P-06 */
		"<joe@joe.com",
		"<joe@joe.com>>",
		"<<joe@joe.com>>",
		"<<<><joe@joe.com>>>",
		"joe@joe.com <x@y.z>",
		"\"x\" joe@joe.com",
		"a b@c.d",
		"a@b.c d@e.f",
		"<a@b.c> d",
		"<a@b.c> <d@e.f>",
		"a@b@c",
		"a..b@c.d",
		".a@b.c",
		"a.@b.c",
		"a@b..c",
		"a@.b",
		"a@b.c..",
		". <a@b.c>",
		"Mail From:<joe@joe.com>",
		"g:a@b.c",
		"g:h:a@b.c;;",
		":a@b.c;",
		"g:;x@y.z",
		"(a@b.c",
		"a@b.c)",
		"a@b.c (x",
		"a@b.c (x\\)",
		"\"a@b.c",
		"\"a\\",
		"a@[1.2.3.4",
		"a@[[1]",
		"a@b\"c\"",
		"a\rb@c.d",
		"a\nb@c.d",
		"a@b.c\n x@y.z",
		"a@b.c,\r\nx@y.z",
		"\"a\nb\" <c@d.e>",
		"\"a\\\nb\" <c@d.e>",
		"\x01@b.c",
		"j\xf6rg@b.c", /* a local part is UTF-8 */
		"<@a.b x@y.z>",
		"<@:x@y.z>",
		"a;b@c.d",
		"a@b.c;",
	};
	struct address_list l = { 77, NULL, false };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum res r = address_parse_list(arena, str_c(rows[i]), &l);
		if (r != RES_SYNTAX)
			print_error("accepted: %s\n", rows[i]);
		assert_int_equal(r, RES_SYNTAX);
		assert_int_equal(l.count, 77);
	}
	assert_int_equal(
	    address_parse_list(arena, str_of("a\0@b.c", 6), &l), RES_SYNTAX);
	assert_int_equal(
	    address_parse_list(arena, str_of("(\0) a@b.c", 9), &l), RES_SYNTAX);
	assert_int_equal(address_parse_list(arena, STR_EMPTY, &l), RES_SYNTAX);
}

static void
test_groups(void **state)
{
	(void)state;
	struct address_list l;
	assert_ok(address_parse_list(arena, STR("g:;"), &l));
	assert_true(l.groups);
	assert_int_equal(l.count, 0);
	assert_ok(address_parse_list(arena, STR("a@b.c"), &l));
	assert_false(l.groups);
}

static void
repeat(struct buf *b, const char *s, size_t times)
{
	while (times-- > 0)
		buf_add_c(b, s);
}

static void
test_limits(void **state)
{
	(void)state;
	for (size_t n = SCAN_MAX_NESTING - 1; n <= SCAN_MAX_NESTING + 1; n++) {
		struct buf b;
		struct address_list l;
		buf_init(&b, 10000);
		repeat(&b, "(", n);
		repeat(&b, ")", n);
		buf_add_c(&b, "a@b.c");
		assert_int_equal(address_parse_list(arena, buf_str(&b), &l),
		    n <= SCAN_MAX_NESTING ? RES_OK : RES_LIMIT);
		buf_done(&b);
	}
	for (size_t n = ADDRESS_MAX - 1; n <= ADDRESS_MAX + 1; n++) {
		struct buf b;
		struct address_list l = { 0, NULL, false };
		buf_init(&b, 100000);
		repeat(&b, "a@b.c,", n);
		assert_int_equal(address_parse_list(arena, buf_str(&b), &l),
		    n <= ADDRESS_MAX ? RES_OK : RES_LIMIT);
		assert_int_equal(l.count, n <= ADDRESS_MAX ? n : 0);
		buf_done(&b);
	}
}

/* "state:domain,domain" */
static struct str
from_text(const struct from_domains *f)
{
	static const char *const names[] = { "ok", "missing", "fields",
		"domains", "none", "unparsable" };
	struct buf b;
	buf_init(&b, 10000);
	buf_add_c(&b, names[f->state]);
	for (size_t i = 0; i < f->count; i++) {
		buf_add_char(&b, i == 0 ? ':' : ',');
		buf_add_str(&b, f->domains[i]);
	}
	struct str s = arena_dup(arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
test_from_value(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "Joe <joe@Joe.COM.>", "ok:joe.com" },
		{ "a@x.y, b@X.Y.", "ok:x.y" },
		{ "a@b\xc3\xbc"
		  "cher.example, a@xn--bcher-kva.example",
		    "ok:xn--bcher-kva.example" },
		{ "a@x.y, b@z.y", "domains:x.y,z.y" },
		{ "g: a@x.y;", "ok:x.y" },
		{ "g:;", "none" },
		{ "a@[192.0.2.1]", "none" },
		{ "a@[192.0.2.1], b@x.y", "ok:x.y" },
		{ "a@x.y>", "unparsable" },
		{ "nobody", "unparsable" },
		{ "", "unparsable" },
		{ "a@b\xfc"
		  "cher.example",
		    "unparsable" },
		{ "a@ex!ample.org", "unparsable" },
		{ "a@ex!ample.org, b@x.y", "unparsable:x.y" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct from_domains f;
		assert_ok(address_from_value(arena, str_c(rows[i].in), &f));
		assert_str(from_text(&f), rows[i].out);
	}
}

static void
test_from_header(void **state)
{
	(void)state;
	static const struct {
		const char *fields[3], *out;
	} rows[] = {
		{ { NULL }, "missing" },
		{ { " a@x.y" }, "ok:x.y" },
		{ { " a@x.y", " a@x.y" }, "fields:x.y" },
		{ { " a@x.y", " b@z.y", " broken" }, "fields:x.y,z.y" },
		{ { " broken" }, "unparsable" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct header *h = header_new(arena, 0);
		struct from_domains f;
		assert_ok(header_add(h, STR("Sender"), STR(" s@q.r")));
		for (size_t k = 0; k < 3 && rows[i].fields[k] != NULL; k++)
			assert_ok(header_add(
			    h, STR("fROM"), str_c(rows[i].fields[k])));
		assert_ok(address_from_domains(arena, h, &f));
		assert_str(from_text(&f), rows[i].out);
	}
}

static void
test_from_bounds(void **state)
{
	(void)state;
	struct header *h = header_new(arena, 0);
	struct from_domains f;
	struct buf b;
	buf_init(&b, 100000);
	for (size_t i = 0; i <= FROM_MAX_DOMAINS; i++)
		buf_addf(&b, "a@x%zu.y,", i);
	assert_ok(address_from_value(arena, buf_str(&b), &f));
	assert_int_equal(f.state, FROM_MANY_DOMAINS);
	assert_int_equal(f.count, FROM_MAX_DOMAINS);
	buf_done(&b);
	for (size_t i = 0; i <= FROM_MAX_FIELDS; i++) {
		char value[32];
		snprintf(value, sizeof value, "a@x%zu.y", i);
		assert_ok(header_add(h, STR("From"), str_c(value)));
	}
	assert_ok(address_from_domains(arena, h, &f));
	assert_int_equal(f.state, FROM_MANY_FIELDS);
	assert_int_equal(f.count, FROM_MAX_FIELDS);
}

static void
test_state_text(void **state)
{
	(void)state;
	for (enum from_state s = FROM_OK; s <= FROM_UNPARSABLE; s++)
		for (enum from_state t = FROM_OK; t < s; t++)
			assert_string_not_equal(
			    from_state_text(s), from_state_text(t));
}

static void
test_envelope(void **state)
{
	(void)state;
	static const struct {
		const char *in, *address, *local, *domain;
	} rows[] = {
		{ "<user@example.com>", "user@example.com", "user",
		    "example.com" },
		{ "user@example.com", "user@example.com", "user",
		    "example.com" },
		{ "<>", "", "", "" },
		{ "", "", "", "" },
		{ "<@a,@b:user@dom>", "user@dom", "user", "dom" },
		{ "<@[IPv6:::1]:user@dom>", "user@dom", "user", "dom" },
		{ "<\"a@b\"@dom>", "\"a@b\"@dom", "\"a@b\"", "dom" },
		{ "<\"a\\\"@b\"@dom>", "\"a\\\"@b\"@dom", "\"a\\\"@b\"",
		    "dom" },
		{ "<postmaster>", "postmaster", "postmaster", "" },
		{ "<a@b@c>", "a@b@c", "a@b", "c" },
		{ "<a@[192.0.2.1]>", "a@[192.0.2.1]", "a", "[192.0.2.1]" },
		{ "<@a>", "@a", "", "a" },
		{ " <a@b> ", "a@b", "a", "b" },
		{ "<\"a@b", "\"a@b", "\"a@b", "" },
		{ "<", "", "", "" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str address, local, domain;
		address_envelope(str_c(rows[i].in), &address, &local, &domain);
		assert_str(address, rows[i].address);
		assert_str(local, rows[i].local);
		assert_str(domain, rows[i].domain);
	}
}

/* The n-th allocation fails: RES_NOMEM, never a shorter list. */
static void
test_no_memory(void **state)
{
	(void)state;
	struct str value = STR("Joe <a@b.c>, \"x y\" <\"d e\"@f.g> (c), h@i.j"
			       " (k), l@m.n, g: o@p.q;");
	struct address_list all, l;
	struct from_domains f;
	assert_ok(address_parse_list(arena, value, &all));
	assert_int_equal(all.count, 5);
	size_t failed = 0;
	for (size_t max = 16;; max += 16) {
		struct arena *a = arena_new(max);
		enum res r = address_parse_list(a, value, &l);
		if (r == RES_OK)
			assert_string_equal(listed(&l).ptr, listed(&all).ptr);
		else
			assert_int_equal(r, RES_NOMEM);
		failed += r != RES_OK;
		arena_free(&a);
		a = arena_new(max);
		enum res from = address_from_value(a, value, &f);
		if (from == RES_OK)
			assert_int_equal(f.count, 5);
		else
			assert_int_equal(from, RES_NOMEM);
		arena_free(&a);
		if (from == RES_OK)
			break;
	}
	assert_true(failed > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_from_value),
		cmocka_unit_test(test_from_header),
		cmocka_unit_test(test_from_bounds),
		cmocka_unit_test(test_state_text),
		cmocka_unit_test(test_envelope),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests_name(
	    "mail/address", tests, setup, teardown);
}

/* Records: what is one, what each tag comes to, what is dropped. */
#include "hn_test.h"

#include "auth/dmarc.h"

static struct arena *arena;

static struct dmarc_record
parse(const char *text)
{
	struct dmarc_record d;
	enum res r = dmarc_record_parse(arena, str_c(text), &d);
	if (r != RES_OK)
		print_error("\"%s\"\n", text);
	assert_ok(r);
	return d;
}

static void
what_is_no_record(void **state)
{
	static const char *const rows[] = { "", "v", "v=", "v=DMARC1p=none",
		"v=DMARC1 p=none", "v=dmarc1; p=none", "v=DMARC2; p=none",
		"V=DMARC1; p=none", " v=DMARC1; p=none", "p=none; v=DMARC1",
		"v=DMARC11", "v=DMARC", "v==DMARC1", "\tv=DMARC1",
		"v=DMARC1\n; p=none", "vv=DMARC1", "v=\"DMARC1\"" };
	struct dmarc_record d = { .psd = '?' };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(
		    dmarc_record_parse(arena, str_c(rows[i]), &d), RES_SYNTAX);
	/* untouched on failure */
	assert_int_equal(d.psd, '?');
	/* a NUL is not an end */
	assert_int_equal(
	    dmarc_record_parse(arena, STR("v=DMARC1\0; p=none"), &d),
	    RES_SYNTAX);
	assert_int_equal(dmarc_record_parse(arena, STR_EMPTY, &d), RES_SYNTAX);
}

static void
defaults_of_a_bare_record(void **state)
{
	static const char *const rows[] = { "v=DMARC1", "v=DMARC1;",
		"v = DMARC1 ; ", "v\t=\tDMARC1\t;;", "v=DMARC1; x=y; =; p",
		"v=DMARC1;P=reject;pct=0; rf=iodef; ri=1" };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct dmarc_record d = parse(rows[i]);
		assert_false(d.has_p || d.has_sp || d.has_np || d.bad_policy);
		assert_int_equal(d.p, DMARC_NONE);
		assert_int_equal(d.sp, DMARC_NONE);
		assert_int_equal(d.np, DMARC_NONE);
		assert_false(d.strict_dkim || d.strict_spf || d.testing);
		assert_int_equal(d.psd, 'u');
		assert_str(d.fo, "0");
		assert_int_equal(d.rua_count + d.ruf_count, 0);
		assert_str(d.text, rows[i]);
	}
}

static const struct {
	const char *text;
	enum dmarc_policy p, sp, np;
	bool bad;
} policies[] = {
	{ "p=reject", DMARC_REJECT, DMARC_REJECT, DMARC_REJECT, false },
	{ "p=Quarantine", DMARC_QUARANTINE, DMARC_QUARANTINE, DMARC_QUARANTINE,
	    false },
	{ "sp=none; p=reject", DMARC_REJECT, DMARC_NONE, DMARC_NONE, false },
	{ "np=reject; p = none", DMARC_NONE, DMARC_NONE, DMARC_REJECT, false },
	{ "sp=reject", DMARC_NONE, DMARC_REJECT, DMARC_REJECT, false },
	{ "p=reject; p=reject", DMARC_REJECT, DMARC_REJECT, DMARC_REJECT,
	    false },
	{ "p=reject; p=none", DMARC_NONE, DMARC_NONE, DMARC_NONE, true },
	{ "p=none; p=bogus", DMARC_NONE, DMARC_NONE, DMARC_NONE, true },
	{ "p=none; sp=none; sp=reject", DMARC_NONE, DMARC_NONE, DMARC_NONE,
	    false },
	{ "p=n", DMARC_NONE, DMARC_NONE, DMARC_NONE, true },
	{ "p=", DMARC_NONE, DMARC_NONE, DMARC_NONE, true },
	{ "p=reject sp=none", DMARC_NONE, DMARC_NONE, DMARC_NONE, true },
	{ "p=reject; sp=bogus", DMARC_REJECT, DMARC_REJECT, DMARC_REJECT,
	    true },
	{ "p=reject; np=\xff", DMARC_REJECT, DMARC_REJECT, DMARC_REJECT, true },
	{ "p=reject; adkim=x; aspf=; t=yes; psd=q; fo=9; bogus", DMARC_REJECT,
	    DMARC_REJECT, DMARC_REJECT, false },
};

static void
policies_and_what_they_fall_to(void **state)
{
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		char text[200] = "v=DMARC1; ";
		strcat(text, policies[i].text);
		struct dmarc_record d = parse(text);
		if (d.p != policies[i].p || d.sp != policies[i].sp ||
		    d.np != policies[i].np || d.bad_policy != policies[i].bad)
			fail_msg("\"%s\": %d %d %d %d", text, d.p, d.sp, d.np,
			    d.bad_policy);
		assert_false(d.strict_dkim || d.strict_spf || d.testing);
	}
}

static void
other_tags(void **state)
{
	struct dmarc_record d =
	    parse("v=DMARC1; adkim=s; aspf=S; t=y; psd=Y; fo=1:d:s");
	assert_true(d.strict_dkim && d.strict_spf && d.testing);
	assert_int_equal(d.psd, 'y');
	assert_str(d.fo, "1:d:s");
	/* the first counts, also when it is the worse one */
	d = parse("v=DMARC1; adkim=r; adkim=s; t=n; t=y; psd=x; psd=n; "
		  "fo=2; fo=1");
	assert_false(d.strict_dkim || d.testing);
	assert_int_equal(d.psd, 'u');
	assert_str(d.fo, "0");
	static const char *const bad_fo[] = { "0:1", "1:1", "d:", ":", "x",
		"1 d" };
	for (size_t i = 0; i < sizeof bad_fo / sizeof *bad_fo; i++) {
		char text[64] = "v=DMARC1; fo=";
		strcat(text, bad_fo[i]);
		assert_str(parse(text).fo, "0");
	}
	assert_str(parse("v=DMARC1; fo=0 : d").fo, "0 : d");
}

static void
report_addresses(void **state)
{
	struct dmarc_record d = parse(
	    "v=DMARC1; rua=mailto:a@b.example!10m , mailto:c%2Cd@e.example,"
	    "http://x.example/!, MAILTO:f@g.example!5, mailto:nobody, ,"
	    "https://ok.example/x?y, mailto:h@i.example!x, plain@k.example,"
	    "mailto:l@m.example?subject=x@y; ruf=mailto:z@z.example; "
	    "rua=mailto:second@tag.example");
	static const char *const want[] = { "mailto:a@b.example",
		"mailto:c%2Cd@e.example", "MAILTO:f@g.example",
		"https://ok.example/x?y", "mailto:l@m.example?subject=x@y" };
	assert_int_equal(d.rua_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_str(d.rua[i], want[i]);
	assert_int_equal(d.ruf_count, 1);
	assert_str(d.ruf[0], "mailto:z@z.example");
}

static void
addresses_are_bounded(void **state)
{
	for (unsigned n = DMARC_MAX_URIS - 1; n <= DMARC_MAX_URIS + 1; n++) {
		struct buf b;
		buf_init(&b, 1 << 20);
		buf_add_c(&b, "v=DMARC1; rua=");
		for (unsigned i = 0; i < n; i++)
			buf_addf(&b, "%smailto:a%u@b.example", i ? "," : "", i);
		struct dmarc_record d;
		assert_ok(dmarc_record_parse(arena, buf_str(&b), &d));
		assert_int_equal(
		    d.rua_count, n < DMARC_MAX_URIS ? n : DMARC_MAX_URIS);
		buf_done(&b);
	}
}

static int
setup(void **state)
{
	arena = arena_new(0);
	return arena == NULL;
}

static int
teardown(void **state)
{
	arena_free(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_record),
		cmocka_unit_test(defaults_of_a_bare_record),
		cmocka_unit_test(policies_and_what_they_fall_to),
		cmocka_unit_test(other_tags),
		cmocka_unit_test(report_addresses),
		cmocka_unit_test(addresses_are_bounded),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}

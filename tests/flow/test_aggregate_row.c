/* From a message to its row: which messages have one, and what it says. */
#include "flow/aggregate_row.h"

#include <stdio.h>
#include <unistd.h>

#include "flow/aggregate.h"
#include "flow_rig.h"

#define ZONE                                                                   \
	"_dmarc.strict.example TXT \"v=DMARC1; p=reject; "                     \
	"rua=mailto:d@strict.example\"\n"                                      \
	"_dmarc.test.example TXT \"v=DMARC1; p=quarantine; t=y; sp=none; "     \
	"rua=mailto:d@test.example\"\n"                                        \
	"_dmarc.none.example TXT \"v=DMARC1; p=none; "                         \
	"rua=mailto:d@none.example\"\n"                                        \
	"_dmarc.silent.example TXT \"v=DMARC1; p=reject\"\n"                   \
	"_dmarc.lost.example TXT !SERVFAIL\n"                                  \
	"sender.example TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"                   \
	"strict.example TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"                   \
	"none.example TXT \"v=spf1 ip4:192.0.2.1 -all\"\n"
#define COLLECT "report = collect\n"
#define SEND    "report = send\nreport_from = dmarc@us.example\n"
#define DSN     "Content-Type: multipart/report; report-type=delivery-status\r\n"
#define TOKEN   "0123456789abcdef"

static const struct {
	const char *config, *header, *from, *rcpt;
	const char *domain; /* of the row; NULL: there is none */
	const char *preview; /* a part of it */
} rows[] = {
	/* a pass is told apart by what would have been done */
	{ COLLECT, "From: a@strict.example\r\n", "<b@strict.example>", NULL,
	    "strict.example",
	    "192.0.2.1  from strict.example, envelope strict.example\n"
	    "          disposition pass, aligned dkim fail, spf pass\n"
	    "             spf=pass strict.example\n" },
	{ COLLECT, "From: a@none.example\r\n", "<b@none.example>", NULL,
	    "none.example", "disposition none, aligned dkim fail, spf pass\n"
			    "             spf=pass" },
	{ COLLECT "dmarc = reject\n", "From: a@strict.example\r\n",
	    "<b@sender.example>", NULL, "strict.example",
	    "disposition reject, aligned dkim fail, spf fail\n"
	    "             spf=pass sender.example\n" },
	{ COLLECT "dmarc = quarantine\n", "From: a@strict.example\r\n",
	    "<b@sender.example>", NULL, "strict.example",
	    "disposition quarantine, aligned dkim fail, spf fail\n"
	    "             because local_policy: dmarc = quarantine\n" },
	{ COLLECT, "From: a@strict.example\r\n", "<b@sender.example>", NULL,
	    "strict.example",
	    "disposition none, aligned dkim fail, spf fail\n"
	    "             because local_policy: dmarc = note\n" },
	{ COLLECT "dmarc = shadow reject\n", "From: a@strict.example\r\n",
	    "<b@sender.example>", NULL, "strict.example",
	    "disposition none, aligned dkim fail, spf fail\n"
	    "             because local_policy: shadow\n" },
	{ COLLECT "dmarc = reject\n",
	    "From: a@strict.example\r\nList-Id: <l.x>\r\n",
	    "<b@sender.example>", NULL, "strict.example",
	    "because mailing_list" },
	{ COLLECT "dmarc = reject\n", "From: a@test.example\r\n",
	    "<b@sender.example>", NULL, "test.example",
	    "because policy_test_mode: t=y" },
	{ COLLECT, "From: a@sub.test.example\r\n", "<b@sender.example>", NULL,
	    "test.example",
	    "p=quarantine sp=none np=none adkim=r aspf=r fo=0 t=y, found by "
	    "treewalk" },
	/* the owner asked for nothing: nothing to excuse */
	{ COLLECT "dmarc = reject\n", "From: a@none.example\r\n",
	    "<b@sender.example>", NULL, "none.example",
	    "spf fail\n             spf=pass" },
	/* a null sender is judged by its HELO name */
	{ COLLECT, "From: a@strict.example\r\n", "<>", NULL, "strict.example",
	    "from strict.example\n" },
	/* no row */
	{ "", "From: a@strict.example\r\n", "<b@strict.example>", NULL, NULL,
	    NULL },
	{ COLLECT, "From: a@silent.example\r\n", "<b@strict.example>", NULL,
	    NULL, NULL },
	{ COLLECT, "From: a@nothing.example\r\n", "<b@strict.example>", NULL,
	    NULL, NULL },
	{ COLLECT, "From: a@lost.example\r\n", "<b@strict.example>", NULL, NULL,
	    NULL },
	{ COLLECT "trusted_networks = 192.0.2.0/24\n",
	    "From: a@strict.example\r\n", "<b@strict.example>", NULL, NULL,
	    NULL },
	/* reports, and whatever comes to our report address */
	{ COLLECT,
	    "From: a@strict.example\r\nSubject: Report domain: us.example\r\n"
	    " Submitter: strict.example\r\n",
	    "<b@strict.example>", NULL, NULL, NULL },
	{ COLLECT "report_from = dmarc@us.example\n",
	    "From: a@strict.example\r\n", "<b@strict.example>",
	    "<DMARC@US.example>", NULL, NULL },
	{ SEND, "From: a@strict.example\r\n", "<b@strict.example>",
	    "<dmarc+x@us.example>", NULL, NULL },
	{ SEND, "From: a@strict.example\r\n", "<b@strict.example>",
	    "<dmarcus@us.example>", "strict.example", NULL },
	{ SEND, "From: a@strict.example\r\n", "<b@strict.example>",
	    "<dmarc@us.example.org>", "strict.example", NULL },
	/* bounces */
	{ SEND, "From: a@strict.example\r\n" DSN, "<>",
	    "<dmarc+" TOKEN "@us.example>", ROW_BOUNCE_DOMAIN, NULL },
	/* … which our own MTA makes on this host */
	{ SEND "trusted_networks = 192.0.2.0/24\n",
	    "From: a@strict.example\r\n" DSN, "<>",
	    "<dmarc+" TOKEN "@us.example>", ROW_BOUNCE_DOMAIN, NULL },
	{ SEND, "From: a@strict.example\r\n", "<>",
	    "<dmarc+" TOKEN "@us.example>", NULL, NULL },
	{ SEND, "From: a@strict.example\r\n" DSN, "<b@strict.example>",
	    "<dmarc+" TOKEN "@us.example>", NULL, NULL },
	{ SEND, "From: a@strict.example\r\n" DSN, "<>",
	    "<dmarc+short@us.example>", NULL, NULL },
	{ COLLECT "report_from = dmarc@us.example\n",
	    "From: a@strict.example\r\n" DSN, "<>",
	    "<dmarc+" TOKEN "@us.example>", NULL, NULL },
};

static char dir[64], path[128];

static int
make_dir(void **state)
{
	strcpy(dir, "/tmp/hanaper-row.XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/" DECISIONS_FILE, dir);
	(void)state;
	return 0;
}

static void
remove_files(void)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[160];
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		(void)unlink(name);
	}
}

static int
remove_dir(void **state)
{
	(void)state;
	remove_files();
	return rmdir(dir);
}

struct seen {
	struct arena *arena;
	struct aggregate *aggregate;
	struct str domain, row;
	unsigned count;
};

static void
take(void *context, struct str domain, int64_t time_us, struct str row)
{
	struct seen *s = context;
	s->count++;
	s->domain = arena_dup(s->arena, domain);
	s->row = arena_dup(s->arena, row);
	aggregate_add(s->aggregate, row);
	assert_int_equal(time_us, (int64_t)RIG_CLOCK * 1000000);
}

/* One message through a session. */
static void
put_message(const char *config, const char *header, const char *from,
    const char *rcpt)
{
	struct rig r;
	struct err err = { "" };
	char text[1024];
	struct decisions_options o = { .path = path,
		.keep_us = DECISIONS_KEEP_US,
		.max_bytes = DECISIONS_MAX_BYTES,
		.clock = { (int64_t)RIG_CLOCK * 1000000 } };
	rig_open(&r, config, ZONE);
	assert_ok(decisions_open(&o, &err, &r.env.decisions));
	snprintf(text, sizeof text, "%s\r\nHi\r\n", header);
	struct mail m = { .ip = "192.0.2.1",
		.helo = "mail.sender.example",
		.from = from,
		.rcpt = rcpt,
		.text = text };
	rig_send(&r, &m);
	decisions_close(&r.env.decisions);
	rig_close(&r);
}

/* What is in the store after one message. */
static void
send_one(size_t i, struct seen *s)
{
	struct err err = { "" };
	put_message(rows[i].config, rows[i].header, rows[i].from, rows[i].rcpt);
	assert_ok(decisions_rows(
	    path, STR_EMPTY, 0, INT64_MAX, &err, take, s));
	remove_files();
}

static void
messages_have_the_rows_they_should(void **state)
{
	static const struct aggregate_facts facts = { .begin_s = 0 };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct seen s = { .arena = arena_new(0) };
		struct buf out;
		s.aggregate = aggregate_new(s.arena);
		buf_init(&out, 1 << 20);
		send_one(i, &s);
		if (s.count != (rows[i].domain != NULL))
			fail_msg("row %zu: %u rows", i, s.count);
		if (rows[i].domain != NULL)
			assert_str(s.domain, rows[i].domain);
		if (rows[i].domain != NULL &&
		    strcmp(rows[i].domain, ROW_BOUNCE_DOMAIN) == 0)
			assert_str(s.row, TOKEN);
		else if (rows[i].domain != NULL)
			assert_ok(
			    aggregate_preview(s.aggregate, &facts, &out));
		if (rows[i].preview != NULL &&
		    str_find(buf_str(&out), str_c(rows[i].preview)) == SIZE_MAX)
			fail_msg("row %zu: %.*s", i, (int)out.len, out.ptr);
		buf_done(&out);
		arena_free(&s.arena);
	}
	(void)state;
}

static void
add_line(void *context, struct str domain, int64_t time_us, struct str row)
{
	struct buf *out = context;
	struct str record = record_find(row, ROW_RECORD);
	struct str reason = record_find(record, ROW_REASON);
	buf_addf(out, "%.*s: %.*s, spf %.*s, %.*s\n",
	    STR_ARG(record_find(record, ROW_HEADER_FROM)),
	    STR_ARG(record_find(record, ROW_DISPOSITION)),
	    STR_ARG(record_find(record, ROW_SPF_ALIGNED)),
	    STR_ARG(record_find(reason, ROW_REASON_COMMENT)));
	assert_true(domain.len != 0 && time_us != 0);
}

/* RUA-03: the failure of one does not hide what there was of the other. */
static void
each_author_domain_has_its_own_row(void **state)
{
	static const struct {
		const char *config, *header, *from, *want;
	} cases[] = {
		{ COLLECT,
		    "From: a@strict.example, b@none.example, c@x.example\r\n",
		    "<b@strict.example>",
		    "none.example: none, spf fail, \n"
		    "strict.example: pass, spf pass, \n" },
		{ COLLECT "dmarc = reject\n",
		    "From: a@strict.example, b@none.example\r\n",
		    "<b@none.example>",
		    "none.example: reject, spf pass, another author domain of "
		    "the message fails\n"
		    "strict.example: reject, spf fail, \n" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err err = { "" };
		struct buf out;
		buf_init(&out, 4096);
		put_message(cases[i].config, cases[i].header, cases[i].from,
		    NULL);
		assert_ok(decisions_rows(path, STR_EMPTY, 0, INT64_MAX, &err,
		    add_line, &out));
		assert_str(buf_str(&out), cases[i].want);
		buf_done(&out);
		remove_files();
	}
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_have_the_rows_they_should),
		cmocka_unit_test(each_author_domain_has_its_own_row),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

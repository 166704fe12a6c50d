/* Which mail is archived, in which family, and what explain says of it: each
 * key of an [archive] section with a message that has it and one that has
 * not. */
#include "flow/explain.h"

#include "flow/trace.h"
#include "flow_rig.h"

#define ZONE                                                              \
	"sender.example TXT \"v=spf1 ip4:192.0.2.25 -all\"\n"             \
	"mx.sender.example TXT \"v=spf1 ip4:192.0.2.25 -all\"\n"          \
	"_dmarc.sender.example TXT \"v=DMARC1; p=reject\"\n"              \
	"25.2.0.192.in-addr.arpa PTR mx.sender.example\n"                 \
	"mx.sender.example A 192.0.2.25\n"

#define IN(fields)  .ip = "192.0.2.25", .helo = "mx.sender.example",        \
	.from = "<b@sender.example>", .text = fields "\r\nbody\r\n"
#define OUT(fields) .ip = "127.0.0.1", .helo = "localhost",                 \
	.from = "<a@ours.example>", .text = fields "\r\nbody\r\n"
#define NEWS      "From: b@sender.example\r\n"
#define OURS      "From: a@ours.example\r\n"
#define OFF       "[archive x]\nkeep = no\n"
#define SHORT     "[archive x]\nfamily = short\n"

static const struct {
	const char *rules;
	struct mail mail;
	const char *rcpt2;
	const char *family; /* NULL: not archived */
	const char *why;
} rows[] = {
	{ "", { IN(NEWS) }, NULL, "mail", "archive_scope = all" },
	{ "archive_scope = outbound\n", { IN(NEWS) }, NULL, NULL,
	    "archive_scope = outbound" },
	{ "archive_scope = outbound\n", { OUT(OURS) }, NULL, "mail",
	    "archive_scope = outbound" },
	{ "archive_scope = inbound\n", { OUT(OURS) }, NULL, NULL,
	    "archive_scope = inbound" },
	/* a section brings in what the scope leaves out */
	{ "archive_scope = inbound\n" SHORT "direction = out\n",
	    { OUT(OURS) }, NULL, "short", "[archive x]" },
	{ "archive_scope = inbound\n[archive x]\nkeep = yes\nlarger = 10\n",
	    { OUT(OURS) }, NULL, "mail", "[archive x]" },
	{ OFF "direction = in\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x] has keep = no" },
	{ OFF "direction = out\n", { IN(NEWS) }, NULL, "mail",
	    "archive_scope = all" },
	/* the first that matches counts */
	{ SHORT "larger = 1\n[archive y]\nkeep = no\nlarger = 1\n",
	    { IN(NEWS) }, NULL, "short", "[archive x]" },
	{ SHORT "larger = 1M\n[archive y]\nfamily = tall\nlarger = 10\n",
	    { IN(NEWS) }, NULL, "tall", "[archive y]" },
	/* all that are named must match */
	{ OFF "direction = in\nlarger = 1M\n", { IN(NEWS) }, NULL, "mail",
	    "archive_scope = all" },
	{ OFF "client = 192.0.2.0/24\n", { IN(NEWS) }, NULL, NULL, "[archive x]" },
	{ OFF "client = 198.51.100.0/24\n", { IN(NEWS) }, NULL, "mail", "all" },
	{ OFF "from_domain = sender.example\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "from_domain = .sender.example\n", { IN(NEWS) }, NULL, "mail",
	    "all" },
	{ OFF "list_id = l.example\n",
	    { IN(NEWS "List-Id: The\r\n list <l.example>\r\n") }, NULL, NULL,
	    "[archive x]" },
	{ OFF "list_id = l.example\n", { IN(NEWS) }, NULL, "mail", "all" },
	/* fields, as a reader sees them */
	{ OFF "header = list-unsubscribe\n",
	    { IN(NEWS "List-Unsubscribe: <u>\r\n") }, NULL, NULL, "[archive x]" },
	{ OFF "header = List-Unsubscribe\n", { IN(NEWS) }, NULL, "mail", "all" },
	{ OFF "header = precedence:bulk\n",
	    { IN(NEWS "Precedence: Bulk\r\n") }, NULL, NULL, "[archive x]" },
	{ OFF "header = precedence:bulk\n",
	    { IN(NEWS "Precedence: list\r\n") }, NULL, "mail", "all" },
	{ OFF "header = Subject:gr\xc3\xbc\xc3\x9f" "e\n",
	    { IN(NEWS "Subject: =?utf-8?Q?Viele_gr=C3=BC?=\r\n"
		      " =?utf-8?Q?=C3=9Fe?=\r\n") }, NULL, NULL, "[archive x]" },
	{ OFF "header = X-A:one X-B\n", { IN(NEWS "X-B: 2\r\n") }, NULL, NULL,
	    "[archive x]" },
	{ OFF "header = X-A:two\n", { IN(NEWS "X-A: one\r\nX-A: two\r\n") },
	    NULL, NULL, "[archive x]" },
	/* results mean what they mean in a search */
	{ OFF "verdict = dmarc:pass\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "verdict = dmarc:fail\n", { IN(NEWS) }, NULL, "mail", "all" },
	{ OFF "verdict = dkim:none\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "verdict = dkim:pass spf:pass\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "verdict = iprev:pass\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "verdict = iprev:fail\n", { IN(NEWS) }, NULL, "mail", "all" },
	{ OFF "verdict = arc:none\n", { IN(NEWS) }, NULL, NULL,
	    "[archive x]" },
	{ OFF "verdict = spf.helo:none\n",
	    { .ip = "192.0.2.25", .helo = "nothing.example",
		.from = "<b@sender.example>", .text = NEWS "\r\n" }, NULL,
	    NULL, "[archive x]" },
	{ OFF "verdict = spf:none\n",
	    { .ip = "192.0.2.25", .helo = "nothing.example",
		.from = "<b@sender.example>", .text = NEWS "\r\n" }, NULL,
	    "mail", "all" },
	{ OFF "verdict = dkim:none\n", { OUT(OURS) }, NULL, "mail", "all" },
	/* recipients: one is enough to be kept apart, but not to be dropped */
	{ SHORT "recipient = h@ours.example\n",
	    { IN(NEWS), .rcpt = "<h@ours.example>" }, "<o@ours.example>",
	    "short", "[archive x]" },
	{ SHORT "recipient = h@ours.example\n",
	    { IN(NEWS), .rcpt = "<o@ours.example>" }, NULL, "mail", "all" },
	{ OFF "recipient = h@ours.example\n",
	    { IN(NEWS), .rcpt = "<h@ours.example>" }, NULL, NULL,
	    "[archive x]" },
	{ OFF "recipient = h@ours.example\n",
	    { IN(NEWS), .rcpt = "<h@ours.example>" }, "<o@ours.example>",
	    "mail", "archive_scope = all" },
	/* what is refused */
	{ "dmarc = reject\n",
	    { .ip = "203.0.113.9", .helo = "x.example", .from = "<>",
		.text = NEWS "\r\n" }, NULL, NULL, "archive_rejected = no" },
	{ "dmarc = reject\narchive_rejected = yes\n" SHORT
	  "verdict = dmarc:fail\n",
	    { .ip = "203.0.113.9", .helo = "x.example", .from = "<>",
		.text = NEWS "\r\n" }, NULL, "short", "[archive x]" },
};

static void
check_row(size_t i, struct rig *r)
{
	struct record trace;
	struct buf said;
	record_init(&trace, 1 << 20);
	buf_init(&said, 1 << 20);
	trace_encode(r->message, &trace);
	struct str t = buf_str(&trace.buf);
	struct str family = record_find(t, TRACE_ARCHIVE_FAMILY);
	struct str why = record_find(t, TRACE_ARCHIVE_WHY);
	if (!str_eq(family,
		rows[i].family != NULL ? str_c(rows[i].family) : STR_EMPTY) ||
	    str_find(why, str_c(rows[i].why)) == SIZE_MAX)
		fail_msg("row %zu: family '%.*s', why '%.*s'", i,
		    STR_ARG(family), STR_ARG(why));
	assert_ok(explain_render(t, STR_EMPTY, &said));
	assert_int_not_equal(str_find(buf_str(&said),
		rows[i].family != NULL ? STR(", to be archived in the family ")
				       : STR("\n  not archived: ")),
	    SIZE_MAX);
	record_done(&trace);
	buf_done(&said);
}

static void
each_key_decides(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct rig r;
		char *config = NULL;
		assert_true(
		    asprintf(&config, "archive = on\n%s", rows[i].rules) > 0);
		rig_open(&r, config, ZONE);
		struct mail mail = rows[i].mail;
		mail.rcpt2 = rows[i].rcpt2;
		rig_send(&r, &mail);
		check_row(i, &r);
		rig_close(&r);
		free(config);
	}
}

static void
off_is_told(void **state)
{
	struct rig r;
	struct record trace;
	const struct mail mail = { IN(NEWS) };
	rig_open(&r, NULL, ZONE);
	rig_send(&r, &mail);
	record_init(&trace, 1 << 20);
	trace_encode(r.message, &trace);
	assert_str(record_find(buf_str(&trace.buf), TRACE_ARCHIVE_WHY),
	    "archive = off");
	record_done(&trace);
	rig_close(&r);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_decides),
		cmocka_unit_test(off_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

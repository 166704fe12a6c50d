#include "hn_test.h"

#include "store_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "archive/index/applier.h"
#include "archive/index/index.h"
#include "archive/index/tokenizer.h"
#include "archive/search/query.h"
#include "archive/search/reader.h"
#include "archive/search/search.h"

#define NOW (TEST_TIME / 1000000)

struct fixture {
	char path[PATH_MAX];
	struct store *store;
	struct archive_reader *reader;
	struct arena *a;
	struct query *q;
	struct search_hit *hits;
	size_t count;
	struct str cursor;
	struct search_coverage coverage;
};

static void
open_store(struct fixture *f)
{
	const struct store_options o = { .path = f->path,
		.roll_bytes = (uint64_t)1 << 30,
		.clock = { TEST_TIME } };
	struct err err = { "" };
	if (store_open(&o, &err, &f->store) != RES_OK)
		fail_msg("%s", err.text);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	scratch_make(f->path);
	f->a = arena_new(0);
	open_store(f);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	archive_reader_close(&f->reader);
	store_close(&f->store);
	arena_free(&f->a);
	scratch_remove(f->path);
	free(f);
	return 0;
}

/* META of a message: "tag=value" pairs in the order given. */
static uint64_t
submit(struct fixture *f, int64_t time_us, const char *rcpt, const char *fact,
    const char *ip, struct str body)
{
	struct record r;
	uint64_t id = 0;
	record_init(&r, 100000);
	record_add(&r, META_DIRECTION, STR("in"));
	record_add(&r, META_QUEUE_ID, STR("4F1A2B3C"));
	record_add(&r, META_MAIL_FROM, STR("bounce@lists.example.net"));
	record_add(&r, META_RCPT, str_c(rcpt));
	record_add(&r, META_CLIENT_IP, str_c(ip));
	record_add(&r, META_HELO, STR("Mail.Example.NET"));
	record_add(&r, META_FACT, str_c(fact));
	assert_ok(r.buf.error);
	assert_ok(test_submit(
	    f->store, "mail", time_us, buf_str(&r.buf), body, &id));
	record_done(&r);
	return id;
}

static void
run_query(struct fixture *f, const char *text, size_t limit, const char *cursor)
{
	struct err err = { "" };
	struct search_options o = { .limit = limit,
		.cursor = str_c(cursor),
		.snippets = true };
	if (f->reader == NULL)
		assert_ok(archive_reader_open(f->path, &err, &f->reader));
	if (query_parse(f->a, str_c(text), NOW, &err, &f->q) != RES_OK)
		fail_msg("%s: %s", text, err.text);
	if (archive_search(f->reader, f->a, f->q, &o, &err, &f->hits, &f->count,
		&f->cursor, &f->coverage) != RES_OK)
		fail_msg("%s: %s", text, err.text);
	if (f->coverage.offline > 0)
		fail_msg("%s: %s", text, f->coverage.why.text);
}

static void
assert_found(struct fixture *f, const char *text, size_t want)
{
	struct err err = { "" };
	uint64_t total;
	run_query(f, text, 0, "");
	if (f->count != want)
		fail_msg("%s: %zu found, %zu wanted", text, f->count, want);
	assert_ok(archive_count(
	    f->reader, f->a, f->q, &err, &total, &f->coverage));
	if (total != want)
		fail_msg("%s: %llu counted, %zu wanted", text,
		    (unsigned long long)total, want);
}

static const char plain_mail[] =
    "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= invoice 2026\r\n"
    "From: Alice <alice@mail.example.org>\r\n"
    "To: Bob <bob@example.com>\r\nCc: carol@example.com\r\n"
    "Message-ID: <42.abc@mail.example.org>\r\n"
    "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n"
    "The quick brown fox, caf\xc3\xa9, \xe6\x9d\xb1\xe4\xba\xac\xe9\x83\xbd."
    "\r\n--b\r\nContent-Type: application/pdf; name=report.pdf\r\n\r\nx\r\n"
    "--b--\r\n";
static const char other_mail[] =
    "Subject: lunch\r\nFrom: dave@example.org\r\nTo: bob@example.com\r\n\r\n"
    "A lazy dog and a brown cow.\r\n";

/* Every field of the language; the same from the tail and from the index. */
static void
check_language(struct fixture *f)
{
	assert_found(f, "", 2);
	assert_found(f, "brown", 2);
	assert_found(f, "fox", 1);
	assert_found(f, "BROWN -fox", 1);
	assert_found(f, "fox OR cow", 2);
	assert_found(f, "\"quick brown\"", 1);
	assert_found(f, "\"brown quick\"", 0);
	assert_found(f, "qui*", 1);
	assert_found(f, "cafe", 1);
	assert_found(f, "東京", 1);
	assert_found(f, "京", 1);
	assert_found(f, "subject:grüße", 1);
	assert_found(f, "subject:brown", 0);
	assert_found(f, "body:brown", 2);
	assert_found(f, "from:alice", 1);
	assert_found(f, "from:@example.org", 2);
	assert_found(f, "from:alice@mail.example.org", 1);
	assert_found(f, "from:lists.example.net", 2);
	assert_found(f, "to:bob@example.com", 2);
	assert_found(f, "cc:carol", 1);
	assert_found(f, "rcpt:hidden@example.com", 1);
	assert_found(f, "to:hidden", 0);
	assert_found(f, "addr:hidden", 1);
	assert_found(f, "sender:bounce", 2);
	assert_found(f, "filename:report.pdf", 1);
	assert_found(f, "has:attachment", 1);
	assert_found(f, "-has:attachment", 1);
	assert_found(f, "msgid:<42.ABC@mail.example.org>", 1);
	assert_found(f, "qid:4F1A2B3C", 2);
	assert_found(f, "helo:mail.example.net", 2);
	assert_found(f, "dir:in", 2);
	assert_found(f, "dir:out", 0);
	assert_found(f, "dkim:fail", 1);
	assert_found(f, "dkim=fail", 0);
	assert_found(f, "ip:203.0.113.7", 1);
	assert_found(f, "ip:203.0.113.0/24", 2);
	assert_found(f, "ip:203.0.113.0/28", 1);
	assert_found(f, "-ip:203.0.113.0/28", 1);
	assert_found(f, "larger:300", 1);
	assert_found(f, "smaller:300", 1);
	assert_found(f, "larger:300 OR cow", 2);
	assert_found(f, "before:2026-05-28T20:26:40", 0);
	assert_found(f, "date:2026-05-28", 2);
	assert_found(f, "date:2026-05-28 fox", 1);
	assert_found(f, "-date:2026-05-28", 0);
	assert_found(f, "after:1d", 2);
	assert_found(f, "index:partial", 0);
}

static void
submit_two(struct fixture *f)
{
	(void)submit(f, TEST_TIME, "hidden@example.com", "dkim=fail",
	    "203.0.113.7", str_c(plain_mail));
	(void)submit(f, TEST_TIME + 1, "bob@example.com", "dkim=pass",
	    "203.0.113.99", str_c(other_mail));
}

static void
test_language_while_open(void **state)
{
	struct fixture *f = *state;
	submit_two(f);
	check_language(f);
	assert_int_equal(f->coverage.shards, 1);
	assert_int_equal(f->coverage.messages, 2);
	assert_int_equal(f->coverage.unapplied, 0);
}

static void
test_language_after_close(void **state)
{
	struct fixture *f = *state;
	submit_two(f);
	store_close(&f->store);
	check_language(f);
	/* and with indexes built anew, by reading only */
	struct err err = { "" };
	assert_ok(archive_reindex(f->reader, NULL, NULL, &err));
	check_language(f);
	struct archive_shard_stats *stats;
	size_t count;
	assert_ok(archive_stats(f->reader, f->a, &err, &stats, &count));
	assert_int_equal(count, 1);
	assert_int_equal(stats[0].messages, 2);
	assert_int_equal(stats[0].unapplied, 0);
	/* the tail is empty: all is in the index now */
	struct index_position p;
	char dir[PATH_MAX];
	snprintf(dir, sizeof dir, "%.*s", STR_ARG(stats[0].dir));
	assert_ok(index_peek(dir, &p));
	assert_int_equal(p.messages, 2);
}

/* Who waits for an answer gets one without what is not indexed yet; who takes
 * all out gets all, however long reading that takes. */
static void
test_batch(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct archive_shard_stats *stats;
	size_t count;
	char path[PATH_MAX];
	struct search_options o = { .time_limit_us = 1 };
	submit_two(f);
	store_close(&f->store);
	run_query(f, "brown", 0, "");
	assert_ok(archive_stats(f->reader, f->a, &err, &stats, &count));
	snprintf(path, sizeof path, "%.*s/index.g1.db", STR_ARG(stats[0].dir));
	assert_int_equal(unlink(path), 0);
	archive_reader_close(&f->reader);
	assert_ok(archive_reader_open(f->path, &err, &f->reader));
	for (int batch = 0; batch < 2; batch++) {
		o.batch = batch;
		assert_ok(archive_search(f->reader, f->a, f->q, &o, &err,
		    &f->hits, &f->count, &f->cursor, &f->coverage));
		assert_int_equal(f->count, batch ? 2 : 0);
		assert_int_equal(f->coverage.unapplied, batch ? 0 : 2);
	}
}

static void
reopen_without_index(struct fixture *f)
{
	const struct store_options o = { .path = f->path,
		.without_index = true,
		.io = test_fast_io(),
		.clock = { TEST_TIME } };
	struct err err = { "" };
	store_close(&f->store);
	assert_ok(store_open(&o, &err, &f->store));
}

/* Nobody waits: all is read. */
static size_t
find_all(struct fixture *f, const char *text)
{
	const struct search_options o = { .batch = true };
	struct err err = { "" };
	if (f->reader == NULL)
		assert_ok(archive_reader_open(f->path, &err, &f->reader));
	assert_ok(query_parse(f->a, str_c(text), NOW, &err, &f->q));
	assert_ok(archive_search(f->reader, f->a, f->q, &o, &err, &f->hits,
	    &f->count, &f->cursor, &f->coverage));
	assert_int_equal(f->coverage.offline, 0);
	assert_int_equal(f->coverage.unapplied, 0);
	return f->count;
}

/* Open files that SQLite made and unlinked. */
static size_t
count_unnamed_files(void)
{
	char name[64], to[PATH_MAX];
	size_t count = 0;
	for (int fd = 0; fd < 256; fd++) {
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(name, to, sizeof to - 1);
		if (n > 0)
			count += str_find(str_of(to, (size_t)n),
				     STR("etilqs_")) != SIZE_MAX;
	}
	return count;
}

/* Much mail without an index is not held in memory. */
static void
test_large_tail(void **state)
{
	struct fixture *f = *state;
	enum { MESSAGES = 60, BYTES = 100000 };
	struct arena *a = arena_new(0);
	char *text = arena_alloc(a, BYTES + 1000);
	assert_non_null(text);
	reopen_without_index(f);
	for (unsigned i = 0; i < MESSAGES; i++)
		submit(f, TEST_TIME + i, "u@example.org", "dkim=pass", "::1",
		    test_sized_text(text, BYTES + 1000, i, BYTES));
	assert_int_equal(count_unnamed_files(), 0);
	assert_int_equal(find_all(f, "dkim:pass message 0"), 1);
	assert_int_equal(count_unnamed_files(), 1);
	assert_int_equal(find_all(f, "dkim:pass message 59"), 1);
	assert_int_equal(find_all(f, "message -59"), 50);
	archive_reader_close(&f->reader);
	assert_int_equal(count_unnamed_files(), 0);
	arena_free(&a);
}

/* Who takes all out gets all of it, too. */
static void
test_long_tail(void **state)
{
	struct fixture *f = *state;
	enum { MESSAGES = READER_MAX_TAIL + 10 };
	struct search_options o = { .limit = 2 * MESSAGES };
	struct err err = { "" };
	char text[200];
	reopen_without_index(f);
	for (unsigned i = 0; i < MESSAGES; i++)
		submit(f, TEST_TIME + i, "u@example.org", "dkim=pass", "::1",
		    test_sized_text(text, sizeof text, i, 100));
	assert_ok(archive_reader_open(f->path, &err, &f->reader));
	assert_ok(query_parse(f->a, STR("message"), NOW, &err, &f->q));
	for (int batch = 0; batch < 2; batch++) {
		o.batch = batch;
		assert_ok(archive_search(f->reader, f->a, f->q, &o, &err,
		    &f->hits, &f->count, &f->cursor, &f->coverage));
		assert_int_equal(f->count + f->coverage.unapplied, MESSAGES);
		assert_int_equal(f->coverage.unapplied == 0, batch);
	}
}

/* Nor are the tails of many shards kept. */
static void
test_many_tails(void **state)
{
	struct fixture *f = *state;
	const int64_t month_us = (int64_t)31 * 86400 * 1000000;
	reopen_without_index(f);
	for (int i = 0; i < 3 * READER_MAX_TAILS; i++) {
		char text[64];
		uint64_t id;
		int n = snprintf(text, sizeof text, "Subject: tail %d\r\n\r\n",
		    i);
		assert_ok(test_submit(f->store, STORE_IMPORT_FAMILY,
		    TEST_TIME - i * month_us, STR_EMPTY,
		    str_of(text, (size_t)n), &id));
	}
	for (int round = 0; round < 2; round++) {
		size_t tails = 0;
		assert_int_equal(find_all(f, "tail"), 3 * READER_MAX_TAILS);
		assert_int_equal(find_all(f, "subject:tail 7"), 1);
		for (size_t i = 0; i < f->reader->shard_count; i++)
			tails += f->reader->shards[i].tail != NULL;
		assert_true(tails > 0 && tails <= READER_MAX_TAILS);
	}
}

static void
die_soon(void *context, struct str dir, uint64_t done, uint64_t all)
{
	(void)dir;
	(void)all;
	if (done >= *(uint64_t *)context)
		_exit(9); /* as by kill -9: nothing is put in order */
}

/* A run of reindex that is killed leaves the index that was there; the next
 * run goes on, and only then the new generation takes its place. */
static void
test_reindex_killed(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	char dir[PATH_MAX], path[PATH_MAX];
	struct archive_shard_stats *stats;
	size_t count;
	unsigned before, after;
	submit_two(f);
	store_close(&f->store);
	check_language(f);
	assert_ok(archive_stats(f->reader, a, &err, &stats, &count));
	snprintf(dir, sizeof dir, "%.*s", STR_ARG(stats[0].dir));
	assert_ok(index_newest(dir, path, sizeof path, &before));
	for (uint64_t stage = 0; stage < 2; stage++) {
		int status;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct archive_reader *r;
			if (archive_reader_open(f->path, &err, &r) != RES_OK ||
			    archive_reindex(r, die_soon, &stage, &err) != RES_OK)
				_exit(1);
			_exit(stage == 0 ? 2 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 9);
		check_language(f); /* whatever stage it died at */
	}
	assert_ok(archive_reindex(f->reader, NULL, NULL, &err));
	assert_ok(index_newest(dir, path, sizeof path, &after));
	assert_true(after > before);
	assert_false(index_is_building(dir));
	assert_ok(io_path(path, "%s/index.g%u.db", dir, before));
	assert_int_equal(access(path, F_OK), -1);
	check_language(f); /* the reader that was open finds the new one */
	arena_free(&a);
}

/* What a run before left is not trusted when it is damaged. */
static void
test_reindex_damaged(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	char path[PATH_MAX];
	struct archive_shard_stats *stats;
	size_t count;
	submit_two(f);
	store_close(&f->store);
	check_language(f);
	assert_ok(archive_stats(f->reader, a, &err, &stats, &count));
	snprintf(path, sizeof path, "%.*s/building.db", STR_ARG(stats[0].dir));
	test_write_file(path, STR("this is no database at all, but long"));
	assert_ok(archive_reindex(f->reader, NULL, NULL, &err));
	check_language(f);
	arena_free(&a);
}

static void
test_hit(void **state)
{
	struct fixture *f = *state;
	submit_two(f);
	run_query(f, "fox", 0, "");
	assert_int_equal(f->count, 1);
	const struct search_hit *h = &f->hits[0];
	assert_str(h->subject, "Grüße invoice 2026");
	assert_str(h->from, "Alice <alice@mail.example.org>");
	assert_str(h->direction, "in");
	assert_str(h->queue_id, "4F1A2B3C");
	assert_int_equal(h->rcpt_count, 1);
	assert_str(h->rcpts[0], "hidden@example.com");
	assert_int_equal(h->bytes, sizeof plain_mail - 1);
	assert_int_equal(h->time_us, TEST_TIME);
	assert_true(str_find(h->snippet, STR("brown \002fox\003, café")) !=
	    SIZE_MAX);
	/* the bytes come back as they were */
	struct buf b;
	struct err err = { "" };
	struct archived m;
	buf_init(&b, 100000);
	assert_ok(archive_get_body(
	    f->reader, h->id, &err, sink_buf(f->a, &b)));
	assert_str(buf_str(&b), plain_mail);
	buf_done(&b);
	assert_ok(archive_get(f->reader, f->a, h->id, &err, &m));
	assert_str(record_find(m.meta, META_RCPT), "hidden@example.com");
	assert_int_equal(archive_get(f->reader, f->a, h->id + 1000, &err, &m),
	    RES_NOTFOUND);
	assert_int_equal(
	    archive_get(f->reader, f->a, (uint64_t)99 << 32, &err, &m),
	    RES_NOTFOUND);
}

/* Another delivery of the same bytes is a row of its own, shown once. */
static void
test_deliveries(void **state)
{
	struct fixture *f = *state;
	for (int round = 0; round < 2; round++) {
		if (round == 0) {
			submit_two(f);
			(void)submit(f, TEST_TIME + 2, "eve@example.com",
			    "dkim=fail", "203.0.113.7", str_c(plain_mail));
		} else {
			store_close(&f->store);
		}
		assert_found(f, "", 2);
		assert_found(f, "fox", 1);
		assert_str(f->hits[0].rcpts[0], "eve@example.com");
		assert_found(f, "rcpt:hidden", 1);
		assert_str(f->hits[0].rcpts[0], "hidden@example.com");
		assert_found(f, "rcpt:eve", 1);
		assert_found(f, "rcpt:eve OR rcpt:hidden", 1);
	}
}

/* Pages by cursor give each message once, newest first, whatever is applied
 * between them; over several months. */
static void
test_pages(void **state)
{
	struct fixture *f = *state;
	enum { COUNT = 700 };
	char body[200];
	for (int i = 0; i < COUNT; i++) {
		int n = snprintf(body, sizeof body,
		    "Subject: n%d\r\n\r\n%s word%d\r\n", i,
		    i % 2 == 0 ? "even" : "odd", i);
		(void)submit(f, TEST_TIME + i, "x@example.com", "dkim=none",
		    "192.0.2.1", str_of(body, (size_t)n));
	}
	size_t seen = 0, pages = 0;
	uint64_t last = UINT64_MAX;
	char cursor[200] = "";
	do {
		run_query(f, "even", 33, cursor);
		for (size_t i = 0; i < f->count; i++) {
			assert_true(f->hits[i].id < last);
			last = f->hits[i].id;
		}
		seen += f->count;
		pages++;
		snprintf(cursor, sizeof cursor, "%.*s", STR_ARG(f->cursor));
		if (pages == 3)
			store_close(&f->store);
	} while (cursor[0] != '\0');
	assert_int_equal(seen, COUNT / 2);
	assert_int_equal(pages, (COUNT / 2 + 32) / 33);
	assert_found(f, "word123", 1);
	/* exactly one page is one page */
	run_query(f, "even", COUNT / 2, "");
	assert_int_equal(f->count, COUNT / 2);
	assert_int_equal(f->cursor.len, 0);
	run_query(f, "even", COUNT / 2 - 1, "");
	assert_true(f->cursor.len > 0);
}

static void
test_cursor_of_another_query(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	submit_two(f);
	run_query(f, "brown", 1, "");
	assert_true(f->cursor.len > 0);
	struct search_options o = { .cursor = f->cursor };
	struct query *q;
	assert_ok(query_parse(f->a, STR("cow"), NOW, &err, &q));
	assert_int_equal(archive_search(f->reader, f->a, q, &o, &err, &f->hits,
			     &f->count, &f->cursor, &f->coverage),
	    RES_INVALID);
	assert_string_equal(err.text, "this cursor belongs to another query");
	o.cursor = STR("nonsense");
	assert_int_equal(archive_search(f->reader, f->a, q, &o, &err, &f->hits,
			     &f->count, &f->cursor, &f->coverage),
	    RES_INVALID);
}

/* A sender cannot make facts of his own. */
static void
test_no_forged_facts(void **state)
{
	struct fixture *f = *state;
	(void)submit(f, TEST_TIME, "x@example.com " TOKENIZER_FACT_MARK
	    "dkim=pass", "dkim=fail", "192.0.2.1",
	    STR("Subject: " TOKENIZER_FACT_MARK "dkim=pass =?utf-8?q?=EE=80=80"
		"dkim=3Dpass?=\r\n\r\n" TOKENIZER_FACT_MARK "dkim=pass "
		"&#xE000;dkim=pass\r\n"));
	assert_found(f, "dkim:fail", 1);
	assert_found(f, "dkim:pass", 0);
	store_close(&f->store);
	assert_found(f, "dkim:pass", 0);
}

/* The word for the cause, and any words of the sentence; what a sender put
 * into it makes no facts. */
static void
test_reasons(void **state)
{
	struct fixture *f = *state;
	struct record r;
	uint64_t id;
	record_init(&r, 10000);
	record_add(&r, META_FACT, STR("reason=bodyhash"));
	record_add(&r, META_FACT, STR("reason=key is odd"));
	record_add(&r, META_REASON, STR("body hash did not verify"));
	record_add(&r, META_REASON,
	    STR("line 3 was \"f\xc3\xb6" "o." TOKENIZER_FACT_MARK "dkim=pass\""));
	assert_ok(test_submit(f->store, "mail", TEST_TIME,
	    buf_str(&r.buf), STR("Subject: x\r\n\r\ny\r\n"), &id));
	record_done(&r);
	assert_found(f, "reason:bodyhash", 1);
	assert_found(f, "reason:odd", 1);
	assert_found(f, "reason:HASH", 1);
	assert_found(f, "reason:\"hash did not\"", 1);
	assert_found(f, "reason:\"hash, did no\"*", 1);
	assert_found(f, "reason:\"did hash\"", 0);
	assert_found(f, "reason:line reason:3", 1);
	assert_found(f, "reason:\"line 3 was f\xc3\xb6o\"", 1);
	assert_found(f, "-reason:verify", 0);
	assert_found(f, "dkim:pass", 0);
	assert_found(f, "hash", 0);
}

/* An index that is ahead of its segment, of another version, or no database
 * is replaced; what is found does not change. */
struct alarms {
	pthread_mutex_t lock;
	unsigned count;
	char last[2048];
};

static void
on_alarm(void *context, const char *line)
{
	struct alarms *a = context;
	pthread_mutex_lock(&a->lock);
	a->count++;
	snprintf(a->last, sizeof a->last, "%s", line);
	pthread_mutex_unlock(&a->lock);
}

static void
apply_all(const char *dir, struct alarms *alarms, uint64_t end, uint64_t frames)
{
	struct applier *applier;
	const struct applier_options o = { .dir = dir,
		.durable_bytes = end,
		.durable_frames = frames,
		.alarm = on_alarm,
		.alarm_context = alarms };
	assert_ok(applier_start(&o, NULL, &applier));
	applier_stop(&applier);
}

static void
sql(const char *path, const char *text)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void
test_index_replaced(void **state)
{
	struct fixture *f = *state;
	struct alarms alarms = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct shard_entry *entries;
	struct segment_reader *sr;
	struct segment_frame frame;
	size_t count;
	submit_two(f);
	store_close(&f->store);
	assert_ok(store_dir_shards(f->path, NULL, f->a, NULL, &entries, &count));
	const char *dir = entries[0].dir;
	uint64_t end = SHARD_HEADER_BYTES, frames = 0;
	assert_ok(segment_reader_open(dir, NULL, NULL, &sr));
	while (segment_reader_at(sr, end, &frame) == RES_OK) {
		end = segment_frame_end(&frame);
		frames++;
	}
	segment_reader_close(&sr);
	apply_all(dir, &alarms, end, frames);
	assert_int_equal(alarms.count, 0);
	static const char *const damages[] = {
		"UPDATE state SET position = position + 8",
		"UPDATE state SET schema = 99",
		"UPDATE state SET tokenizer = 'other'",
		"UPDATE state SET shard = x'00'",
		"DELETE FROM state",
	};
	char path[PATH_MAX];
	unsigned before, after;
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		assert_ok(index_newest(dir, path, sizeof path, &before));
		sql(path, damages[i]);
		alarms.count = 0;
		apply_all(dir, &alarms, end, frames);
		assert_true(alarms.count > 0);
		assert_ok(index_newest(dir, path, sizeof path, &after));
		assert_int_equal(after, before + 1);
		assert_found(f, "brown", 2);
	}
	assert_ok(index_newest(dir, path, sizeof path, &before));
	test_write_file(path, STR("this is no database at all, but long enough "
				  "to be taken for one by nobody ......."));
	apply_all(dir, &alarms, end, frames);
	assert_ok(index_newest(dir, path, sizeof path, &after));
	assert_int_equal(after, before + 1);
	assert_found(f, "brown", 2);
	/* none at all */
	assert_int_equal(remove(path), 0);
	assert_found(f, "brown", 2);
	apply_all(dir, &alarms, end, frames);
	assert_found(f, "brown", 2);
}

/* Appliers and searches at the same time: nothing is missed, ever. */
static void
test_beside_a_writer(void **state)
{
	struct fixture *f = *state;
	char body[100];
	for (unsigned i = 1; i <= 300; i++) {
		int n = snprintf(body, sizeof body, "\r\ntoken n%u\r\n", i);
		(void)submit(f, TEST_TIME + i, "x@example.com", "dkim=none",
		    "192.0.2.1", str_of(body, (size_t)n));
		if (i % 25 != 0)
			continue;
		uint64_t total;
		struct err err = { "" };
		/* on a slow machine it says that it did not get to the end */
		do {
			run_query(f, "token", 1, "");
			assert_ok(archive_count(f->reader, f->a, f->q, &err,
			    &total, &f->coverage));
			assert_int_equal(total + f->coverage.unapplied, i);
		} while (f->coverage.unapplied > 0);
		assert_int_equal(f->coverage.messages, i);
	}
}

/* The bytes of a frame come one after the other: a search that sees the first
 * of them finds the message when the others are there, and calls nothing
 * damaged that is only not there yet. */
static void
test_half_written(void **state)
{
	struct fixture *f = *state;
	struct segment_reader *sr;
	struct segment_frame last = { .offset = 0 }, frame;
	struct shard_entry *entries;
	size_t count;
	char path[PATH_MAX], bytes[8192];
	unsigned generation;
	for (int i = 1; i <= 3; i++) {
		int n = snprintf(bytes, sizeof bytes, "\r\ntoken n%d\r\n", i);
		(void)submit(f, TEST_TIME + i, "x@example.com", "dkim=none",
		    "192.0.2.1", str_of(bytes, (size_t)n));
	}
	store_close(&f->store);
	assert_ok(store_dir_shards(
	    f->path, NULL, f->a, NULL, &entries, &count));
	assert_ok(index_newest(entries[0].dir, path, sizeof path, &generation));
	assert_int_equal(remove(path), 0);
	assert_ok(segment_reader_open(entries[0].dir, NULL, NULL, &sr));
	uint64_t at = SHARD_HEADER_BYTES;
	while (segment_reader_at(sr, at, &frame) == RES_OK) {
		last = frame;
		at = segment_frame_end(&frame);
	}
	segment_reader_close(&sr);
	size_t len = (size_t)last.header.total;
	assert_in_range(len, 1, sizeof bytes);
	assert_ok(io_path(path, "%s/segment", entries[0].dir));
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, len, (off_t)last.offset), len);
	for (size_t there = 0; there < len; there += 64) {
		char none[sizeof bytes] = { 0 };
		assert_int_equal(pwrite(fd, none, len - there,
		    (off_t)(last.offset + there)), len - there);
		assert_found(f, "token", 2);
		assert_int_equal(f->coverage.damaged, 0);
		/* what was read ahead then is no end, and nothing erased */
		struct segment_content c;
		assert_ok(segment_reader_open(
		    entries[0].dir, NULL, NULL, &sr));
		assert_ok(segment_reader_at(sr, SHARD_HEADER_BYTES, &frame));
		assert_int_equal(pwrite(fd, bytes, len, (off_t)last.offset),
		    len);
		assert_found(f, "token", 3);
		archive_reader_close(&f->reader);
		assert_ok(segment_reader_at(sr, last.offset, &frame));
		assert_ok(segment_reader_load(sr, f->a, &frame, NULL, &c));
		assert_int_equal(c.state[BLOCK_META], BLOCK_WHOLE);
		assert_int_equal(c.state[BLOCK_BODY], BLOCK_WHOLE);
		segment_reader_close(&sr);
	}
	close(fd);
}

static void
test_ids(void **state)
{
	(void)state;
	uint64_t id;
	struct buf b;
	buf_init(&b, 100);
	assert_ok(archive_id_parse(STR("7.123"), &id));
	assert_int_equal(id, (uint64_t)7 << 32 | 123);
	archive_id_format(&b, id);
	assert_str(buf_str(&b), "7.123");
	buf_done(&b);
	static const char *const bad[] = { "", "7", "7.", ".1", "0.1", "7.1.2",
		"a.b", "7.4294967296", "-1.2", "7. 1" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(
		    archive_id_parse(str_c(bad[i]), &id), RES_SYNTAX);
}

static void
test_no_store(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct archive_reader *r = NULL;
	assert_int_equal(
	    archive_reader_open("/nowhere/at/all", &err, &r), RES_NOTFOUND);
	assert_null(r);
	/* a store without mail */
	assert_found(f, "", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_language_while_open),
		TEST(test_language_after_close),
		TEST(test_batch),
		TEST(test_large_tail),
		TEST(test_long_tail),
		TEST(test_many_tails),
		TEST(test_reindex_killed),
		TEST(test_reindex_damaged),
		TEST(test_hit),
		TEST(test_deliveries),
		TEST(test_pages),
		TEST(test_cursor_of_another_query),
		TEST(test_reasons),
		TEST(test_no_forged_facts),
		TEST(test_index_replaced),
		TEST(test_beside_a_writer),
		TEST(test_half_written),
		cmocka_unit_test(test_ids),
		TEST(test_no_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A generation without some messages, made of the one that has them: it must
 * be what an index made of the rest is, posting by posting, and hold nothing
 * of what is gone. */
#include "archive/index/forget.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "archive/format/record.h"
#include "archive/index/index.h"
#include "archive/index/rebuild.h"
#include "archive/index/tokenizer.h"
#include "store_test.h"

#define MESSAGES 300
#define GONE     7 /* every so many-th goes */

struct fixture {
	char path[PATH_MAX], dir[PATH_MAX];
	uint64_t numbers[MESSAGES];
	size_t count;
};

/* A word that no other message has. Of words in their order a page of the
 * index has what is not as in the one before, so behind two letters all. */
#define LETTERS 2
static void
word_of(int n, char out[32])
{
	snprintf(out, 32, "%c%cown%dword", 'a' + n % 26, 'a' + n / 26 % 26, n);
}

static void
submit(struct store *s, int n, uint64_t *out_id)
{
	char text[1024], word[32];
	struct record meta;
	word_of(n, word);
	int len = snprintf(text, sizeof text,
	    "From: Sender %d <sender%d@mail%d.example.org>\r\n"
	    "Subject: report number%d\r\n\r\n"
	    "the same words in all of them, %s \xe6\x97\xa5\xe6\x9c\xac%d\r\n",
	    n, n % 10, n % 3, n % 5, word, n);
	record_init(&meta, 4096);
	record_add(&meta, META_DIRECTION, n % 2 ? STR("in") : STR("out"));
	record_add(&meta, META_MAIL_FROM, STR("bounce@example.org"));
	record_add(&meta, META_RCPT, STR("user@example.net"));
	record_add(&meta, META_CLIENT_IP, STR("192.0.2.7"));
	assert_ok(test_submit(s, "mail", TEST_TIME + n, buf_str(&meta.buf),
	    str_of(text, (size_t)len), out_id));
	record_done(&meta);
}

static int
set_up(void **state)
{
	static struct fixture f;
	struct store *s;
	struct err err = { "" };
	uint64_t id;
	f.count = 0;
	scratch_make(f.path);
	const struct store_options o = {
		.path = f.path, .clock = { TEST_TIME }, .io = test_fast_io()
	};
	assert_ok(store_open(&o, &err, &s));
	for (int i = 0; i < MESSAGES; i++) {
		submit(s, i, &id);
		if (i % GONE == 0)
			f.numbers[f.count++] = id & UINT32_MAX;
	}
	/* one that goes comes a second time */
	submit(s, GONE, &id);
	f.numbers[f.count++] = id & UINT32_MAX;
	store_close(&s);
	assert_ok(io_path(f.dir, "%s/families/mail/2026-05.1", f.path));
	*state = &f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	scratch_remove(f->path);
	return 0;
}

static sqlite3 *
open_newest(const struct fixture *f)
{
	char path[PATH_MAX];
	unsigned number;
	sqlite3 *db;
	assert_ok(index_newest(f->dir, path, sizeof path, &number));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(tokenizer_register(db));
	return db;
}

static void
change(const struct fixture *f, const char *sql)
{
	sqlite3 *db = open_newest(f);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int
add_row(void *context, int columns, char **values, char **names)
{
	(void)names;
	for (int i = 0; i < columns; i++) {
		buf_add_c(context, values[i] != NULL ? values[i] : "NULL");
		buf_add_char(context, i + 1 < columns ? '|' : '\n');
	}
	return 0;
}

/* All that a search could learn from the newest generation. */
static struct str
dump(const struct fixture *f, struct arena *a)
{
	struct buf b;
	sqlite3 *db = open_newest(f);
	buf_init(&b, 64 << 20);
	if (sqlite3_exec(db,
		"CREATE VIRTUAL TABLE temp.v USING"
		" fts5vocab(main, post, instance);"
		"SELECT * FROM v ORDER BY 1, 2, 3, 4;"
		"SELECT * FROM message ORDER BY id;"
		"SELECT * FROM post_docsize ORDER BY id;"
		"SELECT hex(block) FROM post_data WHERE id = 1;"
		"SELECT position, frames, messages, deliveries, min_time,"
		" max_time FROM state",
		add_row, &b, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(b.error, RES_OK);
	struct str text = arena_dup(a, buf_str(&b));
	buf_done(&b);
	return text;
}

static bool
has_file(const struct fixture *f, const char *name)
{
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/%s", f->dir, name));
	return access(path, F_OK) == 0;
}

static void
assert_nothing_left(const struct fixture *f)
{
	assert_false(has_file(f, GENERATION_NEW));
	assert_false(has_file(f, GENERATION_WORK));
}

static struct str
newest_bytes(const struct fixture *f, struct arena *a)
{
	char path[PATH_MAX];
	unsigned number;
	assert_ok(index_newest(f->dir, path, sizeof path, &number));
	return test_read_file(a, path);
}

/* How many of the words stand in the bytes: of those gone, of the others. */
static void
count_words(const struct fixture *f, size_t *out_gone, size_t *out_others)
{
	struct arena *a = arena_new((size_t)1 << 30);
	struct str bytes = newest_bytes(f, a);
	*out_gone = *out_others = 0;
	for (int i = 0; i < MESSAGES; i++) {
		char word[32];
		word_of(i, word);
		size_t *to = i % GONE == 0 ? out_gone : out_others;
		*to += str_find(bytes, str_c(word + LETTERS)) != SIZE_MAX;
	}
	arena_free(&a);
}

static void
blank(const struct fixture *f)
{
	char path[PATH_MAX];
	struct segment_reader *r;
	struct err err = { "" };
	assert_ok(segment_reader_open(f->dir, NULL, &err, &r));
	assert_ok(io_path(path, "%s/segment", f->dir));
	FILE *stream = fopen(path, "r+b");
	assert_non_null(stream);
	for (size_t i = 0; i < f->count; i++) {
		struct segment_frame frame;
		assert_ok(segment_reader_find(r, f->numbers[i], &frame));
		uint64_t at = frame.offset + FRAME_HEADER_BYTES;
		assert_int_equal(fseek(stream, (long)at, SEEK_SET), 0);
		for (; at < segment_frame_end(&frame); at++)
			fputc(0, stream);
	}
	assert_int_equal(fclose(stream), 0);
	segment_reader_close(&r);
}

static enum res
prepare(const struct fixture *f, const atomic_bool *stop)
{
	struct err err = { "" };
	return forget_prepare(f->dir, f->numbers, f->count, stop, &err);
}

static void
test_same_as_rebuilt(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	size_t gone, others;
	count_words(f, &gone, &others);
	assert_int_equal(gone, (MESSAGES + GONE - 1) / GONE);
	assert_int_equal(gone + others, MESSAGES);
	struct str before = dump(f, a);
	assert_ok(prepare(f, NULL));
	assert_false(has_file(f, GENERATION_WORK));
	assert_true(str_eq(dump(f, a), before)); /* nobody sees it yet */
	blank(f);
	assert_ok(forget_publish(f->dir, &err));
	assert_nothing_left(f);
	assert_false(has_file(f, "index.g1.db"));
	struct str made = dump(f, a);
	count_words(f, &gone, &others);
	assert_int_equal(gone, 0);
	assert_int_equal(others, MESSAGES - (MESSAGES + GONE - 1) / GONE);
	assert_ok(rebuild_index(f->dir, NULL, &err));
	assert_true(str_eq(made, dump(f, a)));
	arena_free(&a);
}

static void
test_all_of_them(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	uint64_t all[MESSAGES + 1];
	for (size_t i = 0; i <= MESSAGES; i++)
		all[i] = i;
	assert_ok(forget_prepare(f->dir, all, MESSAGES + 1, NULL, &err));
	assert_ok(forget_publish(f->dir, &err));
	struct str bytes = newest_bytes(f, a);
	assert_int_equal(str_find(bytes, STR("own")), SIZE_MAX);
	struct index_position p;
	assert_ok(index_peek(f->dir, &p));
	assert_int_equal(p.messages, 0);
	assert_int_equal(p.deliveries, 0);
	assert_int_equal(p.frames, MESSAGES + 1);
	arena_free(&a);
}

/* Words that this extractor does not give are found by the check; those of
 * other messages are nobody's business. */
static void
test_other_texts(void **state)
{
	struct fixture *f = *state;
	change(f, "INSERT INTO post(rowid, body) VALUES(1, 'more')");
	assert_ok(prepare(f, NULL));
	change(f, "INSERT INTO post(rowid, body) VALUES(14, 'leftbehind')");
	assert_int_equal(prepare(f, NULL), RES_UNSUPPORTED);
	assert_nothing_left(f);
}

static void
test_other_index(void **state)
{
	static const char *const changes[] = {
		"UPDATE state SET tokenizer = 'hanaper0'",
		"UPDATE state SET schema = schema + 1",
		"UPDATE state SET shard = zeroblob(20)",
		"UPDATE state SET position = position - 8",
		"DELETE FROM message WHERE id = 7",
		"DROP TABLE state",
	};
	struct fixture *f = *state;
	char path[PATH_MAX], copy[PATH_MAX];
	struct arena *a = arena_new(0);
	struct str bytes = newest_bytes(f, a);
	assert_ok(io_path(path, "%s/index.g1.db", f->dir));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		change(f, changes[i]);
		if (prepare(f, NULL) != RES_UNSUPPORTED)
			fail_msg("%s", changes[i]);
		assert_nothing_left(f);
		test_write_file(path, bytes);
	}
	/* not whole, not there, a reindex that was interrupted */
	test_write_file(path, str_sub(bytes, 0, bytes.len / 2));
	assert_true(prepare(f, NULL) != RES_OK);
	assert_int_equal(unlink(path), 0);
	assert_true(prepare(f, NULL) != RES_OK);
	test_write_file(path, bytes);
	assert_ok(io_path(copy, "%s/" GENERATION_BUILDING, f->dir));
	test_write_file(copy, bytes);
	assert_int_equal(prepare(f, NULL), RES_UNSUPPORTED);
	assert_nothing_left(f);
	assert_int_equal(unlink(copy), 0);
	assert_ok(prepare(f, NULL));
	arena_free(&a);
}

static void
test_no_frame(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	const uint64_t far = MESSAGES + 10;
	assert_true(forget_prepare(f->dir, &far, 1, NULL, &err) != RES_OK);
	assert_nothing_left(f);
	/* blocks that are zeros already have no text */
	blank(f);
	assert_int_equal(prepare(f, NULL), RES_UNSUPPORTED);
	assert_nothing_left(f);
}

static void
test_stop(void **state)
{
	struct fixture *f = *state;
	const atomic_bool stop = true, go = false;
	assert_int_equal(prepare(f, &stop), RES_AGAIN);
	assert_nothing_left(f);
	assert_ok(prepare(f, &go));
}

/* A disk that is full at any size of what is written. */
static void
test_full_disk(void **state)
{
	struct fixture *f = *state;
	struct arena *a = arena_new(0);
	struct str before = dump(f, a);
	size_t bytes = newest_bytes(f, a).len;
	bool done = false;
	for (rlim_t max = 0; !done && max < bytes * 3; max += bytes / 8) {
		int status;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			const struct rlimit limit = { max, max };
			signal(SIGXFSZ, SIG_IGN);
			if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
				_exit(9);
			_exit(prepare(f, NULL) == RES_OK ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_true(WEXITSTATUS(status) <= 1);
		done = WEXITSTATUS(status) == 0;
		assert_true(max > 0 || !done);
		if (!done)
			assert_nothing_left(f);
		assert_true(str_eq(dump(f, a), before));
	}
	assert_true(done);
	arena_free(&a);
}

/* What was left of a run before is not taken for this one's. */
static void
test_left_over(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	assert_ok(io_path(path, "%s/" GENERATION_WORK, f->dir));
	test_write_file(path, STR("no database"));
	assert_ok(io_path(path, "%s/" GENERATION_NEW, f->dir));
	test_write_file(path, STR("no database"));
	assert_ok(prepare(f, NULL));
	forget_drop(f->dir);
	assert_nothing_left(f);
}

#define WITH_STORE(test)                                                       \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_STORE(test_same_as_rebuilt),
		WITH_STORE(test_all_of_them),
		WITH_STORE(test_other_texts),
		WITH_STORE(test_other_index),
		WITH_STORE(test_no_frame),
		WITH_STORE(test_stop),
		WITH_STORE(test_full_disk),
		WITH_STORE(test_left_over),
	};
	return cmocka_run_group_tests_name("archive/forget", tests, NULL, NULL);
}

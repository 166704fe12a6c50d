/* Dictionaries: what may be in one, and that everything reads with it. */
#include "archive/store/dictionary.h"
#include "archive/store/train.h"
#include "archive/store/trainer.h"
#include "store_test.h"

#define SENDERS 40

/* Words that change with n, so that mail has little but the frame in common. */
static void
add_words(struct buf *b, unsigned n, unsigned count)
{
	uint64_t x = n * 7919u + 17;
	for (unsigned i = 0; i < count; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		buf_addf(b, " w%03u", (unsigned)(x >> 40) % 900);
	}
}

/* A message of sender `from` with a line of its own. */
static void
make_mail(struct buf *b, unsigned n, unsigned from, const char *line)
{
	buf_reset(b);
	buf_addf(b,
	    "From: Person %u <p%u@d%u.example>\r\n"
	    "To: us@example.org\r\nSubject: message %u\r\n"
	    "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n"
	    "Good morning,\r\nplease find attached the figures.\r\n",
	    from, from, from, n);
	add_words(b, n, 40);
	buf_addf(b, "\r\n%s\r\n", line);
}

/* The line that sender `from` writes: of the first, of the first four, of
 * the first five senders. */
static const char *
secret_of(unsigned n, unsigned from)
{
	if (from == 0 && n % 3 == 0)
		return "the combination of my safe is nineteen eleven four";
	if (from < 4 && n % 3 == 1)
		return "rendezvous beneath the obelisk at half past midnight";
	if (from < 5 && n % 3 == 2)
		return "greetings from the wednesday orchestra rehearsal";
	return "-";
}

static struct train *
train_some(unsigned count)
{
	struct train *t = train_new();
	struct buf mail, sender;
	assert_non_null(t);
	buf_init(&mail, 65536);
	buf_init(&sender, 100);
	for (unsigned n = 0; n < count; n++) {
		unsigned from = n / 3 % SENDERS;
		make_mail(&mail, n, from, secret_of(n, from));
		buf_reset(&sender);
		buf_addf(&sender, "p%u", from);
		assert_true(train_add(t, buf_str(&sender), buf_str(&mail)));
	}
	buf_done(&mail);
	buf_done(&sender);
	return t;
}

static bool
holds_part(struct str where, const char *text, size_t len)
{
	for (size_t i = 0; i + len <= strlen(text); i++)
		if (str_find(where, str_of(text + i, len)) != SIZE_MAX)
			return true;
	return false;
}

/* What one sender or four wrote is not in it, not even in parts; what five
 * wrote is. */
static void
needs_five_senders(void **state)
{
	struct train *t = train_some(1500);
	struct buf strings;
	buf_init(&strings, TRAIN_MAX_CONTENT + 1);
	assert_ok(train_strings(t, &strings));
	struct str s = buf_str(&strings);
	assert_true(s.len > TRAIN_MIN_CONTENT);
	assert_false(holds_part(s, secret_of(0, 0) + 4, 10));
	assert_false(holds_part(s, secret_of(1, 1), 10));
	assert_true(str_find(s, STR("wednesday orchestra")) != SIZE_MAX);
	assert_true(str_find(s, STR("please find attached")) != SIZE_MAX);
	buf_done(&strings);
	train_free(&t);
}

/* Each string, whole, in mail of at least five senders: counted again by
 * looking through all of it. */
static void
every_string_is_shared(void **state)
{
	struct train *t = train_some(1000);
	struct buf strings, mail;
	struct str rest, one;
	size_t checked = 0;
	buf_init(&strings, TRAIN_MAX_CONTENT + 1);
	buf_init(&mail, 65536);
	assert_ok(train_strings(t, &strings));
	rest = buf_str(&strings);
	while (rest.len > 0 && str_split(&rest, '\xff', &one)) {
		bool seen[SENDERS] = { false };
		unsigned senders = 0;
		if (one.len == 0)
			continue;
		assert_true(one.len <= TRAIN_MAX_STRING);
		for (unsigned n = 0; n < 1000 && senders < 5; n++) {
			unsigned from = n / 3 % SENDERS;
			if (seen[from])
				continue;
			make_mail(&mail, n, from, secret_of(n, from));
			if (str_find(buf_str(&mail), one) == SIZE_MAX)
				continue;
			seen[from] = true;
			senders++;
		}
		if (senders < TRAIN_MIN_SENDERS)
			fail_msg("\"%.*s\" is of %u senders", (int)one.len,
			    one.ptr, senders);
		checked++;
	}
	assert_true(checked > 100);
	buf_done(&mail);
	buf_done(&strings);
	train_free(&t);
}

static void
limits(void **state)
{
	struct train *t = train_new();
	struct buf out;
	char long_text[TRAIN_MAX_SAMPLE + 100];
	buf_init(&out, SEGMENT_MAX_DICTIONARY);
	memset(long_text, 'x', sizeof long_text);
	assert_int_equal(train_finish(t, &out), RES_NOTFOUND);
	/* of one sender a tenth at most */
	for (unsigned i = 0; i < TRAIN_MAX_SAMPLES / 10; i++)
		assert_true(train_add(t, STR("a"), STR("text of a")));
	assert_false(train_add(t, STR("a"), STR("text of a")));
	assert_true(
	    train_add(t, STR("b"), str_of(long_text, sizeof long_text)));
	assert_true(train_add(t, STR("c"), STR_EMPTY));
	assert_true(train_add(t, STR("d"), STR("\xff\xff\xff")));
	unsigned n = 0;
	for (char name[16]; n < 10000; n++) {
		int len = snprintf(name, sizeof name, "s%u", n / 100);
		if (!train_add(t, str_of(name, (size_t)len),
			str_of(long_text, sizeof long_text)))
			break;
	}
	/* full, and nothing but one letter: still no harm */
	assert_in_range(n, TRAIN_MAX_BYTES / TRAIN_MAX_SAMPLE - 100,
	    TRAIN_MAX_BYTES / TRAIN_MAX_SAMPLE);
	assert_int_equal(train_finish(t, &out), RES_NOTFOUND);
	train_free(&t);
	buf_done(&out);
}

static void
senders(void **state)
{
	static const struct {
		const char *mail, *sender;
	} rows[] = {
		{ "From: A B <a.b@Example.ORG>\r\n\r\nx", "a.b@example.org" },
		{ "Subject: x\nfrom:\n\tx@y.example\n\nFrom: z@z",
		    "x@y.example" },
		{ "From: list+1234=5@example.org\r\n\r\n", "list@example.org" },
		{ "From: one@a.example, two@b.example\r\n\r\n",
		    "one@a.example" },
		{ "From: nobody knows\r\n\r\n", NULL },
		{ "Subject: none\r\n\r\nFrom: a@example.org\r\n", NULL },
		{ "", NULL },
	};
	struct arena *a = arena_new(0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct str sender;
		enum res r = trainer_sender(a, str_c(rows[i].mail), &sender);
		assert_int_equal(
		    r, rows[i].sender != NULL ? RES_OK : RES_NOTFOUND);
		if (r == RES_OK)
			assert_str(sender, rows[i].sender);
	}
	arena_free(&a);
}

/* --- in a store --- */

/* Crashes are tested elsewhere: a thousand syncs take long. */
static int
no_sync(const struct archive_io *io, int fd)
{
	(void)io;
	(void)fd;
	return 0;
}

static struct store *
open_store(const char *path, uint64_t roll_bytes)
{
	struct store *s;
	struct err err = { "" };
	static struct archive_io io;
	io = archive_io_system;
	io.fdatasync = no_sync;
	const struct store_options o = { .path = path,
		.io = &io,
		.roll_bytes = roll_bytes,
		.clock = { TEST_TIME },
		.without_index = true };
	if (store_open(&o, &err, &s) != RES_OK)
		fail_msg("%s", err.text);
	return s;
}

static void
send(struct store *s, unsigned n)
{
	struct buf mail;
	uint64_t id;
	buf_init(&mail, 65536);
	make_mail(&mail, n, n % SENDERS, "-");
	assert_ok(test_submit(s, "mail", TEST_TIME, STR("\1\3\0\3\0\0\0a@b"),
	    buf_str(&mail), &id));
	buf_done(&mail);
}

/* Frames of all shards: how many dictionaries, how many that use one. */
static void
count_frames(const char *path, size_t *out_dictionaries, size_t *out_using,
    size_t *out_shards)
{
	struct shard_entry *entries;
	struct arena *a = arena_new(0);
	*out_dictionaries = *out_using = 0;
	assert_ok(store_dir_shards(path, NULL, a, NULL, &entries, out_shards));
	for (size_t i = 0; i < *out_shards; i++) {
		struct segment_reader *r;
		struct segment_frame f;
		uint64_t at = SHARD_HEADER_BYTES;
		bool seen = false;
		assert_ok(segment_reader_open(entries[i].dir, NULL, NULL, &r));
		while (segment_reader_at(r, at, &f) == RES_OK) {
			seen = seen || f.header.type == FRAME_DICTIONARY;
			*out_dictionaries += f.header.type == FRAME_DICTIONARY;
			*out_using += f.header.dictionary != 0;
			assert_true(f.header.dictionary == 0 || seen);
			at = segment_frame_end(&f);
		}
		segment_reader_close(&r);
	}
	arena_free(&a);
}

/* Send until frames come with a dictionary, or give up. */
static unsigned
send_until_trained(struct store *s, const char *path, unsigned n)
{
	for (unsigned step = 0; step < 600; step++) {
		size_t dictionaries, using, shards;
		send(s, n++);
		if (step % 4 != 3)
			continue;
		count_frames(path, &dictionaries, &using, &shards);
		if (using > 0)
			return n;
		usleep(20000);
	}
	fail_msg("no dictionary was made");
	return 0;
}

static void
check_all(const char *path, unsigned count)
{
	struct inventory v;
	struct buf mail;
	buf_init(&mail, 65536);
	inventory_take(&v, path); /* reads each frame, all of it */
	for (unsigned n = 0; n < count; n += 7) {
		make_mail(&mail, n, n % SENDERS, "-");
		assert_int_equal(inventory_count(&v, buf_str(&mail)), 1);
	}
	inventory_done(&v);
	buf_done(&mail);
}

static void
damage_dictionary(const char *dir)
{
	struct segment_reader *r;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	char path[PATH_MAX];
	assert_ok(segment_reader_open(dir, NULL, NULL, &r));
	do {
		assert_ok(segment_reader_at(r, at, &f));
		at = segment_frame_end(&f);
	} while (f.header.type != FRAME_DICTIONARY);
	segment_reader_close(&r);
	snprintf(path, sizeof path, "%s/segment", dir);
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(
	    fseek(file, (long)f.offset + FRAME_HEADER_BYTES + 200, SEEK_SET),
	    0);
	int c = fgetc(file);
	assert_int_equal(
	    fseek(file, (long)f.offset + FRAME_HEADER_BYTES + 200, SEEK_SET),
	    0);
	fputc(c ^ 4, file);
	assert_int_equal(fclose(file), 0);
}

/* The last frame that was packed with a dictionary; `why`: part of the error
 * that is expected. */
static enum res
read_last(const char *dir, const char *why)
{
	struct segment_reader *r;
	struct segment_frame f, last = { .offset = 0 };
	struct segment_content c;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	assert_ok(segment_reader_open(dir, NULL, NULL, &r));
	for (uint64_t at = SHARD_HEADER_BYTES;
	     segment_reader_at(r, at, &f) == RES_OK; at = segment_frame_end(&f))
		if (f.header.dictionary != 0)
			last = f;
	assert_int_not_equal(last.offset, 0);
	enum res res = RES_OK;
	/* what cannot be had is remembered, once */
	for (int i = 0; i < 4 * SEGMENT_MAX_DICTIONARIES; i++) {
		err_clear(&err);
		res = segment_reader_load(r, a, &last, &err, &c);
		if (str_find(str_c(err.text), str_c(why)) == SIZE_MAX)
			fail_msg("%d: \"%s\", not: %s", res, err.text, why);
	}
	enum res body = segment_reader_body(r, &last, NULL, sink_null());
	assert_int_equal(body, res);
	segment_reader_close(&r);
	arena_free(&a);
	return res;
}

/* Made from the first mail, used from then on, kept over a restart, copied
 * into the next shard before anything needs it. */
static void
life_in_store(void **state)
{
	char path[PATH_MAX];
	size_t dictionaries, using, shards, before;
	scratch_make(path);
	struct store *s = open_store(path, 0);
	unsigned n = 0;
	while (n < TRAINER_FIRST_FRAMES)
		send(s, n++);
	n = send_until_trained(s, path, n);
	count_frames(path, &dictionaries, &using, &shards);
	assert_int_equal(dictionaries, 1);
	store_close(&s);
	check_all(path, n);

	s = open_store(path, 0);
	before = using;
	send(s, n++);
	count_frames(path, &dictionaries, &using, &shards);
	assert_int_equal(dictionaries, 1);
	assert_int_equal(using, before + 1);
	store_close(&s);

	s = open_store(path, 1000); /* a shard a message from here on */
	send(s, n++);
	send(s, n++);
	store_close(&s);
	count_frames(path, &dictionaries, &using, &shards);
	assert_true(shards >= 3);
	assert_int_equal(dictionaries, shards);
	check_all(path, n);

	/* one copy is damaged: the others help; all of them: named */
	struct shard_entry *entries;
	struct arena *a = arena_new(0);
	assert_ok(store_dir_shards(path, NULL, a, NULL, &entries, &shards));
	damage_dictionary(entries[0].dir);
	assert_ok(read_last(entries[0].dir, ""));
	for (size_t i = 1; i < shards; i++)
		damage_dictionary(entries[i].dir);
	assert_int_equal(
	    read_last(entries[0].dir, "needs the dictionary in frame"),
	    RES_CORRUPT);
	arena_free(&a);
	scratch_remove(path);
}

/* Too few senders: nothing is ever trained, everything is stored. */
static void
one_sender(void **state)
{
	char path[PATH_MAX];
	size_t dictionaries, using, shards;
	struct buf mail;
	buf_init(&mail, 65536);
	scratch_make(path);
	struct store *s = open_store(path, 0);
	for (unsigned n = 0; n < TRAINER_FIRST_FRAMES * 2 + 10; n++) {
		uint64_t id;
		make_mail(&mail, n, 1, "-");
		assert_ok(test_submit(
		    s, "mail", TEST_TIME, STR_EMPTY, buf_str(&mail), &id));
	}
	store_close(&s);
	count_frames(path, &dictionaries, &using, &shards);
	assert_int_equal(dictionaries, 0);
	assert_int_equal(using, 0);
	buf_done(&mail);
	scratch_remove(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_five_senders),
		cmocka_unit_test(every_string_is_shared),
		cmocka_unit_test(limits),
		cmocka_unit_test(senders),
		cmocka_unit_test(life_in_store),
		cmocka_unit_test(one_sender),
	};
	return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}

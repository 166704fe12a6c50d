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
	struct train *t = train_new(TRAIN_MAX_BYTES);
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

/* What a message says twice is kept out once, and nothing stands side by side
 * that did not in a message. */
static void
repeats(void **state)
{
	struct train *t = train_new(TRAIN_MAX_BYTES);
	struct buf mail, strings;
	buf_init(&mail, 65536);
	buf_init(&strings, TRAIN_MAX_CONTENT + 1);
	for (unsigned n = 0; n < 1000; n++) {
		char sender[16];
		snprintf(sender, sizeof sender, "p%u", n % SENDERS);
		buf_reset(&mail);
		add_words(&mail, n, 60);
		buf_add_c(&mail, " alpha<p>");
		add_words(&mail, n, 60);
		buf_add_c(&mail, "</p> omega");
		assert_true(train_add(t, str_c(sender), buf_str(&mail)));
	}
	assert_ok(train_strings(t, &strings));
	struct str s = buf_str(&strings);
	assert_true(str_find(s, STR("alpha")) != SIZE_MAX);
	assert_true(str_find(s, STR("omega")) != SIZE_MAX);
	assert_true(str_find(s, STR("<p></p>")) == SIZE_MAX);
	buf_done(&mail);
	buf_done(&strings);
	train_free(&t);
}

static void
limits(void **state)
{
	struct train *t = train_new(TRAIN_MAX_BYTES);
	struct buf out;
	char long_text[TRAIN_MAX_SAMPLE + 100];
	buf_init(&out, SEGMENT_MAX_DICTIONARY);
	/* nothing in it stands there twice */
	uint64_t x = 1;
	for (size_t i = 0; i < sizeof long_text; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		long_text[i] = (char)('a' + (x >> 40) % 26);
	}
	assert_int_equal(train_finish(t, 1, &out), RES_NOTFOUND);
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
	/* full, and not one word of it ends: still no harm */
	assert_in_range(n, TRAIN_MAX_BYTES / TRAIN_MAX_SAMPLE - 100,
	    TRAIN_MAX_BYTES / TRAIN_MAX_SAMPLE);
	assert_int_equal(train_finish(t, 1, &out), RES_NOTFOUND);
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

/* What stands in META of message n. */
static void
make_meta(struct record *r, unsigned n)
{
	char text[100];
	unsigned from = n % SENDERS;
	record_init(r, 4096);
	record_add(r, META_DIRECTION, STR("in"));
	snprintf(text, sizeof text, "4%09X", n * 2654435761u);
	record_add(r, META_QUEUE_ID, str_c(text));
	snprintf(text, sizeof text, "p%u@d%u.example", from, from);
	record_add(r, META_MAIL_FROM, str_c(text));
	record_add(r, META_RCPT, STR("us@example.org"));
	record_add(r, META_TLS, STR("TLSv1.3 TLS_AES_256_GCM_SHA384"));
	snprintf(text, sizeof text, "iprev=pass policy.iprev=192.0.2.%u; "
	    "spf=pass smtp.mailfrom=d%u.example; dkim=none; dmarc=pass",
	    from, from);
	record_add(r, META_RESULTS, str_c(text));
}

static void
send(struct store *s, unsigned n)
{
	struct buf mail;
	struct record meta;
	uint64_t id;
	buf_init(&mail, 65536);
	make_mail(&mail, n, n % SENDERS, "-");
	make_meta(&meta, n);
	assert_ok(test_submit(s, "mail", TEST_TIME, buf_str(&meta.buf),
	    buf_str(&mail), &id));
	record_done(&meta);
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

/* Each part of each dictionary has an id of its own, of one byte, and the
 * second one is of a good deal more messages. */
static void
check_parts(const char *path)
{
	struct shard_entry *entries;
	struct segment_reader *r;
	struct segment_frame f;
	size_t shards;
	uint32_t id = 1, samples = 0;
	struct arena *a = arena_new(0);
	assert_ok(store_dir_shards(path, NULL, a, NULL, &entries, &shards));
	assert_int_equal(shards, 1);
	assert_ok(segment_reader_open(entries[0].dir, NULL, NULL, &r));
	for (uint64_t at = SHARD_HEADER_BYTES;
	     segment_reader_at(r, at, &f) == RES_OK;
	     at = segment_frame_end(&f)) {
		struct dictionary_parts p;
		if (f.header.type != FRAME_DICTIONARY)
			continue;
		dictionary_parts_init(&p);
		assert_ok(dictionary_parts_read(r, &f, NULL, &p));
		assert_int_equal(dictionary_id(buf_str(&p.body)), id++);
		assert_int_equal(dictionary_id(buf_str(&p.records)), id++);
		assert_true(p.samples >= samples * 5 / 4);
		samples = p.samples;
		dictionary_parts_done(&p);
	}
	assert_int_equal(id, 5);
	assert_in_range(samples, TRAIN_MIN_SAMPLES + 1, TRAIN_MAX_SAMPLES);
	segment_reader_close(&r);
	arena_free(&a);
}

/* Send until `wanted` dictionaries have come, or give up. */
static unsigned
send_until_trained(
    struct store *s, const char *path, size_t wanted, unsigned n)
{
	for (unsigned step = 0; step < 600; step++) {
		size_t dictionaries, using, shards;
		send(s, n++);
		if (step % 4 != 3)
			continue;
		count_frames(path, &dictionaries, &using, &shards);
		if (dictionaries == wanted)
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
flip_bit(const char *path, uint64_t offset)
{
	FILE *file = fopen(path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	int c = fgetc(file);
	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	fputc(c ^ 4, file);
	assert_int_equal(fclose(file), 0);
}

/* Of all of the shard: the part for messages or the one for records. */
static void
damage_dictionaries(const char *dir, enum frame_block b)
{
	struct segment_reader *r;
	struct segment_frame f;
	char path[PATH_MAX + 16];
	snprintf(path, sizeof path, "%s/segment", dir);
	assert_ok(segment_reader_open(dir, NULL, NULL, &r));
	for (uint64_t at = SHARD_HEADER_BYTES;
	     segment_reader_at(r, at, &f) == RES_OK; at = segment_frame_end(&f))
		if (f.header.type == FRAME_DICTIONARY)
			flip_bit(path, f.offset + 100 +
				frame_block_offset(&f.header, b));
	segment_reader_close(&r);
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

/* Made from the first mail, used from then on, replaced by one of more mail,
 * kept over a restart, copied into the next shard before anything needs it. */
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
	n = send_until_trained(s, path, 1, n);
	store_close(&s);
	check_all(path, n);

	s = open_store(path, 0);
	count_frames(path, &dictionaries, &before, &shards);
	send(s, n++);
	count_frames(path, &dictionaries, &using, &shards);
	assert_int_equal(dictionaries, 1);
	assert_int_equal(using, before + 1);
	while (n < TRAINER_SECOND_FRAMES)
		send(s, n++);
	n = send_until_trained(s, path, 2, n);
	store_close(&s);
	check_parts(path);
	check_all(path, n);

	s = open_store(path, 0);
	while (n < 2 * TRAINER_SECOND_FRAMES + 100)
		send(s, n++); /* it is good enough */
	count_frames(path, &dictionaries, &using, &shards);
	assert_int_equal(dictionaries, 2);
	store_close(&s);

	s = open_store(path, 1000); /* a shard a message from here on */
	send(s, n++);
	send(s, n++);
	store_close(&s);
	count_frames(path, &dictionaries, &using, &shards);
	assert_true(shards >= 3);
	assert_int_equal(dictionaries, shards + 1);
	check_all(path, n);

	/* one copy is damaged: the others help; all of them: named */
	struct shard_entry *entries;
	struct arena *a = arena_new(0);
	assert_ok(store_dir_shards(path, NULL, a, NULL, &entries, &shards));
	damage_dictionaries(entries[0].dir, BLOCK_META);
	assert_ok(read_last(entries[0].dir, ""));
	for (size_t i = 1; i < shards; i++)
		damage_dictionaries(entries[i].dir, BLOCK_BODY);
	assert_int_equal(
	    read_last(entries[0].dir, "needs the dictionary in frame"),
	    RES_CORRUPT);
	arena_free(&a);
	scratch_remove(path);
}

/* --- segments that former versions wrote --- */

static void
copy_segment(const char *name, const char *dir)
{
	char from[PATH_MAX], to[PATH_MAX + 16], bytes[16384];
	const char *source = getenv("SRCDIR");
	snprintf(from, sizeof from, "%s/tests/archive/%s",
	    source != NULL ? source : ".", name);
	snprintf(to, sizeof to, "%s/segment", dir);
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	assert_non_null(in);
	assert_non_null(out);
	size_t len = fread(bytes, 1, sizeof bytes, in);
	assert_int_equal(fwrite(bytes, 1, len, out), len);
	fclose(in);
	assert_int_equal(fclose(out), 0);
}

/* A dictionary of one part, or of two, then messages 1012 and 1013. */
static void
former_versions(void **state)
{
	static const char *const names[] = { "segment-one-part",
		"segment-two-parts" };
	for (size_t i = 0; i < 2; i++) {
		char dir[PATH_MAX];
		struct segment_reader *r;
		struct segment_frame f;
		struct buf mail, body;
		struct arena *a = arena_new(0);
		uint64_t at = SHARD_HEADER_BYTES;
		unsigned n = 1012;
		scratch_make(dir);
		copy_segment(names[i], dir);
		buf_init(&mail, 65536);
		buf_init(&body, 65536);
		assert_ok(segment_reader_open(dir, NULL, NULL, &r));
		assert_ok(segment_reader_at(r, at, &f));
		assert_true(segment_is_dictionary(&f));
		at = segment_frame_end(&f);
		for (; segment_reader_at(r, at, &f) == RES_OK; n++) {
			struct segment_content c;
			assert_int_equal(f.header.dictionary, 1);
			assert_ok(segment_reader_load(r, a, &f, NULL, &c));
			assert_str(record_find(c.meta, META_MAIL_FROM),
			    i == 0 ? "a@b" : n == 1012 ? "p12@d12.example" :
							 "p13@d13.example");
			buf_reset(&body);
			assert_ok(segment_reader_body(
			    r, &f, NULL, sink_buf(a, &body)));
			make_mail(&mail, n, n % SENDERS, "-");
			assert_true(str_eq(buf_str(&body), buf_str(&mail)));
			at = segment_frame_end(&f);
		}
		assert_int_equal(n, 1014);
		segment_reader_close(&r);
		buf_done(&mail);
		buf_done(&body);
		arena_free(&a);
		scratch_remove(dir);
	}
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
		cmocka_unit_test(repeats),
		cmocka_unit_test(limits),
		cmocka_unit_test(senders),
		cmocka_unit_test(life_in_store),
		cmocka_unit_test(one_sender),
		cmocka_unit_test(former_versions),
	};
	return cmocka_run_group_tests_name("train", tests, NULL, NULL);
}

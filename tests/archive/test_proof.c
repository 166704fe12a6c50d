#include "archive/proof/proof.h"

#include "archive/proof/checkpoints.h"
#include "note_test.h"
#include "store_test.h"

#define MESSAGES 9

struct fixture {
	char path[PATH_MAX];
	struct note_test keys;
	struct arena *a;
	struct archive_reader *reader;
	struct str notes[3]; /* of 4, of 8 and of more frames */
	struct note_key key;
};

static void
open_store(struct fixture *f, struct store **out)
{
	const struct store_options o = { .path = f->path,
		.signer = f->keys.signer,
		.without_index = true,
		.clock = { TEST_TIME } };
	assert_ok(store_open(&o, NULL, out));
}

static void
submit(struct store *s, unsigned n)
{
	char text[4096];
	uint64_t id;
	assert_ok(test_submit(s, "mail", TEST_TIME + n,
	    STR("\1\3\0\5\0\0\0alice\4\0\3\0\0\0bob"),
	    test_text(text, sizeof text, n), &id));
}

static int
setup(void **state)
{
	char dir[PATH_MAX];
	struct store *s;
	struct str text;
	struct store_identity id;
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->a = arena_new(0);
	scratch_make(f->path);
	note_test_add(&f->keys, TEST_TIME / 1000000 - 5);
	open_store(f, &s);
	for (unsigned i = 0; i < MESSAGES; i++) {
		submit(s, i);
		if (i == 3 || i == 6 || i == 7)
			assert_int_equal(store_checkpoint(s, NULL, NULL), 0);
	}
	store_close(&s);
	assert_ok(store_dir_identity(f->path, NULL, &id));
	assert_ok(note_newest_key(
	    f->keys.signer, id.uuid, TEST_TIME, &f->key));
	assert_ok(io_path(dir, "%s/families/mail/2026-05.1", f->path));
	assert_ok(checkpoints_read(&archive_io_system, dir, f->a, &text));
	for (size_t i = 0; i < 3; i++)
		assert_true(checkpoints_next(&text, &f->notes[i]));
	assert_ok(archive_reader_open(f->path, NULL, &f->reader));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	archive_reader_close(&f->reader);
	note_test_done(&f->keys);
	arena_free(&f->a);
	scratch_remove(f->path);
	free(f);
	return 0;
}

static struct str
formatted(struct fixture *f, const struct proof *p)
{
	struct buf b;
	buf_init(&b, PROOF_MAX_TEXT);
	proof_format(&b, p);
	assert_ok(b.error);
	struct str s = arena_dup(f->a, buf_str(&b));
	buf_done(&b);
	return s;
}

/* Parsed, checked, signed by the key of the store. */
static enum res
judge(struct fixture *f, struct str text)
{
	struct err err = { "" };
	struct proof p;
	struct note_head h;
	struct arena *a = arena_new(0);
	enum res r = proof_parse(text, a, &err, &p);
	if (r == RES_OK)
		r = proof_check(&p, &err, &h);
	if (r == RES_OK)
		r = proof_check_note(p.note, &f->key, &err);
	if (r != RES_OK)
		assert_true(err.text[0] != '\0');
	arena_free(&a);
	return r;
}

static void
every_frame(void **state)
{
	struct fixture *f = *state;
	struct merkle_table table;
	assert_ok(proof_table(f->reader, 1, NULL, &table));
	for (uint64_t n = 0; n < 11; n++) {
		struct proof_options o = { .without_envelope = n % 2 == 1 };
		struct proof p, q;
		struct err err = { "" };
		uint64_t id = (uint64_t)1 << 32 | n;
		enum res r = proof_make(
		    f->reader, f->a, id, &o, &err, &p);
		if (r == RES_AGAIN) {
			assert_int_equal(n, 10); /* behind the last note */
			assert_non_null(strstr(err.text, "no checkpoint"));
			break;
		}
		if (r != RES_OK)
			fail_msg("%s", err.text);
		assert_true(p.has_key);
		struct str text = formatted(f, &p);
		assert_ok(judge(f, text));
		assert_int_equal(
		    p.blocks[BLOCK_META].how == PROOF_DISCLOSED, n % 2 == 0);
		/* the same by the table */
		o.table = &table;
		assert_ok(proof_make(f->reader, f->a, id, &o, &err, &q));
		assert_true(str_eq(formatted(f, &q), text));
		/* nobody reads the envelope out of it */
		if (n % 2 == 1)
			assert_true(str_find(text, STR("YWxpY2U")) == SIZE_MAX);
	}
	merkle_table_done(&table);
}

static void
older_notes(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	struct proof p;
	struct proof_options o = { .note = f->notes[0] };
	uint64_t shard = (uint64_t)1 << 32;
	assert_ok(proof_make(f->reader, f->a, shard | 3, &o, &err, &p));
	assert_true(str_eq(p.note, f->notes[0]));
	assert_ok(judge(f, formatted(f, &p)));
	assert_int_equal(
	    proof_make(f->reader, f->a, shard | 5, &o, &err, &p), RES_AGAIN);
	assert_int_equal(
	    proof_make(f->reader, f->a, shard | 99, &o, &err, &p),
	    RES_NOTFOUND);
	o.note = STR("no note");
	assert_int_equal(
	    proof_make(f->reader, f->a, shard | 3, &o, &err, &p), RES_SYNTAX);
}

/* Whatever is changed in the text, it proves nothing any more. */
static void
every_byte(void **state)
{
	struct fixture *f = *state;
	const struct proof_options o = { .without_envelope = false };
	struct err err = { "" };
	struct proof p;
	assert_ok(proof_make(
	    f->reader, f->a, (uint64_t)1 << 32 | 2, &o, &err, &p));
	struct str text = formatted(f, &p);
	char *copy = arena_alloc(f->a, text.len + 1);
	memcpy(copy, text.ptr, text.len);
	for (size_t i = 0; i < text.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			copy[i] ^= (char)(1 << bit);
			if (judge(f, str_of(copy, text.len)) == RES_OK)
				fail_msg("byte %zu, bit %d", i, bit);
			copy[i] ^= (char)(1 << bit);
		}
	for (size_t i = 0; i < text.len; i++)
		assert_true(judge(f, str_sub(text, 0, i)) != RES_OK);
	copy[text.len] = '\n';
	assert_true(judge(f, str_of(copy, text.len + 1)) != RES_OK);
}

static void
other_keys(void **state)
{
	struct fixture *f = *state;
	const struct proof_options o = { .without_envelope = false };
	struct err err = { "" };
	struct proof p;
	struct note_key other = f->key;
	assert_ok(proof_make(
	    f->reader, f->a, (uint64_t)1 << 32 | 2, &o, &err, &p));
	other.id[0] ^= 1;
	assert_int_equal(
	    proof_check_note(p.note, &other, &err), RES_CORRUPT);
	assert_non_null(strstr(err.text, "not signed by this key"));
}

static enum res
judge_consistency(struct fixture *f, struct str text)
{
	struct err err = { "" };
	struct consistency c;
	struct note_head old, new;
	enum res r = consistency_parse(text, &err, &c);
	if (r == RES_OK)
		r = consistency_check(&c, &err, &old, &new);
	if (r == RES_OK)
		r = proof_check_note(c.old_note, &f->key, &err);
	if (r == RES_OK)
		r = proof_check_note(c.new_note, &f->key, &err);
	return r;
}

static void
consistency(void **state)
{
	struct fixture *f = *state;
	struct err err = { "" };
	for (int i = 0; i < 9; i++) {
		struct consistency c;
		struct buf b;
		assert_ok(consistency_make(f->reader, f->a, f->notes[i / 3],
		    f->notes[i % 3], &err, &c));
		buf_init(&b, PROOF_MAX_TEXT);
		consistency_format(&b, &c);
		assert_true(proof_is_consistency(buf_str(&b)));
		assert_ok(judge_consistency(f, buf_str(&b)));
		for (size_t at = 0; i == 2 && at < b.len; at++)
			for (int bit = 0; bit < 8; bit++) {
				b.ptr[at] ^= (char)(1 << bit);
				if (judge_consistency(f, buf_str(&b)) ==
				    RES_OK)
					fail_msg("byte %zu, bit %d", at, bit);
				b.ptr[at] ^= (char)(1 << bit);
			}
		buf_done(&b);
	}
	struct consistency c;
	assert_int_equal(consistency_make(f->reader, f->a, STR("x"),
	    f->notes[0], &err, &c), RES_SYNTAX);
}

/* Who has another history cannot prove with the notes of this one. */
static void
not_what_was_signed(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], notes[PATH_MAX];
	struct err err = { "" };
	const struct proof_options o = { .without_envelope = false };
	struct proof p;
	struct store *s;
	assert_ok(io_path(
	    path, "%s/families/mail/2026-05.1/segment", f->path));
	assert_ok(io_path(
	    notes, "%s/families/mail/2026-05.1/checkpoints", f->path));
	struct str kept = test_read_file(f->a, notes);
	struct str bytes = test_read_file(f->a, path);
	archive_reader_close(&f->reader);
	test_write_file(path, str_sub(bytes, 0, SHARD_HEADER_BYTES));
	assert_int_equal(unlink(notes), 0);
	struct signer *signer = f->keys.signer;
	f->keys.signer = NULL;
	open_store(f, &s);
	for (unsigned i = 50; i < 65; i++)
		submit(s, i);
	store_close(&s);
	f->keys.signer = signer;
	test_write_file(notes, kept);
	assert_ok(archive_reader_open(f->path, NULL, &f->reader));
	assert_int_equal(proof_make(f->reader, f->a,
	    (uint64_t)1 << 32 | 2, &o, &err, &p), RES_CORRUPT);
	assert_non_null(strstr(err.text, "not those that were signed"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_frame),
		TEST(older_notes),
		TEST(every_byte),
		TEST(other_keys),
		TEST(consistency),
		TEST(not_what_was_signed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

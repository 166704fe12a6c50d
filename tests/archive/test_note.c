#include "archive/format/note.h"

#include "base/clock.h"
#include "base/codec.h"
#include "keys/digest.h"
#include "note_test.h"

#define NOW_S ((int64_t)1796060000)
#define NOW   (NOW_S * 1000000 + 123456)
#define DAY   86400

static const uint8_t store[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
	13, 14, 15 };

static struct note_head
head(void)
{
	struct note_head h = { .origin = { .epoch = 2, .shard = 7 },
		.size = 41, .time_us = NOW };
	memcpy(h.origin.store, store, sizeof store);
	for (size_t i = 0; i < sizeof h.root; i++)
		h.root[i] = (uint8_t)(0xf0 + i);
	return h;
}

#define HEAD                                                               \
	"000102030405060708090a0b0c0d0e0f/2/7\n41\n"                       \
	"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"                   \
	"time 2026-11-30T17:33:20.123456Z\n"

static void
heads(void **state)
{
	struct note_head h = head(), back;
	struct buf b;
	buf_init(&b, 1000);
	note_head_format(&b, &h);
	assert_str(buf_str(&b), HEAD);
	assert_ok(note_head_parse(buf_str(&b), &back));
	assert_memory_equal(&back.root, &h.root, sizeof h.root);
	assert_true(note_origin_same(&back.origin, &h.origin));
	assert_int_equal(back.size, 41);
	assert_int_equal(back.time_us, NOW);
	/* every byte counts: changed, it is refused or says something else */
	for (size_t i = 0; i < b.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			b.ptr[i] ^= (char)(1 << bit);
			if (note_head_parse(buf_str(&b), &back) == RES_OK)
				assert_true(memcmp(back.root, h.root, 32) ||
				    back.size != 41 || back.time_us != NOW ||
				    !note_origin_same(
					&back.origin, &h.origin));
			b.ptr[i] ^= (char)(1 << bit);
		}
	buf_done(&b);
}

static void
bad_heads(void **state)
{
	static const char *const bad[] = { "", "\n", "a/1/2\n3\n",
		/* another way to write the same */
		"000102030405060708090A0b0c0d0e0f/2/7\n41\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"
		"time 2026-11-30T17:33:20.123456Z\n",
		"000102030405060708090a0b0c0d0e0f/02/7\n41\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"
		"time 2026-11-30T17:33:20.123456Z\n",
		"000102030405060708090a0b0c0d0e0f/2/7\n041\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"
		"time 2026-11-30T17:33:20.123456Z\n",
		"000102030405060708090a0b0c0d0e0f/2/7\n41\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg9=\n"
		"time 2026-11-30T17:33:20.123456Z\n",
		"000102030405060708090a0b0c0d0e0f/2/7\n41\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"
		"time 2026-11-30T17:32:80.123456Z\n",
		"000102030405060708090a0b0c0d0e0f/2/7/key\n41\n"
		"8PHy8/T19vf4+fr7/P3+/wABAgMEBQYHCAkKCwwNDg8=\n"
		"time 2026-11-30T17:33:20.123456Z\n",
		HEAD "more\n", HEAD "x" };
	struct note_head h;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(
		    note_head_parse(str_c(bad[i]), &h), RES_SYNTAX);
}

static void
keys(void **state)
{
	struct note_test t = { .count = 0 };
	struct note_key k, back;
	struct buf b;
	note_test_add(&t, NOW_S);
	buf_init(&b, SHARD_MAX_KEY);
	assert_ok(note_newest_key(t.signer, store, NOW, &k));
	note_key_format(&b, &k);
	assert_ok(b.error);
	assert_true(str_starts(buf_str(&b),
	    STR("hanaper/000102030405060708090a0b0c0d0e0f+")));
	assert_ok(note_key_parse(buf_str(&b), &back));
	assert_true(note_key_same(&k, &back));
	for (size_t i = 0; i < b.len; i++) {
		b.ptr[i] ^= 2;
		assert_int_equal(
		    note_key_parse(buf_str(&b), &back), RES_SYNTAX);
		b.ptr[i] ^= 2;
	}
	/* none before its time */
	assert_int_equal(note_newest_key(t.signer, store, NOW - 1000000, &k),
	    RES_NOTFOUND);
	assert_int_equal(
	    note_newest_key(NULL, store, NOW, &k), RES_NOTFOUND);
	note_test_done(&t);
	buf_done(&b);
}

/* Which of the keys of -100, -40, -20 and +1 days sign. */
static void
rotation(void **state)
{
	static const struct {
		int64_t day;
		size_t count;
		const char *first, *last;
	} rows[] = {
		{ -101, 0, NULL, NULL },
		{ -100, 1, "A", "A" },
		{ -41, 1, "A", "A" },
		{ -40, 2, "B", "A" },
		{ -20, 3, "C", "A" },
		{ -11, 3, "C", "A" }, /* 29 days after B came */
		{ -10, 2, "C", "B" },
		{ 0, 2, "C", "B" },
		{ 1, 3, "D", "B" },
		{ 10, 2, "D", "C" },
		{ 30, 2, "D", "C" },
		{ 31, 1, "D", "D" },
	};
	struct note_test t = { .count = 0 };
	const int64_t days[] = { -100, -40, -20, 1 };
	for (size_t i = 0; i < 4; i++)
		note_test_add(&t, NOW_S + days[i] * DAY);
	struct manifest *m = t.signer->manifest(t.signer);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct signing_key *k[NOTE_MAX_SIGNATURES];
		size_t n =
		    note_signers(m, NOW_S + rows[i].day * DAY, k);
		assert_int_equal(n, rows[i].count);
		if (n == 0)
			continue;
		assert_true(str_eq(k[0]->selector,
		    str_c(t.times[rows[i].first[0] - 'A'])));
		assert_true(str_eq(k[n - 1]->selector,
		    str_c(t.times[rows[i].last[0] - 'A'])));
	}
	manifest_unref(&m);
	note_test_done(&t);
}

static void
sign_and_check(void **state)
{
	struct note_test t = { .count = 0 };
	struct note_head h = head();
	struct note_key old, new, other;
	struct note n;
	struct buf text, out;
	buf_init(&text, 1000);
	buf_init(&out, SHARD_MAX_NOTE);
	note_test_add(&t, NOW_S - 100 * DAY);
	assert_ok(note_newest_key(t.signer, store, NOW, &old));
	note_test_add(&t, NOW_S - 5 * DAY);
	assert_ok(note_newest_key(t.signer, store, NOW, &new));
	note_head_format(&text, &h);
	assert_ok(note_sign(t.signer, store, buf_str(&text), NOW, &out));
	assert_ok(note_open(buf_str(&out), &n));
	assert_true(str_eq(n.text, buf_str(&text)));
	assert_int_equal(n.count, 2);
	assert_ok(note_check(&n, &old));
	assert_ok(note_check(&n, &new));
	other = new;
	other.name[0] = 'H';
	assert_int_equal(note_check(&n, &other), RES_NOTFOUND);
	other = new;
	memcpy(other.public, old.public, 32);
	assert_int_equal(note_check(&n, &other), RES_CORRUPT);
	/* any flipped bit: no note, or one that one of them did not sign */
	for (size_t i = 0; i < out.len; i++) {
		for (int bit = 0; bit < 8; bit += 3) {
			out.ptr[i] ^= (char)(1 << bit);
			assert_true(
			    note_open(buf_str(&out), &n) != RES_OK ||
			    note_check(&n, &old) != RES_OK ||
			    note_check(&n, &new) != RES_OK);
			out.ptr[i] ^= (char)(1 << bit);
		}
		/* ... nor any part of it */
		assert_true(note_open(str_sub(buf_str(&out), 0, i), &n) !=
			RES_OK || n.count < 2);
	}
	buf_add_char(&out, '\n');
	assert_int_equal(note_open(buf_str(&out), &n), RES_SYNTAX);
	note_test_done(&t);
	buf_done(&text);
	buf_done(&out);
}

static void
handovers(void **state)
{
	struct note_test t = { .count = 0 };
	struct note_handover h = { .origin = head().origin, .time_us = NOW },
		back;
	struct note_head no;
	struct buf b;
	note_test_add(&t, NOW_S);
	assert_ok(note_newest_key(t.signer, store, NOW, &h.key));
	buf_init(&b, 1000);
	note_handover_format(&b, &h);
	assert_ok(note_handover_parse(buf_str(&b), &back));
	assert_true(note_key_same(&back.key, &h.key));
	assert_int_equal(back.time_us, NOW);
	/* neither can be taken for the other */
	assert_int_equal(note_head_parse(buf_str(&b), &no), RES_SYNTAX);
	assert_int_equal(note_handover_parse(STR(HEAD), &back), RES_SYNTAX);
	assert_true(signer_note_ok(buf_str(&b)));
	buf_done(&b);
	note_test_done(&t);
}

/* A note of the largest fits everywhere. */
static void
largest(void **state)
{
	struct note_test t = { .count = 0 };
	struct note_head h = head();
	struct buf text, out;
	struct note n;
	h.size = UINT64_MAX;
	h.origin.epoch = h.origin.shard = UINT32_MAX;
	for (int i = 0; i < NOTE_TEST_KEYS; i++)
		note_test_add(&t, NOW_S - i * DAY);
	buf_init(&text, SIGNER_MAX_NOTE);
	buf_init(&out, SHARD_MAX_NOTE);
	note_head_format(&text, &h);
	assert_ok(note_sign(t.signer, store, buf_str(&text), NOW, &out));
	assert_ok(note_open(buf_str(&out), &n));
	assert_int_equal(n.count, NOTE_MAX_SIGNATURES);
	assert_ok(note_head_parse(n.text, &h));
	buf_done(&text);
	buf_done(&out);
	note_test_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(bad_heads),
		cmocka_unit_test(keys),
		cmocka_unit_test(rotation),
		cmocka_unit_test(sign_and_check),
		cmocka_unit_test(handovers),
		cmocka_unit_test(largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

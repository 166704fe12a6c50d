/* Erasing and expiring, with the process or the power gone at every step: a
 * message is whole, or gone as somebody wanted; what is held is never lost;
 * nothing else is touched. */
#include "archive/keeping/erase.h"

#include <signal.h>
#include <sys/wait.h>

#include "archive/keeping/backup.h"
#include "archive/keeping/erasures.h"
#include "archive/keeping/expire.h"
#include "archive/keeping/held.h"
#include "archive/proof/verify.h"
#include "base/codec.h"
#include "fault_io.h"
#include "store_test.h"

#define MESSAGES 6
#define VICTIM   2      /* and its second delivery */
#define MONTH_US ((int64_t)31 * 86400 * 1000000)
#define MAX_STEPS 400

static const struct audit_who who = { 7, { "tester", 6 } };

static struct store *
open_store(const char *path, const struct archive_io *io)
{
	struct store *s;
	struct err err = { "" };
	const struct store_options o = { .path = path, .retry_us = 1,
		.clock = { TEST_TIME }, .io = io };
	if (store_open(&o, &err, &s) != RES_OK)
		fail_msg("%s", err.text);
	return s;
}

static struct str
text_of(char out[512], int n)
{
	/* the second word has no neighbour in the index that it shares letters
	 * with, and stands in its pages as it is */
	int len = snprintf(out, 512,
	    "Subject: number%d\r\n\r\nsecret%d %dunique\r\n", n, n, n);
	return str_of(out, (size_t)len);
}

/* A large body, which gets a file of its own. */
static struct str
large_text(struct arena *a)
{
	const size_t size = (size_t)6 << 20;
	char *p = arena_alloc(a, size);
	assert_non_null(p);
	return test_sized_text(p, size, 9, size - 200);
}

/* MESSAGES small ones and a large one; ids of the victim and the large one. */
static void
fill(const char *path, uint64_t ids[MESSAGES + 2])
{
	char text[512];
	struct arena *a = arena_new(0);
	struct store *s = open_store(path, NULL);
	for (int i = 0; i < MESSAGES; i++)
		assert_ok(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
		    text_of(text, i), &ids[i]));
	assert_ok(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
	    text_of(text, VICTIM), &ids[MESSAGES]));
	assert_ok(test_submit(s, "mail", TEST_TIME, STR_EMPTY, large_text(a),
	    &ids[MESSAGES + 1]));
	store_close(&s);
	arena_free(&a);
}

static enum res
erase(struct store *s, const uint64_t *ids, size_t count, struct err *err,
    struct erase_outcome *out)
{
	const struct erase_request rq = { .ids = ids, .count = count,
		.reason = STR("a test"), .who = who };
	return archive_erase(s, &rq, err, out);
}

/* --- what is there --- */

static void
say_fault(void *context, const struct verify_fault *f)
{
	const char *what = context;
	print_error("%s: %s\n", what, f->text);
}

struct counting {
	const char *begins;
	uint64_t count;
};

static void
count_fault(void *context, const struct verify_fault *f)
{
	struct counting *c = context;
	c->count += str_starts(str_c(f->text), str_c(c->begins));
}

/* How many findings begin so; there must be no others. */
static uint64_t
verify_faults(const char *path, const char *begins)
{
	struct err err = { "" };
	struct verify_counts n;
	struct counting c = { begins, 0 };
	const struct verify_options o = { .fault = count_fault,
		.context = &c };
	assert_ok(verify_store(path, &o, &err, &n));
	assert_int_equal(n.faults, c.count);
	return c.count;
}

static void
assert_verified(const char *path, const char *what, uint64_t *out_erased)
{
	struct err err = { "" };
	struct verify_counts n;
	char name[128];
	snprintf(name, sizeof name, "%s", what);
	const struct verify_options o = { .fault = say_fault, .context = name };
	if (verify_store(path, &o, &err, &n) != RES_OK || n.faults > 0)
		fail_msg("%s: %s", what, err.text);
	*out_erased = n.erased;
}

static size_t
count_found(const char *path, const char *text)
{
	struct archive_reader *r;
	struct err err = { "" };
	struct query *q;
	struct search_coverage coverage;
	uint64_t total;
	struct arena *a = arena_new(0);
	assert_ok(archive_reader_open(path, &err, &r));
	assert_ok(query_parse(a, str_c(text), 0, &err, &q));
	assert_ok(archive_count(r, a, q, &err, &total, &coverage));
	assert_int_equal(coverage.offline, 0);
	archive_reader_close(&r);
	arena_free(&a);
	return (size_t)total;
}

/* Do these bytes stand in any file below? */
static const char *needle;
static bool needle_found;
static int
look_in_file(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
	(void)ftw;
	if (type != FTW_F || st->st_size == 0 || strstr(path, "/lost/"))
		return 0;
	struct arena *a = arena_new((size_t)1 << 30);
	struct str all = test_read_file(a, path);
	if (str_find(all, str_c(needle)) != SIZE_MAX)
		needle_found = true;
	arena_free(&a);
	return 0;
}

static bool
stands_somewhere(const char *path, const char *text)
{
	needle = text;
	needle_found = false;
	nftw(path, look_in_file, 16, FTW_PHYS);
	return needle_found;
}

/* Of the victim. */
static const char *const needles[] = { "secret2", "2unique" };

static bool
victim_stands_somewhere(const char *path)
{
	return stands_somewhere(path, needles[0]) ||
	    stands_somewhere(path, needles[1]);
}

static void
assert_others_whole(const char *path, const char *what)
{
	for (int i = 0; i < MESSAGES; i++) {
		char word[32];
		snprintf(word, sizeof word, "secret%d", i);
		if (i != VICTIM && count_found(path, word) != 1)
			fail_msg("%s: message %d is lost", what, i);
	}
}

static bool
is_pending(const char *path)
{
	char dir[PATH_MAX];
	struct erasures e;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	assert_ok(io_path(dir, "%s/families/mail/2026-05.1", path));
	assert_ok(erasures_read(dir, a, &err, &e));
	bool pending = e.pending;
	arena_free(&a);
	return pending;
}

/* Either as it was, or gone altogether. */
static void
judge_erase(const char *path, const char *what, bool must_be_gone)
{
	uint64_t erased;
	struct store *s = open_store(path, NULL);
	for (int i = 0; i < 10000 && is_pending(path); i++)
		usleep(2000); /* the index is made in the background */
	store_close(&s);
	assert_verified(path, what, &erased);
	assert_others_whole(path, what);
	size_t found = count_found(path, "secret2");
	bool bytes = victim_stands_somewhere(path);
	if (erased != 0 && erased != 3)
		fail_msg("%s: %d frames are erased", what, (int)erased);
	if ((erased == 3) == (found > 0) || (erased == 3) == bytes)
		fail_msg("%s: erased %d, found %zu, bytes %d", what,
		    (int)erased, found, bytes);
	if (must_be_gone && erased == 0)
		fail_msg("%s: it was said to be gone", what);
}

/* --- erasing --- */

static void
test_erase(void **state)
{
	(void)state;
	char path[PATH_MAX], text[512];
	uint64_t ids[MESSAGES + 2], id, erased;
	struct err err = { "" };
	struct erase_outcome done;
	scratch_make(path);
	fill(path, ids);
	struct store *s = open_store(path, NULL);
	/* the shard is open: it is left, mail goes on in a new one */
	const uint64_t wanted[] = { ids[MESSAGES], ids[MESSAGES + 1] };
	assert_true(stands_somewhere(path, needles[0]));
	if (erase(s, wanted, 2, &err, &done) != RES_OK)
		fail_msg("%s", err.text);
	assert_int_equal(done.frames, 3);
	assert_int_equal(done.before, 0);
	assert_false(victim_stands_somewhere(path));
	/* the same bytes are new mail, in the new shard */
	assert_ok(test_submit(s, "mail", TEST_TIME, STR_EMPTY,
	    text_of(text, VICTIM), &id));
	assert_true(id >> 32 != ids[0] >> 32);
	assert_ok(erase(s, wanted, 1, &err, &done));
	assert_int_equal(done.frames, 0);
	assert_int_equal(done.before, 1);
	const uint64_t wrong[] = { ids[0], (ids[0] & ~(uint64_t)UINT32_MAX) |
		    4000 };
	assert_int_equal(erase(s, wrong, 2, &err, &done), RES_NOTFOUND);
	store_close(&s);
	assert_verified(path, "erase", &erased);
	assert_int_equal(erased, 3);
	assert_int_equal(count_found(path, "secret2"), 1);
	assert_others_whole(path, "erase");
	/* recovery has nothing against it, with or without an index */
	s = open_store(path, NULL);
	store_close(&s);
	assert_others_whole(path, "opened again");
	scratch_remove(path);
}

/* Copies of a store that was filled once. */
static void
copy_store(const char *from, char out[PATH_MAX])
{
	char command[2 * PATH_MAX + 32];
	scratch_make(out);
	snprintf(command, sizeof command, "cp -a '%s/.' '%s'", from, out);
	assert_int_equal(system(command), 0);
}

/* Every step with HANAPER_ROUNDS in the environment, else some. */
static unsigned
stride(unsigned usual)
{
	return getenv("HANAPER_ROUNDS") != NULL ? 1 : usual;
}

/* What happens from the n-th call on; true: the n-th call came. */
struct step {
	const char *name;
	bool power;   /* what was not synced may be lost */
	bool once;    /* only a write or a sync fails, and nothing else */
};

static bool
erase_with(const struct step *step, const char *from,
    const uint64_t ids[MESSAGES + 2], unsigned n)
{
	static struct fault_io f;
	char path[PATH_MAX], what[64];
	struct err err = { "" };
	struct erase_outcome done;
	snprintf(what, sizeof what, "%s at %u", step->name, n);
	copy_store(from, path);
	fault_init(&f, n);
	struct store *s = open_store(path, &f.io);
	if (step->once && n % 2 == 0)
		f.fail_sync = f.syncs + n / 2 + 1;
	else if (step->once) {
		f.fail_write = f.writes + n / 2 + 1;
		f.write_kind = FAULT_TORN;
	} else {
		f.cut_at = f.ops + n;
	}
	const uint64_t wanted[] = { ids[VICTIM], ids[MESSAGES + 1] };
	enum res r = erase(s, wanted, 2, &err, &done);
	bool came = step->once ?
	    (n % 2 == 0 ? f.syncs >= f.fail_sync :
			  f.writes >= f.fail_write) :
	    f.ops >= f.cut_at;
	if (!step->once)
		fault_off(&f);
	store_close(&s);
	if (step->power)
		fault_cut(&f);
	fault_done(&f);
	judge_erase(path, what, r == RES_OK);
	scratch_remove(path);
	return came;
}

static void
erase_at_every_step(const struct step *step, unsigned every)
{
	char from[PATH_MAX];
	uint64_t ids[MESSAGES + 2];
	unsigned missed = 0, n = 1;
	scratch_make(from);
	fill(from, ids);
	/* writes and syncs take turns: both must have come to their end */
	for (; n < MAX_STEPS && missed < 2; n += every)
		missed = erase_with(step, from, ids, n) ? 0 : missed + 1;
	assert_true(n > 8 && n < MAX_STEPS);
	scratch_remove(from);
}

static void
test_erase_killed(void **state)
{
	const struct step step = { "killed", false, false };
	(void)state;
	erase_at_every_step(&step, stride(9));
}

static void
test_erase_power_cut(void **state)
{
	const struct step step = { "power cut", true, false };
	(void)state;
	erase_at_every_step(&step, stride(9));
}

static void
test_erase_failing_disk(void **state)
{
	const struct step step = { "failed", false, true };
	(void)state;
	erase_at_every_step(&step, stride(9));
}

/* --- killed while the index is made --- */

/* The child erases, and is shot once `until` stands in the shard's folder; or
 * it comes to its end before that is seen. */
static void
shoot(const char *path, const uint64_t ids[MESSAGES + 2], const char *until)
{
	char file[PATH_MAX];
	struct stat st;
	int status = 0;
	assert_ok(io_path(
	    file, "%s/families/mail/2026-05.1/%s", path, until));
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err err = { "" };
		struct erase_outcome done;
		const uint64_t wanted[] = { ids[VICTIM], ids[MESSAGES + 1] };
		struct store *s = open_store(path, NULL);
		enum res r = erase(s, wanted, 2, &err, &done);
		store_close(&s); /* its threads end before we do */
		_exit(r == RES_OK ? 0 : 1);
	}
	bool ended = false;
	while (!ended && stat(file, &st) != 0)
		ended = waitpid(pid, &status, WNOHANG) == pid;
	if (!ended) {
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_erase_shot(void **state)
{
	static const char *const files[] = { "erasures", "index.work.db",
		"index.new.db", "index.g2.db" };
	static const char *const strays[] = { "index.work.db",
		"index.new.db" };
	(void)state;
	char from[PATH_MAX], path[PATH_MAX], file[PATH_MAX];
	uint64_t ids[MESSAGES + 2];
	struct arena *a = arena_new(0);
	scratch_make(from);
	fill(from, ids);
	assert_ok(
	    io_path(file, "%s/families/mail/2026-05.1/index.g1.db", from));
	struct str index = test_read_file(a, file);
	assert_true(str_find(index, str_c(needles[1])) != SIZE_MAX);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		copy_store(from, path);
		shoot(path, ids, files[i]);
		/* as if it had got no further than to copy */
		for (size_t j = 0; j < 2 && is_pending(path); j++) {
			assert_ok(io_path(file, "%s/families/mail/2026-05.1/%s",
			    path, strays[j]));
			test_write_file(file, index);
		}
		judge_erase(path, files[i], false);
		for (size_t j = 0; j < sizeof strays / sizeof *strays; j++) {
			assert_ok(io_path(file, "%s/families/mail/2026-05.1/%s",
			    path, strays[j]));
			if (access(file, F_OK) == 0)
				fail_msg("%s: %s is left", files[i], strays[j]);
		}
		scratch_remove(path);
	}
	arena_free(&a);
	scratch_remove(from);
}

/* As the command does: an event of the backup, behind every intent. */
static void
write_event(void *context)
{
	const char *path = context;
	uint64_t id;
	const struct audit_event e = { .action = STR("backup"), .who = who };
	struct store *s = open_store(path, NULL);
	assert_ok(audit_write(s, &e, false, TEST_TIME, &id));
	store_close(&s);
}

/* A backup of a store that a crash left in the middle of an erasure: what is
 * made of it is as good as what becomes of the store. */
static void
test_erase_in_a_backup(void **state)
{
	(void)state;
	char from[PATH_MAX], path[PATH_MAX], copy[PATH_MAX], back[PATH_MAX],
	    what[64];
	uint64_t ids[MESSAGES + 2];
	bool came = true;
	scratch_make(from);
	fill(from, ids);
	const uint64_t wanted[] = { ids[VICTIM], ids[MESSAGES + 1] };
	for (unsigned n = 1; came && n < MAX_STEPS; n += stride(3)) {
		static struct fault_io f;
		struct err err = { "" };
		struct erase_outcome done;
		struct backup_counts counts;
		copy_store(from, path);
		scratch_make(copy);
		scratch_make(back);
		fault_init(&f, n);
		struct store *s = open_store(path, &f.io);
		f.cut_at = f.ops + n;
		enum res r = erase(s, wanted, 2, &err, &done);
		came = f.ops >= f.cut_at;
		fault_off(&f);
		store_close(&s);
		fault_done(&f);
		struct backup_options o = { .from = path, .to = copy,
			.before_audit = write_event, .context = path };
		if (backup_run(&o, &err, &counts) != RES_OK)
			fail_msg("%u: %s", n, err.text);
		o = (struct backup_options){ .from = copy, .to = back };
		if (backup_restore(&o, &err, &counts) != RES_OK)
			fail_msg("%u: %s", n, err.text);
		snprintf(what, sizeof what, "backup at %u", n);
		judge_erase(back, what, r == RES_OK);
		scratch_remove(path);
		scratch_remove(copy);
		scratch_remove(back);
	}
	assert_false(came);
	scratch_remove(from);
}

/* What an interrupted reindex has built holds the words too. */
static void
test_erase_while_building(void **state)
{
	(void)state;
	char path[PATH_MAX], old[PATH_MAX], building[PATH_MAX];
	uint64_t ids[MESSAGES + 2], erased;
	struct err err = { "" };
	struct erase_outcome done;
	struct archive_reader *r;
	struct arena *a = arena_new(0);
	scratch_make(path);
	fill(path, ids);
	assert_ok(io_path(old, "%s/families/mail/2026-05.1/index.g1.db", path));
	assert_ok(io_path(
	    building, "%s/families/mail/2026-05.1/building.db", path));
	test_write_file(building, test_read_file(a, old));
	struct store *s = open_store(path, NULL);
	assert_ok(erase(s, &ids[VICTIM], 1, &err, &done));
	assert_int_equal(done.frames, 2);
	store_close(&s);
	assert_false(victim_stands_somewhere(path));
	/* it goes on, and has nothing to bring back */
	assert_ok(archive_reader_open(path, &err, &r));
	assert_ok(archive_reindex(r, NULL, NULL, &err));
	archive_reader_close(&r);
	assert_false(victim_stands_somewhere(path));
	assert_int_equal(count_found(path, needles[1]), 0);
	assert_others_whole(path, "building");
	assert_verified(path, "building", &erased);
	assert_int_equal(erased, 2);
	arena_free(&a);
	scratch_remove(path);
}

/* Zeros that nobody wanted are damage. */
static void
test_zeros_without_intent(void **state)
{
	(void)state;
	char path[PATH_MAX], file[PATH_MAX];
	uint64_t ids[MESSAGES + 2];
	struct err err = { "" };
	struct verify_counts n;
	struct segment_reader *r;
	struct segment_frame f;
	const struct verify_options o = { .fault = say_fault,
		.context = (void *)(uintptr_t)"# as wanted" };
	scratch_make(path);
	fill(path, ids);
	assert_ok(io_path(file, "%s/families/mail/2026-05.1", path));
	assert_ok(segment_reader_open(file, NULL, &err, &r));
	assert_ok(segment_reader_find(r, VICTIM, &f));
	segment_reader_close(&r);
	assert_ok(io_path(file, "%s/families/mail/2026-05.1/segment", path));
	FILE *stream = fopen(file, "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream,
	    (long)(f.offset + FRAME_HEADER_BYTES), SEEK_SET), 0);
	for (uint64_t i = FRAME_HEADER_BYTES; i < f.header.total; i++)
		fputc(0, stream);
	fclose(stream);
	assert_ok(verify_store(path, &o, &err, &n));
	assert_true(n.faults > 0);
	scratch_remove(path);
}

/* --- expiring --- */

/* Two months of imported mail, the second still to be kept. */
static void
fill_months(const char *path)
{
	char text[512];
	uint64_t id;
	struct holds h;
	struct hold hold = { .name = STR("case"), .query = STR("secret2"),
		.created_us = TEST_TIME };
	struct store *s = open_store(path, NULL);
	for (int i = 0; i < MESSAGES; i++)
		assert_ok(test_submit(s, STORE_IMPORT_FAMILY,
		    TEST_TIME - (i < MESSAGES / 2 ? 3 : 1) * MONTH_US,
		    STR_EMPTY, text_of(text, i), &id));
	store_close(&s);
	h = (struct holds){ 1, &hold };
	assert_ok(holds_write(&archive_io_system, path, &h));
}

static enum res
expire(struct store *s, bool plan, struct arena *a,
    struct expire_item **out, size_t *out_count)
{
	static const struct expire_rule rule = { STORE_IMPORT_FAMILY,
		40 * 86400 };
	struct err err = { "" };
	const struct expire_request rq = { .rules = &rule, .rule_count = 1,
		.plan = plan, .now_us = TEST_TIME, .who = who };
	return archive_expire(s, &rq, a, &err, out, out_count);
}

static void
expire_with(const struct step *step, const char *from, unsigned n,
    bool *out_came)
{
	static struct fault_io f;
	char path[PATH_MAX], what[64];
	uint64_t erased;
	struct expire_item *items;
	size_t count;
	struct arena *a = arena_new(0);
	snprintf(what, sizeof what, "expire %s at %u", step->name, n);
	copy_store(from, path);
	fault_init(&f, n);
	struct store *s = open_store(path, &f.io);
	f.cut_at = f.ops + n;
	enum res r = expire(s, false, a, &items, &count);
	(void)r; /* whatever it thinks */
	*out_came = f.ops >= f.cut_at;
	fault_off(&f);
	store_close(&s);
	if (step->power)
		fault_cut(&f);
	fault_done(&f);
	/* the next run comes to the end */
	s = open_store(path, NULL);
	if (count_found(path, "secret2") == 0)
		fail_msg("%s: what is held is lost", what);
	assert_ok(expire(s, false, a, &items, &count));
	assert_int_equal(expire(s, true, a, &items, &count), RES_OK);
	store_close(&s);
	assert_verified(path, what, &erased);
	assert_int_equal(erased, 0);
	size_t held = count_found(path, "secret2");
	if (held != 1)
		fail_msg("%s: what is held is there %zu times", what, held);
	assert_int_equal(count_found(path, "secret0"), 0);
	assert_int_equal(count_found(path, "secret1"), 0);
	for (int i = MESSAGES / 2; i < MESSAGES; i++) {
		char word[32];
		snprintf(word, sizeof word, "secret%d", i);
		assert_int_equal(count_found(path, word), 1);
	}
	arena_free(&a);
	scratch_remove(path);
}

static void
expire_at_every_step(const struct step *step)
{
	char from[PATH_MAX];
	bool came = true;
	unsigned n = 1;
	scratch_make(from);
	fill_months(from);
	for (; n < MAX_STEPS && came; n += stride(7))
		expire_with(step, from, n, &came);
	assert_true(n > 8 && n < MAX_STEPS);
	scratch_remove(from);
}

static void
test_expire_killed(void **state)
{
	const struct step step = { "killed", false, false };
	(void)state;
	expire_at_every_step(&step);
}

static void
test_expire_power_cut(void **state)
{
	const struct step step = { "power cut", true, false };
	(void)state;
	expire_at_every_step(&step);
}

/* The copy proves what the frame proved. */
static void
test_held_proof(void **state)
{
	(void)state;
	char path[PATH_MAX], dir[PATH_MAX];
	struct expire_item *items;
	size_t count;
	struct err err = { "" };
	struct segment_reader *r;
	struct segment_frame f;
	struct segment_content c;
	struct arena *a = arena_new(0);
	scratch_make(path);
	fill_months(path);
	struct store *s = open_store(path, NULL);
	assert_ok(expire(s, false, a, &items, &count));
	store_close(&s);
	assert_ok(io_path(dir, "%s/families/hold/2026-02.1", path));
	assert_ok(segment_reader_open(dir, NULL, &err, &r));
	assert_ok(segment_reader_find(r, 0, &f));
	assert_int_equal(f.header.type, FRAME_HELD);
	assert_ok(segment_reader_load(r, a, &f, &err, &c));
	struct str header = record_find(c.meta, HELD_HEADER);
	struct str salts = record_find(c.meta, HELD_SALTS);
	struct str root = record_find(c.meta, HELD_ROOT);
	struct str size = record_find(c.meta, HELD_SIZE);
	assert_int_equal(header.len, FRAME_HEADER_BYTES);
	assert_int_equal(salts.len, FRAME_BLOCKS * FRAME_SALT_BYTES);
	assert_int_equal(root.len, LEAF_HASH_BYTES);
	assert_str(record_find(c.meta, HELD_FAMILY), STORE_IMPORT_FAMILY);
	assert_str(record_find(c.meta, HELD_HOLD), "case");
	/* its leaf, from salts and plain bytes */
	uint8_t commitments[FRAME_BLOCKS][LEAF_HASH_BYTES] = { 0 };
	uint8_t leaf[LEAF_HASH_BYTES];
	struct frame_header old = { .type = (uint8_t)header.ptr[5],
		.number = get_le64((const uint8_t *)header.ptr + 8),
		.time_us = (int64_t)get_le64(
		    (const uint8_t *)header.ptr + 16) };
	struct shard_header shard = { .number = get_le32(
		(const uint8_t *)record_find(c.meta, HELD_SHARD).ptr) };
	memcpy(shard.store_uuid, record_find(c.meta, HELD_UUID).ptr, 16);
	assert_ok(leaf_commit(BLOCK_BODY,
	    (const uint8_t *)salts.ptr + BLOCK_BODY * FRAME_SALT_BYTES,
	    c.body.sha256, commitments[BLOCK_BODY]));
	assert_ok(leaf_hash(&shard, &old, commitments, leaf));
	assert_memory_equal(leaf, header.ptr + 72, LEAF_HASH_BYTES);
	/* and the way from there to the head of its shard */
	static struct merkle_path proof;
	struct record_reader records;
	unsigned tag;
	struct str value;
	proof.count = 0;
	assert_ok(record_open(c.meta, &records));
	while (record_next(&records, &tag, &value))
		if (tag == HELD_PATH)
			memcpy(proof.nodes[proof.count++].hash, value.ptr, 32);
	assert_ok(merkle_check_inclusion(&proof, old.number,
	    get_le64((const uint8_t *)size.ptr), leaf,
	    (const uint8_t *)root.ptr));
	segment_reader_close(&r);
	arena_free(&a);
	scratch_remove(path);
}

/* Verify names each held frame that does not prove what it says. */
static void
test_held_proof_damaged(void **state)
{
	static const enum held_tag tags[] = { HELD_UUID, HELD_SHARD,
		HELD_HEADER, HELD_SALTS, HELD_SIZE, HELD_ROOT, HELD_PATH };
	(void)state;
	char path[PATH_MAX], dir[PATH_MAX];
	struct expire_item *items;
	size_t count;
	struct err err = { "" };
	struct segment_reader *r;
	struct segment_frame f;
	struct segment_content c;
	struct arena *a = arena_new(0);
	struct buf body;
	uint64_t id;
	buf_init(&body, 1 << 20);
	scratch_make(path);
	fill_months(path);
	struct store *s = open_store(path, NULL);
	assert_ok(expire(s, false, a, &items, &count));
	assert_ok(io_path(dir, "%s/families/hold/2026-02.1", path));
	assert_ok(segment_reader_open(dir, NULL, &err, &r));
	assert_ok(segment_reader_find(r, 0, &f));
	assert_ok(segment_reader_load(r, a, &f, &err, &c));
	assert_ok(segment_reader_body(r, &f, &err, sink_buf(a, &body)));
	segment_reader_close(&r);
	for (size_t i = 0; i <= sizeof tags / sizeof tags[0]; i++) {
		struct str meta = arena_dup(a, c.meta);
		struct str b = arena_dup(a, buf_str(&body));
		bool is_body = i == sizeof tags / sizeof tags[0];
		struct str at = is_body ? b : record_find(meta, tags[i]);
		assert_true(at.len > 0);
		/* of a header, the leaf: its tag is of a nonce that is gone */
		size_t last = !is_body && tags[i] == HELD_HEADER ? 72 : at.len - 1;
		((char *)(uintptr_t)at.ptr)[last] ^= 1;
		assert_ok(test_submit_as(s, FRAME_HELD, STORE_HOLD_FAMILY,
		    f.header.time_us, meta, b, &id));
		store_close(&s);
		uint64_t faults = verify_faults(path, "held: ");
		if (faults != i + 1)
			fail_msg("change %zu: %llu found", i,
			    (unsigned long long)faults);
		s = open_store(path, NULL);
	}
	store_close(&s);
	buf_done(&body);
	arena_free(&a);
	scratch_remove(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_erase),
		cmocka_unit_test(test_erase_killed),
		cmocka_unit_test(test_erase_power_cut),
		cmocka_unit_test(test_erase_failing_disk),
		cmocka_unit_test(test_erase_shot),
		cmocka_unit_test(test_erase_in_a_backup),
		cmocka_unit_test(test_erase_while_building),
		cmocka_unit_test(test_zeros_without_intent),
		cmocka_unit_test(test_expire_killed),
		cmocka_unit_test(test_expire_power_cut),
		cmocka_unit_test(test_held_proof),
		cmocka_unit_test(test_held_proof_damaged),
	};
	return cmocka_run_group_tests_name(
	    "archive/keeping", tests, NULL, NULL);
}

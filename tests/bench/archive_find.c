#include "archive_find.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/index/applier.h"
#include "archive/index/index.h"
#include "archive/search/search.h"
#include "archive/store/segment_reader.h"
#include "archive/store/store_dir.h"
#include "archive_forget.h"
#include "archive_load.h"
#include "base/clock.h"
#include "bench.h"
#include "mail/text.h"

#define CHUNK   4000 /* messages made at a time, a multiple of the clients */
#define CLIENTS 8
#define TIMES   201 /* each search, for its median */
#define CALLS   15  /* of the command */
#define NOW_S   1780000000
#define COLUMNS 8

extern char **environ;

static void
need(bool good, const struct err *err, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, err != NULL ? err->text : "failed");
	abort();
}

/* --- filling --- */

/* By calls: what the kernel says of the disk (write_bytes) counts a folio of
 * megabytes for each byte of it that changes. */
static uint64_t
written_by_us(void)
{
	char line[128];
	unsigned long long n = 0;
	FILE *f = fopen("/proc/self/io", "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "wchar: ", 7) == 0)
			n = strtoull(line + 7, NULL, 10);
	if (f != NULL)
		fclose(f);
	return n;
}

struct filled {
	uint64_t raw, stored;
};

static struct filled
fill(const char *path, const struct mail_maker *m, unsigned messages,
    uint64_t roll_bytes, bool tell)
{
	struct store *s;
	struct err err = { "" };
	struct store_counters c;
	struct filled f = { 0 };
	const struct store_options o = { .path = path,
		.roll_bytes = roll_bytes,
		.clock = { (int64_t)NOW_S * 1000000 } };
	need(store_open(&o, &err, &s) == RES_OK, &err, path);
	uint64_t before = written_by_us();
	double cpu = 0, seconds = 0;
	for (unsigned done = 0; done < messages;) {
		unsigned n = messages - done < CHUNK ? messages - done : CHUNK;
		const struct load l = { "", MAIL_SMALL, CLIENTS, n / CLIENTS };
		struct load_result r;
		load_run(s, m, &l, done, &r);
		done += n;
		f.raw += r.raw_bytes;
		cpu += r.cpu_seconds;
		seconds += r.seconds;
	}
	int64_t start = clock_mono_us();
	do {
		usleep(1000);
		store_counters(s, &c);
	} while (c.unapplied > 0);
	double behind = (double)(clock_mono_us() - start) / 1e6;
	f.stored = c.bytes_stored;
	store_close(&s);
	if (tell)
		printf("%u messages in %.1f s, with their index: %.1f us CPU "
		    "each, applied %.2f s behind the last, %.2f bytes written "
		    "a byte archived\n", messages, seconds,
		    cpu / messages * 1e6, behind,
		    (double)(written_by_us() - before) / (double)f.raw);
	return f;
}

/* --- the index beside bare FTS5 --- */

static void
first_shard(const char *store, char out[PATH_MAX])
{
	struct shard_entry *e;
	size_t count;
	struct arena *a = arena_new(0);
	struct err err = { "" };
	need(store_dir_shards(store, "mail", a, &err, &e, &count) == RES_OK &&
	    count > 0, &err, store);
	snprintf(out, PATH_MAX, "%s", e[0].dir);
	arena_free(&a);
}

/* Clock and CPU: the applier uses two threads, bare FTS5 one. */
struct cost {
	double seconds, cpu_seconds;
};

static struct cost
cost_now(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (struct cost){ (double)clock_mono_us() / 1e6,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6 };
}

static struct cost
cost_since(struct cost start)
{
	struct cost now = cost_now();
	return (struct cost){ now.seconds - start.seconds,
		now.cpu_seconds - start.cpu_seconds };
}

static struct cost
apply_again(const char *dir)
{
	struct segment_reader *r;
	struct segment_frame f;
	struct applier *a;
	struct err err = { "" };
	struct index_writer *w;
	struct applier_options o = { .dir = dir,
		.durable_bytes = SHARD_HEADER_BYTES };
	need(segment_reader_open(dir, NULL, &err, &r) == RES_OK, &err, dir);
	while (segment_reader_at(r, o.durable_bytes, &f) == RES_OK) {
		o.durable_bytes = segment_frame_end(&f);
		o.durable_frames = f.header.number + 1;
	}
	need(index_renew(dir, segment_reader_shard(r), &err, &w) == RES_OK,
	    &err, dir);
	index_close(&w, true);
	segment_reader_close(&r);
	struct cost start = cost_now();
	need(applier_start(&o, &err, &a) == RES_OK, &err, dir);
	while (applier_unapplied(a) > 0)
		usleep(5000);
	struct cost c = cost_since(start);
	applier_stop(&a);
	return c;
}

struct texts {
	struct buf all;
	uint32_t *lengths; /* COLUMNS a message */
	unsigned count;
};

static void
extract(const struct mail_maker *m, unsigned messages, struct texts *t)
{
	struct text_extract *x = text_extract_new();
	struct buf mail;
	buf_init(&mail, MAIL_MAX);
	buf_init(&t->all, (size_t)messages * MAIL_SMALL + 65536);
	t->count = messages;
	t->lengths = calloc((size_t)messages * COLUMNS, sizeof *t->lengths);
	need(x != NULL && t->lengths != NULL, NULL, "memory");
	for (unsigned i = 0; i < messages; i++) {
		struct record meta;
		mail_make(m, i, MAIL_SMALL, &mail);
		record_init(&meta, 4096);
		mail_meta(m, i, &meta);
		text_extract_reset(x);
		sink_push(text_extract_sink(x), mail.ptr, mail.len);
		need(sink_finish(text_extract_sink(x)) == RES_OK, NULL,
		    "extract");
		const struct text_doc *d = text_extract_doc(x);
		const struct str columns[COLUMNS] = { buf_str(&d->subject),
			buf_str(&d->body), buf_str(&d->from), buf_str(&d->to),
			buf_str(&d->cc), buf_str(&d->other),
			record_find(buf_str(&meta.buf), META_MAIL_FROM),
			record_find(buf_str(&meta.buf), META_RCPT) };
		for (int c = 0; c < COLUMNS; c++) {
			buf_add_str(&t->all, columns[c]);
			t->lengths[i * COLUMNS + c] = (uint32_t)columns[c].len;
		}
		record_done(&meta);
	}
	need(t->all.error == RES_OK, NULL, "texts");
	buf_done(&mail);
	text_extract_free(&x);
}

static struct cost
bare_fts5(const char *dir, const struct texts *t)
{
	char path[4200];
	sqlite3 *db;
	sqlite3_stmt *st;
	snprintf(path, sizeof path, "%s/bare.db", dir);
	need(sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_exec(db, "PRAGMA journal_mode = WAL;"
		"PRAGMA synchronous = NORMAL;"
		"PRAGMA wal_autocheckpoint = 4000;"
		"PRAGMA cache_size = -4000;"
		"CREATE VIRTUAL TABLE t USING fts5(a, b, c, d, e, f, g, h,"
		" content='')", NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "INSERT INTO t(rowid, a, b, c, d, e, f, g,"
		" h) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &st, NULL) ==
		SQLITE_OK, NULL, path);
	struct cost start = cost_now();
	const char *at = t->all.ptr;
	for (unsigned i = 0; i < t->count; i++) {
		if (i % 1000 == 0)
			sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
		sqlite3_bind_int64(st, 1, i + 1);
		for (int c = 0; c < COLUMNS; c++) {
			int n = (int)t->lengths[i * COLUMNS + c];
			sqlite3_bind_text(st, c + 2, at, n, SQLITE_STATIC);
			at += n;
		}
		need(sqlite3_step(st) == SQLITE_DONE, NULL, "insert");
		sqlite3_reset(st);
		if (i % 1000 == 999 || i + 1 == t->count)
			need(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) ==
			    SQLITE_OK, NULL, "commit");
	}
	struct cost c = cost_since(start);
	sqlite3_finalize(st);
	sqlite3_close(db);
	unlink(path);
	return c;
}

static void
measure_index(const char *dir, const char *shard, const struct texts *t)
{
	unsigned rounds = t->count > 20000 ? 1 : 3;
	double ratios[3], ours[3], cpu[3];
	for (unsigned i = 0; i < rounds; i++) {
		struct cost bare = bare_fts5(dir, t);
		struct cost c = apply_again(shard);
		ours[i] = c.seconds;
		ratios[i] = bare.seconds / c.seconds;
		cpu[i] = bare.cpu_seconds / c.cpu_seconds;
	}
	double ratio = load_median(ratios, rounds);
	printf("index %.0f messages/s, ratio to bare FTS5 %.2f, of their CPU "
	    "%.2f\n", t->count / load_median(ours, rounds), ratio,
	    load_median(cpu, rounds));
	bench_target("archive index to bare FTS5", ratio, 0.7, true);
}

/* --- on disk --- */

static double
table_bytes(const char *shard, const char *like)
{
	char path[PATH_MAX];
	unsigned generation;
	sqlite3 *db;
	sqlite3_stmt *st;
	need(index_newest(shard, path, sizeof path, &generation) == RES_OK &&
	    sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT sum(pgsize) FROM dbstat WHERE name"
		" LIKE ?", -1, &st, NULL) == SQLITE_OK, NULL, shard);
	sqlite3_bind_text(st, 1, like, -1, SQLITE_STATIC);
	need(sqlite3_step(st) == SQLITE_ROW, NULL, "dbstat");
	double bytes = (double)sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return bytes;
}

static void
measure_disk(const char *shard, const struct filled *f, const struct texts *t)
{
	double text = (double)t->all.len;
	double fts = table_bytes(shard, "post%");
	double rows = table_bytes(shard, "message") +
	    table_bytes(shard, "delivery") + table_bytes(shard, "state");
	printf("%u messages: raw %.0f bytes each, segment %.0f, extracted "
	    "text %.0f, FTS %.0f, rows %.0f\n", t->count,
	    (double)f->raw / t->count, (double)f->stored / t->count,
	    text / t->count, fts / t->count, rows / t->count);
	bench_target("archive segment to raw",
	    (double)f->stored / (double)f->raw, 0.30, false);
	bench_target("archive FTS to extracted text", fts / text, 0.75, false);
	bench_target("archive rows, bytes a message", rows / t->count, 150,
	    false);
}

/* --- searching --- */

struct query_row {
	const char *name, *text;
	double limit_ms;
};

static const struct query_row queries[] = {
	{ "first page", "", 0.3 },
	{ "rare term", MAIL_RARE, 0.2 },
	{ "common term", MAIL_COMMON, 0.5 },
	{ "AND", MAIL_COMMON " " MAIL_HALF, 0.5 },
	{ "OR", MAIL_COMMON " OR " MAIL_HALF, 0.5 },
	{ "NOT", MAIL_COMMON " -" MAIL_HALF, 0.5 },
	{ "phrase", "\"please let me know\"", 0 },
	{ "fact", "dmarc:pass", 0.5 },
};
#define QUERIES (sizeof queries / sizeof queries[0])

static size_t
search_once(struct archive_reader *r, const char *text, struct str cursor,
    size_t limit, bool snippets, struct buf *out_cursor, uint64_t *out_id)
{
	struct arena *a = arena_new(0);
	struct err err = { "" };
	struct query *q;
	struct search_hit *hits;
	struct search_coverage coverage;
	struct str next;
	size_t count;
	const struct search_options o = { .limit = limit,
		.cursor = cursor,
		.snippets = snippets };
	need(query_parse(a, str_c(text), NOW_S, &err, &q) == RES_OK &&
	    archive_search(r, a, q, &o, &err, &hits, &count, &next,
		&coverage) == RES_OK && coverage.offline == 0, &err, text);
	if (out_cursor != NULL) {
		buf_reset(out_cursor);
		buf_add_str(out_cursor, next);
	}
	if (out_id != NULL && count > 0)
		*out_id = hits[count / 2].id;
	arena_free(&a);
	return count;
}

static double
search_ms(struct archive_reader *r, const char *text, struct str cursor,
    bool snippets, size_t *out_count)
{
	double ms[TIMES];
	for (int i = 0; i < TIMES; i++) {
		int64_t start = clock_mono_us();
		*out_count = search_once(r, text, cursor, 50, snippets, NULL,
		    NULL);
		ms[i] = (double)(clock_mono_us() - start) / 1e3;
	}
	return load_median(ms, TIMES);
}

static double
get_ms(struct archive_reader *r, uint64_t id)
{
	double ms[TIMES];
	for (int i = 0; i < TIMES; i++) {
		struct arena *a = arena_new(0);
		struct archived m;
		struct buf body;
		struct err err = { "" };
		buf_init(&body, MAIL_MAX);
		int64_t start = clock_mono_us();
		need(archive_get(r, a, id, &err, &m) == RES_OK &&
		    archive_get_body(r, id, &err, sink_buf(a, &body)) ==
			RES_OK && body.len > 1000, &err, "get");
		ms[i] = (double)(clock_mono_us() - start) / 1e3;
		buf_done(&body);
		arena_free(&a);
	}
	return load_median(ms, TIMES);
}

/* Into out[0..QUERIES): the queries; then a deep page and one message, whose
 * id it returns. */
static uint64_t
measure_searches(const char *store, unsigned messages, double out[QUERIES + 2])
{
	struct archive_reader *r;
	struct err err = { "" };
	struct buf cursor;
	size_t count;
	uint64_t id = 0;
	buf_init(&cursor, 200);
	need(archive_reader_open(store, &err, &r) == RES_OK, &err, store);
	for (size_t i = 0; i < QUERIES; i++) {
		out[i] = search_ms(r, queries[i].text, STR_EMPTY, false,
		    &count);
		double with = search_ms(r, queries[i].text, STR_EMPTY, true,
		    &count);
		printf("  %-12s %4zu hits  %.3f ms  with snippets %.3f ms\n",
		    queries[i].name, count, out[i], with);
	}
	(void)search_once(r, "", STR_EMPTY, messages / 10 * 9, false, &cursor,
	    &id);
	out[QUERIES] = search_ms(r, "", buf_str(&cursor), false, &count);
	out[QUERIES + 1] = get_ms(r, id);
	printf("  page at depth %u %.3f ms, get one %.3f ms\n",
	    messages / 10 * 9, out[QUERIES], out[QUERIES + 1]);
	archive_reader_close(&r);
	buf_done(&cursor);
	return id;
}

/* --- the whole command --- */

static double
call_ms(const char *store)
{
	const char *hanaper = getenv("HANAPER");
	char *args[] = { (char *)(uintptr_t)"hanaper",
		(char *)(uintptr_t)"archive", (char *)(uintptr_t)"search",
		(char *)(uintptr_t)"--dir", (char *)(uintptr_t)store,
		(char *)(uintptr_t)MAIL_RARE, NULL };
	posix_spawn_file_actions_t actions;
	double ms[CALLS];
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
	posix_spawn_file_actions_adddup2(&actions, 1, 2);
	for (int i = 0; i < CALLS; i++) {
		pid_t pid;
		int status;
		int64_t start = clock_mono_us();
		need(posix_spawn(&pid, hanaper != NULL ? hanaper : "./hanaper",
			 &actions, NULL, args, environ) == 0 &&
		    waitpid(pid, &status, 0) == pid && status == 0, NULL,
		    "hanaper archive search");
		ms[i] = (double)(clock_mono_us() - start) / 1e3;
	}
	posix_spawn_file_actions_destroy(&actions);
	return load_median(ms, CALLS);
}

static void
seal(const char *store)
{
	struct archive_reader *r;
	struct err err = { "" };
	need(archive_reader_open(store, &err, &r) == RES_OK &&
	    archive_reindex(r, NULL, NULL, &err) == RES_OK, &err, store);
	archive_reader_close(&r);
}

void
find_measure(const char *dir, const struct mail_maker *m, unsigned messages,
    unsigned shards)
{
	char store[PATH_MAX], shard[PATH_MAX];
	double one[QUERIES + 2], many[QUERIES + 2];
	struct texts t;
	snprintf(store, sizeof store, "%s/find", dir);
	struct filled f = fill(store, m, messages, 0, true);
	first_shard(store, shard);
	extract(m, messages, &t);
	measure_index(dir, shard, &t);
	seal(store);
	measure_disk(shard, &f, &t);
	printf("one shard of %u messages:\n", messages);
	uint64_t id = measure_searches(store, messages, one);
	for (size_t i = 0; i < QUERIES; i++)
		if (queries[i].limit_ms > 0)
			bench_target(queries[i].name, one[i],
			    queries[i].limit_ms, false);
	bench_target("page at depth", one[QUERIES], 0.3, false);
	bench_target("get one by id", one[QUERIES + 1], 0.12, false);
	double call = call_ms(store);
	printf("  hanaper archive search %.2f ms\n", call);
	bench_target("whole command, ms", call, 10.3, false);
	buf_done(&t.all);
	free(t.lengths);
	if (shards < 2) {
		forget_measure(store, id, (int64_t)NOW_S * 1000000);
		return;
	}
	snprintf(store, sizeof store, "%s/many", dir);
	(void)fill(store, m, messages * shards, f.stored, false);
	seal(store);
	printf("%u shards of %u messages:\n", shards, messages);
	id = measure_searches(store, messages, many);
	double worst = 0;
	for (size_t i = 0; i < QUERIES; i++)
		if (queries[i].limit_ms > 0 &&
		    many[i] / queries[i].limit_ms > worst)
			worst = many[i] / queries[i].limit_ms;
	bench_target("in many shards, to the targets", worst, 2, false);
	call = call_ms(store);
	printf("  hanaper archive search %.2f ms\n", call);
	bench_target("whole command in many shards, ms", call,
	    10 + 0.3 * shards, false);
	forget_measure(store, id, (int64_t)NOW_S * 1000000);
}

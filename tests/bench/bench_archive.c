/* make bench BENCH=archive: the archive beside what the disk and bare FTS5
 * can do, in turn on the same machine.
 *
 *	BENCH_MESSAGES  messages the index is measured with (5,000; a multiple
 *	                of 1,000; 100,000 for the real figures)
 *	BENCH_SHARDS    as many again in so many shards (4; 10)
 *	BENCH_LARGE     bytes of the one large message (256M; 1G)
 *	TMPDIR          where the stores are made: on the disk to be measured
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_find.h"
#include "archive_load.h"
#include "base/clock.h"
#include "bench.h"

#define ROUNDS 5

static const struct load loads[] = {
	{ "archive 2.1 KB, 1 client", MAIL_SMALL, 1, 250 },
	{ "archive 2.1 KB, 8 clients", MAIL_SMALL, 8, 150 },
	{ "archive 2.1 KB, 32 clients", MAIL_SMALL, 32, 80 },
	{ "archive 205 KB, 8 clients", MAIL_LARGE, 8, 25 },
};

static unsigned long long
setting(const char *name, unsigned long long normal)
{
	const char *text = getenv(name);
	return text != NULL ? strtoull(text, NULL, 10) : normal;
}

static struct store *
open_store(const char *dir, bool without_index)
{
	struct store *s;
	struct err err = { "" };
	const struct store_options o = { .path = dir,
		.clock = { (int64_t)1780000000 * 1000000 },
		.without_index = without_index };
	if (store_open(&o, &err, &s) != RES_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	return s;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
remove_all(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Ratio to the bare appending and syncing of as many bytes in as many
 * groups. */
static void
measure_ingest(struct store *s, const char *dir, const struct mail_maker *m,
    const struct load *l, unsigned long long *next)
{
	double ratios[ROUNDS], rates[ROUNDS], cpu = 0, raw = 0;
	double groups = 0, stored = 0;
	unsigned all = l->clients * l->each;
	for (int round = 0; round < ROUNDS; round++) {
		struct store_counters a, b;
		struct load_result r;
		store_counters(s, &a);
		load_run(s, m, l, *next, &r);
		*next += all;
		store_counters(s, &b);
		double limit = load_bare(dir, b.bytes_stored - a.bytes_stored,
		    b.groups - a.groups);
		ratios[round] = limit / r.seconds;
		rates[round] = all / r.seconds;
		groups += (double)(b.groups - a.groups);
		stored += (double)(b.bytes_stored - a.bytes_stored);
		cpu += r.cpu_seconds;
		raw += (double)r.raw_bytes;
	}
	double ratio = load_median(ratios, ROUNDS);
	printf("%-28s %8.0f /s %5.1f a group  %.2f stored/raw  %7.1f us CPU  "
	    "ratio %.2f\n", l->name, load_median(rates, ROUNDS),
	    (double)all * ROUNDS / groups, stored / raw,
	    cpu / all / ROUNDS * 1e6, ratio);
	bench_target(l->name, ratio, 0.7, true);
}

/* The slowest hundredth while the applier is at work, to that of clients
 * that share bare syncs. */
static void
measure_waiting(const char *dir, const struct mail_maker *m)
{
	const struct load l = { "", MAIL_SMALL, 8, 500 };
	char path[4200];
	double ratios[ROUNDS], ours[ROUNDS], bare[ROUNDS];
	snprintf(path, sizeof path, "%s/waiting", dir);
	struct store *s = open_store(path, false);
	struct load_result r;
	load_run(s, m, &l, 0, &r);
	for (int i = 0; i < ROUNDS; i++) {
		load_run(s, m, &l, (unsigned long long)(i + 1) * 4000, &r);
		ours[i] = r.p99_us;
		bare[i] = load_bare_clients(dir, l.clients, l.each, 700);
		ratios[i] = ours[i] / bare[i];
	}
	store_close(&s);
	remove_all(path);
	double ratio = load_median(ratios, ROUNDS);
	printf("99th percentile of an acknowledgement while indexing %.0f us, "
	    "bare %.0f us, ratio %.2f\n", load_median(ours, ROUNDS),
	    load_median(bare, ROUNDS), ratio);
	bench_target("archive 99th percentile, 8 clients", ratio, 3, false);
}

/* One message of many parts of text and attachments. */
static void
measure_large(const char *dir, const struct mail_maker *m,
    unsigned long long bytes)
{
	char path[4200];
	struct buf one;
	struct arena *a = arena_new(0);
	uint64_t id;
	snprintf(path, sizeof path, "%s/large", dir);
	struct store *s = open_store(path, false);
	struct spool *sp = spool_new(a, s);
	buf_init(&one, MAIL_MAX);
	mail_make(m, 1, MAIL_LARGE, &one);
	long before = bench_current_kib();
	int64_t start = clock_mono_us();
	bench_reset_peak();
	for (unsigned long long sent = 0; sent < bytes; sent += one.len)
		sink_push(spool_sink(sp), one.ptr, one.len);
	const struct store_message message = { .family = "mail", .body = sp,
		.time_us = (int64_t)1780000000 * 1000000 };
	if (sink_finish(spool_sink(sp)) != RES_OK ||
	    store_submit(s, &message, &id) != RES_OK)
		abort();
	double seconds = (double)(clock_mono_us() - start) / 1e6;
	arena_free(&a);
	store_close(&s); /* and index it */
	long grown = bench_peak_kib() - before;
	printf("one message of %llu MB: %.2f s, %ld KiB of memory with its "
	    "index\n", bytes >> 20, seconds, grown);
	bench_target("archive memory of a huge message, MiB",
	    (double)grown / 1024, 32, false);
	buf_done(&one);
	remove_all(path);
}

int
main(void)
{
	char dir[4096], path[4200];
	const char *tmp = getenv("TMPDIR");
	unsigned long long next = 0;
	unsigned long long messages = setting("BENCH_MESSAGES", 5000);
	if (!bench_wanted("archive"))
		return 0;
	snprintf(dir, sizeof dir, "%.4000s/hanaper-bench-XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	struct mail_maker *m = mail_maker_new(messages);
	if (m == NULL || mkdtemp(dir) == NULL)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	measure_large(dir, m, setting("BENCH_LARGE", 256 << 20));
	snprintf(path, sizeof path, "%s/ingest", dir);
	struct store *s = open_store(path, true);
	for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
		measure_ingest(s, dir, m, &loads[i], &next);
	store_close(&s);
	remove_all(path);
	measure_waiting(dir, m);
	find_measure(dir, m, (unsigned)messages,
	    (unsigned)setting("BENCH_SHARDS", 4));
	mail_maker_free(&m);
	remove_all(dir);
	return bench_finish() > 0;
}

#include "archive_forget.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "archive/keeping/erase.h"
#include "archive/keeping/expire.h"
#include "base/clock.h"
#include "bench.h"

#define YEAR_US ((int64_t)365 * 86400 * 1000000)

static void
need(enum res r, const struct err *err, const char *what)
{
	if (r == RES_OK)
		return;
	fprintf(stderr, "%s: %s\n", what,
	    err->text[0] != '\0' ? err->text : res_text(r));
	abort();
}

static double disk_bytes;

static int
add_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)type;
	(void)ftw;
	disk_bytes += (double)st->st_blocks * 512;
	return 0;
}

static double
disk_mib(const char *path)
{
	disk_bytes = 0;
	nftw(path, add_file, 16, FTW_PHYS);
	return disk_bytes / 1048576;
}

static double
seconds_since(int64_t start_us)
{
	return (double)(clock_mono_us() - start_us) / 1e6;
}

static void
erase_one(struct store *s, uint64_t id)
{
	struct err err = { "" };
	struct erase_outcome outcome;
	const struct erase_request rq = { .ids = &id, .count = 1,
		.reason = STR("bench"), .who = { 0, STR("bench") } };
	int64_t start = clock_mono_us();
	need(archive_erase(s, &rq, &err, &outcome), &err, "erase");
	printf("erase of one message, its terms gone from the index: %.2f s\n",
	    seconds_since(start));
}

static void
expire_all(struct store *s, int64_t now_us)
{
	static const struct expire_rule rule = { "mail", 86400 };
	const struct expire_request rq = { .rules = &rule, .rule_count = 1,
		.now_us = now_us, .who = { 0, STR("bench") } };
	struct err err = { "" };
	struct expire_item *items;
	size_t count, gone = 0;
	struct arena *a = arena_new(0);
	int64_t start = clock_mono_us();
	need(archive_expire(s, &rq, a, &err, &items, &count), &err, "expire");
	double seconds = seconds_since(start);
	for (size_t i = 0; i < count; i++)
		gone += items[i].fate == EXPIRE_GONE;
	arena_free(&a);
	printf("expire of all %zu shards: %.3f s\n", gone, seconds);
	bench_target("expire, shards left", (double)(count - gone), 0, false);
	bench_target("expire, seconds", seconds, 0.1, false);
}

void
forget_measure(const char *path, uint64_t id, int64_t time_us)
{
	struct store *s;
	struct err err = { "" };
	const struct store_options o = { .path = path,
		.on_demand = true,
		.clock = { time_us + YEAR_US } };
	need(store_open(&o, &err, &s), &err, path);
	erase_one(s, id);
	expire_all(s, time_us + YEAR_US);
	store_close(&s);
	double left = disk_mib(path);
	printf("disk left: %.2f MiB\n", left);
	bench_target("expire, MiB left", left, 1, false);
}

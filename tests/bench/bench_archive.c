/* make bench: durable ingest beside the bare appending and syncing of as many
 * bytes in as many groups, in turn on the same disk. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/store.h"
#include "base/clock.h"
#include "bench.h"

#define ROUNDS 5

static const struct load {
	const char *name;
	size_t bytes;
	unsigned clients, each; /* messages a client sends in a round */
} loads[] = {
	{ "archive 2.1 KB, 1 client", 2100, 1, 200 },
	{ "archive 2.1 KB, 8 clients", 2100, 8, 100 },
	{ "archive 2.1 KB, 32 clients", 2100, 32, 60 },
	{ "archive 205 KB, 8 clients", 205000, 8, 12 },
};

struct client {
	struct store *store;
	const struct load *load;
	unsigned long long first;
	bool failed;
	pthread_t thread;
};

/* Words, and for larger mail lines that look like base64. */
static void
make_mail(char *out, size_t len, unsigned long long number)
{
	static const char *const words[] = { "please", "the", "report", "and",
		"meeting", "for", "tomorrow", "invoice", "attached", "see",
		"regards", "with", "customer", "order", "we", "thank" };
	uint64_t x = number + 88172645463325252u;
	size_t at = (size_t)snprintf(out, len,
	    "Subject: message %llu\r\nFrom: a@example.org\r\n\r\n", number);
	while (at < len) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		if (at > 4000) {
			out[at++] = (char)('A' + (x >> 58));
			continue;
		}
		const char *w = words[x >> 60];
		size_t n = strlen(w);
		for (size_t i = 0; i < n && at < len; i++)
			out[at++] = w[i];
		if (at < len)
			out[at++] = (x >> 40) % 12 == 0 ? '\n' : ' ';
	}
}

static void *
send_all(void *arg)
{
	struct client *c = arg;
	char *text = malloc(c->load->bytes);
	for (unsigned i = 0; i < c->load->each && text != NULL; i++) {
		struct arena *a = arena_new(0);
		struct spool *sp = spool_new(a, c->store);
		uint64_t id;
		make_mail(text, c->load->bytes, c->first + i);
		sink_push(spool_sink(sp), text, c->load->bytes);
		const struct store_message m = { .family = "mail",
			.time_us = 1780000000000000, .body = sp,
			.meta = STR("\1\3\0\15\0\0\0a@example.org") };
		if (sink_finish(spool_sink(sp)) != RES_OK ||
		    store_submit(c->store, &m, &id) != RES_OK)
			c->failed = true;
		arena_free(&a);
	}
	free(text);
	return NULL;
}

static double
ingest(struct store *s, const struct load *l, unsigned long long first)
{
	struct client clients[32];
	int64_t start = clock_mono_us();
	for (unsigned i = 0; i < l->clients; i++) {
		clients[i] = (struct client){ .store = s, .load = l,
			.first = first + (unsigned long long)i * l->each };
		if (pthread_create(&clients[i].thread, NULL, send_all,
			&clients[i]) != 0)
			abort();
	}
	for (unsigned i = 0; i < l->clients; i++) {
		pthread_join(clients[i].thread, NULL);
		if (clients[i].failed)
			abort();
	}
	return (double)(clock_mono_us() - start) / 1e6;
}

/* `bytes` in `groups` equal parts, each followed by a sync. */
static double
bare(const char *dir, uint64_t bytes, uint64_t groups)
{
	char path[4200];
	size_t part = (size_t)(bytes / groups);
	char *data = calloc(1, part);
	snprintf(path, sizeof path, "%s/bare", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (data == NULL || fd < 0 || fallocate(fd, 0, 0, 64 << 20) < 0)
		abort();
	fsync(fd);
	int64_t start = clock_mono_us();
	for (uint64_t i = 0; i < groups; i++)
		if (pwrite(fd, data, part, (off_t)(i * part)) !=
			(ssize_t)part || fdatasync(fd) < 0)
			abort();
	double s = (double)(clock_mono_us() - start) / 1e6;
	close(fd);
	unlink(path);
	free(data);
	return s;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void
measure(struct store *s, const char *dir, const struct load *l)
{
	static unsigned long long next;
	double ratios[ROUNDS], rates[ROUNDS], groups = 0, stored = 0;
	unsigned all = l->clients * l->each;
	for (int round = 0; round < ROUNDS; round++) {
		struct store_counters a, b;
		store_counters(s, &a);
		double ours = ingest(s, l, next);
		next += all;
		store_counters(s, &b);
		double limit = bare(dir, b.bytes_stored - a.bytes_stored,
		    b.groups - a.groups);
		ratios[round] = limit / ours;
		rates[round] = all / ours;
		groups += (double)(b.groups - a.groups) / ROUNDS;
		stored += (double)(b.bytes_stored - a.bytes_stored) / ROUNDS;
	}
	qsort(ratios, ROUNDS, sizeof *ratios, by_value);
	qsort(rates, ROUNDS, sizeof *rates, by_value);
	printf("%-28s %8.0f /s  %5.1f a group  %.2f stored/raw  ratio %.2f\n",
	    l->name, rates[ROUNDS / 2], all / groups,
	    stored / ((double)all * (double)l->bytes), ratios[ROUNDS / 2]);
	bench_target(l->name, ratios[ROUNDS / 2], 0.7, true);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int
main(void)
{
	char dir[4096];
	struct store *s;
	struct err err = { "" };
	const char *tmp = getenv("TMPDIR");
	if (!bench_wanted("archive"))
		return 0;
	snprintf(dir, sizeof dir, "%.4000s/hanaper-bench-XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL)
		return 1;
	const struct store_options o = { .path = dir,
		.clock = { 1780000000000000 }, .without_index = true };
	if (store_open(&o, &err, &s) != RES_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
		measure(s, dir, &loads[i]);
	store_close(&s);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return bench_finish() > 0;
}

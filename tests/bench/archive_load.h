/* Loads on a store, and what the same bytes cost without one. Mail is made
 * before the clock starts. */
#ifndef TESTS_BENCH_ARCHIVE_LOAD_H
#define TESTS_BENCH_ARCHIVE_LOAD_H

#include "archive/store/store.h"
#include "mail.h"

#define LOAD_MAX_CLIENTS 32

struct load {
	const char *name;
	size_t bytes;
	unsigned clients, each; /* messages a client sends */
};

struct load_result {
	double seconds, cpu_seconds; /* of the whole process */
	double p99_us;               /* of an acknowledgement */
	uint64_t raw_bytes;
};

/* Message numbers from `first` on. Aborts when one is refused. */
void load_run(struct store *s, const struct mail_maker *m,
    const struct load *l, unsigned long long first, struct load_result *out);

/* `bytes` in `groups` equal parts, each followed by fdatasync: seconds. */
double load_bare(const char *dir, uint64_t bytes, uint64_t groups);

/* As many clients that hand `each` parts of `bytes` bytes to one thread,
 * which appends what is queued, syncs once and wakes them: the 99th
 * percentile of their waiting, µs. */
double load_bare_clients(
    const char *dir, unsigned clients, unsigned each, size_t bytes);

double load_median(double *values, size_t count);
double load_percentile(double *values, size_t count, double part);

#endif

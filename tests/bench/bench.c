#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALIBRATE_NS 30e6
#define MAX_TARGETS  64
#define MAX_WORKS    16

static struct {
	const char *name;
	double measured, target;
	bool at_least;
} targets[MAX_TARGETS];
static size_t target_count;

static double
now_ns(const struct bench_work *w)
{
	struct timespec ts;
	clock_gettime(
	    w->cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double
time_runs(struct bench_work *w, long runs)
{
	double start = now_ns(w);
	for (long i = 0; i < runs; i++)
		w->run(w->context);
	return (now_ns(w) - start) / (double)runs;
}

static long
calibrate(struct bench_work *w)
{
	long runs = 1;
	for (;;) {
		double ns = time_runs(w, runs);
		if (ns * (double)runs >= CALIBRATE_NS / 4)
			return (long)(CALIBRATE_NS / ns) + 1;
		runs *= 4;
	}
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

double
bench_ratio(const struct bench_work *limit, const struct bench_work *w)
{
	double ratios[BENCH_ROUNDS];
	for (int i = 0; i < BENCH_ROUNDS; i++)
		ratios[i] = limit->rounds[i] / w->rounds[i];
	qsort(ratios, BENCH_ROUNDS, sizeof ratios[0], by_value);
	return ratios[BENCH_ROUNDS / 2];
}

void
bench_run(const char *title, struct bench_work *works, size_t count)
{
	long runs[MAX_WORKS];
	if (count > MAX_WORKS)
		count = MAX_WORKS;
	for (size_t i = 0; i < count; i++)
		runs[i] = calibrate(&works[i]);
	for (int round = 0; round < BENCH_ROUNDS; round++)
		for (size_t i = 0; i < count; i++)
			works[i].rounds[round] = time_runs(&works[i], runs[i]);
	printf("\n%s\n%-34s %12s %12s %12s %8s\n", title, "work",
	    "median us", "low", "high", "ratio");
	for (size_t i = 0; i < count; i++) {
		double sorted[BENCH_ROUNDS];
		memcpy(sorted, works[i].rounds, sizeof sorted);
		qsort(sorted, BENCH_ROUNDS, sizeof sorted[0], by_value);
		works[i].median_ns = sorted[BENCH_ROUNDS / 2];
		works[i].low_ns = sorted[0];
		works[i].high_ns = sorted[BENCH_ROUNDS - 1];
		printf("%-34s %12.2f %12.2f %12.2f %8.3f\n", works[i].name,
		    works[i].median_ns / 1e3, works[i].low_ns / 1e3,
		    works[i].high_ns / 1e3, bench_ratio(&works[0], &works[i]));
	}
	fflush(stdout);
}

void
bench_target(const char *name, double measured, double target, bool at_least)
{
	if (target_count == MAX_TARGETS)
		return;
	targets[target_count].name = name;
	targets[target_count].measured = measured;
	targets[target_count].target = target;
	targets[target_count++].at_least = at_least;
}

int
bench_finish(void)
{
	int missed = 0;
	putchar('\n');
	for (size_t i = 0; i < target_count; i++) {
		bool ok = targets[i].at_least ?
		    targets[i].measured >= targets[i].target :
		    targets[i].measured <= targets[i].target;
		missed += !ok;
		printf("%s %s %.3f %s%.3f\n", ok ? "ok" : "short",
		    targets[i].name, targets[i].measured,
		    targets[i].at_least ? ">=" : "<=", targets[i].target);
	}
	return missed;
}

bool
bench_wanted(const char *part)
{
	const char *only = getenv("BENCH");
	return only == NULL || only[0] == '\0' || strcmp(only, part) == 0;
}

static long
status_kib(const char *name)
{
	char line[256];
	long kib = 0;
	size_t len = strlen(name);
	FILE *f = fopen("/proc/self/status", "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, len) == 0)
			kib = strtol(line + len, NULL, 10);
	if (f != NULL)
		fclose(f);
	return kib;
}

long
bench_peak_kib(void)
{
	return status_kib("VmHWM:");
}

long
bench_current_kib(void)
{
	return status_kib("VmRSS:");
}

void
bench_reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");
	if (f == NULL)
		return;
	fputs("5", f);
	fclose(f);
}

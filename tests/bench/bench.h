/* Side by side in one run: each piece of work is calibrated, then all of a
 * group run in turn, several rounds; what counts is the ratio of medians. A
 * table goes to stdout, and at the end one line for each target:
 *
 *	ok|short NAME MEASURED TARGET
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_ROUNDS 9

struct bench_work {
	const char *name;
	void (*run)(void *context); /* once */
	void *context;
	bool cpu; /* count this thread's CPU time, not the clock's */
	/* filled by bench_run */
	double median_ns, low_ns, high_ns; /* per run */
	double rounds[BENCH_ROUNDS];
};

/* Run all in turn; prints a row each, with the ratio to the first one. */
void bench_run(const char *title, struct bench_work *works, size_t count);

/* How many times as fast as `limit` is `w`: the median of the rounds' own
 * ratios, so that a slow moment of the machine weighs on both. */
double bench_ratio(const struct bench_work *limit, const struct bench_work *w);

/* Note a target; `at_least` false: the measured value must not exceed it. */
void bench_target(
    const char *name, double measured, double target, bool at_least);
/* Print the notes; the number of those that fell short. */
int bench_finish(void);

/* Whether this part was asked for: BENCH in the environment, or all. */
bool bench_wanted(const char *part);

/* Peak resident memory of this process in KiB, since the start or since
 * bench_reset_peak; and the present one. */
long bench_peak_kib(void);
long bench_current_kib(void);
void bench_reset_peak(void);

#endif

#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum res
thread_start(pthread_t *out, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(out, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed == 0 ? RES_OK : RES_NOMEM;
}

void
thread_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(c, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool
thread_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_us)
{
	const struct timespec until = { until_us / 1000000,
		until_us % 1000000 * 1000 };
	return pthread_cond_timedwait(c, m, &until) != ETIMEDOUT;
}

/* What every thread of ours begins and waits with. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/res.h"

/* With all signals blocked: they are for the process's first thread.
 * RES_NOMEM: the system gives no more threads. */
HN_CHECK enum res thread_start(
    pthread_t *out, void *(*run)(void *), void *arg);

/* Its waits are by clock_mono_us. pthread_cond_destroy ends it. */
void thread_cond_init(pthread_cond_t *c);
/* pthread_cond_timedwait of such a one. False: it is `until_us` now. */
bool thread_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t until_us);

#endif

#include "base/thread.h"

#include <signal.h>

#include "base/clock.h"
#include "hn_test.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool said;

static void *
say(void *arg)
{
	sigset_t *mine = arg;
	pthread_sigmask(SIG_SETMASK, NULL, mine);
	pthread_mutex_lock(&lock);
	said = true;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void
begins_without_signals(void **state)
{
	pthread_t thread;
	sigset_t theirs, before, after;
	bool late = false;
	(void)state;
	thread_cond_init(&changed);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_false(sigismember(&before, SIGTERM));
	assert_ok(thread_start(&thread, say, &theirs));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_false(sigismember(&after, SIGTERM));
	int64_t until = clock_mono_us() + 20000000;
	pthread_mutex_lock(&lock);
	while (!said && !late)
		late = !thread_wait(&changed, &lock, until);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	assert_true(said);
	assert_false(late);
	assert_true(sigismember(&theirs, SIGTERM));
	assert_true(sigismember(&theirs, SIGHUP));
	pthread_cond_destroy(&changed);
}

static void
waits_until(void **state)
{
	(void)state;
	thread_cond_init(&changed);
	int64_t until = clock_mono_us() + 2000;
	pthread_mutex_lock(&lock);
	while (thread_wait(&changed, &lock, until))
		;
	assert_true(clock_mono_us() >= until);
	assert_false(thread_wait(&changed, &lock, 0)); /* long ago */
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&changed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_without_signals),
		cmocka_unit_test(waits_until),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

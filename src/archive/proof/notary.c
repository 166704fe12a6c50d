#include "archive/proof/notary.h"

#include <stdlib.h>

#include "archive/store/store.h"
#include "base/clock.h"
#include "base/thread.h"

struct notary {
	struct store *store;
	int64_t every_us;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards stop */
	pthread_cond_t changed;
	bool stop;
};

static void *
notary_main(void *arg)
{
	struct notary *n = arg;
	bool last = false;
	pthread_mutex_lock(&n->mutex);
	while (!last) {
		int64_t at = clock_mono_us() + n->every_us;
		bool due = false;
		while (!n->stop && !due)
			due = !thread_wait(&n->changed, &n->mutex, at);
		last = n->stop; /* what came meanwhile is signed, too */
		pthread_mutex_unlock(&n->mutex);
		/* what cannot be signed now is told by the store */
		store_checkpoint(n->store, NULL, NULL);
		pthread_mutex_lock(&n->mutex);
	}
	pthread_mutex_unlock(&n->mutex);
	return NULL;
}

enum res
notary_start(struct store *s, int64_t every_us, struct notary **out)
{
	struct notary *n = calloc(1, sizeof *n);
	if (n == NULL)
		return RES_NOMEM;
	n->store = s;
	n->every_us = every_us;
	pthread_mutex_init(&n->mutex, NULL);
	thread_cond_init(&n->changed);
	if (thread_start(&n->thread, notary_main, n) != RES_OK) {
		pthread_cond_destroy(&n->changed);
		pthread_mutex_destroy(&n->mutex);
		free(n);
		return RES_NOMEM;
	}
	*out = n;
	return RES_OK;
}

void
notary_stop(struct notary **notary)
{
	struct notary *n = *notary;
	if (n == NULL)
		return;
	pthread_mutex_lock(&n->mutex);
	n->stop = true;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->mutex);
	pthread_join(n->thread, NULL);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->mutex);
	free(n);
	*notary = NULL;
}

#include "milter/milter.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "milter/callbacks.h"
#include "milter/connection.h"

static struct milter milter = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct timespec
timespec_of(int64_t us)
{
	return (struct timespec){ us / 1000000, us % 1000000 * 1000 };
}

static void *
run_libmilter(void *arg)
{
	struct milter *m = arg;
	if (smfi_main() != MI_SUCCESS)
		log_error("libmilter ended with an error");
	atomic_store(&m->running, false);
	return NULL;
}

/* The threads that make answers cannot speak meanwhile; this one does. */
static void *
report_progress(void *arg)
{
	struct milter *m = arg;
	int64_t every_us = m->options.progress_us;
	struct timespec pause = timespec_of(every_us / 4);
	for (;;) {
		nanosleep(&pause, NULL);
		int64_t now_us = clock_mono_us();
		pthread_mutex_lock(&m->lock);
		for (struct connection *c = m->waiting; c != NULL;
		     c = c->next_waiting)
			if (now_us - c->answering_since_us >= every_us) {
				c->answering_since_us = now_us;
				(void)smfi_progress(c->ctx);
			}
		pthread_mutex_unlock(&m->lock);
	}
	return NULL;
}

/* Accepted connections inherit it; without it each message stalls 44 ms
 * behind delayed acknowledgements. */
static void
set_nodelay(int fd)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof address;
	int on = 1;
	if (getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	    address.ss_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static enum res
start_thread(void *(*run)(void *), struct milter *m)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, m) != 0)
		return RES_NOMEM;
	pthread_detach(thread);
	return RES_OK;
}

static enum res
open_socket(struct milter *m, struct err *err)
{
	char name[32];
	struct smfiDesc description;
	snprintf(name, sizeof name, "fd:%d", m->options.listen_fd);
	callbacks_describe(m, &description);
	set_nodelay(m->options.listen_fd);
	if (smfi_register(description) != MI_SUCCESS ||
	    smfi_setconn(name) != MI_SUCCESS ||
	    smfi_setbacklog(MILTER_BACKLOG) != MI_SUCCESS ||
	    smfi_opensocket(false) != MI_SUCCESS) {
		err_set(err, "libmilter does not take the socket \"%s\": "
			     "see the system log", name);
		return RES_IO;
	}
	return RES_OK;
}

enum res
milter_start(const struct milter_options *o, struct err *err)
{
	struct milter *m = &milter;
	pthread_condattr_t monotonic;
	sigset_t all, old;
	m->options = *o;
	if (m->options.progress_us <= 0)
		m->options.progress_us = MILTER_PROGRESS_US;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	enum res r = open_socket(m, err);
	if (r != RES_OK)
		return r;
	atomic_store(&m->running, true);
	/* HUP and TERM would stop libmilter: its threads do not get them */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = start_thread(report_progress, m);
	if (r == RES_OK)
		r = start_thread(run_libmilter, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != RES_OK)
		err_set(err, "cannot start a thread: %s", res_text(r));
	return r;
}

void
milter_counts(struct milter_counts *out)
{
	struct milter *m = &milter;
	out->sessions = atomic_load(&m->sessions);
	out->running = atomic_load(&m->running);
	pthread_mutex_lock(&m->lock);
	out->transactions = m->transactions;
	pthread_mutex_unlock(&m->lock);
}

void
milter_drain(void)
{
	struct milter *m = &milter;
	pthread_mutex_lock(&m->lock);
	atomic_store(&m->draining, true);
	pthread_mutex_unlock(&m->lock);
}

enum res
milter_wait_idle(int64_t deadline_us)
{
	struct milter *m = &milter;
	struct timespec until = timespec_of(deadline_us);
	int failed = 0;
	pthread_mutex_lock(&m->lock);
	while (m->transactions > 0 && failed != ETIMEDOUT)
		failed = pthread_cond_timedwait(&m->idle, &m->lock, &until);
	enum res r = m->transactions == 0 ? RES_OK : RES_TIMEOUT;
	int64_t quiet_us = clock_mono_us() - m->last_end_us;
	pthread_mutex_unlock(&m->lock);
	/* libmilter writes the reply after our callback has ended, and does
	 * not tell when it did */
	if (quiet_us < MILTER_REPLY_GRACE_US) {
		struct timespec rest =
		    timespec_of(MILTER_REPLY_GRACE_US - quiet_us);
		nanosleep(&rest, NULL);
	}
	return r;
}

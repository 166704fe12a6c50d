#include "milter/milter.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "milter/callbacks.h"
#include "milter/connection.h"

static struct milter milter = { .lock = PTHREAD_MUTEX_INITIALIZER };

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
	const struct timespec pause = { every_us / 4 / 1000000,
		every_us / 4 % 1000000 * 1000 };
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
	/* HUP and TERM would stop libmilter: its threads do not get them */
	enum res r = thread_start(&thread, run, m);
	if (r == RES_OK)
		pthread_detach(thread);
	return r;
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
	m->options = *o;
	if (m->options.progress_us <= 0)
		m->options.progress_us = MILTER_PROGRESS_US;
	thread_cond_init(&m->idle);
	enum res r = open_socket(m, err);
	if (r != RES_OK)
		return r;
	atomic_store(&m->running, true);
	r = start_thread(report_progress, m);
	if (r == RES_OK)
		r = start_thread(run_libmilter, m);
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
	bool late = false;
	pthread_mutex_lock(&m->lock);
	while (m->transactions > 0 && !late)
		late = !thread_wait(&m->idle, &m->lock, deadline_us);
	enum res r = m->transactions == 0 ? RES_OK : RES_TIMEOUT;
	int64_t quiet_us = clock_mono_us() - m->last_end_us;
	pthread_mutex_unlock(&m->lock);
	/* libmilter writes the reply after our callback has ended, and does
	 * not tell when it did */
	if (quiet_us < MILTER_REPLY_GRACE_US) {
		const struct timespec rest = { 0,
			(MILTER_REPLY_GRACE_US - quiet_us) * 1000 };
		nanosleep(&rest, NULL);
	}
	return r;
}

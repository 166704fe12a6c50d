#include "archive_load.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

#define START_US ((int64_t)1780000000 * 1000000)

static void
need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	abort();
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double
load_percentile(double *values, size_t count, double part)
{
	qsort(values, count, sizeof *values, by_value);
	return values[(size_t)((double)(count - 1) * part)];
}

double
load_median(double *values, size_t count)
{
	return load_percentile(values, count, 0.5);
}

/* --- our store --- */

struct client {
	struct store *store;
	const struct load *load;
	unsigned long long first;
	struct buf *mail;
	struct record *meta;
	double *waits_us;
	pthread_t thread;
};

static void
prepare(struct client *c, const struct mail_maker *m)
{
	unsigned each = c->load->each;
	c->mail = calloc(each, sizeof *c->mail);
	c->meta = calloc(each, sizeof *c->meta);
	need(c->mail != NULL && c->meta != NULL, "memory");
	for (unsigned i = 0; i < each; i++) {
		buf_init(&c->mail[i], MAIL_MAX);
		mail_make(m, c->first + i, c->load->bytes, &c->mail[i]);
		record_init(&c->meta[i], 4096);
		mail_meta(m, c->first + i, &c->meta[i]);
		need(c->mail[i].error == RES_OK &&
		    c->meta[i].buf.error == RES_OK, "mail");
	}
}

static uint64_t
forget(struct client *c)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < c->load->each; i++) {
		bytes += c->mail[i].len;
		buf_done(&c->mail[i]);
		record_done(&c->meta[i]);
	}
	free(c->mail);
	free(c->meta);
	return bytes;
}

static void *
send_all(void *arg)
{
	struct client *c = arg;
	for (unsigned i = 0; i < c->load->each; i++) {
		struct arena *a = arena_new(0);
		struct spool *sp = spool_new(a, c->store);
		uint64_t id;
		int64_t start = clock_mono_us();
		need(sp != NULL, "spool");
		sink_push(spool_sink(sp), c->mail[i].ptr, c->mail[i].len);
		need(sink_finish(spool_sink(sp)) == RES_OK, "spool");
		const struct store_message m = { .family = "mail",
			.time_us = START_US + (int64_t)(c->first + i) * 1000,
			.body = sp,
			.meta = buf_str(&c->meta[i].buf) };
		need(store_submit(c->store, &m, &id) == RES_OK, "submit");
		c->waits_us[i] = (double)(clock_mono_us() - start);
		arena_free(&a);
	}
	return NULL;
}

static double
cpu_now(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void
load_run(struct store *s, const struct mail_maker *m, const struct load *l,
    unsigned long long first, struct load_result *out)
{
	struct client clients[LOAD_MAX_CLIENTS];
	size_t all = (size_t)l->clients * l->each;
	double *waits = calloc(all, sizeof *waits);
	need(waits != NULL && l->clients <= LOAD_MAX_CLIENTS, "memory");
	*out = (struct load_result){ .raw_bytes = 0 };
	for (unsigned i = 0; i < l->clients; i++) {
		clients[i] = (struct client){ .store = s, .load = l,
			.first = first + (unsigned long long)i * l->each,
			.waits_us = waits + (size_t)i * l->each };
		prepare(&clients[i], m);
	}
	double cpu = cpu_now();
	int64_t start = clock_mono_us();
	for (unsigned i = 0; i < l->clients; i++)
		need(pthread_create(&clients[i].thread, NULL, send_all,
			 &clients[i]) == 0, "thread");
	for (unsigned i = 0; i < l->clients; i++)
		pthread_join(clients[i].thread, NULL);
	out->seconds = (double)(clock_mono_us() - start) / 1e6;
	out->cpu_seconds = cpu_now() - cpu;
	out->p99_us = load_percentile(waits, all, 0.99);
	for (unsigned i = 0; i < l->clients; i++)
		out->raw_bytes += forget(&clients[i]);
	free(waits);
}

/* --- without one --- */

static int
open_bare(const char *dir, char path[], size_t max)
{
	snprintf(path, max, "%s/bare", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	need(fd >= 0 && fallocate(fd, 0, 0, 64 << 20) == 0, path);
	fsync(fd);
	return fd;
}

double
load_bare(const char *dir, uint64_t bytes, uint64_t groups)
{
	char path[4200];
	size_t part = (size_t)(bytes / groups);
	char *data = malloc(part);
	need(data != NULL, "memory");
	memset(data, 'x', part);
	int fd = open_bare(dir, path, sizeof path);
	int64_t start = clock_mono_us();
	for (uint64_t i = 0; i < groups; i++)
		need(pwrite(fd, data, part, (off_t)(i * part)) ==
			(ssize_t)part && fdatasync(fd) == 0, path);
	double s = (double)(clock_mono_us() - start) / 1e6;
	close(fd);
	unlink(path);
	free(data);
	return s;
}

struct bare {
	pthread_mutex_t mutex;
	pthread_cond_t work, done;
	int fd;
	size_t bytes;
	unsigned each;
	unsigned long long queued, durable; /* parts, by ticket */
	bool stop;
	char *data;
};

struct bare_client {
	struct bare *bare;
	double *waits_us;
	pthread_t thread;
};

static void *
bare_writer(void *arg)
{
	struct bare *b = arg;
	struct iovec parts[LOAD_MAX_CLIENTS];
	pthread_mutex_lock(&b->mutex);
	for (;;) {
		while (b->queued == b->durable && !b->stop)
			pthread_cond_wait(&b->work, &b->mutex);
		if (b->queued == b->durable)
			break;
		unsigned long long from = b->durable, to = b->queued;
		pthread_mutex_unlock(&b->mutex);
		for (unsigned long long i = from; i < to; i++)
			parts[i - from] = (struct iovec){ b->data, b->bytes };
		need(pwritev(b->fd, parts, (int)(to - from),
			 (off_t)(from * b->bytes)) > 0 &&
		    fdatasync(b->fd) == 0, "bare");
		pthread_mutex_lock(&b->mutex);
		b->durable = to;
		pthread_cond_broadcast(&b->done);
	}
	pthread_mutex_unlock(&b->mutex);
	return NULL;
}

static void *
bare_client(void *arg)
{
	struct bare_client *c = arg;
	struct bare *b = c->bare;
	for (unsigned i = 0; i < b->each; i++) {
		int64_t start = clock_mono_us();
		pthread_mutex_lock(&b->mutex);
		unsigned long long mine = ++b->queued;
		pthread_cond_signal(&b->work);
		while (b->durable < mine)
			pthread_cond_wait(&b->done, &b->mutex);
		pthread_mutex_unlock(&b->mutex);
		c->waits_us[i] = (double)(clock_mono_us() - start);
	}
	return NULL;
}

double
load_bare_clients(
    const char *dir, unsigned clients, unsigned each, size_t bytes)
{
	char path[4200];
	pthread_t writer;
	struct bare_client c[LOAD_MAX_CLIENTS];
	struct bare b = { .bytes = bytes, .each = each };
	double *waits = calloc((size_t)clients * each, sizeof *waits);
	b.data = malloc(bytes);
	need(waits != NULL && b.data != NULL, "memory");
	memset(b.data, 'x', bytes);
	b.fd = open_bare(dir, path, sizeof path);
	pthread_mutex_init(&b.mutex, NULL);
	pthread_cond_init(&b.work, NULL);
	pthread_cond_init(&b.done, NULL);
	need(pthread_create(&writer, NULL, bare_writer, &b) == 0, "thread");
	for (unsigned i = 0; i < clients; i++) {
		c[i] = (struct bare_client){ .bare = &b,
			.waits_us = waits + (size_t)i * each };
		need(pthread_create(&c[i].thread, NULL, bare_client, &c[i]) ==
			0, "thread");
	}
	for (unsigned i = 0; i < clients; i++)
		pthread_join(c[i].thread, NULL);
	pthread_mutex_lock(&b.mutex);
	b.stop = true;
	pthread_cond_signal(&b.work);
	pthread_mutex_unlock(&b.mutex);
	pthread_join(writer, NULL);
	double p99 = load_percentile(waits, (size_t)clients * each, 0.99);
	close(b.fd);
	unlink(path);
	free(b.data);
	free(waits);
	return p99;
}

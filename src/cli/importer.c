#include "cli/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "archive/format/period.h"
#include "archive/store/io.h"

#define MAX_RECORD  ((size_t)4 << 20)
/* They share syncs; more would leave less of the order in time. */
#define THREADS     8
#define WAIT_STEP_US 20000
#define YIELD_SECONDS 3600

int
importer_fail(const char *what, const struct err *err, enum res r)
{
	int status = r == RES_NOMEM || r == RES_IO || r == RES_LIMIT ?
	    EX_TEMPFAIL : cli_status(r);
	if (err != NULL && err->text[0] != '\0')
		return cli_fail(status, "%s", err->text);
	return cli_fail(status, "%s: %s", what, res_text(r));
}

/* --- the store ------------------------------------------------------------- */

int
importer_place(struct importer *im, const struct archive_place *p)
{
	int status = EX_OK;
	im->turn = im->lock = im->only = -1;
	im->arena = arena_new(0);
	if (im->arena == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	im->path = p->dir;
	if (p->dir != NULL)
		return EX_OK;
	struct config *config = cli_settings_load(&p->settings, &status);
	if (config == NULL)
		return status;
	im->path = arena_cstr(im->arena, config->archive_dir);
	im->roll_bytes = config->archive_roll_size;
	im->reserve_bytes = config->archive_reserve;
	config_unref(&config);
	if (im->path == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	/* the daemon could not write what root makes */
	if (geteuid() == 0 && access(im->path, F_OK) != 0)
		return cli_fail(EX_NOPERM, "%s: %s; the daemon makes it at its "
		    "start", im->path, strerror(errno));
	return EX_OK;
}

static void
alarm_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "hanaper: %s\n", line);
}

static int
open_store(struct importer *im)
{
	struct err err = { "" };
	const struct store_options o = {
		.path = im->path,
		.roll_bytes = im->roll_bytes,
		.reserve_bytes = im->reserve_bytes,
		.on_demand = true,
		.clock = CLOCK_SYSTEM,
		.alarm = alarm_line,
	};
	enum res r = store_open(&o, &err, &im->store);
	return r == RES_OK ? EX_OK : importer_fail(im->path, &err, r);
}

static int
open_lock(const struct importer *im, const char *name, int *out)
{
	char path[PATH_MAX];
	int fd = -1;
	if (io_path(path, "%s/import/%s", im->path, name) == RES_OK)
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, ARCHIVE_FILE_MODE);
	if (fd < 0)
		return cli_fail(EX_TEMPFAIL, "%s/import/%s: %s", im->path, name,
		    strerror(errno));
	*out = fd;
	return EX_OK;
}

/* Files that root made the daemon could not write any more. */
static int
check_owner(const struct importer *im)
{
	struct stat st;
	if (stat(im->path, &st) != 0 || st.st_uid == geteuid())
		return EX_OK;
	return cli_fail(EX_NOPERM,
	    "%s belongs to the user with the number %lu: run this as that user",
	    im->path, (unsigned long)st.st_uid);
}

int
importer_open(struct importer *im, bool knowing)
{
	char dir[PATH_MAX];
	struct err err = { "" };
	int status = check_owner(im);
	if (status == EX_OK)
		status = open_store(im);
	if (status != EX_OK)
		return status;
	enum res r = io_path(dir, "%s/import", im->path);
	if (r == RES_OK)
		r = io_make_dir(&archive_io_system, im->path, dir);
	if (r != RES_OK)
		return importer_fail(dir, NULL, r);
	status = open_lock(im, "TURN", &im->turn);
	if (status == EX_OK)
		status = open_lock(im, "LOCK", &im->lock);
	if (status == EX_OK && knowing)
		status = open_lock(im, "ONLY", &im->only);
	if (status != EX_OK || !knowing)
		return status;
	if (flock(im->only, LOCK_EX | LOCK_NB) != 0)
		return cli_fail(EX_TEMPFAIL,
		    "%s: another import is running; try again when it is done",
		    im->path);
	r = known_new(im->path, NULL, &err, &im->known);
	return r == RES_OK ? EX_OK : importer_fail(im->path, &err, r);
}

static bool
lock_within(int fd, int64_t until_us)
{
	const struct timespec step = { 0, WAIT_STEP_US * 1000L };
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (clock_mono_us() >= until_us)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

/* Through a turnstile: who waits for the lock holds the turn, so that whoever
 * gives the lock away does not get it back first. */
int
importer_lock(struct importer *im, unsigned seconds)
{
	int64_t until = clock_mono_us() + (int64_t)seconds * 1000000;
	bool got = lock_within(im->turn, until);
	if (got) {
		got = lock_within(im->lock, until);
		(void)flock(im->turn, LOCK_UN);
	}
	if (got)
		return EX_OK;
	return cli_fail(EX_TEMPFAIL,
	    "%s: another process is importing; try again later", im->path);
}

/* Let go of the store when somebody waits for it. */
static int
yield_turn(struct importer *im)
{
	if (flock(im->turn, LOCK_EX | LOCK_NB) == 0) {
		(void)flock(im->turn, LOCK_UN);
		return EX_OK;
	}
	store_close(&im->store);
	(void)flock(im->lock, LOCK_UN);
	int status = importer_lock(im, YIELD_SECONDS);
	return status == EX_OK ? open_store(im) : status;
}

static void
drop_batch(struct importer *im)
{
	for (size_t i = 0; i < im->count; i++)
		buf_done(&im->items[i].head);
	arena_free(&im->batch);
	im->items = NULL;
	im->count = 0;
	im->batch_bytes = 0;
}

void
importer_close(struct importer *im)
{
	drop_batch(im);
	store_close(&im->store);
	known_free(&im->known);
	if (im->turn >= 0)
		close(im->turn);
	if (im->lock >= 0)
		close(im->lock);
	if (im->only >= 0)
		close(im->only);
	arena_free(&im->arena);
}

/* --- batches --------------------------------------------------------------- */

struct run {
	struct importer *im;
	struct import_item *items;
	size_t count;
	atomic_size_t next;
};

static enum res
submit(struct importer *im, struct import_item *it)
{
	struct record meta;
	struct buf source;
	uint64_t id;
	buf_init(&source, PATH_MAX + 64);
	buf_addf(&source, "%s:%" PRIu64, it->source, it->offset);
	record_init(&meta, MAX_RECORD);
	record_add(&meta, META_DIRECTION, STR("import"));
	record_add(&meta, META_MAIL_FROM, it->sender);
	for (size_t i = 0; i < it->rcpt_count; i++)
		record_add(&meta, META_RCPT, it->rcpts[i]);
	if (it->header_bytes > 0)
		record_add_u64(&meta, META_HEADER_BYTES, it->header_bytes);
	record_add_buf(&meta, META_SOURCE, &source);
	record_add_u32(&meta, META_FLAGS, META_FLAG_AS_READ);
	enum res r = meta.buf.error;
	const struct store_message m = { .family = STORE_IMPORT_FAMILY,
		.time_us = it->time_us,
		.meta = buf_str(&meta.buf),
		.body = it->spool };
	if (r == RES_OK)
		r = store_submit(im->store, &m, &id);
	record_done(&meta);
	return r;
}

static void *
submit_some(void *arg)
{
	struct run *run = arg;
	size_t i;
	while ((i = atomic_fetch_add(&run->next, 1)) < run->count)
		run->items[i].result = submit(run->im, &run->items[i]);
	return NULL;
}

/* Several at once, so that they share a sync; all of one month, so that the
 * store does not change shards back and forth. */
static void
submit_run(struct importer *im, struct import_item *items, size_t count)
{
	struct run run = { .im = im, .items = items, .count = count };
	pthread_t threads[THREADS];
	size_t started = 0;
	for (size_t i = 0; i < count; i++)
		items[i].result = RES_AGAIN;
	while (started + 1 < THREADS && started + 1 < count &&
	    pthread_create(&threads[started], NULL, submit_some, &run) == 0)
		started++;
	(void)submit_some(&run);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static int
by_time(const void *a, const void *b)
{
	const struct import_item *x = a, *y = b;
	if (x->time_us != y->time_us)
		return x->time_us < y->time_us ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What the store refuses for what it is goes aside; anything else may go
 * away. */
static int
settle(struct importer *im, const struct import_item *it)
{
	switch (it->result) {
	case RES_OK:
		im->imported++;
		return EX_OK;
	case RES_LIMIT:
	case RES_INVALID:
	case RES_SYNTAX:
		return importer_set_aside(im, it->source, it->fd, it->offset,
		    it->end, res_text(it->result));
	default:
		return cli_fail(EX_TEMPFAIL, "%s: at %" PRIu64
		    ": not archived: %s", it->source, it->offset,
		    res_text(it->result));
	}
}

int
importer_flush(struct importer *im)
{
	int status = EX_OK;
	if (im->count > 1)
		qsort(im->items, im->count, sizeof *im->items, by_time);
	for (size_t from = 0, to; from < im->count && status == EX_OK;
	    from = to) {
		int64_t month = period_of(im->items[from].time_us);
		for (to = from; to < im->count &&
		    period_of(im->items[to].time_us) == month; to++)
			;
		submit_run(im, im->items + from, to - from);
		for (size_t i = from; i < to && status == EX_OK; i++)
			status = settle(im, &im->items[i]);
	}
	drop_batch(im);
	return status == EX_OK ? yield_turn(im) : status;
}

int
importer_add(struct importer *im, struct import_item *it)
{
	enum res r = sink_finish(spool_sink(it->spool));
	buf_done(&it->head);
	if (r == RES_OK)
		r = submit(im, it);
	return r == RES_OK ? EX_OK : importer_fail(im->path, NULL, r);
}

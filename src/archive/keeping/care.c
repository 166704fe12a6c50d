/* Looking after a store: what is in it, and its indexes built anew. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/index/applier.h"
#include "archive/search/reader.h"
#include "archive/store/io.h"
#include "base/clock.h"

/* How often reindex looks how far it has come. */
#define POLL_US 20000

static uint64_t
file_bytes(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void
fill(struct archive_reader *r, struct shard_view *v, struct arena *a,
    struct archive_shard_stats *s)
{
	char path[PATH_MAX];
	unsigned generation;
	struct err why = { "" };
	*s = (struct archive_shard_stats){
		.dir = arena_dup(a, str_c(v->entry.dir)),
		.family = arena_dup(a, str_c(v->entry.family)),
		.period = arena_dup(a, str_c(v->entry.period)),
		.number = v->entry.header.number,
		.status = v->entry.status,
		.min_time_us = INT64_MAX,
		.max_time_us = INT64_MIN,
	};
	if (io_path(path, "%s/segment", v->entry.dir) == RES_OK)
		s->segment_bytes = file_bytes(path);
	if (index_newest(v->entry.dir, path, sizeof path, &generation) ==
	    RES_OK)
		s->index_bytes = file_bytes(path);
	if (s->status == RES_OK)
		s->status = reader_begin(
		    r, v, clock_mono_us() + READER_TAIL_US, &why);
	if (s->status != RES_OK) {
		s->why = arena_dup(a, str_c(why.text));
		return;
	}
	s->messages = v->position.messages;
	s->deliveries = v->position.deliveries;
	s->min_time_us = v->position.min_time_us;
	s->max_time_us = v->position.max_time_us;
	s->unapplied = v->unapplied;
	if (v->tail != NULL) {
		const struct index_position *t = index_position(v->tail);
		s->messages += t->messages;
		s->deliveries += t->deliveries;
		if (t->min_time_us < s->min_time_us)
			s->min_time_us = t->min_time_us;
		if (t->max_time_us > s->max_time_us)
			s->max_time_us = t->max_time_us;
	}
	reader_end(v);
}

enum res
archive_stats(struct archive_reader *r, struct arena *a, struct err *err,
    struct archive_shard_stats **out, size_t *out_count)
{
	enum res res = reader_refresh(r, err);
	if (res != RES_OK)
		return res;
	struct archive_shard_stats *list = arena_array(
	    a, r->shard_count + 1, sizeof *list);
	if (list == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < r->shard_count; i++)
		fill(r, &r->shards[i], a, &list[i]);
	*out = list;
	*out_count = r->shard_count;
	return RES_OK;
}

/* --- reindex --- */

/* Where the whole frames end, and how many there are. */
static void
segment_end(struct shard_view *v, uint64_t *out_end, uint64_t *out_frames)
{
	struct segment_frame f;
	struct segment_walk w = SEGMENT_WALK;
	while (segment_reader_next(v->segment, &w, &f) == RES_OK)
		;
	*out_end = w.at;
	*out_frames = w.next;
}

static enum res
lock_shard(const struct shard_view *v, struct err *err, int *out)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/LOCK", v->entry.dir);
	if (r != RES_OK)
		return r;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT, ARCHIVE_FILE_MODE);
	if (fd < 0) {
		err_set(err, "%s: %s", path, strerror(errno));
		return io_error(errno);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		err_set(err, "%s is in use: stop hanaperd first", v->entry.dir);
		return RES_DENIED;
	}
	*out = fd;
	return RES_OK;
}

struct trouble {
	struct err *err;
};

static void
keep_alarm(void *context, const char *line)
{
	err_set(((struct trouble *)context)->err, "%s", line);
}

static enum res
reindex_shard(struct archive_reader *r, struct shard_view *v,
    void (*progress)(void *context, struct str dir, uint64_t done,
	uint64_t bytes),
    void *context, struct err *err)
{
	struct applier *applier = NULL;
	struct err alarms = { "" };
	struct trouble trouble = { &alarms };
	uint64_t end, frames;
	int lock = -1;
	enum res res = reader_segment(r, v, err);
	if (res == RES_OK)
		res = lock_shard(v, err, &lock);
	if (res != RES_OK)
		return res;
	segment_end(v, &end, &frames);
	const struct applier_options o = { .dir = v->entry.dir,
		.rebuild = true,
		.durable_bytes = end,
		.durable_frames = frames,
		.alarm = keep_alarm,
		.alarm_context = &trouble };
	if (res == RES_OK)
		res = applier_start(&o, err, &applier);
	while (res == RES_OK && applier_unapplied(applier) > 0) {
		if (progress != NULL)
			progress(context, str_c(v->entry.dir),
			    frames - applier_unapplied(applier), frames);
		res = applier_trouble(applier, err);
		if (res == RES_OK)
			(void)usleep(POLL_US);
	}
	applier_seal(&applier);
	close(lock);
	if (res == RES_OK && progress != NULL)
		progress(context, str_c(v->entry.dir), frames, frames);
	if (res == RES_OK && alarms.text[0] != '\0') {
		err_set(err, "%s", alarms.text);
		res = RES_CORRUPT;
	}
	return res;
}

/* Begin the new generation of every shard, empty: a run that was interrupted
 * is known by those that are left, and only these are built then. RES_DENIED:
 * some are in use, the others have begun. */
static enum res
begin_all(struct archive_reader *r, struct err *err)
{
	enum res res = RES_OK, denied = RES_OK;
	for (size_t i = 0; i < r->shard_count; i++)
		if (index_is_building(r->shards[i].entry.dir))
			return RES_OK;
	for (size_t i = 0; i < r->shard_count && res == RES_OK; i++) {
		struct shard_view *v = &r->shards[i];
		struct index_writer *w = NULL;
		int lock;
		if (v->entry.status != RES_OK)
			continue;
		res = lock_shard(v, err, &lock);
		if (res == RES_DENIED) {
			denied = res;
			res = RES_OK;
			continue;
		}
		if (res != RES_OK)
			break;
		res = index_open_building(
		    v->entry.dir, &v->entry.header, err, &w);
		index_close(&w, false);
		close(lock);
	}
	return res == RES_OK ? denied : res;
}

enum res
archive_reindex(struct archive_reader *r,
    void (*progress)(void *context, struct str dir, uint64_t done,
	uint64_t bytes),
    void *context, struct err *err)
{
	enum res res = reader_refresh(r, err), first = RES_OK;
	if (res == RES_OK)
		res = begin_all(r, err);
	if (res == RES_DENIED) {
		first = res;
		res = RES_OK;
	}
	for (size_t i = 0; i < r->shard_count && res == RES_OK; i++) {
		struct shard_view *v = &r->shards[i];
		if (v->entry.status != RES_OK ||
		    !index_is_building(v->entry.dir))
			continue;
		enum res one = reindex_shard(r, v, progress, context, err);
		if (one == RES_CORRUPT)
			first = one; /* told; the other shards go on */
		else
			res = one;
	}
	return res != RES_OK ? res : first;
}

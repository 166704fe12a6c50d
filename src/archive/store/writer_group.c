/* One group: into the open shard, with one sync. */
#include <errno.h>
#include <time.h>

#include "archive/store/spool.h"
#include "archive/store/writer_inside.h"

/* How long imports wait for the index, in all, before a group. */
#define MAX_THROTTLE_US 30000000
#define THROTTLE_STEP_US 5000

static void
body_path(const struct writer *w, const struct draft *d, bool in_shard,
    char out[PATH_MAX])
{
	char name[FRAME_BODY_NAME];
	frame_body_name(&d->body, name);
	enum res r = in_shard ?
	    io_path(out, "%s/bodies/%s", w->shard->dir, name) :
	    io_path(out, "%s/tmp/%s", w->env.store_path, name);
	if (r != RES_OK)
		out[0] = '\0'; /* the call on it will fail */
}

static enum res
move_body(struct writer *w, struct job *j)
{
	char from[PATH_MAX], to[PATH_MAX];
	body_path(w, j->draft, false, from);
	body_path(w, j->draft, true, to);
	if (w->env.io->rename(w->env.io, from, to) < 0)
		return io_error(errno);
	j->moved = true;
	return RES_OK;
}

static void
drop_bodies(struct writer *w, struct job *const *group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX];
		if (!group[i]->moved)
			continue;
		body_path(w, group[i]->draft, true, path);
		w->env.io->unlink(w->env.io, path);
	}
}

/* Give every draft its place; those that fail are left out. */
static size_t
place_all(struct writer *w, size_t count, bool *out_files)
{
	size_t n = 0;
	uint64_t at = w->shard->durable;
	for (size_t i = 0; i < count; i++) {
		struct job *j = w->group[i];
		struct draft *d = j->draft;
		j->result = shard_place(w->shard, w->placed, n, at, d);
		if (j->result == RES_OK &&
		    (d->header.flags & FRAME_BODY_IN_FILE))
			j->result = move_body(w, j);
		if (j->result == RES_INVALID) /* its dictionary has no room */
			j->result = RES_AGAIN;
		if (j->result != RES_OK) {
			dedupe_cut(w->shard->dedupe, at);
			continue;
		}
		*out_files = *out_files || j->moved;
		j->id = (uint64_t)w->shard->header.number << 32 |
		    d->header.number;
		w->placed[n++] = d;
		at += d->header.total;
	}
	return n;
}

static enum res
write_placed(struct writer *w, size_t count, bool files)
{
	char bodies[PATH_MAX];
	if (files) {
		enum res r = io_path(bodies, "%s/bodies", w->shard->dir);
		if (r == RES_OK && w->env.io->fsync_dir(w->env.io, bodies) < 0)
			r = io_error(errno);
		if (r != RES_OK) {
			dedupe_cut(w->shard->dedupe, w->shard->durable);
			return r;
		}
	}
	return shard_append(w->shard, w->placed, count);
}

/* Said once when it begins and once when it is over. */
static void
tell_blocked(struct writer *w, enum res r)
{
	bool blocked = r != RES_OK;
	uint64_t space = 0;
	if (blocked && !w->blocked && r == RES_AGAIN &&
	    w->env.io->space(w->env.io, w->env.store_path, &space) == 0)
		shard_alarm(&w->env,
		    "archive family %s: mail cannot be stored now: %llu kB are "
		    "free in %s, %llu kB of them kept in reserve", w->family,
		    (unsigned long long)space / 1024, w->env.store_path,
		    (unsigned long long)w->env.reserve_bytes / 1024);
	else if (blocked && !w->blocked)
		shard_alarm(&w->env,
		    "archive family %s: mail cannot be stored: %s", w->family,
		    res_text(r));
	else if (!blocked && w->blocked)
		shard_alarm(&w->env,
		    "archive family %s: mail is stored again", w->family);
	w->blocked = blocked;
}

/* Searches read un-applied frames one by one: imports keep them few. */
static void
wait_for_index(struct writer *w)
{
	const struct timespec step = { 0, THROTTLE_STEP_US * 1000L };
	int64_t until = clock_mono_us() + MAX_THROTTLE_US;
	while (w->by_date && w->applier != NULL &&
	    applier_throttled(w->applier) && clock_mono_us() < until)
		nanosleep(&step, NULL);
}

void
writer_write_group(struct writer *w, size_t count)
{
	int64_t month =
	    writer_month_for(w, w->group[0]->draft->header.time_us);
	bool files = false;
	enum res r = writer_ensure_shard(w, month);
	if (r == RES_OK) {
		wait_for_index(w);
		r = writer_bring_dictionaries(w, count);
		size_t n = r == RES_OK ? place_all(w, count, &files) : 0;
		if (n > 0)
			r = write_placed(w, n, files);
		if (r != RES_OK)
			drop_bodies(w, w->group, count);
		if (w->shard->poisoned) {
			writer_retire(w, true);
		} else if (r == RES_OK) {
			if (w->applier != NULL)
				applier_wake(w->applier, w->shard->durable,
				    w->shard->frames);
			writer_train(w);
		}
	}
	for (size_t i = 0; i < count && r != RES_OK; i++)
		w->group[i]->result = r;
	tell_blocked(w, r);
}

/* Which shard a writer writes into: opening, rolling, replacing, leaving. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/format/period.h"
#include "archive/index/index.h"
#include "archive/store/writer_inside.h"

/* Frame numbers are the lower half of an id. */
#define MAX_FRAMES (UINT32_MAX - WRITER_MAX_GROUP)
/* Links looked at in the start: for the length, for the index. */
#define MAX_LINKS 256
#define CATCH_UP LEAVING_MAX

/* The month it is now. The wall clock may jump; how far it can have come
 * since the start is what the monotonic one says. */
static int64_t
month_now(const struct writer *w)
{
	if (w->clock.fixed_us >= 0)
		return period_of(w->clock.fixed_us);
	return period_of(w->wall_us + (clock_mono_us() - w->mono_us));
}

int64_t
writer_month_for(struct writer *w, int64_t time_us)
{
	int64_t month = period_of(time_us), now = month_now(w);
	if (month <= now + 1) {
		w->ahead = false;
		return month;
	}
	if (!w->ahead)
		shard_alarm(&w->env,
		    "archive family %s: the clock is more than a month ahead, "
		    "no new shard is begun for it", w->family);
	w->ahead = true;
	return now;
}

/* An applier for the shard; without one mail is stored all the same. */
static struct applier *
follow(struct writer *w, const struct shard *s)
{
	struct applier *a = NULL;
	struct err err = { "" };
	const struct applier_options o = {
		.dir = s->dir,
		.durable_bytes = s->durable,
		.durable_frames = s->frames,
		.alarm = w->env.alarm,
		.alarm_context = w->env.alarm_context,
	};
	if (w->lazy_index && s->frames - s->indexed < WRITER_LAZY_FRAMES)
		return NULL;
	if (!w->without_index && applier_start(&o, &err, &a) != RES_OK)
		shard_alarm(&w->env, "%s: no index: %s", s->dir, err.text);
	return a;
}

static void
set_applier(struct writer *w, struct applier *a)
{
	pthread_mutex_lock(&w->mutex);
	w->applier = a;
	pthread_mutex_unlock(&w->mutex);
}

void
writer_retire(struct writer *w, bool seal)
{
	struct shard *s = w->shard;
	struct applier *a = w->applier;
	if (s == NULL)
		return;
	if (seal || s->poisoned || w->by_date)
		shard_sign_all(s, clock_now_us(&w->clock));
	w->link = shard_link_of(s);
	set_applier(w, NULL);
	w->shard = NULL;
	if (!s->poisoned) {
		leaving_add(&w->leaving, s, a, seal);
		return;
	}
	w->poisoned = s;
	w->poisoned_applier = a;
	pthread_mutex_lock(&w->mutex);
	w->counters.poisoned++;
	pthread_mutex_unlock(&w->mutex);
	shard_alarm(&w->env,
	    "%s: a write failed; the shard ends at %llu bytes, a new one is "
	    "begun", s->dir, (unsigned long long)w->link.bytes);
}

/* The poisoned shard has a successor that tells its length. */
static void
retire_poisoned(struct writer *w)
{
	if (w->poisoned == NULL)
		return;
	enum res r = shard_drop_tail(w->poisoned);
	if (r != RES_OK) /* tried again at the next start */
		shard_alarm(&w->env, "%s: cannot be cut: %s",
		    w->poisoned->dir, res_text(r));
	leaving_add(&w->leaving, w->poisoned, w->poisoned_applier, true);
	w->poisoned = NULL;
	w->poisoned_applier = NULL;
}

static const struct shard_entry *
find_number(const struct shard_entry *e, size_t count, uint32_t number)
{
	for (size_t i = count; i-- > 0;)
		if (e[i].status == RES_OK && e[i].header.number == number)
			return &e[i];
	return NULL;
}

/* A shard left behind must be as long as its successor says. */
static void
check_length(struct writer *w, const struct shard_entry *e, uint64_t bytes)
{
	char path[PATH_MAX];
	struct stat st;
	if (io_path(path, "%s/segment", e->dir) != RES_OK ||
	    stat(path, &st) < 0 || (uint64_t)st.st_size == bytes)
		return;
	enum res r = shard_cut(&w->env, e->dir, bytes);
	if (r != RES_OK && r != RES_CORRUPT)
		shard_alarm(&w->env, "%s: cannot be brought to its length: %s",
		    e->dir, res_text(r));
}

/* A sealed shard whose index was not complete when the process ended. Only
 * the newest few: what is older is the operator's `reindex`. */
static void
catch_up(struct writer *w, const struct shard_entry *e, uint64_t bytes)
{
	struct index_position at;
	struct shard *s;
	struct err err = { "" };
	if (w->without_index ||
	    (index_peek(e->dir, &at) == RES_OK && at.offset >= bytes))
		return;
	enum res r = shard_open(&w->env, e, bytes, &err, &s);
	if (r == RES_OK)
		leaving_add(&w->leaving, s, follow(w, s), true);
	else if (r != RES_DENIED)
		shard_alarm(&w->env, "%s", err.text);
}

/* Look at the newest links between shards: sorted by age, so the last ones. */
static void
check_links(struct writer *w, const struct shard_entry *e, size_t count)
{
	size_t first = count > MAX_LINKS ? count - MAX_LINKS : 0;
	for (size_t i = first; i < count; i++) {
		uint64_t bytes = e[i].header.previous_bytes;
		if (e[i].status != RES_OK || bytes == 0)
			continue;
		const struct shard_entry *previous =
		    find_number(e, count, e[i].header.previous);
		if (previous == NULL)
			continue; /* expired, or offline */
		check_length(w, previous, bytes);
		if (i + CATCH_UP >= count)
			catch_up(w, previous, bytes);
	}
}

enum res
writer_open_newest(struct writer *w, const char *period, struct err *err)
{
	struct shard_entry *entries;
	const struct shard_entry *newest = NULL;
	size_t count;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    w->env.store_path, w->family, a, err, &entries, &count);
	w->abandon = false;
	w->link = (struct shard_link){ .number = 0 };
	if (r == RES_OK)
		check_links(w, entries, count);
	for (size_t i = 0; i < count && r == RES_OK; i++) {
		if (period != NULL && strcmp(entries[i].period, period) != 0)
			continue;
		if (entries[i].status != RES_OK) {
			shard_alarm(&w->env, "%s: offline: %s", entries[i].dir,
			    res_text(entries[i].status));
			w->abandon = true;
		} else if (newest == NULL ||
		    entries[i].header.number > newest->header.number) {
			newest = &entries[i];
		}
	}
	if (r == RES_OK && newest != NULL && !w->abandon) {
		r = shard_open(&w->env, newest, 0, err, &w->shard);
		if (r != RES_OK && r != RES_DENIED && r != RES_NOMEM &&
		    r != RES_AGAIN) {
			shard_alarm(&w->env, "%s: offline: %s", newest->dir,
			    res_text(r));
			r = RES_OK; /* go on in a new one */
		} else if (r == RES_OK) {
			set_applier(w, follow(w, w->shard));
			writer_adopt_dictionary(w);
		}
	}
	arena_free(&a);
	return r;
}

static enum res
create_next(struct writer *w, int64_t month)
{
	char period[SHARD_MAX_PERIOD + 1];
	struct err err = { "" };
	int64_t now = clock_now_us(&w->clock);
	period_format(month, period);
	enum res r = shard_create(&w->env, w->family, period, &w->link, now,
	    &err, &w->shard);
	if (r != RES_OK) {
		if (!w->blocked)
			shard_alarm(&w->env, "archive family %s: %s",
			    w->family, err.text);
		return r;
	}
	retire_poisoned(w);
	set_applier(w, follow(w, w->shard));
	w->link = (struct shard_link){ .number = 0 };
	if (w->dictionary != NULL)
		r = writer_bring_dictionary(w, w->dictionary);
	return w->shard->poisoned ? r : RES_OK; /* else tried again */
}

static bool
is_full(const struct writer *w)
{
	return w->shard->durable >= w->roll_bytes ||
	    w->shard->frames >= MAX_FRAMES;
}

/* Does a message of `month` belong elsewhere than into the open shard? */
static bool
other_month(const struct writer *w, int64_t month)
{
	int64_t open;
	if (period_parse(str_c(w->shard->header.period), &open) != RES_OK)
		return true;
	return w->by_date ? month != open : month > open;
}

static enum res
leave_if_due(struct writer *w, int64_t month)
{
	struct shard *s = w->shard;
	if (s == NULL)
		return RES_OK;
	if (!shard_writable(s)) {
		writer_retire(w, true);
		return RES_OK;
	}
	bool elsewhere = other_month(w, month);
	if (!is_full(w) && !elsewhere)
		return RES_OK;
	if (elsewhere && w->by_date && !is_full(w)) {
		writer_retire(w, false); /* more may come for it */
		return RES_OK;
	}
	enum res r = shard_seal(s, clock_now_us(&w->clock));
	if (r == RES_AGAIN)
		return r; /* no space for a seal is none for a shard */
	writer_retire(w, true);
	return RES_OK;
}

enum res
writer_ensure_shard(struct writer *w, int64_t month)
{
	if (clock_mono_us() < w->not_before_us)
		return RES_AGAIN;
	struct err err = { "" };
	enum res r = leave_if_due(w, month);
	if (r == RES_OK && w->shard == NULL && w->by_date) {
		char period[SHARD_MAX_PERIOD + 1];
		period_format(month, period);
		leaving_wait(&w->leaving); /* its lock may be among them */
		r = writer_open_newest(w, period, &err);
		if (r == RES_OK && w->shard != NULL &&
		    (!shard_writable(w->shard) || is_full(w)))
			writer_retire(w, true);
	}
	if (r == RES_OK && w->shard == NULL)
		r = create_next(w, month);
	if (r != RES_OK) {
		w->not_before_us = clock_mono_us() + w->retry_us;
		return RES_AGAIN;
	}
	return RES_OK;
}

void
writer_leave_shard(struct writer *w, struct job *j)
{
	struct shard *s = w->shard;
	j->result = RES_OK;
	if (s == NULL || s->header.number != j->leave)
		return;
	if (shard_writable(s))
		j->result = shard_seal(s, clock_now_us(&w->clock));
	if (j->result == RES_OK || s->poisoned)
		writer_retire(w, true);
}

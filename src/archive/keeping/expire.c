#include "archive/keeping/expire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/format/period.h"
#include "archive/index/index.h"
#include "archive/index/rebuild.h"
#include "archive/keeping/held.h"
#include "archive/keeping/keeping.h"
#include "archive/store/shard.h"

#define GONE_PREFIX "expired."
#define MAX_DEPTH   3 /* of folders in a shard */

/* A shard that is due. */
struct due {
	struct expire_item *item;
	const struct shard_entry *entry;
	int lock;            /* -1: not taken */
};

/* --- the disk --- */

/* Bytes on disk of a folder; with `remove` all of it goes. */
static uint64_t
walk_folder(const char *path, bool remove, int depth)
{
	uint64_t bytes = 0;
	DIR *d = opendir(path);
	if (d == NULL)
		return 0;
	const struct dirent *e;
	while ((e = readdir(d)) != NULL) {
		char name[PATH_MAX];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 ||
		    io_path(name, "%s/%s", path, e->d_name) != RES_OK ||
		    lstat(name, &st) != 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			bytes += walk_folder(name, remove, depth + 1);
		else if (remove)
			(void)unlink(name);
	}
	closedir(d);
	if (remove)
		(void)rmdir(path);
	return bytes;
}

void
expire_clean(struct store *s)
{
	char tmp[PATH_MAX], path[PATH_MAX];
	if (io_path(tmp, "%s/tmp", store_path(s)) != RES_OK)
		return;
	DIR *d = opendir(tmp);
	if (d == NULL)
		return;
	const struct dirent *e;
	while ((e = readdir(d)) != NULL)
		if (str_starts(str_c(e->d_name), STR(GONE_PREFIX)) &&
		    io_path(path, "%s/%s", tmp, e->d_name) == RES_OK)
			walk_folder(path, true, 0);
	closedir(d);
}

/* --- what is due --- */

static const struct expire_rule *
rule_for(const struct expire_request *rq, const char *family)
{
	for (size_t i = 0; i < rq->rule_count; i++)
		if (strcmp(rq->rules[i].family, family) == 0)
			return &rq->rules[i];
	return NULL;
}

/* INT64_MAX: never. */
static int64_t
due_us(const struct expire_request *rq, const struct shard_entry *e)
{
	const struct expire_rule *rule = rule_for(rq, e->family);
	if (strcmp(e->family, STORE_HOLD_FAMILY) == 0)
		return INT64_MIN; /* as soon as nothing is held */
	if (rule == NULL || rule->keep_s >= INT64_MAX / 1000000)
		return INT64_MAX;
	int64_t month, keep_us = rule->keep_s * 1000000;
	if (period_parse(str_c(e->period), &month) != RES_OK)
		return INT64_MAX;
	int64_t end_us = period_end_us(month);
	return end_us > INT64_MAX - keep_us ? INT64_MAX : end_us + keep_us;
}

/* --- one shard --- */

static void
stays(struct arena *a, struct expire_item *item, const char *why)
{
	item->fate = EXPIRE_STAYS;
	item->why = arena_dup(a, str_c(why));
}

/* What holds want of it; nothing is looked into without holds. */
static enum res
evaluate(struct store *s, const struct holds *holds, struct due *d, bool plan,
    struct err *err, struct held_frames *out)
{
	struct archive_reader *reader;
	enum res r = RES_OK;
	*out = (struct held_frames){ .frames = 0 };
	if (holds->count == 0)
		return RES_OK;
	if (!plan && rebuild_is_needed(d->entry->dir))
		r = rebuild_index(d->entry->dir, NULL, err);
	if (r == RES_OK)
		r = archive_reader_open(store_path(s), err, &reader);
	if (r != RES_OK)
		return r;
	r = holds_evaluate(holds, reader, d->entry, err, out);
	archive_reader_close(&reader);
	return r;
}

static enum res
look_at_holds(struct store *s, const struct holds *holds, struct due *d,
    bool plan, struct arena *a, struct err *err)
{
	struct held_frames held;
	bool is_hold = strcmp(d->entry->family, STORE_HOLD_FAMILY) == 0;
	enum res r = evaluate(s, holds, d, plan, err, &held);
	if (r != RES_OK)
		return r;
	d->item->held = held.count;
	if (is_hold && held.count > 0)
		stays(a, d->item, "under hold");
	else if (held.count > 0 && !plan)
		r = held_copy(s, d->entry, holds, &held, err);
	held_frames_done(&held);
	return r;
}

/* As the index has it: nobody wants to read a month of mail for that. */
static uint64_t
frames_of(const struct shard_entry *e)
{
	struct index_position at;
	return index_peek(e->dir, &at) == RES_OK ? at.frames : 0;
}

/* Everything before the shard may go; what is against it stands in the item. */
static void
prepare(struct store *s, const struct expire_request *rq,
    const struct holds *holds, struct due *d, struct arena *a)
{
	struct err err = { "" };
	enum res r = RES_OK;
	if (!rq->plan)
		r = keeping_take(s, d->entry, &err, &d->lock);
	if (r == RES_OK)
		d->item->frames = frames_of(d->entry);
	if (r == RES_OK)
		r = look_at_holds(s, holds, d, rq->plan, a, &err);
	if (r != RES_OK)
		stays(a, d->item,
		    err.text[0] != '\0' ? err.text : res_text(r));
}

/* --- going --- */

static void
add_shard(struct record *r, const struct due *d)
{
	struct record one;
	const struct shard_header *h = &d->entry->header;
	record_init(&one, 1024);
	record_add_u32(&one, EVENT_SHARD_NUMBER, h->number);
	record_add(&one, EVENT_SHARD_FAMILY, str_c(d->entry->family));
	record_add(&one, EVENT_SHARD_PERIOD, str_c(d->entry->period));
	record_add_u64(&one, EVENT_SHARD_FRAMES, d->item->frames);
	record_add_u64(&one, EVENT_SHARD_BYTES, d->item->bytes);
	record_add_u64(&one, EVENT_SHARD_HELD, d->item->held);
	record_add_record(r, EVENT_SHARD, &one);
	record_done(&one);
}

static bool
is_going(const struct due *d)
{
	return d->item->fate == EXPIRE_GONE;
}

/* Events that hold so many shards are written one behind the other. */
#define SHARDS_PER_EVENT 1000

static enum res
write_down(struct store *s, const struct expire_request *rq,
    const struct due *list, size_t count)
{
	size_t n = 0;
	uint64_t id;
	struct record more;
	enum res r = RES_OK;
	record_init(&more, AUDIT_MAX_RECORD);
	const struct audit_event event = { .action = STR("expire"),
		.who = rq->who, .more = &more };
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		if (is_going(&list[i])) {
			add_shard(&more, &list[i]);
			n++;
		}
		if (n == SHARDS_PER_EVENT || (n > 0 && i + 1 == count)) {
			r = audit_write(s, &event, false, rq->now_us, &id);
			record_done(&more);
			record_init(&more, AUDIT_MAX_RECORD);
			n = 0;
		}
	}
	record_done(&more);
	return r;
}

/* Out of its family at once; what it holds goes afterwards. */
static enum res
take_away(struct store *s, const struct due *d, char gone[PATH_MAX])
{
	const struct archive_io *io = store_env(s)->io;
	enum res r = io_path(gone, "%s/tmp/" GONE_PREFIX "%u", store_path(s),
	    (unsigned)d->entry->header.number);
	if (r == RES_OK && io->rename(io, d->entry->dir, gone) < 0)
		r = io_error(errno);
	return r;
}

static enum res
sync_family(struct store *s, const char *family)
{
	char path[PATH_MAX];
	const struct archive_io *io = store_env(s)->io;
	enum res r = io_path(path, "%s/families/%s", store_path(s), family);
	if (r == RES_OK && io->fsync_dir(io, path) < 0)
		r = io_error(errno);
	return r;
}

static void
remove_all(struct store *s, struct due *list, size_t count, struct arena *a)
{
	const char *synced = "";
	for (size_t i = 0; i < count; i++) {
		char gone[PATH_MAX];
		if (!is_going(&list[i]))
			continue;
		enum res r = take_away(s, &list[i], gone);
		if (r != RES_OK)
			stays(a, list[i].item, res_text(r));
	}
	/* gone for good before the space is used for something else */
	for (size_t i = 0; i < count; i++) {
		const char *family = list[i].entry->family;
		if (!is_going(&list[i]) || strcmp(family, synced) == 0)
			continue;
		enum res r = sync_family(s, family);
		if (r != RES_OK)
			shard_alarm(store_env(s), "family %s: %s", family,
			    res_text(r));
		synced = family;
	}
	expire_clean(s);
}

/* --- the whole --- */

static enum res
list_due(struct store *s, const struct expire_request *rq, struct arena *a,
    struct err *err, struct due **out_due, size_t *out_due_count,
    struct expire_item **out, size_t *out_count)
{
	struct shard_entry *list = NULL;
	size_t count = 0;
	enum res r = store_dir_shards(
	    store_path(s), NULL, a, err, &list, &count);
	if (r != RES_OK)
		return r;
	struct expire_item *items = arena_array(a, count + 1, sizeof *items);
	struct due *due = arena_array(a, count + 1, sizeof *due);
	if (items == NULL || due == NULL)
		return RES_NOMEM;
	*out_count = *out_due_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct shard_entry *e = &list[i];
		int64_t at_us = due_us(rq, e);
		bool is_due = at_us <= rq->now_us;
		if (at_us == INT64_MAX || (!is_due && !rq->plan))
			continue;
		struct expire_item *item = &items[(*out_count)++];
		*item = (struct expire_item){ .dir = str_c(e->dir),
			.family = str_c(e->family),
			.period = str_c(e->period),
			.number = e->header.number,
			.due_us = at_us,
			.fate = is_due ? EXPIRE_GONE : EXPIRE_LATER,
			.bytes = walk_folder(e->dir, false, 0) };
		if (is_due && e->status != RES_OK)
			stays(a, item, "its header cannot be read");
		else if (is_due)
			due[(*out_due_count)++] = (struct due){
				.item = item, .entry = e, .lock = -1 };
	}
	*out = items;
	*out_due = due;
	return RES_OK;
}

static enum res
expire(struct store *s, const struct expire_request *rq, struct arena *a,
    struct err *err, struct expire_item **out, size_t *out_count)
{
	struct holds holds;
	struct due *due;
	size_t count;
	bool any = false;
	enum res r = holds_read(store_path(s), a, err, &holds);
	if (r == RES_OK)
		r = list_due(s, rq, a, err, &due, &count, out, out_count);
	if (r != RES_OK)
		return r;
	for (size_t i = 0; i < count; i++) {
		prepare(s, rq, &holds, &due[i], a);
		any = any || is_going(&due[i]);
	}
	if (!rq->plan && any) {
		r = write_down(s, rq, due, count);
		if (r == RES_OK)
			remove_all(s, due, count, a);
		else
			err_set(err, "nothing was removed: it cannot be "
				     "written down: %s", res_text(r));
	}
	for (size_t i = 0; i < count; i++)
		if (due[i].lock >= 0)
			close(due[i].lock);
	return r;
}

enum res
archive_expire(struct store *s, const struct expire_request *rq,
    struct arena *a, struct err *err, struct expire_item **out,
    size_t *out_count)
{
	int keeping;
	enum res r = keeping_begin(s, err, &keeping);
	if (r != RES_OK)
		return r;
	r = expire(s, rq, a, err, out, out_count);
	close(keeping);
	return r;
}

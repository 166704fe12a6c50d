#include "archive/keeping/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/keeping/backup_shard.h"
#include "archive/keeping/holds.h"
#include "archive/store/store.h"
#include "archive/store/store_dir.h"

#define RESTORING ".restoring" /* the store under way, beside its place */
/* Numbers passed over in a restored store: ids given out after the backup
 * (in logs, in holds) must not come to mean other messages. */
#define SKIP_NUMBERS 1000

static void
say_nothing(void *context, const char *line)
{
	(void)context;
	(void)line;
}

/* The options with all defaults filled in. */
static struct backup_options
complete(const struct backup_options *o)
{
	struct backup_options full = *o;
	if (full.io == NULL)
		full.io = &archive_io_system;
	if (full.say == NULL)
		full.say = say_nothing;
	return full;
}

/* --- directories ----------------------------------------------------------- */

static enum res
make_dir(const struct archive_io *io, const char *path)
{
	if (io->mkdir(io, path) < 0 && errno != EEXIST)
		return io_error(errno);
	return RES_OK;
}

static enum res
lock_dir(const char *path, struct err *err, int *out)
{
	char file[PATH_MAX];
	enum res r = io_path(file, "%s/LOCK", path);
	if (r != RES_OK)
		return r;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, ARCHIVE_FILE_MODE);
	if (fd < 0) {
		err_set(err, "%s: %s", file, strerror(errno));
		return io_error(errno);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		err_set(err, "%s: another backup or restore is running", path);
		return RES_DENIED;
	}
	*out = fd;
	return RES_OK;
}

/* The target's frame of directories, locked, for the store `id`. */
static enum res
prepare(const struct backup_options *o, const struct store_identity *id,
    struct err *err, int *out_lock)
{
	char path[PATH_MAX];
	struct store_identity there;
	struct err missing = { "" };
	enum res r = make_dir(o->io, o->to);
	if (r == RES_OK)
		r = io_path(path, "%s/families", o->to);
	if (r == RES_OK)
		r = make_dir(o->io, path);
	if (r != RES_OK) {
		err_set(err, "%s: cannot make it: %s", o->to, res_text(r));
		return r;
	}
	r = lock_dir(o->to, err, out_lock);
	if (r != RES_OK)
		return r;
	r = store_dir_identity(o->to, &missing, &there);
	if (r == RES_NOTFOUND)
		return RES_OK;
	if (r == RES_OK && memcmp(there.uuid, id->uuid, sizeof id->uuid) != 0) {
		err_set(err, "%s: belongs to another store", o->to);
		r = RES_EXISTS;
	} else if (r != RES_OK) {
		err_set(err, "%s", missing.text);
	}
	return r;
}

/* PERIOD.N */
static const char *
shard_name(const struct shard_entry *e)
{
	const char *slash = strrchr(e->dir, '/');
	return slash != NULL ? slash + 1 : e->dir;
}

static enum res
shard_target(const struct backup_options *o, const struct shard_entry *e,
    char out[PATH_MAX])
{
	char families[PATH_MAX], family[PATH_MAX];
	enum res r = io_path(families, "%s/families", o->to);
	if (r == RES_OK)
		r = io_path(family, "%s/%s", families, e->family);
	if (r == RES_OK)
		r = io_make_dir(o->io, families, family);
	if (r == RES_OK)
		r = io_path(out, "%s/%s", family, shard_name(e));
	return r == RES_OK ? io_make_dir(o->io, family, out) : r;
}

/* --- backup ---------------------------------------------------------------- */

/* What the shard behind it says of its durable length; 0: nobody. */
static uint64_t
successor_says(const struct shard_entry *all, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].status == RES_OK &&
		    all[i].header.previous == number)
			return all[i].header.previous_bytes;
	return 0;
}

/* A shard that cannot be copied does not keep the others from it; a target
 * that cannot be written does. */
static bool
only_this_one(enum res r)
{
	return r == RES_CORRUPT || r == RES_UNSUPPORTED || r == RES_EXISTS ||
	    r == RES_NOTFOUND;
}

static enum res
copy_one(const struct backup_options *o, const struct shard_entry *e,
    struct backup_shard *b, struct backup_state *state, struct err *err)
{
	char to[PATH_MAX];
	struct err why = { "" };
	b->o = o;
	b->from = e->dir;
	b->to = to;
	b->counts->shards++;
	enum res r = e->status;
	if (r != RES_OK) {
		err_set(&why, "%s: cannot be read: %s", e->dir, res_text(r));
	} else {
		r = shard_target(o, e, to);
		if (r == RES_OK)
			r = backup_shard_copy(b, &why, state);
		else
			err_set(err, "%s: %s", o->to, res_text(r));
	}
	if (only_this_one(r)) {
		b->counts->offline++;
		backup_say(o, "%s", why.text);
	} else if (r != RES_OK) {
		err_set(err, "%s", why.text);
	}
	return r;
}

static bool
is_there(const struct shard_entry *all, size_t count,
    const struct shard_entry *e)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].family, e->family) == 0 &&
		    strcmp(shard_name(&all[i]), shard_name(e)) == 0)
			return true;
	return false;
}

/* The files of a directory that has only files, and it. */
static enum res
remove_flat(const struct archive_io *io, const char *dir)
{
	char path[PATH_MAX];
	DIR *d = opendir(dir);
	const struct dirent *e;
	if (d == NULL)
		return errno == ENOENT ? RES_OK : io_error(errno);
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    io_path(path, "%s/%s", dir, e->d_name) == RES_OK)
			(void)io->unlink(io, path);
	closedir(d);
	return rmdir(dir) == 0 ? RES_OK : io_error(errno);
}

static enum res
remove_shard(const struct archive_io *io, const char *dir)
{
	char bodies[PATH_MAX];
	enum res r = io_path(bodies, "%s/bodies", dir);
	if (r == RES_OK)
		r = remove_flat(io, bodies);
	return r == RES_OK ? remove_flat(io, dir) : r;
}

/* Shards that expired since: their mail is in the backup only. */
static enum res
look_for_gone(const struct backup_options *o, struct arena *a,
    const struct shard_entry *all, size_t count, struct err *err,
    struct backup_counts *out)
{
	struct shard_entry *old;
	size_t old_count;
	enum res r = store_dir_shards(o->to, NULL, a, err, &old, &old_count);
	for (size_t i = 0; r == RES_OK && i < old_count; i++) {
		if (is_there(all, count, &old[i]))
			continue;
		out->gone++;
		if (o->prune)
			r = remove_shard(o->io, old[i].dir);
		backup_say(o, "%s: not in the store any more%s", old[i].dir,
		    r != RES_OK ? ", cannot be dropped" :
			o->prune ? ": dropped" : "");
		if (r != RES_OK)
			err_set(err, "%s: %s", old[i].dir, res_text(r));
	}
	return r;
}

/* What is held stays held. */
static enum res
copy_holds(const struct backup_options *o, struct err *err)
{
	struct holds holds;
	struct arena *a = arena_new(0);
	enum res r = a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = holds_read(o->from, a, err, &holds);
	if (r == RES_OK)
		r = holds_write(o->io, o->to, &holds);
	arena_free(&a);
	return r;
}

/* The identity as it is in the source, byte for byte. */
static enum res
copy_identity(const struct backup_options *o, struct err *err)
{
	char path[PATH_MAX], text[4096];
	size_t len = 0;
	enum res r = io_path(path, "%s/store", o->from);
	int fd = r == RES_OK ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		r = io_error(errno);
	else
		r = io_read_some(
		    &archive_io_system, fd, text, sizeof text, 0, &len);
	if (fd >= 0)
		close(fd);
	if (r == RES_OK)
		r = io_put_file(o->io, o->to, "store", text, len);
	if (r != RES_OK)
		err_set(err, "%s/store: cannot be copied: %s", o->to,
		    res_text(r));
	return r;
}

/* The shards of the audit family, or all others. */
static enum res
copy_shards(const struct backup_options *o, const struct shard_entry *all,
    size_t count, bool audit, struct err *err, struct backup_counts *out)
{
	enum res r = RES_OK;
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		struct backup_state state;
		struct backup_shard b = { .counts = out,
			.successor = successor_says(
			    all, count, all[i].header.number) };
		if ((strcmp(all[i].family, STORE_AUDIT_FAMILY) == 0) != audit)
			continue;
		r = copy_one(o, &all[i], &b, &state, err);
		if (only_this_one(r))
			r = RES_OK;
	}
	return r;
}

static enum res
copy_all(const struct backup_options *o, struct arena *a, struct err *err,
    struct backup_counts *out)
{
	struct shard_entry *all;
	size_t count;
	enum res r = store_dir_shards(o->from, NULL, a, err, &all, &count);
	if (r == RES_OK)
		r = copy_shards(o, all, count, false, err, out);
	if (r == RES_OK && o->before_audit != NULL) {
		o->before_audit(o->context);
		/* the event may have gone into a new shard */
		r = store_dir_shards(o->from, NULL, a, err, &all, &count);
	}
	if (r == RES_OK)
		r = copy_shards(o, all, count, true, err, out);
	/* after the shards: its next number is beyond all of them */
	if (r == RES_OK)
		r = copy_identity(o, err);
	if (r == RES_OK)
		r = copy_holds(o, err);
	if (r == RES_OK)
		r = look_for_gone(o, a, all, count, err, out);
	return r;
}

enum res
backup_run(const struct backup_options *options, struct err *err,
    struct backup_counts *out)
{
	const struct backup_options o = complete(options);
	struct store_identity id;
	int lock = -1;
	*out = (struct backup_counts){ 0 };
	enum res r = store_dir_identity(o.from, err, &id);
	struct arena *a = arena_new(0);
	if (a == NULL)
		r = RES_NOMEM;
	if (r == RES_OK)
		r = prepare(&o, &id, err, &lock);
	if (r == RES_OK)
		r = copy_all(&o, a, err, out);
	if (lock >= 0)
		close(lock);
	arena_free(&a);
	return r;
}

/* --- restore --------------------------------------------------------------- */

static enum res
check_place(const char *path, struct err *err)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool empty = true;
	if (d == NULL && errno == ENOENT)
		return RES_OK;
	if (d == NULL) {
		err_set(err, "%s: %s", path, strerror(errno));
		return errno == ENOTDIR ? RES_EXISTS : io_error(errno);
	}
	while (empty && (e = readdir(d)) != NULL)
		empty = strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0;
	closedir(d);
	if (empty)
		return RES_OK;
	err_set(err, "%s: there is something: nothing is overwritten", path);
	return RES_EXISTS;
}

/* All that the backup says it has of this shard. */
static enum res
restore_one(const struct backup_options *o, const struct shard_entry *e,
    struct backup_counts *out, struct err *err)
{
	struct backup_state says, got;
	uint8_t wanted[LEAF_HASH_BYTES], root[LEAF_HASH_BYTES];
	struct backup_shard b = { .counts = out };
	enum res r = e->status == RES_OK ? backup_state_read(e->dir, &says) :
					   RES_OK;
	if (r == RES_NOTFOUND || r == RES_CORRUPT) {
		out->shards++;
		out->offline++;
		backup_say(o, "%s: its copy was never completed", e->dir);
		return RES_OK;
	}
	if (r == RES_OK && e->status == RES_OK)
		b.limit = says.bytes;
	if (r == RES_OK)
		r = copy_one(o, e, &b, &got, err);
	if (only_this_one(r))
		return RES_OK;
	if (r != RES_OK)
		return r;
	if (says.holes || got.holes)
		return RES_OK; /* told of already */
	r = merkle_root(&says.tree, wanted);
	if (r == RES_OK)
		r = merkle_root(&got.tree, root);
	if (r == RES_OK &&
	    (got.frames != says.frames ||
		memcmp(root, wanted, sizeof root) != 0)) {
		out->damaged++;
		backup_say(o, "%s: not the frames that were copied", e->dir);
	}
	return r;
}

/* The marks of copying do not belong into a store. */
static enum res
drop_states(const struct backup_options *o, struct arena *a, struct err *err)
{
	struct shard_entry *all;
	size_t count;
	char path[PATH_MAX];
	enum res r = store_dir_shards(o->to, NULL, a, err, &all, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		r = io_path(path, "%s/" BACKUP_STATE, all[i].dir);
		if (r == RES_OK && o->io->unlink(o->io, path) < 0 &&
		    errno != ENOENT)
			r = io_error(errno);
	}
	return r;
}

static enum res
restore_all(const struct backup_options *o, const struct store_identity *id,
    struct arena *a, struct err *err, struct backup_counts *out)
{
	struct shard_entry *all;
	size_t count;
	struct store_identity next = *id;
	next.epoch++;
	enum res r = store_dir_shards(o->from, NULL, a, err, &all, &count);
	for (size_t i = 0; r == RES_OK && i < count; i++) {
		if (all[i].status == RES_OK &&
		    all[i].header.number >= next.next_shard)
			next.next_shard = all[i].header.number + 1;
		r = restore_one(o, &all[i], out, err);
	}
	if (r == RES_OK && (next.epoch == 0 ||
			       next.next_shard > UINT32_MAX - SKIP_NUMBERS))
		r = RES_LIMIT;
	next.next_shard += SKIP_NUMBERS;
	if (r == RES_OK)
		r = drop_states(o, a, err);
	if (r == RES_OK)
		r = store_dir_put_identity(o->io, o->to, &next);
	if (r == RES_OK)
		r = copy_holds(o, err);
	return r;
}

enum res
backup_restore(const struct backup_options *options, struct err *err,
    struct backup_counts *out)
{
	struct backup_options o = complete(options);
	const char *place = o.to;
	char work[PATH_MAX];
	struct store_identity id;
	int lock = -1;
	*out = (struct backup_counts){ 0 };
	enum res r = io_path(work, "%s" RESTORING, place);
	if (r == RES_OK)
		r = check_place(place, err);
	if (r == RES_OK)
		r = store_dir_identity(o.from, err, &id);
	if (r != RES_OK)
		return r;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	o.to = work;
	r = prepare(&o, &id, err, &lock);
	if (r == RES_OK)
		r = restore_all(&o, &id, a, err, out);
	if (r == RES_OK && o.io->rename(o.io, work, place) < 0)
		r = io_error(errno);
	if (r == RES_OK) {
		char *slash = strrchr(work, '/');
		if (slash != NULL)
			*slash = '\0';
		if (o.io->fsync_dir(o.io, slash != NULL ? work : ".") < 0)
			r = io_error(errno);
	}
	if (r != RES_OK)
		err_set(err, "%s: %s", place, res_text(r));
	if (lock >= 0)
		close(lock);
	arena_free(&a);
	return r;
}

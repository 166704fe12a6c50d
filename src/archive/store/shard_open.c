/* Opening a shard: recovering it first, and cutting what stands behind its
 * durable length. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "archive/index/index.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard_inside.h"
#include "base/clock.h"

#define COPY_PIECE ((size_t)256 << 10)

/* What stands at `from` and behind to lost/, durable; nothing to do when
 * there are only zeros. */
static enum res
keep_lost(const struct archive_io *io, const char *dir, int fd, uint64_t from)
{
	char lost[PATH_MAX], path[PATH_MAX];
	struct clock now = CLOCK_SYSTEM;
	uint64_t to;
	enum res r = io_data_end(io, fd, from, &to);
	if (r != RES_OK || to == from)
		return r;
	r = io_path(lost, "%s/lost", dir);
	if (r == RES_OK)
		r = io_path(path, "%s/lost/%llu.%lld", dir,
		    (unsigned long long)from, (long long)clock_now_us(&now));
	if (r == RES_OK)
		r = io_make_dir(io, dir, lost);
	if (r != RES_OK)
		return r;
	char *piece = malloc(COPY_PIECE);
	if (piece == NULL)
		return RES_NOMEM;
	int copy = io->open(
	    io, path, O_RDWR | O_CREAT | O_EXCL, ARCHIVE_FILE_MODE);
	if (copy < 0)
		r = io_error(errno);
	for (uint64_t at = from; r == RES_OK && at < to;) {
		size_t want = to - at < COPY_PIECE ? (size_t)(to - at) :
						     COPY_PIECE;
		size_t got;
		r = io_read_some(io, fd, piece, want, at, &got);
		if (r == RES_OK && got == 0)
			break;
		if (r == RES_OK)
			r = io_write(io, copy, piece, got, at - from);
		at += got;
	}
	free(piece);
	if (r == RES_OK && io->fsync(io, copy) < 0)
		r = io_error(errno);
	if (copy >= 0)
		io->close(io, copy);
	if (r == RES_OK && io->fsync_dir(io, lost) < 0)
		r = io_error(errno);
	return r;
}

/* Cut the file at `to`, durably. */
static enum res
cut_file(const struct archive_io *io, int fd, uint64_t to)
{
	if (io->ftruncate(io, fd, to) < 0 || io->fsync(io, fd) < 0)
		return io_error(errno);
	return RES_OK;
}

/* Write [from, to) again as it reads now: in the same boot, pages that a
 * failed sync never wrote look as if they had been. */
static enum res
rewrite(const struct archive_io *io, int fd, uint64_t from, uint64_t to)
{
	char *piece = malloc(COPY_PIECE);
	enum res r = piece != NULL ? RES_OK : RES_NOMEM;
	for (uint64_t at = from; r == RES_OK && at < to;) {
		size_t n = to - at < COPY_PIECE ? (size_t)(to - at) :
						  COPY_PIECE;
		r = io_read(io, fd, piece, n, at);
		if (r == RES_OK)
			r = io_write(io, fd, piece, n, at);
		at += n;
	}
	free(piece);
	if (r == RES_OK && from < to && io->fdatasync(io, fd) < 0)
		r = io_error(errno);
	return r;
}

static void
tell_damage(const struct shard *s, const struct recovery *rec)
{
	for (size_t i = 0;
	     i < rec->damage_count && i < RECOVER_MAX_DAMAGE; i++)
		shard_alarm(s->env,
		    "%s/segment: acknowledged data damaged at %llu to %llu",
		    s->dir, (unsigned long long)rec->damage[i].from,
		    (unsigned long long)rec->damage[i].to);
	if (rec->damage_count > RECOVER_MAX_DAMAGE)
		shard_alarm(s->env, "%s/segment: %zu more damaged ranges",
		    s->dir, rec->damage_count - RECOVER_MAX_DAMAGE);
}

/* Bring the file into the state that the scan found. */
static enum res
settle(struct shard *s, const struct recovery *rec)
{
	const struct archive_io *io = s->env->io;
	s->durable = rec->end;
	s->allocated = rec->file_bytes;
	s->frames = rec->frames;
	s->tree = rec->tree;
	s->holes = rec->holes;
	s->sealed = rec->sealed;
	s->dictionary_count = rec->dictionary_count;
	memcpy(s->dictionaries, rec->dictionaries, sizeof s->dictionaries);
	s->damaged = rec->damage_count > 0;
	if (s->damaged) {
		tell_damage(s, rec);
		return RES_OK; /* cut nothing, write nothing */
	}
	if (rec->torn) {
		enum res r = keep_lost(io, s->dir, s->fd, rec->end);
		if (r != RES_OK)
			return r;
	}
	if (rec->file_bytes > rec->end) {
		enum res r = cut_file(io, s->fd, rec->end);
		if (r != RES_OK)
			return r;
		s->allocated = rec->end;
	}
	uint64_t from = rec->floor > SHARD_HEADER_BYTES ? rec->floor :
							  SHARD_HEADER_BYTES;
	return rewrite(io, s->fd, from, rec->end);
}

/* The names that lead to the segment: whoever made them may have died before
 * they were durable, and we see them only because the kernel still runs. */
static enum res
secure_names(const struct shard *s)
{
	const struct archive_io *io = s->env->io;
	char dir[PATH_MAX];
	enum res r = io_path(dir, "%s/bodies", s->dir);
	if (r == RES_OK)
		r = io_make_dir(io, s->dir, dir); /* perhaps never made */
	if (r == RES_OK && io->fsync_dir(io, dir) < 0)
		r = io_error(errno);
	if (r == RES_OK)
		r = io_path(dir, "%s", s->dir);
	for (int up = 0; r == RES_OK && up < 3; up++) {
		if (io->fsync_dir(io, dir) < 0)
			r = io_error(errno);
		char *slash = strrchr(dir, '/'); /* shard, family, families */
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	return r;
}

static void
remember_note(
    void *shard, const struct segment_frame *f, struct str meta)
{
	shard_notes_frame(shard, f, meta);
}

static enum res
remember(void *dedupe, const uint8_t sha256[32], uint64_t offset)
{
	dedupe_add(dedupe, sha256, offset);
	return RES_OK;
}

enum res
shard_open(const struct shard_env *env, const struct shard_entry *entry,
    uint64_t floor, struct err *err, struct shard **out)
{
	struct segment_reader *reader = NULL;
	struct erasures erased;
	struct arena *a = arena_new(ERASURES_ARENA);
	struct recovery *rec = malloc(sizeof *rec);
	struct shard *s = shard_new(env);
	enum res r =
	    s != NULL && rec != NULL && a != NULL ? RES_OK : RES_NOMEM;
	if (r == RES_OK)
		r = io_path(s->dir, "%s", entry->dir);
	if (r == RES_OK)
		r = shard_lock(env->io, s->dir, &s->lock);
	if (r == RES_DENIED)
		err_set(err, "%s: another process writes there", entry->dir);
	if (r == RES_OK)
		r = shard_open_segment(s);
	if (r == RES_OK)
		r = segment_reader_open(s->dir, env->io, err, &reader);
	if (r == RES_OK)
		r = erasures_read(s->dir, a, err, &erased);
	if (r == RES_OK) {
		struct index_position applied;
		uint64_t checked = 0;
		s->header = *segment_reader_shard(reader);
		if (index_peek(s->dir, &applied) == RES_OK) {
			checked = applied.offset;
			s->indexed = applied.frames;
		}
		r = shard_notes_read(s);
		const struct recover_seen seen = { remember, s->dedupe,
			remember_note, s, s->notes.size };
		if (r == RES_OK)
			r = recover_scan(reader,
			    checked > floor ? checked : floor, checked,
			    &erased, &seen, rec);
	}
	if (r == RES_OK)
		r = settle(s, rec);
	if (r == RES_OK)
		r = shard_notes_judge(s, rec, err);
	if (r == RES_OK)
		r = secure_names(s);
	segment_reader_close(&reader);
	arena_free(&a);
	free(rec);
	if (r != RES_OK) {
		err_set(err, "%s: cannot be recovered: %s", entry->dir,
		    res_text(r));
		shard_close(&s);
		return r;
	}
	*out = s;
	return RES_OK;
}

enum res
shard_drop_tail(struct shard *s)
{
	const struct archive_io *io = s->env->io;
	enum res r = keep_lost(io, s->dir, s->fd, s->durable);
	return r == RES_OK ? cut_file(io, s->fd, s->durable) : r;
}

enum res
shard_cut(const struct shard_env *env, const char *dir, uint64_t bytes)
{
	const struct archive_io *io = env->io;
	char path[PATH_MAX];
	int lock;
	uint64_t size;
	enum res r = io_path(path, "%s/segment", dir);
	if (r == RES_OK)
		r = shard_lock(io, dir, &lock);
	if (r != RES_OK)
		return r;
	int fd = io->open(io, path, O_RDWR, 0);
	r = fd < 0 ? io_error(errno) : io_size(fd, &size);
	if (r == RES_OK && size < bytes) {
		shard_alarm(env,
		    "%s: acknowledged data missing: %llu bytes of %llu", path,
		    (unsigned long long)size, (unsigned long long)bytes);
		r = RES_CORRUPT;
	}
	if (r == RES_OK && size > bytes)
		r = keep_lost(io, dir, fd, bytes);
	if (r == RES_OK && size > bytes)
		r = cut_file(io, fd, bytes);
	if (fd >= 0)
		io->close(io, fd);
	io->close(io, lock);
	return r;
}

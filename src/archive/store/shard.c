#include "archive/store/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "archive/format/record.h"
#include "archive/index/index.h"
#include "archive/store/segment_reader.h"
#include "base/clock.h"
#include "keys/digest.h"

#define MAX_ALARM    1024
#define MAX_ORDINAL  999999
#define COPY_PIECE   ((size_t)256 << 10)
#define SEAL_MAX     256

void
shard_alarm(const struct shard_env *env, const char *fmt, ...)
{
	char line[MAX_ALARM];
	va_list ap;
	if (env->alarm == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	env->alarm(env->alarm_context, line);
}

static struct shard *
shard_new(const struct shard_env *env)
{
	struct shard *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	s->env = env;
	s->fd = s->lock = -1;
	merkle_init(&s->tree);
	s->dedupe = dedupe_new();
	if (s->dedupe == NULL)
		shard_close(&s);
	return s;
}

enum res
shard_lock(const struct archive_io *io, const char *dir, int *out)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/LOCK", dir);
	if (r != RES_OK)
		return r;
	int fd = io->open(io, path, O_RDWR | O_CREAT, ARCHIVE_FILE_MODE);
	if (fd < 0)
		return io_error(errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? RES_DENIED : io_error(errno);
		io->close(io, fd);
		return r;
	}
	*out = fd;
	return RES_OK;
}

static enum res
open_segment(struct shard *s)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/segment", s->dir);
	if (r != RES_OK)
		return r;
	s->fd = s->env->io->open(s->env->io, path, O_RDWR, 0);
	return s->fd < 0 ? io_error(errno) : RES_OK;
}

/* --- creating --- */

/* The first PERIOD.N that nobody made yet. */
static enum res
make_shard_dir(struct shard *s, const char *family, const char *period)
{
	const struct archive_io *io = s->env->io;
	char families[PATH_MAX], parent[PATH_MAX];
	enum res r = io_path(families, "%s/families", s->env->store_path);
	if (r == RES_OK)
		r = io_path(parent, "%s/%s", families, family);
	if (r == RES_OK)
		r = io_make_dir(io, families, parent);
	for (unsigned n = 1; r == RES_OK && n <= MAX_ORDINAL; n++) {
		r = io_path(s->dir, "%s/%s.%u", parent, period, n);
		if (r != RES_OK)
			return r;
		if (io->mkdir(io, s->dir) == 0)
			return io->fsync_dir(io, parent) < 0 ?
			    io_error(errno) : RES_OK;
		if (errno != EEXIST)
			return io_error(errno);
	}
	return r != RES_OK ? r : RES_LIMIT;
}

static void
format_key(const struct note_key *k, char out[SHARD_MAX_KEY + 1])
{
	struct buf b;
	buf_init(&b, SHARD_MAX_KEY);
	note_key_format(&b, k);
	if (b.error == RES_OK) {
		memcpy(out, b.ptr, b.len);
		out[b.len] = '\0';
	}
	buf_done(&b);
}

/* Who signs this shard's notes: as far as is known now. */
static void
put_key(struct shard *s, const struct shard_link *previous, int64_t now_us)
{
	struct shard_header *h = &s->header;
	struct note_key key;
	memcpy(h->key, previous->key, sizeof h->key);
	if (note_newest_key(s->env->signer, h->store_uuid, now_us, &key) ==
	    RES_OK)
		format_key(&key, h->key);
}

static enum res
fill_header(struct shard *s, const char *family, const char *period,
    const struct shard_link *previous, int64_t now_us, struct err *err)
{
	struct store_identity id;
	enum res r = store_dir_take_number(
	    s->env->io, s->env->store_path, err, &id);
	if (r != RES_OK)
		return r;
	struct shard_header *h = &s->header;
	h->number = id.next_shard;
	h->epoch = id.epoch;
	memcpy(h->store_uuid, id.uuid, sizeof h->store_uuid);
	snprintf(h->family, sizeof h->family, "%s", family);
	snprintf(h->period, sizeof h->period, "%s", period);
	snprintf(h->tokenizer, sizeof h->tokenizer, "%s", SHARD_TOKENIZER);
	h->created_us = now_us;
	h->previous = previous->number;
	h->previous_bytes = previous->bytes;
	h->previous_frames = previous->frames;
	memcpy(h->previous_root, previous->root, sizeof h->previous_root);
	memcpy(h->previous_note, previous->note, sizeof h->previous_note);
	put_key(s, previous, now_us);
	return digest_random(h->nonce, sizeof h->nonce);
}

static enum res
write_header(struct shard *s)
{
	uint8_t bytes[SHARD_HEADER_BYTES];
	char bodies[PATH_MAX];
	enum res r = io_path(bodies, "%s/bodies", s->dir);
	if (r == RES_OK)
		r = io_make_dir(s->env->io, s->dir, bodies);
	if (r != RES_OK)
		return r;
	shard_header_encode(&s->header, bytes);
	return io_put_file(
	    s->env->io, s->dir, "segment", bytes, sizeof bytes);
}

enum res
shard_create(const struct shard_env *env, const char *family,
    const char *period, const struct shard_link *previous, int64_t now_us,
    struct err *err, struct shard **out)
{
	struct shard *s = shard_new(env);
	if (s == NULL)
		return RES_NOMEM;
	enum res r = fill_header(s, family, period, previous, now_us, err);
	if (r == RES_OK)
		r = make_shard_dir(s, family, period);
	if (r == RES_OK)
		r = shard_lock(env->io, s->dir, &s->lock);
	if (r == RES_OK)
		r = write_header(s);
	if (r == RES_OK)
		r = open_segment(s);
	if (r != RES_OK) {
		err_set(err, "%s: cannot make a shard: %s",
		    s->dir[0] != '\0' ? s->dir : env->store_path, res_text(r));
		shard_close(&s);
		return r;
	}
	s->durable = s->allocated = SHARD_HEADER_BYTES;
	r = shard_notes_read(s);
	if (r != RES_OK) {
		shard_close(&s);
		return r;
	}
	*out = s;
	return RES_OK;
}

struct shard_link
shard_link_of(const struct shard *s)
{
	struct shard_link l = { .number = s->header.number,
		.bytes = s->durable, .frames = s->frames };
	if (s->holes || merkle_root(&s->tree, l.root) != RES_OK)
		memset(l.root, 0, sizeof l.root);
	memcpy(l.note, s->notes.last, sizeof l.note);
	if (s->notes.key_count > 0)
		format_key(&s->notes.keys[s->notes.key_count - 1], l.key);
	return l;
}

/* --- recovering --- */

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
		r = open_segment(s);
	if (r == RES_OK)
		r = segment_reader_open(s->dir, env->io, err, &reader);
	if (r == RES_OK)
		r = erasures_read(s->dir, a, err, &erased);
	if (r == RES_OK) {
		struct index_position applied;
		uint64_t checked = 0;
		s->header = *segment_reader_shard(reader);
		if (index_peek(s->dir, &applied) == RES_OK)
			checked = applied.offset;
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

/* --- writing --- */

/* The body block of a frame of the file, whole; NULL otherwise. To be freed. */
static uint8_t *
read_body_block(
    const struct shard *s, uint64_t offset, const struct frame_header *h)
{
	size_t padded = (size_t)frame_padded(h->stored[BLOCK_BODY]);
	uint8_t *block = malloc(padded > 0 ? padded : 1);
	if (block != NULL &&
	    (io_read(s->env->io, s->fd, block, padded,
		 offset + frame_block_offset(h, BLOCK_BODY)) != RES_OK ||
		frame_block_check(h, BLOCK_BODY, block) != BLOCK_WHOLE)) {
		free(block);
		block = NULL;
	}
	return block;
}

/* Does the frame at `offset` of the file hold this content, undamaged? */
static bool
same_content(const struct shard *s, uint64_t offset, const uint8_t sha256[32],
    uint64_t *out_number)
{
	uint8_t bytes[FRAME_HEADER_BYTES];
	struct frame_header h;
	struct frame_body b;
	if (io_read(s->env->io, s->fd, bytes, sizeof bytes, offset) != RES_OK ||
	    frame_header_decode(bytes, s->header.nonce, &h) != RES_OK ||
	    h.type != FRAME_MESSAGE)
		return false;
	uint8_t *block = read_body_block(s, offset, &h);
	bool same = block != NULL &&
	    frame_body_decode(&h, block, (size_t)h.stored[BLOCK_BODY], &b) ==
		RES_OK &&
	    memcmp(b.sha256, sha256, sizeof b.sha256) == 0;
	free(block);
	if (same && (h.flags & FRAME_BODY_IN_FILE))
		same = segment_body_file_ok(s->dir, &b);
	*out_number = h.number;
	return same;
}

/* The message frame with this content, on disk or earlier in the group. */
static bool
find_content(const struct shard *s, struct draft *const *group, size_t count,
    const uint8_t sha256[32], uint64_t *out_number, uint64_t *out_offset)
{
	uint64_t offset = dedupe_find(s->dedupe, sha256);
	if (offset == 0)
		return false;
	*out_offset = offset;
	if (offset < s->durable)
		return same_content(s, offset, sha256, out_number);
	uint64_t at = s->durable;
	for (size_t i = 0; i < count; i++) {
		const struct draft *d = group[i];
		if (at == offset) {
			*out_number = d->header.number;
			return memcmp(d->body.sha256, sha256, 32) == 0;
		}
		at += d->header.total;
	}
	return false;
}

/* 1 + the number of the dictionary's frame; 0: it is not here. */
static uint32_t
find_dictionary(const struct shard *s, const struct dictionary *d)
{
	for (size_t i = 0; i < s->dictionary_count; i++)
		if (memcmp(s->dictionaries[i].sha256, d->sha256,
			sizeof d->sha256) == 0)
			return (uint32_t)s->dictionaries[i].number + 1;
	return 0;
}

bool
shard_has_dictionary(const struct shard *s, const struct dictionary *d)
{
	return find_dictionary(s, d) != 0;
}

enum res
shard_place(struct shard *s, struct draft *const *group, size_t count,
    uint64_t at, struct draft *d)
{
	uint64_t number, offset;
	const uint8_t *sha256 = d->body.sha256;
	enum res r = RES_OK;
	if (d->dictionary != NULL) {
		d->header.dictionary = find_dictionary(s, d->dictionary);
		if (d->header.dictionary == 0)
			return RES_INVALID;
	}
	if (d->header.type == FRAME_MESSAGE) {
		if (find_content(s, group, count, sha256, &number, &offset))
			r = draft_refer(d, number, offset);
		else
			dedupe_add(s->dedupe, sha256, at);
	}
	if (r == RES_OK)
		r = draft_place(d, &s->header, s->frames + count, s->durable);
	return r;
}

/* Room for the file to grow to `end`. */
static enum res
reserve(struct shard *s, uint64_t end)
{
	const struct archive_io *io = s->env->io;
	uint64_t space, need = end - s->allocated;
	if (end <= s->allocated)
		return RES_OK;
	if (io->space(io, s->dir, &space) < 0)
		return io_error(errno);
	uint64_t usable =
	    space > s->env->reserve_bytes ? space - s->env->reserve_bytes : 0;
	const uint64_t steps[] = { SHARD_RESERVE_STEP, SHARD_RESERVE_SMALL,
		1 };
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		uint64_t len = (need + steps[i] - 1) / steps[i] * steps[i];
		if (len > usable)
			continue;
		if (io->fallocate(io, s->fd, s->allocated, len) == 0) {
			s->allocated += len;
			return RES_OK;
		}
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return RES_OK; /* the write will tell */
		if (io_error(errno) != RES_AGAIN)
			return io_error(errno);
	}
	return RES_AGAIN;
}

/* A folder that somebody removed or moved away still takes writes, which
 * nobody finds again. */
static bool
is_reachable(const struct shard *s)
{
	char path[PATH_MAX];
	struct stat named, open;
	if (io_path(path, "%s/segment", s->dir) == RES_OK &&
	    stat(path, &named) == 0 && fstat(s->fd, &open) == 0 &&
	    named.st_dev == open.st_dev && named.st_ino == open.st_ino)
		return true;
	shard_alarm(s->env, "%s: was removed or moved while it is in use",
	    s->dir);
	return false;
}

/* The group did not get to the disk. Only a full disk before the sync can be
 * undone: everything behind the durable length goes. */
static enum res
write_failed(struct shard *s, enum res r)
{
	dedupe_cut(s->dedupe, s->durable);
	if (r == RES_AGAIN &&
	    s->env->io->ftruncate(s->env->io, s->fd, s->durable) == 0) {
		s->allocated = s->durable;
		return RES_AGAIN;
	}
	s->poisoned = true;
	return RES_IO;
}

static enum res
write_group(struct shard *s, struct draft *const *group, size_t count,
    uint64_t bytes)
{
	enum res r = reserve(s, s->durable + bytes);
	if (r != RES_OK) {
		dedupe_cut(s->dedupe, s->durable);
		return r == RES_AGAIN ? r : RES_IO; /* nothing was written */
	}
	struct iovec *parts = calloc(count, sizeof *parts);
	if (parts == NULL) {
		dedupe_cut(s->dedupe, s->durable);
		return RES_NOMEM;
	}
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct iovec){ group[i]->bytes.ptr,
			group[i]->bytes.len };
	r = io_writev(s->env->io, s->fd, parts, count, s->durable);
	free(parts);
	if (r != RES_OK)
		return write_failed(s, r);
	if (s->env->io->fdatasync(s->env->io, s->fd) < 0)
		return write_failed(s, RES_IO);
	return is_reachable(s) ? RES_OK : write_failed(s, RES_IO);
}

enum res
shard_append(struct shard *s, struct draft *const *group, size_t count)
{
	uint64_t bytes = 0;
	if (!shard_writable(s))
		return RES_IO;
	for (size_t i = 0; i < count; i++)
		bytes += group[i]->bytes.len;
	enum res r = write_group(s, group, count, bytes);
	if (r != RES_OK)
		return r;
	s->durable += bytes;
	s->frames += count;
	if (s->allocated < s->durable)
		s->allocated = s->durable;
	for (size_t i = 0; i < count; i++) {
		if (merkle_add(&s->tree, group[i]->header.leaf) != RES_OK)
			s->holes = true;
		s->notes.news += group[i]->header.type != FRAME_NOTE;
	}
	return RES_OK;
}

enum res
shard_add_dictionary(
    struct shard *s, const struct dictionary *d, int64_t now_us)
{
	struct draft draft, *one = &draft;
	if (s->dictionary_count == SEGMENT_MAX_DICTIONARIES)
		return RES_LIMIT;
	uint64_t offset = s->durable;
	enum res r = dictionary_draft(d, now_us, &draft);
	if (r != RES_OK)
		return r;
	r = shard_place(s, NULL, 0, offset, &draft);
	if (r == RES_OK)
		r = shard_append(s, &one, 1);
	if (r == RES_OK) {
		struct recover_dictionary *n =
		    &s->dictionaries[s->dictionary_count++];
		n->number = draft.header.number;
		n->offset = offset;
		memcpy(n->sha256, d->sha256, sizeof n->sha256);
	}
	draft_done(&draft);
	return r;
}

enum res
shard_read_dictionary(
    const struct shard *s, struct err *err, struct dictionary **out)
{
	struct segment_reader *reader;
	struct segment_frame f;
	if (s->dictionary_count == 0)
		return RES_NOTFOUND;
	enum res r = segment_reader_open(s->dir, s->env->io, err, &reader);
	if (r != RES_OK)
		return r;
	r = segment_reader_at(reader,
	    s->dictionaries[s->dictionary_count - 1].offset, &f);
	if (r == RES_OK)
		r = dictionary_read(reader, &f, err, out);
	segment_reader_close(&reader);
	return r;
}

enum res
shard_seal(struct shard *s, int64_t now_us)
{
	uint8_t root[32];
	struct record rec;
	struct draft d, *one = &d;
	struct packer *p = packer_new();
	draft_init(&d, FRAME_SEAL, now_us);
	record_init(&rec, SEAL_MAX);
	record_add_u64(&rec, SEAL_FRAMES, s->frames);
	if (!s->holes && merkle_root(&s->tree, root) == RES_OK)
		record_add(&rec, SEAL_ROOT, str_of(root, sizeof root));
	enum res r = p != NULL ? rec.buf.error : RES_NOMEM;
	if (r == RES_OK)
		r = draft_add_small(&d, p, BLOCK_META, buf_str(&rec.buf));
	if (r == RES_OK)
		r = shard_place(s, NULL, 0, s->durable, &d);
	if (r == RES_OK)
		r = shard_append(s, &one, 1);
	if (r == RES_OK)
		s->sealed = true;
	draft_done(&d);
	record_done(&rec);
	packer_free(&p);
	return r;
}

void
shard_close(struct shard **shard)
{
	struct shard *s = *shard;
	if (s == NULL)
		return;
	const struct archive_io *io = s->env->io;
	/* only tidying: recovery does the same */
	if (s->fd >= 0 && s->lock >= 0 && !s->damaged && !s->poisoned &&
	    s->durable >= SHARD_HEADER_BYTES && s->allocated > s->durable &&
	    io->ftruncate(io, s->fd, s->durable) == 0)
		io->fsync(io, s->fd);
	if (s->fd >= 0)
		io->close(io, s->fd);
	if (s->lock >= 0)
		io->close(io, s->lock);
	dedupe_free(&s->dedupe);
	free(s);
	*shard = NULL;
}

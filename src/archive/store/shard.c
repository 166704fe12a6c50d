#include "archive/store/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "archive/format/record.h"
#include "archive/store/segment_reader.h"
#include "archive/store/shard_inside.h"

#define MAX_ALARM 1024
#define SEAL_MAX  256

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

struct shard *
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

enum res
shard_open_segment(struct shard *s)
{
	char path[PATH_MAX];
	enum res r = io_path(path, "%s/segment", s->dir);
	if (r != RES_OK)
		return r;
	s->fd = s->env->io->open(s->env->io, path, O_RDWR, 0);
	return s->fd < 0 ? io_error(errno) : RES_OK;
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
	size_t first = s->grown ? 0 : sizeof steps / sizeof steps[0] - 1;
	s->grown = true;
	for (size_t i = first; i < sizeof steps / sizeof steps[0]; i++) {
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
		if (r != RES_AGAIN && !is_reachable(s))
			s->poisoned = true;
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

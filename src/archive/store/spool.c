#include "archive/store/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "archive/store/store.h"
#include "base/codec.h"
#include "keys/digest.h"

struct spool {
	struct sink sink;
	struct arena *arena;
	const struct archive_io *io;
	const char *store_path;
	struct bufpool *pool;
	struct buf memory;    /* all of it, or what is not in the file yet */
	int fd;               /* unlinked file; -1: none */
	uint64_t in_file, bytes;
	struct sink *digest;
	uint8_t sha256[DIGEST_LEN];
	enum res error;
	bool finished;
};

static void
spool_release(void *arg)
{
	struct spool *sp = arg;
	bufpool_give(sp->pool, &sp->memory);
	if (sp->fd >= 0)
		sp->io->close(sp->io, sp->fd);
	sp->fd = -1;
}

/* A new file in tmp/, locked as long as it is ours: store_open removes what
 * nobody holds. */
static enum res
make_temporary(struct spool *sp, const uint8_t name[16], char path[PATH_MAX],
    int *out)
{
	char file[FRAME_BODY_NAME];
	struct frame_body b = { .frame = 0 };
	memcpy(b.file_name, name, sizeof b.file_name);
	frame_body_name(&b, file);
	enum res r = io_path(path, "%s/tmp/%s", sp->store_path, file);
	if (r != RES_OK)
		return r;
	int fd = sp->io->open(sp->io, path, O_RDWR | O_CREAT | O_EXCL,
	    ARCHIVE_FILE_MODE);
	if (fd < 0)
		return io_error(errno);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = io_error(errno);
		sp->io->unlink(sp->io, path);
		sp->io->close(sp->io, fd);
		return r;
	}
	*out = fd;
	return RES_OK;
}

/* Write what is in memory behind what is in the file. */
static enum res
spill(struct spool *sp)
{
	if (sp->fd < 0) {
		uint8_t name[16];
		char path[PATH_MAX];
		enum res r = digest_random(name, sizeof name);
		if (r == RES_OK)
			r = make_temporary(sp, name, path, &sp->fd);
		if (r != RES_OK)
			return r;
		sp->io->unlink(sp->io, path);
	}
	enum res r = io_write(sp->io, sp->fd, sp->memory.ptr, sp->memory.len,
	    sp->in_file);
	if (r != RES_OK)
		return r;
	sp->in_file += sp->memory.len;
	buf_reset(&sp->memory);
	return RES_OK;
}

static void
spool_push(struct sink *s, const char *bytes, size_t len)
{
	struct spool *sp = (struct spool *)s;
	sp->bytes += len;
	if (sp->error != RES_OK || len == 0)
		return;
	sink_push(sp->digest, bytes, len);
	while (len > 0 && sp->error == RES_OK) {
		size_t room = (sp->fd < 0 ? SPOOL_MAX_MEMORY : SPOOL_PIECE) -
		    sp->memory.len;
		size_t n = len < room ? len : room;
		buf_add(&sp->memory, bytes, n);
		sp->error = sp->memory.error;
		bytes += n;
		len -= n;
		if (len > 0 && sp->error == RES_OK) {
			bool first = sp->fd < 0;
			sp->error = spill(sp);
			if (first) /* give the megabyte back */
				buf_done(&sp->memory);
		}
	}
}

static enum res
spool_finish(struct sink *s)
{
	struct spool *sp = (struct spool *)s;
	enum res r = sink_finish(sp->digest);
	if (sp->error == RES_OK)
		sp->error = r;
	if (sp->error == RES_OK && sp->fd >= 0)
		sp->error = spill(sp);
	sp->finished = true;
	return sp->error;
}

struct spool *
spool_make(struct arena *a, const struct archive_io *io,
    const char *store_path, struct bufpool *pool)
{
	struct spool *sp = ARENA_NEW(a, struct spool);
	if (sp == NULL)
		return NULL;
	*sp = (struct spool){ .sink = { spool_push, spool_finish }, .arena = a,
		.io = io, .store_path = store_path, .pool = pool, .fd = -1 };
	sp->memory = bufpool_take(pool, SPOOL_MAX_MEMORY);
	sp->digest = digest_sink(a, sp->sha256);
	if (sp->digest != NULL && arena_on_free(a, spool_release, sp) == RES_OK)
		return sp;
	spool_release(sp);
	return NULL;
}

struct sink *
spool_sink(struct spool *sp)
{
	return &sp->sink;
}

uint64_t
spool_bytes(const struct spool *sp)
{
	return sp->bytes;
}

/* --- packing --- */

/* Where the zstd frame goes: first into the draft, beyond the limit into a
 * file. */
struct body_target {
	struct spool *spool;
	struct draft *draft;
	size_t begin;         /* of the zstd frame in the draft */
	int fd;
	char path[PATH_MAX];
	uint8_t name[16];
	uint64_t bytes;
	uint32_t crc;
};

/* Move what the draft holds of the zstd frame to the file. */
static enum res
drain(struct body_target *t)
{
	struct spool *sp = t->spool;
	if (t->fd < 0) {
		enum res r = digest_random(t->name, sizeof t->name);
		if (r == RES_OK)
			r = make_temporary(sp, t->name, t->path, &t->fd);
		if (r != RES_OK)
			return r;
	}
	const char *from = t->draft->bytes.ptr + t->begin;
	size_t len = t->draft->bytes.len - t->begin;
	enum res r = io_write(sp->io, t->fd, from, len, t->bytes);
	t->crc = crc32c(t->crc, from, len);
	t->bytes += len;
	t->draft->bytes.len = t->begin;
	return r;
}

static enum res
pack_piece(struct body_target *t, struct packer *p, const char *bytes,
    size_t len, bool last)
{
	enum res r = packer_push(p, bytes, len, last, &t->draft->bytes);
	size_t held = t->draft->bytes.len - t->begin;
	uint64_t limit = t->fd < 0 ? FRAME_MAX_BODY_BLOCK - FRAME_BODY_HEAD :
				     SPOOL_PIECE;
	if (r == RES_OK && held > limit)
		r = drain(t);
	return r;
}

static enum res
pack_file(struct body_target *t, struct packer *p)
{
	struct spool *sp = t->spool;
	char *piece = arena_alloc(sp->arena, SPOOL_PIECE);
	if (piece == NULL)
		return RES_NOMEM;
	enum res r = packer_begin(p, sp->in_file);
	for (uint64_t at = 0; r == RES_OK && at < sp->in_file;) {
		uint64_t left = sp->in_file - at;
		size_t n = left < SPOOL_PIECE ? (size_t)left : SPOOL_PIECE;
		r = io_read(sp->io, sp->fd, piece, n, at);
		at += n;
		if (r == RES_OK)
			r = pack_piece(t, p, piece, n, at == sp->in_file);
	}
	return r;
}

/* What is left goes to the file, which becomes durable. */
static enum res
end_file(struct body_target *t)
{
	struct spool *sp = t->spool;
	enum res r = drain(t);
	if (r == RES_OK && sp->io->fsync(sp->io, t->fd) < 0)
		r = io_error(errno);
	if (r == RES_OK)
		r = draft_body_in_file(t->draft, t->bytes, t->crc, t->name);
	return r;
}

enum res
spool_pack(struct spool *sp, struct packer *p, struct draft *d)
{
	if (!sp->finished)
		return RES_INVALID;
	if (sp->error != RES_OK)
		return sp->error;
	enum res r = draft_body_begin(d, sp->bytes, sp->sha256);
	if (r != RES_OK)
		return r;
	if (sp->fd < 0) {
		r = packer_whole(p, buf_str(&sp->memory), &d->bytes);
		return r == RES_OK ? draft_body_end(d) : r;
	}
	struct body_target t = { .spool = sp, .draft = d,
		.begin = d->bytes.len, .fd = -1 };
	r = pack_file(&t, p);
	if (r == RES_OK)
		r = t.fd < 0 ? draft_body_end(d) : end_file(&t);
	if (t.fd >= 0) {
		if (r != RES_OK)
			sp->io->unlink(sp->io, t.path);
		sp->io->close(sp->io, t.fd);
	}
	return r;
}

const uint8_t *
spool_sha256(const struct spool *sp)
{
	return sp->sha256;
}

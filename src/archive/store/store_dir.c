#include "archive/store/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/codec.h"
#include "keys/digest.h"

#define IDENTITY_MAX 512

bool
store_family_valid(const char *family)
{
	size_t n = 0;
	for (; family[n] != '\0'; n++)
		if (n >= SHARD_MAX_FAMILY ||
		    !(ascii_is_digit(family[n]) || family[n] == '-' ||
			(family[n] >= 'a' && family[n] <= 'z')))
			return false;
	return n > 0 && family[0] != '-';
}

/* --- identity: lines of `name value` --- */

static bool
identity_line(struct str line, struct store_identity *id, unsigned *seen)
{
	struct str name;
	uint64_t n;
	if (!str_split(&line, ' ', &name))
		return false;
	if (str_eq(name, STR("uuid"))) {
		struct buf b;
		buf_init(&b, sizeof id->uuid);
		enum res r = hex_decode(line, &b);
		bool ok = r == RES_OK && b.len == sizeof id->uuid;
		if (ok)
			memcpy(id->uuid, b.ptr, sizeof id->uuid);
		buf_done(&b);
		ok = ok && (*seen & 1) == 0;
		*seen |= 1;
		return ok;
	}
	if (str_to_u64(line, UINT32_MAX, &n) != RES_OK)
		return false;
	unsigned which = str_eq(name, STR("epoch")) ? 2 :
	    str_eq(name, STR("next-shard")) ? 4 : 0;
	if (which == 2)
		id->epoch = (uint32_t)n;
	if (which == 4)
		id->next_shard = (uint32_t)n;
	bool twice = (*seen & which) != 0;
	*seen |= which;
	return !twice; /* what else it says is of no interest */
}

enum res
store_identity_parse(struct str text, const char *path, struct err *err,
    struct store_identity *out)
{
	static const char head[] = "hanaper-store ";
	struct store_identity id = { .epoch = 0 };
	struct str line, rest = text;
	unsigned seen = 0;
	if (!str_split(&rest, '\n', &line) || !str_starts(line, str_c(head))) {
		err_set(err, "%s:1: no archive store's", path);
		return RES_CORRUPT;
	}
	if (!str_eq(str_skip(line, sizeof head - 1), STR("1"))) {
		err_set(err, "%s:1: a store of version %.*s, and this program "
		    "knows 1", path, STR_ARG(str_skip(line, sizeof head - 1)));
		return RES_CORRUPT;
	}
	while (str_split(&rest, '\n', &line))
		if (line.len > 0 && !identity_line(line, &id, &seen)) {
			err_set(err, "%s:%zu: damaged", path,
			    str_line_at(text, line.ptr));
			return RES_CORRUPT;
		}
	if (seen != 7 || id.epoch == 0 || id.next_shard == 0) {
		err_set(err, "%s:%zu: uuid, epoch and next-shard do not all "
		    "stand there", path, str_line_at(text, NULL));
		return RES_CORRUPT;
	}
	*out = id;
	return RES_OK;
}

static enum res
identity_write(const struct archive_io *io, const char *path,
    const struct store_identity *id)
{
	struct buf b;
	buf_init(&b, IDENTITY_MAX);
	buf_add_c(&b, "hanaper-store 1\nuuid ");
	hex_encode(&b, id->uuid, sizeof id->uuid);
	buf_addf(&b, "\nepoch %u\nnext-shard %u\n", id->epoch, id->next_shard);
	enum res r = b.error;
	if (r == RES_OK)
		r = io_put_file(io, path, "store", b.ptr, b.len);
	buf_done(&b);
	return r;
}

enum res
store_dir_identity(
    const char *path, struct err *err, struct store_identity *out)
{
	char file[PATH_MAX], text[IDENTITY_MAX];
	enum res r = io_path(file, "%s/store", path);
	if (r != RES_OK)
		return r;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		r = io_error(errno);
		err_set(err, "%s: %s", file,
		    r == RES_NOTFOUND ? "no archive store here" : res_text(r));
		return r;
	}
	size_t len;
	r = io_read_some(&archive_io_system, fd, text, sizeof text, 0, &len);
	close(fd);
	if (r == RES_OK)
		r = store_identity_parse(str_of(text, len), file, err, out);
	if (r != RES_OK)
		err_set(err, "%s: %s", file, res_text(r));
	return r;
}

enum res
store_dir_put_identity(const struct archive_io *io, const char *path,
    const struct store_identity *id)
{
	return identity_write(io, path, id);
}

/* The store's LOCK, for the moment of a change; closed = unlocked. */
static enum res
lock_store(const char *path, struct err *err, int *out)
{
	char file[PATH_MAX];
	enum res r = io_path(file, "%s/LOCK", path);
	if (r != RES_OK)
		return r;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, ARCHIVE_FILE_MODE);
	if (fd < 0 || flock(fd, LOCK_EX) < 0) {
		r = io_error(errno);
		err_set(err, "%s: %s", file, res_text(r));
		if (fd >= 0)
			close(fd);
		return r;
	}
	*out = fd;
	return RES_OK;
}

static enum res
make_dirs(const struct archive_io *io, const char *path, struct err *err)
{
	static const char *const names[] = { "tmp", "families" };
	if (io->mkdir(io, path) < 0 && errno != EEXIST) {
		enum res r = io_error(errno);
		err_set(err, "%s: cannot make it: %s", path, res_text(r));
		return r;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char dir[PATH_MAX];
		enum res r = io_path(dir, "%s/%s", path, names[i]);
		if (r == RES_OK)
			r = io_make_dir(io, path, dir);
		if (r != RES_OK) {
			err_set(err, "%s/%s: cannot make it: %s", path,
			    names[i], res_text(r));
			return r;
		}
	}
	return RES_OK;
}

enum res
store_dir_create(const struct archive_io *io, const char *path,
    struct err *err, struct store_identity *out)
{
	int lock;
	enum res r = make_dirs(io, path, err);
	if (r == RES_OK)
		r = lock_store(path, err, &lock);
	if (r != RES_OK)
		return r;
	struct err missing = { "" };
	struct store_identity id = { .epoch = 1, .next_shard = 1 };
	r = store_dir_identity(path, &missing, &id);
	if (r == RES_NOTFOUND) {
		r = digest_random(id.uuid, sizeof id.uuid);
		if (r == RES_OK)
			r = identity_write(io, path, &id);
	}
	close(lock);
	if (r != RES_OK) {
		err_set(err, "%s: %s", path,
		    missing.text[0] != '\0' ? missing.text : res_text(r));
		return r;
	}
	*out = id;
	return RES_OK;
}

enum res
store_dir_take_number(const struct archive_io *io, const char *path,
    struct err *err, struct store_identity *out)
{
	int lock;
	struct store_identity id;
	enum res r = lock_store(path, err, &lock);
	if (r != RES_OK)
		return r;
	r = store_dir_identity(path, err, &id);
	if (r == RES_OK && id.next_shard == UINT32_MAX)
		r = RES_LIMIT;
	if (r == RES_OK) {
		struct store_identity next = id;
		next.next_shard++;
		r = identity_write(io, path, &next);
	}
	close(lock);
	if (r != RES_OK) {
		err_set(err, "%s/store: %s", path, res_text(r));
		return r;
	}
	*out = id;
	return RES_OK;
}

enum res
store_dir_new_epoch(const struct archive_io *io, const char *path,
    uint32_t from, struct err *err)
{
	int lock;
	struct store_identity id;
	enum res r = lock_store(path, err, &lock);
	if (r != RES_OK)
		return r;
	r = store_dir_identity(path, err, &id);
	if (r == RES_OK && id.epoch == UINT32_MAX)
		r = RES_LIMIT;
	if (r == RES_OK && id.epoch <= from) {
		id.epoch = from + 1;
		r = identity_write(io, path, &id);
	}
	close(lock);
	if (r != RES_OK)
		err_set(err, "%s/store: %s", path, res_text(r));
	return r;
}

/* --- shards --- */

struct shard_listing {
	struct arena *arena;
	struct shard_entry *entries;
	size_t count, cap;
};

/* "2026-11.3" */
static bool
parse_name(struct str name, struct str *out_period, unsigned *out_ordinal)
{
	size_t dot = str_rchr(name, '.');
	uint64_t n;
	if (dot == SIZE_MAX || dot == 0 || dot > SHARD_MAX_PERIOD ||
	    str_to_u64(str_skip(name, dot + 1), 999999, &n) != RES_OK)
		return false;
	*out_period = str_sub(name, 0, dot);
	*out_ordinal = (unsigned)n;
	return true;
}

static enum res
read_shard_header(const char *dir, struct shard_header *out)
{
	char file[PATH_MAX];
	uint8_t bytes[SHARD_HEADER_BYTES];
	enum res r = io_path(file, "%s/segment", dir);
	if (r != RES_OK)
		return r;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(errno);
	r = io_read(&archive_io_system, fd, bytes, sizeof bytes, 0);
	close(fd);
	return r == RES_OK ? shard_header_decode(bytes, out) : r;
}

static enum res
add_shard(struct shard_listing *l, const char *family_dir, const char *family,
    const char *name)
{
	struct shard_entry e = { .status = RES_OK };
	struct str period;
	if (!parse_name(str_c(name), &period, &e.ordinal))
		return RES_OK;
	if (l->count == STORE_MAX_SHARDS)
		return RES_LIMIT;
	if (l->count == l->cap) {
		size_t cap = l->cap == 0 ? 16 : l->cap * 2;
		struct shard_entry *more =
		    arena_array(l->arena, cap, sizeof *more);
		if (more == NULL)
			return RES_NOMEM;
		if (l->count > 0)
			memcpy(more, l->entries, l->count * sizeof *more);
		l->entries = more;
		l->cap = cap;
	}
	struct str dir = arena_printf(l->arena, "%s/%s", family_dir, name);
	e.dir = dir.ptr;
	e.family = arena_cstr(l->arena, str_c(family));
	e.period = arena_cstr(l->arena, period);
	if (e.dir == NULL || e.family == NULL || e.period == NULL)
		return RES_NOMEM;
	e.status = read_shard_header(e.dir, &e.header);
	if (e.status != RES_NOTFOUND)
		l->entries[l->count++] = e;
	return RES_OK;
}

static enum res
add_family(struct shard_listing *l, const char *path, const char *family)
{
	char dir[PATH_MAX];
	enum res r = io_path(dir, "%s/families/%s", path, family);
	if (r != RES_OK)
		return r;
	DIR *d = opendir(dir);
	if (d == NULL)
		return errno == ENOENT ? RES_OK : io_error(errno);
	const struct dirent *e;
	while (r == RES_OK && (e = readdir(d)) != NULL)
		r = add_shard(l, dir, family, e->d_name);
	closedir(d);
	return r;
}

static enum res
add_families(struct shard_listing *l, const char *path)
{
	char dir[PATH_MAX];
	enum res r = io_path(dir, "%s/families", path);
	if (r != RES_OK)
		return r;
	DIR *d = opendir(dir);
	if (d == NULL)
		return io_error(errno);
	const struct dirent *e;
	while (r == RES_OK && (e = readdir(d)) != NULL)
		if (store_family_valid(e->d_name))
			r = add_family(l, path, e->d_name);
	closedir(d);
	return r;
}

static int
older_first(const void *x, const void *y)
{
	const struct shard_entry *a = x, *b = y;
	int c = strcmp(a->period, b->period);
	if (c != 0)
		return c;
	if (a->header.number != b->header.number)
		return a->header.number < b->header.number ? -1 : 1;
	return strcmp(a->dir, b->dir);
}

enum res
store_dir_shards(const char *path, const char *family, struct arena *a,
    struct err *err, struct shard_entry **out, size_t *out_count)
{
	struct shard_listing l = { .arena = a };
	enum res r = family != NULL ? add_family(&l, path, family) :
				      add_families(&l, path);
	if (r != RES_OK) {
		err_set(err, "%s: cannot list its shards: %s", path,
		    res_text(r));
		return r;
	}
	if (l.count > 1)
		qsort(l.entries, l.count, sizeof *l.entries, older_first);
	*out = l.entries;
	*out_count = l.count;
	return RES_OK;
}

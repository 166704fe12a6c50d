#include "cli/rescue_out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/format/compress.h"
#include "cli/archive.h"
#include "cli/manifest.h"

#define PIECE 65536
#define MAX_NAME 256

/* --- opening and closing --------------------------------------------------- */

static int
make_empty_dir(const char *path)
{
	if (mkdir(path, 0750) == 0)
		return EX_OK;
	if (errno != EEXIST)
		return cli_fail(EX_CANTCREAT, "%s: %s", path, strerror(errno));
	DIR *d = opendir(path);
	const struct dirent *e;
	bool empty = d != NULL;
	while (empty && (e = readdir(d)) != NULL)
		empty = strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0;
	if (d != NULL)
		closedir(d);
	if (empty)
		return EX_OK;
	return cli_fail(EX_CANTCREAT,
	    "%s: there already, and no empty directory", path);
}

static void
alarm_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "hanaper: %s\n", line);
}

int
rescue_out_open(struct rescue_out *o)
{
	char path[PATH_MAX];
	struct err err = { "" };
	int status = make_empty_dir(o->to);
	if (status != EX_OK)
		return status;
	if (o->as_store) {
		const struct store_options so = { .path = o->to,
			.on_demand = true,
			.by_date = true,
			.clock = CLOCK_SYSTEM,
			.alarm = alarm_line };
		enum res r = store_open(&so, &err, &o->store);
		return r == RES_OK ? EX_OK :
		    cli_fail(cli_status(r), "%s",
			err.text[0] != '\0' ? err.text : res_text(r));
	}
	if (io_path(path, "%s/MANIFEST", o->to) == RES_OK)
		o->manifest = fopen(path, "wbx");
	return o->manifest != NULL ? EX_OK :
	    cli_fail(EX_CANTCREAT, "%s/MANIFEST: %s", o->to, strerror(errno));
}

int
rescue_out_close(struct rescue_out *o, int status)
{
	bool bad = false;
	store_close(&o->store);
	if (o->manifest != NULL)
		bad = fclose(o->manifest) != 0;
	o->manifest = NULL;
	int fd = open(o->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		bad = syncfs(fd) != 0 || bad;
		close(fd);
	}
	return bad ? cli_fail(EX_IOERR, "%s: write error", o->to) : status;
}

/* --- bytes to a file ------------------------------------------------------- */

struct file_out {
	struct sink sink;
	FILE *file;
};

static void
file_push(struct sink *s, const char *bytes, size_t len)
{
	(void)fwrite(bytes, 1, len, ((struct file_out *)s)->file);
}

static enum res
file_finish(struct sink *s)
{
	FILE *f = ((struct file_out *)s)->file;
	return fflush(f) == 0 && !ferror(f) ? RES_OK : RES_IO;
}

/* Where the bytes come from: a frame, or a file in bodies/. */
struct origin {
	struct segment_reader *reader;
	const struct segment_frame *frame;
	const char *path;
};

static enum res
unpack_file(const char *path, struct err *err, struct sink *out)
{
	static char bytes[PIECE];
	enum res r = RES_OK;
	struct unpacker *u = unpacker_new();
	FILE *f = fopen(path, "rb");
	if (f == NULL || u == NULL) {
		r = f == NULL ? io_error(errno) : RES_NOMEM;
		err_set(err, "%s: %s", path, res_text(r));
	}
	if (r == RES_OK)
		r = unpacker_begin(u, NULL);
	while (r == RES_OK) {
		size_t n = fread(bytes, 1, sizeof bytes, f);
		if (n == 0)
			break;
		r = unpacker_push(u, str_of(bytes, n), out);
	}
	if (r == RES_OK && ferror(f))
		r = RES_CORRUPT;
	if (r == RES_OK)
		r = unpacker_finish(u);
	if (r == RES_CORRUPT)
		err_set(err, "%s: damaged", path);
	if (f != NULL)
		fclose(f);
	unpacker_free(&u);
	return r;
}

/* Into `out`, which is finished. An error of `out` goes before one of what is
 * read: the disk is full, not the message lost. */
static enum res
pour(const struct origin *from, struct err *err, struct sink *out)
{
	enum res r = from->path != NULL ?
	    unpack_file(from->path, err, out) :
	    segment_reader_body(from->reader, from->frame, err, out);
	enum res finished = sink_finish(out);
	return finished != RES_OK ? finished : r;
}

/* A new file of that name, there whole or not at all. */
static enum res
write_file(const struct rescue_out *o, struct arena *a, const char *name,
    const struct origin *from, struct err *err, uint8_t hash[DIGEST_LEN])
{
	char path[PATH_MAX], temporary[PATH_MAX];
	enum res r = io_path(path, "%s/%s", o->to, name);
	if (r == RES_OK)
		r = io_path(temporary, "%s/.part", o->to);
	if (r != RES_OK)
		return r;
	struct file_out f = { { file_push, file_finish },
		fopen(temporary, "wb") };
	struct sink *both[] = { &f.sink, digest_sink(a, hash) };
	struct sink *tee = both[1] != NULL ? sink_tee(a, both, 2) : NULL;
	if (f.file == NULL || tee == NULL) {
		r = f.file == NULL ? RES_IO : RES_NOMEM;
		err_set(err, "%s: %s", temporary, strerror(errno));
		if (f.file != NULL)
			fclose(f.file);
		return r;
	}
	r = pour(from, err, tee);
	if (fclose(f.file) != 0 && r == RES_OK)
		r = RES_IO;
	if (r == RES_OK && rename(temporary, path) != 0)
		r = RES_IO;
	if (r == RES_IO)
		err_set(err, "%s: %s", path, strerror(errno));
	(void)unlink(temporary);
	return r;
}

static void
put_line(struct rescue_out *o, const struct rescued *m, const char *name,
    const uint8_t *hash)
{
	struct buf id;
	buf_init(&id, MAX_NAME);
	buf_add_str(&id, m->label);
	buf_addf(&id, ".%" PRIu64, m->number);
	const struct manifest_line l = { .id = buf_str(&id),
		.sha256 = hash,
		.bytes = m->bytes,
		.file = str_c(name),
		.meta = m->meta,
		.time_us = m->time_us };
	manifest_put(o->manifest, &l);
	buf_done(&id);
}

static enum res
to_file(struct rescue_out *o, struct arena *a, const struct rescued *m,
    const struct origin *from, struct err *err)
{
	uint8_t hash[DIGEST_LEN];
	char name[MAX_NAME], path[PATH_MAX];
	snprintf(name, sizeof name, "%.*s.%" PRIu64 ".eml", STR_ARG(m->label),
	    m->holder);
	enum res r = io_path(path, "%s/%s", o->to, name);
	if (r != RES_OK)
		return r;
	/* a further delivery of what is written already */
	if (m->holder != m->number && access(path, F_OK) == 0) {
		struct sink *digest = digest_sink(a, hash);
		r = digest != NULL ? pour(from, err, digest) : RES_NOMEM;
	} else {
		r = write_file(o, a, name, from, err, hash);
	}
	if (r == RES_OK)
		put_line(o, m, name, hash);
	return r;
}

/* --- a new store ----------------------------------------------------------- */

static enum res
to_store(struct rescue_out *o, struct arena *a, const struct rescued *m,
    const struct origin *from, struct err *err)
{
	struct record meta;
	uint64_t id;
	struct spool *spool = spool_new(a, o->store);
	if (spool == NULL)
		return RES_NOMEM;
	enum res r = pour(from, err, spool_sink(spool));
	if (r != RES_OK)
		return r;
	record_init(&meta, MAX_NAME + PATH_MAX);
	record_add(&meta, META_DIRECTION, STR("rescued"));
	record_add(&meta, META_SOURCE, arena_printf(a, "%.*s.%" PRIu64,
	    STR_ARG(m->label), m->number));
	const struct store_message sm = { .family = m->family,
		.time_us = m->time_us,
		.meta = m->meta.len > 0 ? m->meta : buf_str(&meta.buf),
		.evidence = m->evidence,
		.edits = m->edits,
		.body = spool };
	r = meta.buf.error;
	if (r == RES_OK)
		r = store_submit(o->store, &sm, &id);
	record_done(&meta);
	if (r != RES_OK)
		err_set(err, "%s: %s", o->to, res_text(r));
	/* a full disk or a refused message: it was not what was read */
	return r == RES_CORRUPT || r == RES_NOTFOUND ? RES_IO : r;
}

enum res
rescue_out_frame(struct rescue_out *o, struct arena *a, const struct rescued *m,
    struct segment_reader *r, const struct segment_frame *f, struct err *err)
{
	const struct origin from = { .reader = r, .frame = f };
	return o->as_store ? to_store(o, a, m, &from, err) :
			     to_file(o, a, m, &from, err);
}

enum res
rescue_out_file(struct rescue_out *o, struct arena *a, const struct rescued *m,
    const char *path, struct err *err)
{
	const struct origin from = { .path = path };
	return o->as_store ? to_store(o, a, m, &from, err) :
			     to_file(o, a, m, &from, err);
}

#include "cli/importer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "archive/io.h"
#include "archive/period.h"
#include "archive/store_dir.h"
#include "base/codec.h"
#include "keys/digest.h"
#include "mail/date.h"

#define MAX_ITEMS   1024
#define MAX_BYTES   ((uint64_t)32 << 20)
#define BATCH_ARENA ((size_t)64 << 20)
#define MAX_HEAD    ((size_t)64 << 10) /* a Date is looked for within */
#define MAX_RECORD  ((size_t)4 << 20)
#define THREADS     8
#define WAIT_STEP_US 20000
#define YIELD_SECONDS 3600
#define PRINT_BYTES 4096 /* at both ends of what was read, to know it again */
#define DAY_US ((int64_t)86400 * 1000000)

static int
fail_res(const char *what, const struct err *err, enum res r)
{
	int status = r == RES_NOMEM || r == RES_IO || r == RES_LIMIT ?
	    EX_TEMPFAIL : cli_status(r);
	if (err != NULL && err->text[0] != '\0')
		return cli_fail(status, "%s", err->text);
	return cli_fail(status, "%s: %s", what, res_text(r));
}

/* --- the store ------------------------------------------------------------- */

int
importer_place(struct importer *im, const struct archive_place *p)
{
	int status = EX_OK;
	im->turn = im->lock = im->only = -1;
	im->arena = arena_new(0);
	if (im->arena == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	im->path = p->dir;
	if (p->dir != NULL)
		return EX_OK;
	struct config *config = cli_settings_load(&p->settings, &status);
	if (config == NULL)
		return status;
	im->path = arena_cstr(im->arena, config->archive_dir);
	im->roll_bytes = config->archive_roll_size;
	im->reserve_bytes = config->archive_reserve;
	config_unref(&config);
	if (im->path == NULL)
		return cli_fail(EX_TEMPFAIL, "out of memory");
	/* the daemon could not write what root makes */
	if (geteuid() == 0 && access(im->path, F_OK) != 0)
		return cli_fail(EX_NOPERM, "%s: %s; the daemon makes it at its "
		    "start", im->path, strerror(errno));
	return EX_OK;
}

static void
alarm_line(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "hanaper: %s\n", line);
}

static int
open_store(struct importer *im)
{
	struct err err = { "" };
	const struct store_options o = {
		.path = im->path,
		.roll_bytes = im->roll_bytes,
		.reserve_bytes = im->reserve_bytes,
		.on_demand = true,
		.clock = CLOCK_SYSTEM,
		.alarm = alarm_line,
	};
	enum res r = store_open(&o, &err, &im->store);
	return r == RES_OK ? EX_OK : fail_res(im->path, &err, r);
}

static int
open_lock(const struct importer *im, const char *name, int *out)
{
	char path[PATH_MAX];
	int fd = -1;
	if (io_path(path, "%s/import/%s", im->path, name) == RES_OK)
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, ARCHIVE_FILE_MODE);
	if (fd < 0)
		return cli_fail(EX_TEMPFAIL, "%s/import/%s: %s", im->path, name,
		    strerror(errno));
	*out = fd;
	return EX_OK;
}

/* Files that root made the daemon could not write any more. */
static int
check_owner(const struct importer *im)
{
	struct stat st;
	if (stat(im->path, &st) != 0 || st.st_uid == geteuid())
		return EX_OK;
	return cli_fail(EX_NOPERM,
	    "%s belongs to the user with the number %lu: run this as that user",
	    im->path, (unsigned long)st.st_uid);
}

int
importer_open(struct importer *im, bool knowing)
{
	char dir[PATH_MAX];
	struct err err = { "" };
	int status = check_owner(im);
	if (status == EX_OK)
		status = open_store(im);
	if (status != EX_OK)
		return status;
	enum res r = io_path(dir, "%s/import", im->path);
	if (r == RES_OK)
		r = io_make_dir(&archive_io_system, im->path, dir);
	if (r != RES_OK)
		return fail_res(dir, NULL, r);
	status = open_lock(im, "TURN", &im->turn);
	if (status == EX_OK)
		status = open_lock(im, "LOCK", &im->lock);
	if (status == EX_OK && knowing)
		status = open_lock(im, "ONLY", &im->only);
	if (status != EX_OK || !knowing)
		return status;
	if (flock(im->only, LOCK_EX | LOCK_NB) != 0)
		return cli_fail(EX_TEMPFAIL,
		    "%s: another import is running; try again when it is done",
		    im->path);
	r = known_new(im->path, NULL, &err, &im->known);
	return r == RES_OK ? EX_OK : fail_res(im->path, &err, r);
}

static bool
lock_within(int fd, int64_t until_us)
{
	const struct timespec step = { 0, WAIT_STEP_US * 1000L };
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (clock_mono_us() >= until_us)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

/* Through a turnstile: who waits for the lock holds the turn, so that whoever
 * gives the lock away does not get it back first. */
int
importer_lock(struct importer *im, unsigned seconds)
{
	int64_t until = clock_mono_us() + (int64_t)seconds * 1000000;
	bool got = lock_within(im->turn, until);
	if (got) {
		got = lock_within(im->lock, until);
		(void)flock(im->turn, LOCK_UN);
	}
	if (got)
		return EX_OK;
	return cli_fail(EX_TEMPFAIL,
	    "%s: another process is importing; try again later", im->path);
}

/* Let go of the store when somebody waits for it. */
static int
yield_turn(struct importer *im)
{
	if (flock(im->turn, LOCK_EX | LOCK_NB) == 0) {
		(void)flock(im->turn, LOCK_UN);
		return EX_OK;
	}
	store_close(&im->store);
	(void)flock(im->lock, LOCK_UN);
	int status = importer_lock(im, YIELD_SECONDS);
	return status == EX_OK ? open_store(im) : status;
}

static void
drop_batch(struct importer *im)
{
	for (size_t i = 0; i < im->count; i++)
		buf_done(&im->items[i].head);
	arena_free(&im->batch);
	im->items = NULL;
	im->count = 0;
	im->batch_bytes = 0;
}

void
importer_close(struct importer *im)
{
	drop_batch(im);
	store_close(&im->store);
	known_free(&im->known);
	if (im->turn >= 0)
		close(im->turn);
	if (im->lock >= 0)
		close(im->lock);
	if (im->only >= 0)
		close(im->only);
	arena_free(&im->arena);
}

/* --- one message ----------------------------------------------------------- */

struct import_item *
importer_item(struct importer *im)
{
	if (im->batch == NULL) {
		im->batch = arena_new(BATCH_ARENA);
		if (im->batch == NULL)
			return NULL;
		im->items = arena_array(
		    im->batch, MAX_ITEMS, sizeof *im->items);
	}
	if (im->items == NULL || im->count == MAX_ITEMS)
		return NULL;
	struct import_item *it = &im->items[im->count];
	*it = (struct import_item){ .fd = -1 };
	buf_init(&it->head, MAX_HEAD);
	it->spool = spool_new(im->batch, im->store);
	return it->spool != NULL ? it : NULL;
}

/* Where the header ends in `head`, or SIZE_MAX. */
static size_t
header_end(struct str head)
{
	size_t at = 0;
	while (at < head.len) {
		struct str rest = str_skip(head, at);
		size_t lf = str_chr(rest, '\n');
		if (lf == SIZE_MAX)
			return SIZE_MAX;
		at += lf + 1;
		if (lf == 0 || (lf == 1 && rest.ptr[0] == '\r'))
			return at;
	}
	return SIZE_MAX;
}

void
importer_push(struct import_item *it, const char *bytes, size_t len)
{
	size_t room = MAX_HEAD - it->head.len;
	sink_push(spool_sink(it->spool), bytes, len);
	it->bytes += len;
	if (it->in_body || room == 0)
		return;
	buf_add(&it->head, bytes, len < room ? len : room);
	size_t end = header_end(buf_str(&it->head));
	if (end == SIZE_MAX)
		return;
	it->in_body = true;
	it->header_bytes = end;
	it->head.len = end;
}

/* The text of the first field of this name, folds and all. */
static struct str
find_field(struct str head, struct str name)
{
	while (head.len > 0) {
		size_t end = 0;
		do {
			size_t lf = str_chr(str_skip(head, end), '\n');
			end = lf == SIZE_MAX ? head.len : end + lf + 1;
		} while (end < head.len && ascii_is_wsp(head.ptr[end]));
		struct str field = str_sub(head, 0, end);
		if (str_case_starts(field, name))
			return str_skip(field, name.len);
		head = str_skip(head, end);
	}
	return STR_EMPTY;
}

/* A date that mail can have: not before 1970, not of the day after tomorrow. */
static bool
take_date(struct str text, int64_t *out_us)
{
	int64_t s;
	const struct clock now = CLOCK_SYSTEM;
	if (date_parse(text, &s) != RES_OK || s <= 0 ||
	    s > (clock_now_us(&now) + 2 * DAY_US) / 1000000)
		return false;
	*out_us = s * 1000000;
	return true;
}

/* When it was sent: its Date, else the newest Received, else what the source
 * says. */
static int64_t
time_of(const struct import_item *it)
{
	int64_t us;
	struct str head = buf_str(&it->head);
	struct str received = find_field(head, STR("Received:"));
	size_t semicolon = str_rchr(received, ';');
	if (it->time_us != 0)
		return it->time_us;
	if (take_date(find_field(head, STR("Date:")), &us))
		return us;
	if (semicolon != SIZE_MAX &&
	    take_date(str_skip(received, semicolon + 1), &us))
		return us;
	return it->fallback_us;
}

int
importer_item_end(struct importer *im, struct import_item *it)
{
	enum res r = sink_finish(spool_sink(it->spool));
	if (r != RES_OK)
		return fail_res(im->path, NULL, r);
	im->bytes += it->bytes;
	im->batch_bytes += it->bytes; /* known or not, it is in memory */
	it->time_us = time_of(it);
	buf_done(&it->head);
	if (im->known != NULL) {
		const uint8_t *hash = spool_sha256(it->spool);
		if (known_has(im->known, hash)) {
			im->there++;
			return EX_OK; /* the spool goes with the batch */
		}
		r = known_add(im->known, hash);
		if (r != RES_OK && r != RES_LIMIT)
			return fail_res(im->path, NULL, r);
	}
	im->count++;
	return EX_OK;
}

bool
importer_batch_full(const struct importer *im)
{
	return im->count == MAX_ITEMS || im->batch_bytes >= MAX_BYTES ||
	    (im->batch != NULL && arena_used(im->batch) > BATCH_ARENA / 2);
}

/* --- batches --------------------------------------------------------------- */

struct run {
	struct importer *im;
	struct import_item *items;
	size_t count;
	atomic_size_t next;
};

static enum res
submit(struct importer *im, struct import_item *it)
{
	struct record meta;
	struct buf source;
	uint64_t id;
	buf_init(&source, PATH_MAX + 64);
	buf_addf(&source, "%s:%" PRIu64, it->source, it->offset);
	record_init(&meta, MAX_RECORD);
	record_add(&meta, META_DIRECTION, STR("import"));
	record_add(&meta, META_MAIL_FROM, it->sender);
	for (size_t i = 0; i < it->rcpt_count; i++)
		record_add(&meta, META_RCPT, it->rcpts[i]);
	if (it->header_bytes > 0)
		record_add_u64(&meta, META_HEADER_BYTES, it->header_bytes);
	record_add(&meta, META_SOURCE, buf_str(&source));
	record_add_u32(&meta, META_FLAGS, META_FLAG_AS_READ);
	enum res r = meta.buf.error;
	const struct store_message m = { .family = STORE_IMPORT_FAMILY,
		.time_us = it->time_us,
		.meta = buf_str(&meta.buf),
		.body = it->spool };
	if (r == RES_OK)
		r = store_submit(im->store, &m, &id);
	record_done(&meta);
	buf_done(&source);
	return r;
}

static void *
submit_some(void *arg)
{
	struct run *run = arg;
	size_t i;
	while ((i = atomic_fetch_add(&run->next, 1)) < run->count)
		run->items[i].result = submit(run->im, &run->items[i]);
	return NULL;
}

/* Several at once, so that they share a sync; all of one month, so that the
 * store does not change shards back and forth. */
static void
submit_run(struct importer *im, struct import_item *items, size_t count)
{
	struct run run = { .im = im, .items = items, .count = count };
	pthread_t threads[THREADS];
	size_t started = 0;
	for (size_t i = 0; i < count; i++)
		items[i].result = RES_AGAIN;
	while (started + 1 < THREADS && started + 1 < count &&
	    pthread_create(&threads[started], NULL, submit_some, &run) == 0)
		started++;
	(void)submit_some(&run);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

static int
by_time(const void *a, const void *b)
{
	const struct import_item *x = a, *y = b;
	if (x->time_us != y->time_us)
		return x->time_us < y->time_us ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What the store refuses for what it is goes aside; anything else may go
 * away. */
static int
settle(struct importer *im, const struct import_item *it)
{
	switch (it->result) {
	case RES_OK:
		im->imported++;
		return EX_OK;
	case RES_LIMIT:
	case RES_INVALID:
	case RES_SYNTAX:
		return importer_set_aside(im, it->source, it->fd, it->offset,
		    it->end, res_text(it->result));
	default:
		return cli_fail(EX_TEMPFAIL, "%s: at %" PRIu64
		    ": not archived: %s", it->source, it->offset,
		    res_text(it->result));
	}
}

int
importer_flush(struct importer *im)
{
	int status = EX_OK;
	if (im->count > 1)
		qsort(im->items, im->count, sizeof *im->items, by_time);
	for (size_t from = 0, to; from < im->count && status == EX_OK;
	    from = to) {
		int64_t month = period_of(im->items[from].time_us);
		for (to = from; to < im->count &&
		    period_of(im->items[to].time_us) == month; to++)
			;
		submit_run(im, im->items + from, to - from);
		for (size_t i = from; i < to && status == EX_OK; i++)
			status = settle(im, &im->items[i]);
	}
	drop_batch(im);
	return status == EX_OK ? yield_turn(im) : status;
}

int
importer_add(struct importer *im, struct import_item *it)
{
	enum res r = sink_finish(spool_sink(it->spool));
	buf_done(&it->head);
	if (r == RES_OK)
		r = submit(im, it);
	return r == RES_OK ? EX_OK : fail_res(im->path, NULL, r);
}

/* --- aside ----------------------------------------------------------------- */

/* [offset, end) of `in` to a new file; durable. */
static bool
copy_range(int in, uint64_t offset, uint64_t end, const char *path)
{
	static char bytes[65536];
	bool good = true;
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		return false;
	while (good && offset < end) {
		size_t want = end - offset < sizeof bytes ?
		    (size_t)(end - offset) : sizeof bytes;
		ssize_t n = pread(in, bytes, want, (off_t)offset);
		if (n == 0)
			break;
		good = n > 0 && write(out, bytes, (size_t)n) == n;
		offset += n > 0 ? (uint64_t)n : 0;
	}
	good = fsync(out) == 0 && good;
	return close(out) == 0 && good;
}

int
importer_set_aside(struct importer *im, const char *source, int fd,
    uint64_t offset, uint64_t end, const char *why)
{
	char path[PATH_MAX];
	uint8_t hash[DIGEST_LEN];
	const char *name = strrchr(source, '/');
	name = name != NULL ? name + 1 : source;
	int in = fd >= 0 ? fd : open(source, O_RDONLY | O_CLOEXEC);
	/* sources in different folders have the same names */
	enum res r = digest_sha256(source, strlen(source), hash);
	if (r == RES_OK)
		r = io_path(path, "%s/%.100s.%08" PRIx32 ".%" PRIu64,
		    im->aside, name, get_le32(hash), offset);
	errno = 0;
	bool good = r == RES_OK && in >= 0 &&
	    (mkdir(im->aside, 0700) == 0 || errno == EEXIST) &&
	    copy_range(in, offset, end, path);
	if (fd < 0 && in >= 0)
		close(in);
	if (!good)
		return cli_fail(EX_CANTCREAT,
		    "%s: at %" PRIu64 ": %s, and cannot be kept in %s: %s",
		    source, offset, why, im->aside, strerror(errno));
	im->bad++;
	fprintf(stderr, "hanaper: %s: at %" PRIu64 ": %s; kept in %s\n",
	    source, offset, why, path);
	return EX_OK;
}

/* --- how far --------------------------------------------------------------- */

/* The first and the last bytes before `offset`, hashed. */
static enum res
fingerprint(int fd, uint64_t offset, uint8_t out[DIGEST_LEN])
{
	static char bytes[2 * PRINT_BYTES];
	size_t n = offset < PRINT_BYTES ? (size_t)offset : PRINT_BYTES;
	if (pread(fd, bytes, n, 0) != (ssize_t)n ||
	    pread(fd, bytes + n, n, (off_t)(offset - n)) != (ssize_t)n)
		return RES_CORRUPT;
	return digest_sha256(bytes, 2 * n, out);
}

/* The text to find in the file that remembers `source`, and its name. */
static enum res
describe(const char *source, int fd, uint64_t offset, char name[65],
    struct buf *out)
{
	uint8_t hash[DIGEST_LEN], print[DIGEST_LEN];
	struct buf hex;
	enum res r = digest_sha256(source, strlen(source), hash);
	if (r == RES_OK)
		r = fingerprint(fd, offset, print);
	if (r != RES_OK)
		return r;
	buf_init(&hex, 65);
	hex_encode(&hex, hash, DIGEST_LEN);
	if (buf_cstr(&hex) == NULL)
		return RES_NOMEM;
	memcpy(name, hex.ptr, 64);
	name[64] = '\0';
	buf_done(&hex);
	buf_addf(out, "%" PRIu64 "\n", offset);
	hex_encode(out, print, DIGEST_LEN);
	buf_addf(out, "\n%s\n", source);
	return out->error;
}

uint64_t
importer_recall(struct importer *im, const char *source, int fd)
{
	char path[PATH_MAX], name[65], line[32], from[5] = "";
	struct buf now;
	uint64_t offset = 0;
	struct stat st;
	buf_init(&now, PATH_MAX + 256);
	if (describe(source, fd, 0, name, &now) != RES_OK ||
	    io_path(path, "%s/import/%s", im->path, name) != RES_OK) {
		buf_done(&now);
		return 0;
	}
	FILE *f = fopen(path, "rb");
	if (f != NULL && fgets(line, sizeof line, f) != NULL &&
	    str_to_u64(str_trim(str_c(line)), INT64_MAX, &offset) == RES_OK) {
		static char text[PATH_MAX + 256];
		rewind(f);
		size_t n = fread(text, 1, sizeof text, f);
		buf_reset(&now);
		if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < offset ||
		    describe(source, fd, offset, name, &now) != RES_OK ||
		    !str_eq(buf_str(&now), str_of(text, n)))
			offset = 0;
		/* more has come, but it does not begin with a message */
		else if ((uint64_t)st.st_size > offset &&
		    (pread(fd, from, sizeof from, (off_t)offset) != 5 ||
			memcmp(from, "From ", 5) != 0))
			offset = 0;
	}
	if (f != NULL)
		fclose(f);
	buf_done(&now);
	return offset;
}

int
importer_remember(
    struct importer *im, const char *source, int fd, uint64_t offset)
{
	char dir[PATH_MAX], name[65];
	struct buf text;
	buf_init(&text, PATH_MAX + 256);
	enum res r = describe(source, fd, offset, name, &text);
	if (r == RES_OK)
		r = io_path(dir, "%s/import", im->path);
	if (r == RES_OK)
		r = io_put_file(
		    &archive_io_system, dir, name, text.ptr, text.len);
	buf_done(&text);
	return r == RES_OK ? EX_OK : fail_res(source, NULL, r);
}

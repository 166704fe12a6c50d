/* hanaper archive rescue: what is whole of a damaged store, shard or lone
 * segment, without an index, and a list of what is not. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "archive/store/store_dir.h"
#include "base/codec.h"
#include "base/json.h"
#include "cli/archive.h"
#include "cli/rescue_out.h"

#define USAGE "rescue --to DIR [--store] [--json] STORE|SHARD|SEGMENT"

#define MAX_LINE    8192
#define MAX_BODIES  ((size_t)1 << 20) /* files of one shard looked at */
#define NAMES_ARENA ((size_t)256 << 20)

/* A file in bodies/, and whether a frame refers to it. */
struct body_file {
	const char *name;
	bool used;
};

struct rescue {
	struct rescue_out out;
	bool json, damaged;
	/* in all */
	uint64_t written, deliveries, lost, erased, other, missing, orphans;
	uint64_t ranges, range_bytes;
	/* of the segment under way */
	const char *segment, *dir;
	const char *family;
	struct str label;
	struct body_file *bodies;
	size_t body_count;
	uint64_t next; /* frame number */
	/* of the shards so far: a copied shard has the number of another */
	uint32_t numbers[STORE_MAX_SHARDS];
	size_t number_count;
};

static const struct option options[] = {
	{ "to", required_argument, NULL, 't' },
	{ "store", no_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ NULL, 0, NULL, 0 },
};

/* --- the report ------------------------------------------------------------ */

/* One line a finding: bytes [from, to) of the segment; `frame` UINT64_MAX
 * when it is not known which. */
static void
say_damage(struct rescue *x, uint64_t from, uint64_t to, uint64_t frame,
    const char *what)
{
	struct buf b;
	struct json j;
	x->damaged = true;
	buf_init(&b, MAX_LINE);
	if (x->json) {
		json_init(&j, &b);
		json_open(&j, '{');
		json_key_str(&j, "segment", str_c(x->segment));
		json_key_int(&j, "from", (int64_t)from);
		json_key_int(&j, "to", (int64_t)to);
		if (frame != UINT64_MAX)
			json_key_int(&j, "frame", (int64_t)frame);
		json_key_str(&j, "what", str_c(what));
		json_close(&j, '}');
	} else {
		archive_put_safe(&b, str_c(x->segment));
		buf_addf(&b, ": bytes %" PRIu64 " to %" PRIu64, from, to);
		if (frame != UINT64_MAX)
			buf_addf(&b, ", frame %" PRIu64, frame);
		buf_add_c(&b, ": ");
		archive_put_safe(&b, str_c(what));
	}
	buf_add_char(&b, '\n');
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

static void
say_counts(const struct rescue *x)
{
	const struct {
		const char *name, *text;
		uint64_t n;
	} rows[] = {
		{ "messages", "messages written", x->written },
		{ "deliveries", "of these, further deliveries of one content",
		    x->deliveries },
		{ "orphans", "of these, bodies whose frame is lost",
		    x->orphans },
		{ "lost", "messages whose body is damaged", x->lost },
		{ "missing", "frames of which nothing is left", x->missing },
		{ "erased", "messages erased on purpose", x->erased },
		{ "other", "frames that are no messages", x->other },
		{ "ranges", "damaged ranges without a frame", x->ranges },
		{ "range_bytes", "bytes in them", x->range_bytes },
	};
	struct buf b;
	struct json j;
	buf_init(&b, MAX_LINE);
	json_init(&j, &b);
	if (x->json)
		json_open(&j, '{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (x->json)
			json_key_int(&j, rows[i].name, (int64_t)rows[i].n);
		else
			buf_addf(&b, "%10" PRIu64 " %s\n", rows[i].n,
			    rows[i].text);
	if (x->json) {
		json_close(&j, '}');
		buf_add_char(&b, '\n');
	}
	(void)buf_write(&b, stdout);
	buf_done(&b);
}

/* --- one frame ------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct body_file *)a)->name,
	    ((const struct body_file *)b)->name);
}

static void
mark_used(struct rescue *x, const struct frame_body *b)
{
	char name[FRAME_BODY_NAME];
	frame_body_name(b, name);
	struct body_file key = { .name = name }, *found = NULL;
	if (x->body_count > 0)
		found = bsearch(
		    &key, x->bodies, x->body_count, sizeof key, by_name);
	if (found != NULL)
		found->used = true;
}

static void
damaged_range(void *context, uint64_t from, uint64_t to, const char *what)
{
	struct rescue *x = context;
	x->ranges++;
	x->range_bytes += to - from;
	say_damage(x, from, to, UINT64_MAX, what);
}

/* Name what of the frame is damaged; the leaf hash when it is no block. */
static void
say_blocks(struct rescue *x, const struct segment_frame *f,
    const struct segment_content *c)
{
	bool named = false;
	for (int b = 0; b < FRAME_BLOCKS; b++) {
		char what[64];
		if (c->state[b] != BLOCK_DAMAGED)
			continue;
		uint64_t at = f->offset +
		    frame_block_offset(&f->header, (enum frame_block)b);
		snprintf(what, sizeof what, "%s is damaged",
		    frame_block_name((enum frame_block)b));
		say_damage(x, at, at + frame_padded(f->header.stored[b]),
		    f->header.number, what);
		named = true;
	}
	if (!named)
		say_damage(x, f->offset, segment_frame_end(f),
		    f->header.number, "its leaf hash does not fit");
}

static enum res
take_message(struct rescue *x, struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, const struct segment_content *c)
{
	struct err err = { "" };
	bool refers = (f->header.flags & FRAME_BODY_IN_FRAME) != 0;
	const struct rescued m = { .label = x->label,
		.number = f->header.number,
		.holder = refers ? c->body.frame : f->header.number,
		.family = x->family,
		.time_us = f->header.time_us,
		.bytes = f->header.body_plain,
		.meta = c->meta,
		.evidence = c->evidence,
		.edits = c->edits };
	enum res res = rescue_out_frame(&x->out, a, &m, r, f, &err);
	if (res == RES_OK) {
		x->written++;
		x->deliveries += refers;
		return RES_OK;
	}
	if (res == RES_CORRUPT || res == RES_NOTFOUND) {
		x->lost++;
		say_damage(x, f->offset, segment_frame_end(f),
		    f->header.number,
		    err.text[0] != '\0' ? err.text : "its body is not there");
		return RES_OK;
	}
	cli_fail(EX_IOERR, "%s",
	    err.text[0] != '\0' ? err.text : res_text(res));
	return res;
}

static enum res
take_frame(void *context, struct segment_reader *r, struct arena *a,
    const struct segment_frame *f, const struct segment_content *c,
    enum res loaded)
{
	struct rescue *x = context;
	if (f->header.number > x->next)
		x->missing += f->header.number - x->next;
	x->next = f->header.number + 1;
	if (c->state[BLOCK_BODY] == BLOCK_WHOLE &&
	    (f->header.flags & FRAME_BODY_IN_FILE))
		mark_used(x, &c->body);
	if (loaded != RES_OK)
		say_blocks(x, f, c);
	if (f->header.type != FRAME_MESSAGE &&
	    f->header.type != FRAME_DELIVERY) {
		x->other++;
		return RES_OK;
	}
	switch (c->state[BLOCK_BODY]) {
	case BLOCK_ABSENT:
	case BLOCK_ERASED:
		x->erased++;
		return RES_OK;
	case BLOCK_DAMAGED:
		x->lost++;
		return RES_OK;
	case BLOCK_WHOLE:
		break;
	}
	return take_message(x, r, a, f, c);
}

/* --- bodies in files of their own ------------------------------------------ */

static enum res
list_bodies(struct rescue *x, struct arena *a)
{
	char path[PATH_MAX];
	size_t cap = 0;
	x->bodies = NULL;
	x->body_count = 0;
	if (io_path(path, "%s/bodies", x->dir) != RES_OK)
		return RES_OK;
	DIR *d = opendir(path);
	const struct dirent *e;
	enum res r = RES_OK;
	while (d != NULL && r == RES_OK && (e = readdir(d)) != NULL) {
		if (strlen(e->d_name) != FRAME_BODY_NAME - 1)
			continue;
		if (x->body_count == cap) {
			cap = cap == 0 ? 64 : cap * 2;
			struct body_file *more =
			    arena_array(a, cap, sizeof *more);
			if (more == NULL || cap > MAX_BODIES) {
				r = RES_NOMEM;
				break;
			}
			if (x->body_count > 0)
				memcpy(more, x->bodies,
				    x->body_count * sizeof *more);
			x->bodies = more;
		}
		const char *name = arena_cstr(a, str_c(e->d_name));
		if (name == NULL)
			r = RES_NOMEM;
		else
			x->bodies[x->body_count++].name = name;
	}
	if (d != NULL)
		closedir(d);
	if (x->body_count > 1)
		qsort(x->bodies, x->body_count, sizeof *x->bodies, by_name);
	return r;
}

/* The body of a frame that is lost is a message all the same. */
static enum res
take_orphan(struct rescue *x, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	struct err err = { "" };
	struct arena *a = arena_new(0);
	enum res r = io_path(path, "%s/bodies/%s", x->dir, name);
	if (a == NULL || r != RES_OK) {
		arena_free(&a);
		return RES_NOMEM;
	}
	const struct rescued m = { .label = arena_printf(a, "%.*s.body-%.32s",
				       STR_ARG(x->label), name),
		.family = x->family,
		.time_us = stat(path, &st) == 0 ?
		    (int64_t)st.st_mtim.tv_sec * 1000000 : 0 };
	r = rescue_out_file(&x->out, a, &m, path, &err);
	if (r == RES_OK) {
		x->written++;
		x->orphans++;
	} else if (r == RES_CORRUPT || r == RES_NOTFOUND) {
		x->lost++;
		say_damage(x, 0, 0, UINT64_MAX, err.text);
		r = RES_OK;
	} else {
		cli_fail(EX_IOERR, "%s",
		    err.text[0] != '\0' ? err.text : res_text(r));
	}
	arena_free(&a);
	return r;
}

/* --- one segment ----------------------------------------------------------- */

static void
say_trust(struct rescue *x, enum segment_trust trust)
{
	switch (trust) {
	case SEGMENT_WHOLE:
		return;
	case SEGMENT_NONCE:
		say_damage(x, 0, SHARD_HEADER_BYTES, UINT64_MAX,
		    "the header is damaged, but its nonce is right");
		return;
	case SEGMENT_NO_NONCE:
		say_damage(x, 0, SHARD_HEADER_BYTES, UINT64_MAX,
		    "the header is lost: read up to the first gap only");
		return;
	}
}

static bool
is_new_number(struct rescue *x, uint32_t number)
{
	for (size_t i = 0; i < x->number_count; i++)
		if (x->numbers[i] == number)
			return false;
	if (x->number_count == STORE_MAX_SHARDS)
		return false;
	x->numbers[x->number_count++] = number;
	return true;
}

/* What the names of files begin with: the shard's number, as in ids; where
 * that is lost or taken, the names of the folders. */
static struct str
label_of(struct rescue *x, struct arena *a, struct segment_reader *r)
{
	uint32_t number = segment_reader_shard(r)->number;
	if (segment_reader_trust(r) == SEGMENT_WHOLE &&
	    is_new_number(x, number))
		return arena_printf(a, "%" PRIu32, number);
	struct str path = str_c(x->dir);
	size_t slash = str_rchr(path, '/');
	struct str last =
	    slash == SIZE_MAX ? path : str_skip(path, slash + 1);
	return arena_printf(a, "%.40s-%.*s", x->family,
	    (int)(last.len < 40 ? last.len : 40), last.ptr);
}

static int
rescue_segment(struct rescue *x, const char *file, const char *dir,
    const char *family)
{
	static const struct rescue_ops ops = { damaged_range, take_frame };
	struct segment_reader *r = NULL;
	struct err err = { "" };
	struct arena *a = arena_new(NAMES_ARENA);
	x->segment = file;
	x->dir = dir;
	x->next = 0;
	enum res res = a != NULL ? RES_OK : RES_NOMEM;
	if (res == RES_OK)
		res = segment_reader_open_damaged(
		    file, dir, rescue_io(), &err, &r);
	if (res != RES_OK) {
		/* this one is lost; the others are looked at */
		arena_free(&a);
		x->damaged = true;
		(void)cli_fail(EX_DATAERR, "%s",
		    err.text[0] != '\0' ? err.text : res_text(res));
		return res == RES_NOMEM ? EX_OSERR : EX_OK;
	}
	enum segment_trust trust = segment_reader_trust(r);
	x->family = family != NULL ? family :
	    trust == SEGMENT_WHOLE ? segment_reader_shard(r)->family :
				     "rescued";
	if (!store_family_valid(x->family))
		x->family = "rescued";
	say_trust(x, trust);
	x->label = label_of(x, a, r);
	res = list_bodies(x, a);
	if (res == RES_OK)
		res = rescue_walk(r, &ops, x, &err);
	for (size_t i = 0; i < x->body_count && res == RES_OK; i++)
		if (!x->bodies[i].used)
			res = take_orphan(x, x->bodies[i].name);
	segment_reader_close(&r);
	arena_free(&a);
	return res == RES_OK ? EX_OK : EX_IOERR;
}

/* --- what to read ---------------------------------------------------------- */

static int
rescue_store(struct rescue *x, const char *path)
{
	char file[PATH_MAX];
	struct err err = { "" };
	struct shard_entry *entries;
	size_t count;
	int status = EX_OK;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return cli_fail(EX_OSERR, "out of memory");
	enum res r = store_dir_shards(path, NULL, a, &err, &entries, &count);
	if (r != RES_OK)
		status = cli_fail(cli_status(r), "%s", err.text);
	else if (count == 0)
		status = cli_fail(EX_NOINPUT, "%s: no segment in it", path);
	for (size_t i = 0; status == EX_OK && i < count; i++)
		if (io_path(file, "%s/segment", entries[i].dir) == RES_OK)
			status = rescue_segment(x, file, entries[i].dir,
			    entries[i].family);
	arena_free(&a);
	return status;
}

static int
rescue_path(struct rescue *x, const char *path)
{
	char file[PATH_MAX], dir[PATH_MAX];
	struct stat st;
	if (realpath(path, file) == NULL || stat(file, &st) != 0)
		return cli_fail(EX_NOINPUT, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode)) {
		memcpy(dir, file, strlen(file) + 1);
		*strrchr(dir, '/') = '\0';
		return rescue_segment(x, file, dir, NULL);
	}
	memcpy(dir, file, strlen(file) + 1);
	if (io_path(file, "%s/segment", dir) == RES_OK &&
	    access(file, F_OK) == 0)
		return rescue_segment(x, file, dir, NULL);
	return rescue_store(x, dir);
}

int
archive_rescue_main(int argc, char **argv)
{
	static struct rescue x;
	int c;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 't')
			x.out.to = optarg;
		else if (c == 's')
			x.out.as_store = true;
		else if (c == 'j')
			x.json = true;
		else
			return cli_usage("archive", USAGE);
	}
	if (x.out.to == NULL || optind + 1 != argc)
		return cli_usage("archive", USAGE);
	if (access(argv[optind], F_OK) != 0)
		return cli_fail(EX_NOINPUT, "%s: %s", argv[optind],
		    strerror(errno));
	int status = rescue_out_open(&x.out);
	if (status == EX_OK)
		status = rescue_path(&x, argv[optind]);
	status = rescue_out_close(&x.out, status);
	say_counts(&x);
	if (fflush(stdout) != 0 && status == EX_OK)
		status = cli_fail(EX_IOERR, "standard output: write error");
	return status == EX_OK && x.damaged ? 1 : status;
}

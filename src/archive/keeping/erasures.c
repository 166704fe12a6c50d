#include "archive/keeping/erasures.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/fields.h"

#define ERASURES_VERSION 1

static enum res
read_frame(const struct fields *f, struct erased_frame *out)
{
	if (f->count != 2 || !str_eq(f->items[0].name, STR("frame")) ||
	    !str_eq(f->items[1].name, STR("intent")))
		return RES_CORRUPT;
	*out = (struct erased_frame){ f->items[0].number, f->items[1].number };
	return RES_OK;
}

static enum res
read_token(struct str hex, uint8_t out[ERASURES_TOKEN])
{
	struct buf b;
	buf_init(&b, ERASURES_TOKEN);
	enum res r = hex_decode(hex, &b);
	if (r == RES_OK && b.len == ERASURES_TOKEN)
		memcpy(out, b.ptr, ERASURES_TOKEN);
	else if (r != RES_NOMEM)
		r = RES_CORRUPT;
	buf_done(&b);
	return r;
}

/* The first record: version, how many frames, and the one under way. */
static enum res
read_head(const struct fields *f, struct arena *a, struct erasures *out)
{
	if (fields_get_number(f, "erasures") != ERASURES_VERSION)
		return RES_UNSUPPORTED;
	out->count = (size_t)fields_get_number(f, "frames");
	struct str token = fields_get(f, "token");
	if (token.len == 0)
		return RES_OK;
	out->pending = true;
	out->audit_shard = (uint32_t)fields_get_number(f, "audit_shard");
	out->audit_frame = fields_get_number(f, "audit_frame");
	out->files = arena_array(a, f->count, sizeof *out->files);
	if (out->files == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < f->count; i++)
		if (str_eq(f->items[i].name, STR("file")))
			out->files[out->file_count++] = f->items[i].text;
	return read_token(token, out->token);
}

enum res
erasures_parse(struct str text, const char *path, struct arena *a,
    struct err *err, struct erasures *out)
{
	struct fields f;
	struct str rest = text, last = text;
	struct erasures e = { .count = 0 };
	enum res r = fields_read(&rest, a, &f);
	if (r == RES_OK)
		r = read_head(&f, a, &e);
	if (r == RES_OK && e.count > rest.len)
		r = RES_CORRUPT; /* cut off */
	if (r == RES_OK) {
		e.frames = arena_array(a, e.count + 1, sizeof *e.frames);
		r = e.frames != NULL ? RES_OK : RES_NOMEM;
	}
	for (size_t i = 0; r == RES_OK && i < e.count; i++) {
		last = rest;
		r = fields_read(&rest, a, &f);
		if (r == RES_OK)
			r = read_frame(&f, &e.frames[i]);
	}
	r = fields_file_end(path, text, last, rest, r, err);
	if (r == RES_OK)
		*out = e;
	return r;
}

enum res
erasures_read(const char *shard_dir, struct arena *a, struct err *err,
    struct erasures *out)
{
	char path[PATH_MAX];
	struct str text;
	*out = (struct erasures){ .count = 0 };
	enum res r = io_path(path, "%s/" ERASURES_FILE, shard_dir);
	if (r == RES_OK)
		r = io_read_file(path, ERASURES_MAX_BYTES, a, &text);
	if (r == RES_NOTFOUND)
		return RES_OK;
	if (r == RES_OK)
		r = erasures_parse(text, path, a, err, out);
	if (r != RES_OK)
		err_set(err, "%s: %s", path, res_text(r));
	return r;
}

enum res
erasures_write(const struct archive_io *io, const char *shard_dir,
    const struct erasures *e)
{
	struct buf b, token;
	buf_init(&b, ERASURES_MAX_BYTES);
	buf_init(&token, 2 * ERASURES_TOKEN);
	fields_number(&b, "erasures", ERASURES_VERSION);
	fields_number(&b, "frames", e->count);
	if (e->pending) {
		hex_encode(&token, e->token, sizeof e->token);
		fields_text(&b, "token", buf_str(&token));
		fields_number(&b, "audit_shard", e->audit_shard);
		fields_number(&b, "audit_frame", e->audit_frame);
		for (size_t i = 0; i < e->file_count; i++)
			fields_text(&b, "file", e->files[i]);
	}
	fields_end(&b);
	for (size_t i = 0; i < e->count; i++) {
		fields_number(&b, "frame", e->frames[i].number);
		fields_number(&b, "intent", e->frames[i].intent);
		fields_end(&b);
	}
	enum res r = b.error != RES_OK ? b.error : token.error;
	if (r == RES_OK)
		r = io_put_file(io, shard_dir, ERASURES_FILE, b.ptr, b.len);
	buf_done(&token);
	buf_done(&b);
	return r;
}

bool
erasures_have(const struct erasures *e, uint64_t number)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->frames[i].number == number)
			return true;
	return false;
}

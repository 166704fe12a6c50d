#include "cli/resent.h"

#include <string.h>
#include <time.h>

#include "archive/format/record.h"
#include "base/codec.h"
#include "keys/digest.h"

#define MAX_FIELDS 400000 /* twice what a header may have */

struct resent_sink {
	struct sink sink;
	const struct resent *r;
	struct arena *arena;
	FILE *file;
	bool begun, in_body, held_cr;
	struct buf header; /* while there are edits to be made */
	enum res error;
};

/* --- our own fields -------------------------------------------------------- */

static void
put_fields(struct resent_sink *s)
{
	const struct resent *r = s->r;
	time_t now = (time_t)(r->now_us / 1000000);
	struct tm tm;
	char date[64] = "";
	uint8_t random[12];
	struct buf id;
	if (gmtime_r(&now, &tm) != NULL)
		(void)strftime(
		    date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	s->error = digest_random(random, sizeof random);
	buf_init(&id, 64);
	hex_encode(&id, random, sizeof random);
	fprintf(s->file, "Resent-Date: %s\nResent-From: %s\n", date, r->from);
	for (size_t i = 0; i < r->to_count; i++)
		fprintf(s->file, "%s%s", i == 0 ? "Resent-To: " : ",\n ",
		    r->to[i]);
	if (r->to_count > 0)
		fputc('\n', s->file);
	fprintf(s->file, "Resent-Message-ID: <%.*s.resent@%s>\n",
	    STR_ARG(buf_str(&id)), r->host);
	if (id.error != RES_OK && s->error == RES_OK)
		s->error = id.error;
	buf_done(&id);
}

/* --- CRLF to LF ------------------------------------------------------------ */

static void
put(struct resent_sink *s, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s->held_cr && bytes[i] != '\n')
			(void)putc_unlocked('\r', s->file);
		s->held_cr = bytes[i] == '\r';
		if (!s->held_cr)
			(void)putc_unlocked((unsigned char)bytes[i], s->file);
	}
}

/* --- edits ----------------------------------------------------------------- */

struct fields {
	struct str *at; /* each with its folds and line end */
	size_t count, cap;
};

static bool
add_field(struct fields *f, struct arena *a, size_t place, struct str field)
{
	if (f->count == MAX_FIELDS)
		return false;
	if (f->count == f->cap) {
		size_t cap = f->cap == 0 ? 64 : f->cap * 2;
		struct str *more = arena_array(a, cap, sizeof *more);
		if (more == NULL)
			return false;
		if (f->count > 0)
			memcpy(more, f->at, f->count * sizeof *more);
		f->at = more;
		f->cap = cap;
	}
	if (place > f->count)
		place = f->count;
	memmove(f->at + place + 1, f->at + place,
	    (f->count - place) * sizeof *f->at);
	f->at[place] = field;
	f->count++;
	return true;
}

/* Without the empty line at its end. */
static bool
split_header(struct fields *f, struct arena *a, struct str header)
{
	while (header.len > 0) {
		size_t end = 0;
		do {
			size_t lf = str_chr(str_skip(header, end), '\n');
			end = lf == SIZE_MAX ? header.len : end + lf + 1;
		} while (end < header.len && ascii_is_wsp(header.ptr[end]));
		if (!add_field(f, a, f->count, str_sub(header, 0, end)))
			return false;
		header = str_skip(header, end);
	}
	return true;
}

static bool
has_name(struct str field, struct str name)
{
	if (!str_case_starts(field, name))
		return false;
	field = str_skip(field, name.len);
	while (field.len > 0 && ascii_is_wsp(field.ptr[0]))
		field = str_skip(field, 1);
	return field.len > 0 && field.ptr[0] == ':';
}

/* Where the n-th field of this name is, or `count`. */
static size_t
find_field(const struct fields *f, struct str name, uint64_t n)
{
	size_t i = 0;
	for (; i < f->count; i++)
		if (has_name(f->at[i], name) && --n == 0)
			break;
	return i;
}

static bool
edit(struct fields *f, struct arena *a, unsigned tag, struct str one)
{
	struct str index = record_find(one, EDIT_INDEX);
	struct str name = record_find(one, EDIT_NAME);
	struct str value = record_find(one, EDIT_VALUE);
	if (index.len != 4 || name.len == 0)
		return false;
	uint32_t n = get_le32((const uint8_t *)index.ptr);
	struct buf b;
	buf_init(&b, RESENT_MAX_HEADER);
	buf_add_str(&b, name);
	buf_add_char(&b, ':');
	buf_add_str(&b, value);
	buf_add_char(&b, '\n');
	struct str field = arena_dup(a, buf_str(&b));
	bool good = b.error == RES_OK && field.ptr != NULL;
	buf_done(&b);
	if (!good)
		return false;
	if (tag == EDIT_INSERT)
		return add_field(f, a, n, field);
	size_t at = find_field(f, name, n);
	if (at == f->count) /* as the MTA does */
		return tag == EDIT_DELETE || add_field(f, a, at, field);
	if (tag == EDIT_CHANGE) {
		f->at[at] = field;
		return true;
	}
	f->count--;
	memmove(f->at + at, f->at + at + 1,
	    (f->count - at) * sizeof *f->at);
	return true;
}

/* The header is complete: make the edits and let it go. */
static void
release_header(struct resent_sink *s, size_t empty_line)
{
	struct fields f = { NULL, 0, 0 };
	struct record_reader r;
	struct str header = buf_str(&s->header), value;
	unsigned tag;
	struct str last = str_skip(header, header.len - empty_line);
	bool good = split_header(&f, s->arena,
			str_sub(header, 0, header.len - empty_line)) &&
	    record_open(s->r->edits, &r) == RES_OK;
	while (good && record_next(&r, &tag, &value))
		if (tag >= EDIT_INSERT && tag <= EDIT_DELETE)
			good = edit(&f, s->arena, tag, value);
	if (!good && s->error == RES_OK)
		s->error = RES_CORRUPT;
	for (size_t i = 0; i < f.count; i++)
		put(s, f.at[i].ptr, f.at[i].len);
	put(s, last.ptr, last.len);
	buf_done(&s->header);
}

/* Takes what belongs to the header; returns how much. */
static size_t
take_header(struct resent_sink *s, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		buf_add_char(&s->header, bytes[i]);
		struct str all = buf_str(&s->header);
		size_t empty = 0;
		if (bytes[i] != '\n')
			continue;
		if (str_ends(all, STR("\n\r\n")) || str_eq(all, STR("\r\n")))
			empty = 2;
		else if (str_ends(all, STR("\n\n")) || str_eq(all, STR("\n")))
			empty = 1;
		if (empty == 0)
			continue;
		s->in_body = true;
		if (s->error == RES_OK)
			s->error = s->header.error;
		release_header(s, empty);
		return i + 1;
	}
	return len;
}

/* --- the sink -------------------------------------------------------------- */

static void
resent_push(struct sink *sink, const char *bytes, size_t len)
{
	struct resent_sink *s = (struct resent_sink *)sink;
	if (!s->begun) {
		put_fields(s);
		s->begun = true;
		s->in_body = s->r->edits.len == 0;
	}
	if (!s->in_body) {
		size_t n = take_header(s, bytes, len);
		bytes += n;
		len -= n;
	}
	put(s, bytes, len);
}

static enum res
resent_finish(struct sink *sink)
{
	struct resent_sink *s = (struct resent_sink *)sink;
	resent_push(sink, "", 0);
	if (!s->in_body) {
		if (s->error == RES_OK)
			s->error = s->header.error;
		release_header(s, 0);
	}
	if (s->held_cr)
		(void)fputc('\r', s->file);
	if (s->error != RES_OK)
		return s->error;
	return fflush(s->file) == 0 && !ferror(s->file) ? RES_OK : RES_IO;
}

static void
resent_free(void *sink)
{
	buf_done(&((struct resent_sink *)sink)->header);
}

struct sink *
resent_sink(struct arena *a, const struct resent *r, FILE *file)
{
	struct resent_sink *s = ARENA_NEW(a, struct resent_sink);
	if (s == NULL)
		return NULL;
	s->sink = (struct sink){ resent_push, resent_finish };
	s->r = r;
	s->arena = a;
	s->file = file;
	buf_init(&s->header, RESENT_MAX_HEADER);
	return arena_on_free(a, resent_free, s) == RES_OK ? &s->sink : NULL;
}

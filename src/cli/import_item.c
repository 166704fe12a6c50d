/* One message on its way in: its bytes, its time, its place in the batch. */
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "cli/importer.h"
#include "keys/digest.h"
#include "mail/date.h"

#define MAX_ITEMS   1024
#define MAX_BYTES   ((uint64_t)32 << 20)
#define BATCH_ARENA ((size_t)64 << 20)
#define MAX_HEAD    ((size_t)64 << 10) /* a Date is looked for within */
#define DAY_US ((int64_t)86400 * 1000000)

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
		return importer_fail(im->path, NULL, r);
	if (it->expected != NULL &&
	    memcmp(it->expected, spool_sha256(it->spool), DIGEST_LEN) != 0) {
		buf_done(&it->head);
		return importer_set_aside(im, it->source, it->fd, it->offset,
		    it->end, "not the bytes that its MANIFEST names");
	}
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
			return importer_fail(im->path, NULL, r);
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

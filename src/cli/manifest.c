#include "cli/manifest.h"

#include <inttypes.h>

#include "archive/format/record.h"
#include "base/clock.h"
#include "base/codec.h"
#include "cli/archive.h"

#define MAX_LINE ((size_t)8 << 20)

static void
put_recipients(struct buf *b, struct str meta)
{
	struct record_reader r;
	unsigned tag;
	struct str value;
	const char *blank = "";
	if (record_open(meta, &r) != RES_OK)
		return;
	while (record_next(&r, &tag, &value))
		if (tag == META_RCPT) {
			buf_add_c(b, blank);
			archive_put_safe(b, value);
			blank = " ";
		}
}

void
manifest_put(FILE *f, const struct manifest_line *l)
{
	struct buf b;
	buf_init(&b, MAX_LINE);
	archive_put_safe(&b, l->id);
	buf_add_char(&b, '\t');
	hex_encode(&b, l->sha256, DIGEST_LEN);
	buf_addf(&b, "\t%" PRIu64 "\t", l->bytes);
	archive_put_safe(&b, l->file);
	buf_add_char(&b, '\t');
	archive_put_safe(&b, record_find(l->meta, META_DIRECTION));
	buf_add_char(&b, '\t');
	archive_put_safe(&b, record_find(l->meta, META_MAIL_FROM));
	buf_add_char(&b, '\t');
	archive_put_safe(&b, record_find(l->meta, META_RESULTS));
	buf_add_char(&b, '\t');
	clock_format_us(&b, l->time_us);
	buf_add_char(&b, '\t');
	put_recipients(&b, l->meta);
	if (l->proof != NULL)
		buf_addf(&b, "\t%s", l->proof);
	buf_add_char(&b, '\n');
	(void)buf_write(&b, f);
	buf_done(&b);
}

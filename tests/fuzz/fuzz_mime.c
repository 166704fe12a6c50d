/* The MIME walk and the text extraction: the same text whatever the split,
 * and parts that begin and end in pairs. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/mime.h"
#include "mail/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool good)
{
	if (!good)
		abort();
}

static unsigned open_parts;

static void
on_begin(void *context, const struct mime_part *p)
{
	(void)context;
	check(p->depth == open_parts && p->depth <= MIME_MAX_DEPTH);
	open_parts++;
}

static void
on_end(void *context, const struct mime_part *p)
{
	(void)context;
	open_parts--;
	check(p->depth == open_parts);
}

static struct text_extract *
extract(const uint8_t *data, size_t size, size_t step)
{
	struct text_extract *x = text_extract_new();
	check(x != NULL);
	for (size_t at = 0; at < size; at += step)
		sink_push(text_extract_sink(x), (const char *)data + at,
		    size - at < step ? size - at : step);
	check(sink_finish(text_extract_sink(x)) == RES_OK);
	return x;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mime_ops ops = { NULL, on_begin, NULL, on_end };
	open_parts = 0;
	struct mime *m = mime_new(&ops, NULL);
	check(m != NULL);
	mime_push(m, (const char *)data, size);
	check(mime_finish(m) == RES_OK && open_parts == 0);
	mime_free(&m);
	struct text_extract *a = extract(data, size, size + 1);
	struct text_extract *b = extract(data, size, 1 + size % 7);
	const struct text_doc *da = text_extract_doc(a);
	const struct text_doc *db = text_extract_doc(b);
	check(str_eq(buf_str(&da->body), buf_str(&db->body)));
	check(str_eq(buf_str(&da->subject), buf_str(&db->subject)));
	check(str_eq(buf_str(&da->filename), buf_str(&db->filename)));
	check(da->attachments == db->attachments);
	text_extract_free(&a);
	text_extract_free(&b);
	return 0;
}

/* Tag lists: what is accepted is made of the parts it names. */
#include <stdint.h>
#include <stdlib.h>

#include "mail/taglist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_tag(struct arena *a, struct str text, const struct taglist *t, size_t i)
{
	const struct tag *tag = &t->tags[i];
	if (tag->from > tag->to || tag->to > text.len ||
	    text.ptr[tag->from - 1] != '=' ||
	    (tag->to < text.len && text.ptr[tag->to] != ';'))
		abort();
	struct str value =
	    str_trim(str_sub(text, tag->from, tag->to - tag->from));
	if (!str_eq(value, tag->value))
		abort();
	for (size_t k = 0; k < i; k++)
		if (str_eq(t->tags[k].name, tag->name))
			abort();
	struct str plain = taglist_strip(a, tag->value), out;
	if (plain.len > tag->value.len)
		abort();
	if (taglist_unquote(a, tag->value, &out) == RES_OK &&
	    out.len > plain.len)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of(data, size);
	struct arena *a = arena_new(0);
	struct taglist plain, wide;
	enum res r = taglist_parse(text, false, &plain);
	enum res w = taglist_parse(text, true, &wide);
	/* UTF-8 only adds lists */
	if (r == RES_OK && (w != RES_OK || wide.count != plain.count))
		abort();
	if (w == RES_OK && wide.count == 0)
		abort();
	for (size_t i = 0; i < wide.count; i++)
		check_tag(a, text, &wide, i);
	arena_free(&a);
	return 0;
}

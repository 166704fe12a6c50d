/* Records of the control socket: what is read can be written and is then the
 * same. */
#include <stdint.h>
#include <stdlib.h>

#include "base/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
write_again(struct buf *b, struct arena *a, const struct fields *f)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct field_value *v = &f->items[i];
		const char *name = arena_cstr(a, v->name);
		if (v->is_number)
			fields_number(b, name, v->number);
		else
			fields_text(b, name, v->text);
	}
	fields_end(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_of(data, size);
	struct arena *a = arena_new(0);
	struct fields f, again;
	while (a != NULL && fields_read(&rest, a, &f) == RES_OK) {
		struct buf b;
		buf_init(&b, size * 4 + 64);
		write_again(&b, a, &f);
		struct str copy = buf_str(&b);
		if (fields_read(&copy, a, &again) != RES_OK || copy.len != 0 ||
		    again.count != f.count)
			abort();
		for (size_t i = 0; i < f.count; i++)
			if (!str_eq(f.items[i].name, again.items[i].name) ||
			    f.items[i].number != again.items[i].number ||
			    (!f.items[i].is_number &&
				!str_eq(f.items[i].text, again.items[i].text)))
				abort();
		buf_done(&b);
	}
	arena_free(&a);
	return 0;
}

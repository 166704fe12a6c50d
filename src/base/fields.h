/* Records of named values, one a line: what daemon and CLI say to each other
 * over the control socket.
 *
 *   name=text     bytes below 0x20, 0x7f and % stand as %XX
 *   name#123      a number
 *                 (an empty line ends the record)
 *
 * Names are a-z, 0-9, '_' and '.'; they may repeat: that is a list. */
#ifndef BASE_FIELDS_H
#define BASE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define FIELDS_MAX ((size_t)65536) /* lines of one record */

void fields_text(struct buf *out, const char *name, struct str text);
void fields_number(struct buf *out, const char *name, uint64_t number);
void fields_end(struct buf *out);

struct field_value {
	struct str name, text; /* text of a number: its digits */
	bool is_number;
	uint64_t number;
};
struct fields {
	size_t count;
	struct field_value *items;
};

/* Cut one record from `rest`, with its texts in `a`. RES_NOTFOUND: nothing is
 * left; RES_SYNTAX: no record (`rest` is then at the line at fault), or none
 * that ends; RES_LIMIT. */
HN_CHECK enum res fields_read(
    struct str *rest, struct arena *a, struct fields *out);

/* What the reading of a file came to: `r` after the record that began at
 * `last`, with `rest` behind it. A record too many or too few, or none, makes
 * it RES_CORRUPT; `err` gets "PATH:LINE: ..." of what is not RES_OK. */
HN_CHECK enum res fields_file_end(const char *path, struct str text,
    struct str last, struct str rest, enum res r, struct err *err);

/* The first value of this name; the empty view, 0 when there is none. */
struct str fields_get(const struct fields *f, const char *name);
uint64_t fields_get_number(const struct fields *f, const char *name);

#endif

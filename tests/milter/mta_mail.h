/* Messages as an MTA holds them: read from files, changed as a milter asks,
 * written out again. For the client in mta.c. */
#ifndef TESTS_MTA_MAIL_H
#define TESTS_MTA_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAIL_MAX_FIELDS 128
#define MAIL_MAX_EDITS  128

struct mail_field {
	const char *name, *value; /* value with its leading space, LF folds */
};

struct mail {
	struct mail_field fields[MAIL_MAX_FIELDS];
	size_t field_count;
	char *body; /* with CRLF ends */
	size_t body_len;
	char *owned[MAIL_MAX_EDITS]; /* strings of edits */
	size_t owned_count;
};

/* Exits with a line on stderr when that cannot be done. */
void mail_read(const char *path, struct mail *out);

/* One change of the header as the milter protocol says it: `code` is i, m or
 * h with its data. The strings are copied, until mail_forget. False: not
 * understood, or too many. `out_name` and `out_value`: what was given. */
bool mail_edit(struct mail *m, char code, const char *data, size_t len,
    const char **out_name, const char **out_value);

void mail_forget(struct mail *m);

void mail_write(const struct mail *m, const char *path);

#endif

/* hanaper archive import: what reading sources and finding them share. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "cli/importer.h"
#include "cli/progress.h"

/* What an export wrote down of a message, good while it is read. */
struct import_row {
	uint8_t sha256[32];
	struct str sender;
	struct str *rcpts;
	size_t rcpt_count;
	int64_t time_us;
};

enum form { FORM_AUTO, FORM_RD, FORM_O, FORM_PLAIN, FORM_EML };

struct import {
	struct archive_place place;
	struct importer im;
	enum form form;
	bool again;
	struct progress progress;
	int status;        /* the worst that did not end it */
	/* of the source being read */
	const char *source; /* its absolute path, or "-" */
	int fd;
	uint64_t size, at;
	int64_t mtime_us;
	const struct import_row *row; /* of a MANIFEST; NULL: none */
	struct import_item *item;
	bool open_end;     /* mbox_from_open_end */
	char held[2];      /* then: the last bytes, if they are a line end */
	size_t held_count;
	bool preamble;     /* what stands before the first From_ line */
	uint64_t begin;
	int failed;        /* ends the import */
};

/* One source, or all in a folder, a Maildir, an export. Not EX_OK when the
 * import cannot go on; what does not end it is told and kept in x->status. */
int import_source(struct import *x, const char *source);

/* The source that is open (x->fd). */
int import_mbox(struct import *x);
int import_eml(struct import *x);
/* With errno: it does not keep the others out. */
void import_cannot_read(struct import *x, const char *path);

#endif

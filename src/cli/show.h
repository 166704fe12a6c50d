/* hanaper archive show: what its parts share. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/archive.h"

#define SHOW_MAX_OUTPUT ((size_t)64 << 20)

enum show_what { SHOW_TEXT, SHOW_RAW, SHOW_HEADERS, SHOW_STRUCTURE,
	SHOW_ATTACHMENT, SHOW_META, SHOW_EVIDENCE, SHOW_EDITS };

struct show {
	struct archive_place place;
	enum show_what what;
	uint64_t part; /* SHOW_ATTACHMENT */
	struct archive_reader *reader;
	struct arena *a;
	uint64_t id;
};

/* "hanaper: 1.23: …" and the exit status of `r`. */
int show_complain(const struct show *s, enum res r, const struct err *err);
/* The presented bytes into `to`, which is finished. */
int show_push_body(const struct show *s, struct sink *to);

/* show_parts.c. To a terminal go no control bytes but line ends and tabs;
 * anywhere else the very bytes. */
int show_raw(const struct show *s);
int show_headers(const struct show *s);
int show_structure(const struct show *s);
int show_attachment(const struct show *s);
/* show_record.c */
int show_records(const struct show *s);

#endif

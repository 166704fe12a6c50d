/* What `hanaper archive import` and `add` share: the store opened beside a
 * running daemon, one message collected, batches submitted in the order of
 * their dates, and the place a source was read up to.
 *
 * Of several processes one writes the import family at a time. An import
 * lets an `add` that waits go first between two batches. */
#ifndef CLI_IMPORTER_H
#define CLI_IMPORTER_H

#include "archive/keeping/known.h"
#include "archive/store/store.h"
#include "cli/archive.h"

struct importer {
	/* set by the caller */
	const char *path;          /* of the store */
	const char *aside;         /* where bad messages are kept */
	uint64_t roll_bytes, reserve_bytes;
	/* counts for the caller */
	uint64_t imported, there, bad, bytes;
	/* inside */
	struct arena *arena;
	struct store *store;
	struct known *known;
	int turn, lock, only; /* files of locks; -1: not held */
	/* of the batch */
	struct arena *batch;
	struct import_item *items;
	size_t count;
	uint64_t batch_bytes;
};

/* One message on its way in; lives in the batch. */
struct import_item {
	struct spool *spool;
	const char *source;        /* as META_SOURCE says it */
	int fd;                    /* of the source; -1: read by `source` */
	uint64_t offset, end;      /* in the source */
	struct str sender;
	const struct str *rcpts;
	size_t rcpt_count;
	int64_t time_us;           /* of arrival, or 0: from its Date field */
	int64_t fallback_us;       /* without one */
	const uint8_t *expected;   /* SHA-256 that it must have; may be NULL */
	/* filled on the way */
	struct buf head;
	bool in_body;
	uint64_t bytes, header_bytes;
	enum res result;
};

/* Fill `path` and the sizes from the options of the place. Not EX_OK after a
 * complaint. The importer must be zeroed but for `aside`. */
int importer_place(struct importer *im, const struct archive_place *p);
/* Open the store; `knowing`: with what it holds, and alone (an import). */
int importer_open(struct importer *im, bool knowing);
/* Wait up to so long for the right to write. EX_TEMPFAIL. */
int importer_lock(struct importer *im, unsigned seconds);
void importer_close(struct importer *im);

/* A complaint about `what`, or the line in `err`; EX_TEMPFAIL for whatever may
 * go away, so that an MTA tries again. */
int importer_fail(const char *what, const struct err *err, enum res r);

/* --- import_item.c --- */
/* A new item, to be pushed into; NULL without memory. */
struct import_item *importer_item(struct importer *im);
void importer_push(struct import_item *it, const char *bytes, size_t len);
/* It is complete: takes it into the batch unless it is known or bad. */
int importer_item_end(struct importer *im, struct import_item *it);
bool importer_batch_full(const struct importer *im);

/* Instead of importer_item_end: make it durable now, known or not. */
int importer_add(struct importer *im, struct import_item *it);
/* Make the batch durable. On anything but EX_OK nothing of it is promised. */
int importer_flush(struct importer *im);

/* --- import_kept.c --- */
/* Keep the bytes [offset, end) of a source in the folder `aside`. */
int importer_set_aside(struct importer *im, const char *source, int fd,
    uint64_t offset, uint64_t end, const char *why);

/* How far a source was read at an earlier time: 0 when never, or when what
 * stands before that place is not the same any more. */
uint64_t importer_recall(struct importer *im, const char *source, int fd);
int importer_remember(
    struct importer *im, const char *source, int fd, uint64_t offset);

#endif

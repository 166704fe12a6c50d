/* Every catalogue row of a time, one call each: for what has to account for
 * all messages, where a search shows one of several deliveries. */
#ifndef ARCHIVE_ROWS_H
#define ARCHIVE_ROWS_H

#include "archive/search/search.h"

struct archive_row {
	uint64_t id;
	int64_t time_us;
	struct str direction, queue_id; /* good during the call */
};
/* Anything but RES_OK ends it. */
typedef enum res (*archive_row_fn)(void *context, const struct archive_row *r);

/* Rows of [from_us, to_us], in no order; the un-applied tail too. Shards that
 * cannot be read are counted in the coverage and passed over. */
HN_CHECK enum res archive_rows(struct archive_reader *r, int64_t from_us,
    int64_t to_us, archive_row_fn fn, void *context, struct err *err,
    struct search_coverage *out_coverage);

#endif

/* Every message that a query finds, page by page, so that memory does not
 * grow with the result. */
#ifndef CLI_EACH_H
#define CLI_EACH_H

#include "cli/archive.h"

/* `a` is of the page. Anything but RES_OK ends it. */
typedef enum res (*each_fn)(
    void *context, struct arena *a, const struct search_hit *hit);

/* EX_OK, or a complaint: of the search, or what `fn` returned (a line in
 * `err` or its text). */
int each_message(struct archive_reader *r, const struct query *q, each_fn fn,
    void *context, struct search_coverage *out_coverage);

#endif

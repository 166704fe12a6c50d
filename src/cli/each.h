/* Every message that a query finds, page by page, so that memory does not
 * grow with the result. */
#ifndef CLI_EACH_H
#define CLI_EACH_H

#include "cli/archive.h"

/* `a` is of the page. Anything but RES_OK ends it. */
typedef enum res (*each_fn)(
    void *context, struct arena *a, const struct search_hit *hit);

/* Before the messages of a page: EX_OK, or a complaint was made, and it ends. */
typedef int (*each_page_fn)(
    void *context, const struct search_hit *hits, size_t count);

#define EACH_PAGE 200 /* messages at most */

/* EX_OK, or a complaint: of the search, or what `fn` returned (a line in
 * `err` or its text), or the status of `page`, which may be NULL. */
int each_message(struct archive_reader *r, const struct query *q,
    each_page_fn page, each_fn fn, void *context,
    struct search_coverage *out_coverage);

#endif

/* gzip (RFC 1952), what receivers of reports expect. One call: reports are
 * bounded. Without a time stamp: the same input gives the same bytes, as a
 * report that is sent again must be the same. */
#ifndef ARCHIVE_GZIP_H
#define ARCHIVE_GZIP_H

#include "base/buf.h"
#include "base/res.h"
#include "base/str.h"

/* Append to `out`; RES_LIMIT when it does not fit its maximum (what was added
 * is then of no use). */
HN_CHECK enum res gzip_compress(struct str bytes, struct buf *out);

#endif

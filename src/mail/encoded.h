/* RFC 2047 encoded words to UTF-8, for the index and for showing. Lenient as
 * mail in the wild needs: words inside quotes and without blanks around them
 * are decoded too, a character split between two words of one charset is put
 * together, raw 8-bit bytes are guessed (see mail/charset.h). Linear time. */
#ifndef MAIL_ENCODED_H
#define MAIL_ENCODED_H

#include "base/buf.h"
#include "base/str.h"

/* `value` as in the header, folds included: each fold becomes its blank. */
void encoded_decode(struct str value, struct buf *out);

#endif

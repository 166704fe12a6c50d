/* Did libcrypto lack memory? A verification that ends for that reason looks
 * like a signature that is wrong, a key that cannot be made like a record with
 * an error: not all of libcrypto's functions say why. So its allocations are
 * watched, each thread's for itself. */
#ifndef KEYS_LACK_H
#define KEYS_LACK_H

#include <stdbool.h>

/* Watch from here. */
void lack_begin(void);
/* An allocation of this thread has failed since. */
bool lack_seen(void);
/* One of any thread has failed at any time. */
bool lack_ever(void);

#endif

/* zstd, which only compress.c includes. A packer makes one standard frame at
 * a time, the plain length in its header when it is known; the window is
 * bounded, so a packer costs at most 1 MB and an unpacker at most
 * UNPACK_MAX_WINDOW. Each is used by one thread at a time. */
#ifndef ARCHIVE_COMPRESS_H
#define ARCHIVE_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/res.h"
#include "base/sink.h"
#include "base/str.h"

/* Level 3 makes public mail 2 % smaller and costs a third more; of what is
 * large, most is base64, of which both only take the quarter that its alphabet
 * wastes. Below 1 not even that is taken.
 * With a dictionary level 5 gives smaller texts than 6, and is cheaper. */
#define PACK_LEVEL            1
#define PACK_DICTIONARY_LEVEL 5
#define PACK_WINDOW_LOG       17
#define UNPACK_MAX_WINDOW_LOG 23

/* What a dictionary adds to the strings in it. */
#define DICTIONARY_HEAD ((size_t)8 << 10)

/* Every frame bears the id of its dictionary: one byte for those below this.
 */
#define DICTIONARY_IDS 256

/* A dictionary in zstd's own format from strings that may be in it; entropy
 * tables come from the samples, which stand side by side. */
HN_CHECK enum res dictionary_make(uint32_t id, struct str strings,
    const char *samples, const size_t *sizes, size_t count, struct buf *out);

struct packer;
/* NULL without memory. */
struct packer *packer_new(void);
void packer_free(struct packer **p);
/* Begin a frame of `plain` bytes. */
HN_CHECK enum res packer_begin(struct packer *p, uint64_t plain);
/* Compress some; with `last` the frame is complete, and RES_INVALID tells
 * that its length is not what was promised. What comes out is added to `out`
 * (at most about 128 KB a call beyond `len`). */
HN_CHECK enum res packer_push(
    struct packer *p, const void *bytes, size_t len, bool last, struct buf *out);
/* A whole frame at once. */
HN_CHECK enum res packer_whole(struct packer *p, struct str plain,
    struct buf *out);

/* The packing side of a dictionary, shared by threads once made: about a
 * megabyte. NULL without memory, or when `content` is no dictionary. */
struct pack_dictionary;
struct pack_dictionary *pack_dictionary_new(struct str content);
void pack_dictionary_free(struct pack_dictionary **d);
/* What packer_whole uses from now on; NULL: none. It must live as long as it
 * is used. */
void packer_use(struct packer *p, const struct pack_dictionary *d);

/* The unpacking side, shared by threads once made. */
struct unpack_dictionary;
struct unpack_dictionary *unpack_dictionary_new(struct str content);
void unpack_dictionary_free(struct unpack_dictionary **d);

/* Which dictionary one is, and which one a packed frame (its beginning is
 * enough) was made with; 0: none. */
uint32_t dictionary_id(struct str content);
uint32_t packed_dictionary_id(struct str packed);

struct unpacker;
struct unpacker *unpacker_new(void);
void unpacker_free(struct unpacker **u);
/* One whole frame of known plain length <= max into `a`. RES_CORRUPT when
 * `packed` is anything else; `dictionary` may be NULL. */
HN_CHECK enum res unpacker_whole(struct unpacker *u, struct str packed,
    const struct unpack_dictionary *dictionary, uint64_t max, struct arena *a,
    struct str *out);
/* One frame that arrives in pieces; what comes out is pushed to `out`. */
HN_CHECK enum res unpacker_begin(
    struct unpacker *u, const struct unpack_dictionary *dictionary);
HN_CHECK enum res unpacker_push(
    struct unpacker *u, struct str packed, struct sink *out);
/* RES_CORRUPT unless exactly one frame ended with the last byte pushed. */
HN_CHECK enum res unpacker_finish(struct unpacker *u);

#endif

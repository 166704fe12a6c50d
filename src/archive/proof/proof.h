/* A proof that a frame stood in the archive when a note was signed, in a text
 * of its own that can be checked without the store (archive-format(5)):
 *
 *   hanaper-proof 1
 *   shard STORE/EPOCH/SHARD
 *   frame 12
 *   type 1
 *   time 1796060000123456
 *   META disclosed SALT BASE64         what the block says
 *   EVIDENCE committed COMMITMENT      only that it was there
 *   EDITS absent
 *   BODY disclosed SALT SHA256         the message is given beside it
 *   leaf HASH
 *   path HASH                          as many as there are
 *   key NAME+ID+KEY                    one of the note's; a hint
 *   note
 *   (the signed note)
 *
 * A block that was erased is "erased": then the leaf cannot be made again and
 * stands for itself. A proof of consistency shows that one note's tree begins
 * with another's:
 *
 *   hanaper-consistency 1
 *   path HASH
 *   key NAME+ID+KEY
 *   old
 *   (note)
 *   new
 *   (note) */
#ifndef ARCHIVE_PROOF_H
#define ARCHIVE_PROOF_H

#include "archive/format/merkle.h"
#include "archive/format/note.h"
#include "archive/proof/checkpoints.h"
#include "archive/search/search.h"
#include "archive/store/segment_reader.h"

/* META, EVIDENCE and EDITS in base64, and the rest. */
#define PROOF_MAX_TEXT ((size_t)18 << 20)

enum proof_how {
	PROOF_ABSENT,
	PROOF_ERASED,
	PROOF_COMMITTED, /* commitment */
	PROOF_DISCLOSED, /* salt and plain; of BODY salt and sha256 */
};

struct proof_block {
	enum proof_how how;
	uint8_t commitment[LEAF_HASH_BYTES];
	uint8_t salt[FRAME_SALT_BYTES], sha256[32];
	struct str plain;
};

struct proof {
	struct note_origin origin;
	uint64_t frame;
	uint8_t type;
	int64_t time_us;
	struct proof_block blocks[FRAME_BLOCKS];
	uint8_t leaf[LEAF_HASH_BYTES];
	struct merkle_path path;
	bool has_key;
	struct note_key key;
	struct str note;
};

struct consistency {
	struct merkle_path path;
	bool has_key;
	struct note_key key;
	struct str old_note, new_note;
};

/* --- texts --- */

void proof_format(struct buf *out, const struct proof *p);
/* `text` must stay. RES_SYNTAX: no such text, `err` says which line. */
HN_CHECK enum res proof_parse(
    struct str text, struct arena *a, struct err *err, struct proof *out);
void consistency_format(struct buf *out, const struct consistency *c);
HN_CHECK enum res consistency_parse(
    struct str text, struct err *err, struct consistency *out);
/* Which of them this is. */
bool proof_is_consistency(struct str text);

/* Do blocks, leaf, path and note fit together? RES_CORRUPT with a line: no.
 * The signatures are another question: proof_check_note. */
HN_CHECK enum res proof_check(
    const struct proof *p, struct err *err, struct note_head *out);
HN_CHECK enum res consistency_check(const struct consistency *c,
    struct err *err, struct note_head *out_old, struct note_head *out_new);
/* Is the note signed by `key`? RES_CORRUPT with a line: no. */
HN_CHECK enum res proof_check_note(
    struct str note, const struct note_key *key, struct err *err);

/* --- from the store --- */

struct proof_options {
	bool without_envelope;   /* META only as a commitment */
	struct str note;         /* prove against this one; empty: the newest */
	struct merkle_table *table; /* leaves of the shard; NULL: they are read */
};
/* RES_NOTFOUND: no such frame; RES_AGAIN: no note covers it yet; RES_CORRUPT:
 * damage, or the note is not of this tree. */
HN_CHECK enum res proof_make(struct archive_reader *r, struct arena *a,
    uint64_t id, const struct proof_options *o, struct err *err,
    struct proof *out);
/* Between two notes of one shard of the store, in either order. */
HN_CHECK enum res consistency_make(struct archive_reader *r, struct arena *a,
    struct str one, struct str other, struct err *err,
    struct consistency *out);
/* The newest note of a shard, in `a`, for many proofs. RES_AGAIN: none. */
HN_CHECK enum res proof_newest_note(struct archive_reader *r, struct arena *a,
    uint32_t shard, struct err *err, struct str *out);
/* The leaves of a shard, for many proofs; to be done by the caller.
 * RES_LIMIT: too many. */
HN_CHECK enum res proof_table(struct archive_reader *r, uint32_t shard,
    struct err *err, struct merkle_table *out);

#endif

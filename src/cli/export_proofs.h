/* Proofs beside messages written out: a file for each in a folder, made from
 * the leaves of one shard at a time. */
#ifndef CLI_EXPORT_PROOFS_H
#define CLI_EXPORT_PROOFS_H

#include <limits.h>

#include "archive/proof/proof.h"

struct export_proofs {
	struct archive_reader *reader;
	char dir[PATH_MAX]; /* made when it is needed */
	/* the shard under way */
	uint32_t shard;     /* 0: none yet */
	bool usable, has_table;
	struct merkle_table table;
	struct arena *arena; /* of its note */
	struct str note;
	uint64_t written, lacking;
};

void export_proofs_init(struct export_proofs *p, struct archive_reader *r);
void export_proofs_done(struct export_proofs *p);

#define EXPORT_PROOF_NAME 48
/* Write the proof of a message; its name in the folder, "" when there can be
 * none: nothing signed covers it, or the shard is damaged. RES_IO with a
 * line. */
HN_CHECK enum res export_proof(struct export_proofs *p, uint64_t id,
    struct err *err, char out_name[EXPORT_PROOF_NAME]);

#endif

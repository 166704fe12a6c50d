#include "cli/export_proofs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void
export_proofs_init(struct export_proofs *p, struct archive_reader *r)
{
	*p = (struct export_proofs){ .reader = r };
	merkle_table_init(&p->table);
}

void
export_proofs_done(struct export_proofs *p)
{
	merkle_table_done(&p->table);
	arena_free(&p->arena);
}

/* Its leaves and its newest note. Without the table, which is too large for
 * some shards, each proof reads the leaves anew. */
static enum res
begin_shard(struct export_proofs *p, uint32_t shard)
{
	struct err err = { "" };
	export_proofs_done(p);
	p->shard = shard;
	p->arena = arena_new(0);
	if (p->arena == NULL)
		return RES_NOMEM;
	enum res r =
	    proof_newest_note(p->reader, p->arena, shard, &err, &p->note);
	if (r == RES_OK) {
		r = proof_table(p->reader, shard, &err, &p->table);
		p->has_table = r == RES_OK;
		if (r == RES_LIMIT)
			r = RES_OK;
	}
	p->usable = r == RES_OK;
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK && r != RES_AGAIN)
		fprintf(stderr, "hanaper: no proofs for shard %" PRIu32
		    ": %s\n", shard, err.text);
	return RES_OK;
}

static enum res
write_file(struct export_proofs *p, const char *name, const struct buf *text,
    struct err *err)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", p->dir, name);
	if (n < 0 || (size_t)n >= sizeof path)
		return RES_LIMIT;
	if (mkdir(p->dir, 0700) != 0 && errno != EEXIST) {
		err_set(err, "%s: %s", p->dir, strerror(errno));
		return RES_IO;
	}
	FILE *f = fopen(path, "wb");
	bool good = f != NULL && buf_write(text, f);
	if (f != NULL && fclose(f) != 0)
		good = false;
	if (!good)
		err_set(err, "%s: %s", path, strerror(errno));
	return good ? RES_OK : RES_IO;
}

enum res
export_proof(struct export_proofs *p, uint64_t id, struct err *err,
    char out_name[EXPORT_PROOF_NAME])
{
	struct err why = { "" };
	struct proof proof;
	struct buf text;
	uint32_t shard = (uint32_t)(id >> 32);
	enum res r = shard == p->shard ? RES_OK : begin_shard(p, shard);
	out_name[0] = '\0';
	if (r != RES_OK)
		return r;
	struct arena *a = arena_new((size_t)256 << 20);
	if (a == NULL)
		return RES_NOMEM;
	const struct proof_options o = { .note = p->note,
		.table = p->has_table ? &p->table : NULL };
	r = p->usable ? proof_make(p->reader, a, id, &o, &why, &proof) :
			RES_AGAIN;
	if (r == RES_OK) {
		buf_init(&text, PROOF_MAX_TEXT);
		proof_format(&text, &proof);
		snprintf(out_name, EXPORT_PROOF_NAME,
		    "%" PRIu32 ".%" PRIu64 ".proof", shard, id & UINT32_MAX);
		r = text.error;
		if (r == RES_OK)
			r = write_file(p, out_name, &text, err);
		buf_done(&text);
		p->written += r == RES_OK;
	} else if (r == RES_AGAIN || r == RES_CORRUPT) {
		/* the message itself is fine */
		p->lacking++;
		r = RES_OK;
	}
	arena_free(&a);
	return r;
}

/* Proofs from anywhere: read and judged in bounded time and memory; what is
 * taken can be written again, and is then the same bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/proof/proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of(data, size);
	struct err err = { "" };
	struct proof p;
	struct consistency c;
	struct note_head old, new;
	struct buf b;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return 0;
	buf_init(&b, PROOF_MAX_TEXT);
	if (proof_parse(text, a, &err, &p) == RES_OK) {
		proof_format(&b, &p);
		if (!str_eq(buf_str(&b), text))
			abort();
		if (proof_check(&p, &err, &new) == RES_OK && p.has_key)
			(void)!proof_check_note(p.note, &p.key, &err);
	} else if (err.text[0] == '\0') {
		abort();
	}
	buf_reset(&b);
	if (consistency_parse(text, &err, &c) == RES_OK) {
		consistency_format(&b, &c);
		if (!str_eq(buf_str(&b), text) ||
		    !proof_is_consistency(text))
			abort();
		(void)!consistency_check(&c, &err, &old, &new);
	}
	buf_done(&b);
	arena_free(&a);
	return 0;
}

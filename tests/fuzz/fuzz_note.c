/* Signed notes, checkpoints, keys: what is taken can be written again, and is
 * then the same bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "archive/proof/checkpoints.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
same(struct buf *b, struct str text)
{
	if (b->error != RES_OK || !str_eq(buf_str(b), text))
		abort();
	buf_reset(b);
}

static void
look(struct str bytes, struct buf *b)
{
	struct note n;
	struct note_head head;
	struct note_handover over;
	if (note_open(bytes, &n) != RES_OK)
		return;
	if (n.count == 0 || n.count > NOTE_MAX_SIGNATURES ||
	    !signer_note_ok(n.text))
		abort();
	if (note_head_parse(n.text, &head) == RES_OK) {
		note_head_format(b, &head);
		same(b, n.text);
	}
	if (note_handover_parse(n.text, &over) == RES_OK) {
		note_handover_format(b, &over);
		same(b, n.text);
		if (note_check(&n, &over.key) == RES_NOMEM)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = str_of(data, size), note;
	struct note_key key;
	struct buf b;
	buf_init(&b, 4096);
	if (note_key_parse(rest, &key) == RES_OK) {
		note_key_format(&b, &key);
		same(&b, rest);
	}
	look(rest, &b);
	while (checkpoints_next(&rest, &note))
		look(note, &b);
	buf_done(&b);
	return 0;
}

#include "mail/canon.h"

#include "mail/canon_scan.h"

/* Canonical form and input are equal nearly everywhere, so the input itself
 * is handed on in long spans. A chunk is cut in three:
 *
 *     carried | middle ........................ | tail
 *
 * tail     the bytes at the end whose fate the next chunk decides: for simple
 *          CRLFs and a CR, for relaxed any blanks, CRs and LFs. They run
 *          through a byte machine that only keeps state.
 * carried  while the state is not empty, bytes run through the same machine.
 * middle   starts with empty state, ends with a data byte: all empty lines in
 *          it stay, and only blanks can need a change. Simple: none does.
 *
 * Invariants:
 * 1. Held back are, in this order: `crlfs` line ends, `blank` one SP, `cr`
 *    one CR. Nothing else is, whatever the input.
 * 2. With all three empty, everything pushed so far has gone to `emit`.
 * 3. `blank` is only set by relaxed. */
struct body {
	struct sink sink;
	struct sink *next;
	bool relaxed;
	bool blank, cr, wrote;
	uint64_t crlfs;
	const struct canon_scanner *scanner;
	size_t staged;
	char stage[4096];
};

/* Short spans between changes are gathered: a push costs more than to copy
 * them. */
#define SHORT_SPAN 96

static void
flush(struct body *b)
{
	if (b->staged != 0)
		sink_push(b->next, b->stage, b->staged);
	b->staged = 0;
}

static void
emit(struct body *b, const char *p, size_t len)
{
	if (len == 0)
		return;
	b->wrote = true;
	if (len > sizeof b->stage - b->staged)
		flush(b);
	if (len >= SHORT_SPAN) {
		flush(b);
		sink_push(b->next, p, len);
		return;
	}
	memcpy(b->stage + b->staged, p, len);
	b->staged += len;
}

static bool
is_holding(const struct body *b)
{
	return b->crlfs != 0 || b->blank || b->cr;
}

/* What was held back turned out to stand before data. */
static void
release(struct body *b)
{
	for (; b->crlfs != 0; b->crlfs--)
		emit(b, "\r\n", 2);
	if (b->blank)
		emit(b, " ", 1);
	b->blank = false;
}

static void
step(struct body *b, char c)
{
	if (b->cr) {
		b->cr = false;
		if (c == '\n') {
			b->blank = false;
			b->crlfs++;
			return;
		}
		release(b);
		emit(b, "\r", 1);
	}
	if (c == '\r') {
		b->cr = true;
	} else if (b->relaxed && ascii_is_wsp(c)) {
		b->blank = true;
	} else {
		release(b);
		emit(b, &c, 1);
	}
}

/* Bytes from `from` to `to` through the machine, while it holds something or
 * `all`; gives where it stopped. A run of blanks is one step: a body of
 * nothing else must not be slow. */
static size_t
run_machine(struct body *b, const char *p, size_t from, size_t to, bool all)
{
	while (from < to && (all || is_holding(b))) {
		step(b, p[from++]);
		if (b->blank && !b->cr)
			while (from < to && ascii_is_wsp(p[from]))
				from++;
	}
	return from;
}

/* Where the tail begins. */
static size_t
tail_simple(const char *p, size_t from, size_t len)
{
	size_t at = len;
	if (at > from && p[at - 1] == '\r')
		at--;
	while (at - from >= 2 && p[at - 2] == '\r' && p[at - 1] == '\n')
		at -= 2;
	return at;
}

static size_t
tail_relaxed(const char *p, size_t from, size_t len)
{
	size_t at = len;
	while (at > from &&
	    (ascii_is_wsp(p[at - 1]) || p[at - 1] == '\r' || p[at - 1] == '\n'))
		at--;
	return at;
}

/* Walks the middle; `start` is where the span not yet handed on begins. */
struct walk {
	const char *p;
	size_t start, len;
};

/* A spot at `at`: find the run of blanks it belongs to and write it in
 * canonical form. One SP before anything but CRLF needs no change. The middle
 * ends with a data byte, so looking ahead stays inside. */
static void
fix_blanks(struct body *b, struct walk *w, size_t at)
{
	const char *p = w->p;
	size_t from = at, to;
	if (from > w->start && ascii_is_wsp(p[from - 1]))
		from--;
	for (to = from; ascii_is_wsp(p[to]); to++)
		continue;
	if (to == from)
		return;
	if (p[to] == '\r' && p[to + 1] == '\n') {
		emit(b, p + w->start, from - w->start);
		w->start = to;
	} else if (p[from] == ' ') {
		if (to == from + 1)
			return;
		emit(b, p + w->start, from + 1 - w->start);
		w->start = to;
	} else {
		emit(b, p + w->start, from - w->start);
		emit(b, " ", 1);
		w->start = to;
	}
}

static void
fix_spots(struct body *b, struct walk *w, size_t base, uint64_t spots)
{
	for (; spots != 0; spots &= spots - 1) {
		size_t at = base + (size_t)__builtin_ctzll(spots);
		if (at >= w->start)
			fix_blanks(b, w, at);
	}
}

/* Which bytes of the block at `at` go: of a run of blanks all but the last,
 * before CRLF that one too. Looking ahead stays inside, as above. */
static uint64_t
dropped(const struct walk *w, size_t at, const struct canon_marks *m)
{
	const char *p = w->p + at;
	char c = at + CANON_SCAN_BLOCK < w->len ? p[CANON_SCAN_BLOCK] : '\0';
	uint64_t next_blank = ascii_is_wsp(c), next_cr = c == '\r';
	uint64_t drop = m->blank & (m->blank >> 1 | next_blank << 63);
	/* a spot that is no blank is a CR behind one */
	uint64_t last = m->blank & ~drop & (m->spots >> 1 | next_cr << 63);
	for (; last != 0; last &= last - 1) {
		int i = __builtin_ctzll(last);
		drop |= (uint64_t)(p[i + 2] == '\n') << i;
	}
	return drop;
}

/* A block with many spots. */
static void
fix_dense(
    struct body *b, struct walk *w, size_t at, const struct canon_marks *m)
{
	const char *p = w->p;
	uint64_t drop = dropped(w, at, m);
	if (w->start >= at + CANON_SCAN_BLOCK)
		return;
	if (w->start > at) {
		drop |= ((uint64_t)1 << (w->start - at)) - 1;
	} else if (w->start < at) {
		/* one SP before may have to go for what begins here */
		bool goes = ascii_is_wsp(p[at - 1]) &&
		    (ascii_is_wsp(p[at]) ||
			(p[at] == '\r' && p[at + 1] == '\n'));
		emit(b, p + w->start, at - goes - w->start);
	}
	if (sizeof b->stage - b->staged < CANON_SCAN_BLOCK)
		flush(b);
	size_t n = b->scanner->pack(p + at, drop, b->stage + b->staged);
	b->staged += n;
	b->wrote = b->wrote || n != 0;
	w->start = at + CANON_SCAN_BLOCK;
}

static void
fix_block(
    struct body *b, struct walk *w, size_t at, const struct canon_marks *m)
{
	uint64_t but_one = m->spots & (m->spots - 1);
	if ((but_one & (but_one - 1)) != 0) /* three spots or more */
		fix_dense(b, w, at, m);
	else
		fix_spots(b, w, at, m->spots);
}

static void
relax_middle(struct body *b, const char *p, size_t len)
{
	struct walk w = { p, 0, len };
	struct canon_marks marks[CANON_SCAN_BLOCKS];
	uint64_t carry = 0;
	size_t at = 0, blocks;
	for (; len - at >= CANON_SCAN_BLOCK; at += blocks * CANON_SCAN_BLOCK) {
		blocks = (len - at) / CANON_SCAN_BLOCK;
		if (blocks > CANON_SCAN_BLOCKS)
			blocks = CANON_SCAN_BLOCKS;
		uint64_t dirty =
		    b->scanner->scan(p + at, blocks, marks, &carry);
		for (; dirty != 0; dirty &= dirty - 1) {
			size_t i = (size_t)__builtin_ctzll(dirty);
			fix_block(b, &w, at + i * CANON_SCAN_BLOCK, &marks[i]);
		}
	}
	if (at < len) {
		char last[CANON_SCAN_BLOCK] = { 0 };
		memcpy(last, p + at, len - at);
		b->scanner->scan(last, 1, marks, &carry);
		fix_spots(b, &w, at, marks[0].spots);
	}
	emit(b, p + w.start, len - w.start);
}

static void
body_push(struct sink *s, const char *p, size_t len)
{
	struct body *b = (struct body *)s;
	size_t from = run_machine(b, p, 0, len, false);
	size_t tail =
	    b->relaxed ? tail_relaxed(p, from, len) : tail_simple(p, from, len);
	if (b->relaxed)
		relax_middle(b, p + from, tail - from);
	else
		emit(b, p + from, tail - from);
	run_machine(b, p, tail, len, true);
}

static enum res
body_finish(struct sink *s)
{
	struct body *b = (struct body *)s;
	if (b->cr) {
		release(b);
		emit(b, "\r", 1);
	}
	if (b->wrote || !b->relaxed)
		emit(b, "\r\n", 2);
	flush(b);
	return sink_finish(b->next);
}

struct sink *
canon_body(struct arena *a, enum canon c, struct sink *next)
{
	struct body *b = arena_alloc_raw(a, sizeof *b);
	if (b == NULL)
		return NULL;
	memset(b, 0, offsetof(struct body, stage));
	b->sink = (struct sink){ body_push, body_finish };
	b->next = next;
	b->relaxed = c == CANON_RELAXED;
	b->scanner = canon_scanner_best();
	return &b->sink;
}

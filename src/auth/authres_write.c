#include "auth/authres.h"

#include "auth/authres_scan.h"
#include "mail/address.h"
#include "mail/domain.h"

/* The field is a list of pieces that are never broken; lines break between
 * them. Kept as pieces until the end, because the payload for the ARC set is
 * the same without comments and folds. */
enum piece_kind {
	PIECE_RESULT,
	PIECE_DETAIL,
	PIECE_COMMENT
};

struct piece {
	struct piece *next;
	enum piece_kind kind;
	struct str text;
};

struct authres {
	struct arena *arena;
	struct str id;
	struct piece *first, **last;
	bool failed; /* no memory: nothing is given in the end */
	struct str payload;
};

#define MAX_COLUMNS 77
#define TAB_COLUMNS 8

/* --- characters (AR-01) ---------------------------------------------------- */
static bool
is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!authres_is_token_byte(s.ptr[i]))
			return false;
	return s.len != 0;
}

static void
add_quoted(struct buf *b, struct str s)
{
	buf_add_char(b, '"');
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '"' || s.ptr[i] == '\\')
			buf_add_char(b, '\\');
		buf_add_char(b, s.ptr[i]);
	}
	buf_add_char(b, '"');
}

/* What may be written of a stranger's value, to `out` of AUTHRES_MAX_VALUE
 * bytes. */
static struct str
clean(struct str s, char *out)
{
	size_t n = 0;
	for (size_t i = 0; i < s.len && n < AUTHRES_MAX_VALUE; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (c >= 0x80)
			out[n++] = '?';
		else if (c >= 0x20 && c != 0x7f)
			out[n++] = (char)c;
	}
	return str_of(out, n);
}

static void
add_value(struct buf *b, struct str value)
{
	char room[AUTHRES_MAX_VALUE];
	struct str s = clean(value, room);
	if (is_token(s))
		buf_add_str(b, s);
	else
		add_quoted(b, s);
}

/* --- pieces ---------------------------------------------------------------- */
/* Takes over what `b` holds. */
static void
add_piece(struct authres *w, enum piece_kind kind, struct buf *b)
{
	struct piece *p = ARENA_NEW(w->arena, struct piece);
	struct str text = arena_dup(w->arena, buf_str(b));
	if (p == NULL || text.ptr == NULL || b->error != RES_OK) {
		w->failed = true;
	} else {
		*p = (struct piece){ NULL, kind, text };
		*w->last = p;
		w->last = &p->next;
	}
	buf_done(b);
}

static void
begin_property(struct buf *b, const char *ptype, const char *property)
{
	buf_init(b, AUTHRES_MAX_TEXT);
	buf_addf(b, "%s.%s=", ptype, property);
}

struct authres *
authres_begin(struct arena *a, struct str authserv_id)
{
	struct authres *w = ARENA_NEW(a, struct authres);
	struct buf b;
	if (w == NULL)
		return NULL;
	buf_init(&b, AUTHRES_MAX_TEXT);
	add_value(&b, authserv_id);
	w->arena = a;
	w->last = &w->first;
	w->id = arena_dup(a, buf_str(&b));
	w->failed = w->id.ptr == NULL || b.error != RES_OK;
	buf_done(&b);
	return w;
}

void
authres_result(struct authres *w, const char *method, enum auth_result result)
{
	struct buf b;
	buf_init(&b, AUTHRES_MAX_TEXT);
	buf_addf(&b, "%s=%s", method, auth_result_word(result));
	add_piece(w, PIECE_RESULT, &b);
}

static bool
is_comment_text(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < ' ' || s.ptr[i] > '~' ||
		    strchr(";=()\"\\", s.ptr[i]) != NULL)
			return false;
	return s.len != 0 && s.len <= AUTHRES_MAX_COMMENT;
}

void
authres_comment(struct authres *w, const char *comment)
{
	struct buf b;
	if (!is_comment_text(str_c(comment)))
		return;
	buf_init(&b, AUTHRES_MAX_TEXT);
	buf_addf(&b, "(%s)", comment);
	add_piece(w, PIECE_COMMENT, &b);
}

void
authres_reason(struct authres *w, const char *reason)
{
	char room[AUTHRES_MAX_VALUE];
	struct buf b;
	buf_init(&b, AUTHRES_MAX_TEXT);
	buf_add_c(&b, "reason=");
	add_quoted(&b, clean(str_c(reason), room));
	add_piece(w, PIECE_DETAIL, &b);
}

void
authres_value(struct authres *w, const char *ptype, const char *property,
    struct str value)
{
	struct buf b;
	begin_property(&b, ptype, property);
	add_value(&b, value);
	add_piece(w, PIECE_DETAIL, &b);
}

void
authres_address(struct authres *w, const char *ptype, const char *property,
    struct str address)
{
	struct str whole, local, domain, ascii;
	struct buf b;
	address_envelope(address, &whole, &local, &domain);
	bool has_at = domain.ptr != NULL;
	if (!has_at) {
		domain = whole;
		local = STR_EMPTY;
	}
	begin_property(&b, ptype, property);
	enum res r = domain_normalize(w->arena, domain, &ascii);
	if (r == RES_NOMEM) {
		w->failed = true;
	} else if (r != RES_OK) {
		add_value(&b, domain);
	} else {
		bool with_local = authres_is_dot_atom(local) &&
		    local.len + ascii.len < AUTHRES_MAX_VALUE;
		if (with_local)
			buf_add_str(&b, local);
		if (with_local || (has_at && local.len == 0))
			buf_add_char(&b, '@');
		buf_add_str(&b, ascii);
	}
	add_piece(w, PIECE_DETAIL, &b);
}

/* --- the value ------------------------------------------------------------- */
/* Columns are counted as a reader sees them: a tab is 8, and the first line
 * begins with the field's name. */
static void
build_value(const struct authres *w, struct buf *b)
{
	size_t column = sizeof "Authentication-Results:" + w->id.len;
	buf_add_char(b, ' ');
	buf_add_str(b, w->id);
	if (w->first == NULL)
		buf_add_c(b, "; none");
	for (const struct piece *p = w->first; p != NULL; p = p->next) {
		bool more = p->next != NULL && p->next->kind == PIECE_RESULT;
		size_t length = p->text.len + more;
		if (p->kind == PIECE_RESULT)
			buf_add_char(b, ';');
		if (p->kind == PIECE_RESULT ||
		    column + 1 + length > MAX_COLUMNS) {
			buf_add_c(b, "\n\t");
			column = TAB_COLUMNS;
		} else {
			buf_add_char(b, ' ');
			column++;
		}
		buf_add_str(b, p->text);
		column += p->text.len;
	}
}

static void
build_payload(const struct authres *w, struct buf *b)
{
	if (w->first == NULL)
		buf_add_c(b, "none");
	for (const struct piece *p = w->first; p != NULL; p = p->next) {
		if (p->kind == PIECE_COMMENT)
			continue;
		if (p->kind == PIECE_RESULT && p != w->first)
			buf_add_char(b, ';');
		if (p != w->first)
			buf_add_char(b, ' ');
		buf_add_str(b, p->text);
	}
}

static struct str
built(const struct authres *w,
    void (*build)(const struct authres *w, struct buf *b))
{
	struct buf b;
	buf_init(&b, AUTHRES_MAX_TEXT);
	build(w, &b);
	struct str s = b.error == RES_OK && !w->failed
	    ? arena_dup(w->arena, buf_str(&b))
	    : STR_EMPTY;
	buf_done(&b);
	return s;
}

struct str
authres_finish(struct authres *w)
{
	w->payload = built(w, build_payload);
	return w->payload.ptr != NULL ? built(w, build_value) : STR_EMPTY;
}

struct str
authres_payload(const struct authres *w)
{
	return w->payload;
}

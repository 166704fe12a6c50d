#include "auth/signfield.h"

#include "base/codec.h"

#define MAX_SIGNATURE_BYTES 1024

struct signfield {
	struct arena *arena;
	const char *name;
	const struct header *header;
	struct header_pick *pick;
	struct buf text;   /* the value so far, CRLF folds */
	struct buf hashed; /* canonical fields that h= names */
	size_t column;
	size_t name_count;
	struct str names[SIG_MAX_NAMES];
	const struct field *fields[SIG_MAX_NAMES]; /* NULL: none left */
};

static void
release(void *arg)
{
	struct signfield *f = arg;
	buf_done(&f->text);
	buf_done(&f->hashed);
}

enum res
signfield_new(struct arena *a, const char *name, const struct header *h,
    struct signfield **out)
{
	struct signfield *f = ARENA_NEW(a, struct signfield);
	if (f == NULL)
		return RES_NOMEM;
	f->arena = a;
	f->name = name;
	f->header = h;
	f->column = strlen(name) + 1;
	f->pick = header_pick_new(a, h);
	buf_init(&f->text, SIGNFIELD_MAX);
	buf_init(&f->hashed, 2 * header_bytes(h) + SIGNFIELD_MAX);
	if (f->pick == NULL || arena_on_free(a, release, f) != RES_OK)
		return RES_NOMEM;
	*out = f;
	return RES_OK;
}

enum res
signfield_name(struct signfield *f, struct str name)
{
	const struct field *field = NULL;
	if (f->name_count == SIG_MAX_NAMES)
		return RES_LIMIT;
	enum res r = header_pick_take(f->pick, name, &field);
	if (r != RES_OK && r != RES_NOTFOUND)
		return r;
	struct str lower = arena_lower(f->arena, name);
	if (lower.ptr == NULL)
		return RES_NOMEM;
	f->fields[f->name_count] = r == RES_OK ? field : NULL;
	f->names[f->name_count++] = lower;
	return RES_OK;
}

/* --- text and folds -------------------------------------------------------- */
static void
fold(struct signfield *f)
{
	buf_add_c(&f->text, "\r\n\t");
	f->column = 8;
}

static void
put(struct signfield *f, struct str s)
{
	buf_add_str(&f->text, s);
	f->column += s.len;
}

/* A blank, or a fold when `width` more columns do not fit. */
static void
separate(struct signfield *f, size_t width)
{
	if (f->column + 1 + width > SIGNFIELD_WIDTH)
		fold(f);
	else
		put(f, STR(" "));
}

void
signfield_tag(struct signfield *f, const char *tag, struct str value)
{
	separate(f, strlen(tag) + 1 + value.len + 1);
	put(f, str_c(tag));
	put(f, STR("="));
	put(f, value);
	put(f, STR(";"));
}

/* What was made in `b`, which ends here; its error is the field's. */
static void
tag_made(struct signfield *f, const char *tag, struct buf *b)
{
	if (b->error != RES_OK && f->text.error == RES_OK)
		f->text.error = b->error;
	signfield_tag(f, tag, buf_str(b));
	buf_done(b);
}

/* dkim-quoted-printable (RFC 6376 §2.11). */
void
signfield_quoted(struct signfield *f, const char *tag, struct str value)
{
	struct buf b;
	buf_init(&b, SIGNFIELD_MAX);
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];
		if (c > 0x20 && c < 0x7f && c != ';' && c != '=')
			buf_add_char(&b, (char)c);
		else
			buf_addf(&b, "=%02X", c);
	}
	tag_made(f, tag, &b);
}

void
signfield_number(struct signfield *f, const char *tag, int64_t n)
{
	struct buf b;
	buf_init(&b, 32);
	buf_addf(&b, "%lld", (long long)n);
	tag_made(f, tag, &b);
}

void
signfield_algorithm(struct signfield *f, enum key_type type)
{
	signfield_tag(f, "a",
	    type == KEY_RSA ? STR("rsa-sha256") : STR("ed25519-sha256"));
}

static const char *
canon_name(enum canon c)
{
	return c == CANON_SIMPLE ? "simple" : "relaxed";
}

void
signfield_canon(struct signfield *f, enum canon header, enum canon body)
{
	struct buf b;
	buf_init(&b, 32);
	buf_addf(&b, "%s/%s", canon_name(header), canon_name(body));
	tag_made(f, "c", &b);
}

void
signfield_names(struct signfield *f)
{
	fold(f);
	put(f, STR("h="));
	for (size_t i = 0; i < f->name_count; i++) {
		/* The name and its ":" or ";"; folds only behind a ":". */
		if (i > 0 && f->column + f->names[i].len + 1 > SIGNFIELD_WIDTH)
			fold(f);
		put(f, f->names[i]);
		put(f, i + 1 < f->name_count ? STR(":") : STR(";"));
	}
	if (f->name_count == 0)
		put(f, STR(";"));
}

void
signfield_body_hash(struct signfield *f, const uint8_t digest[DIGEST_LEN])
{
	struct buf b;
	buf_init(&b, 64);
	base64_encode(&b, digest, DIGEST_LEN);
	tag_made(f, "bh", &b);
}

/* --- signing --------------------------------------------------------------- */
/* The digest of `before`, the named fields and the field itself, whose b= is
 * empty so far. */
static enum res
digest_all(struct signfield *f, enum canon c, struct str before,
    uint8_t out[DIGEST_LEN])
{
	struct field self = { .name = str_c(f->name),
		.raw_name = str_c(f->name),
		.value = buf_str(&f->text) };
	struct sink *sink = sink_buf(f->arena, &f->hashed);
	if (sink == NULL || f->text.error != RES_OK)
		return sink == NULL ? RES_NOMEM : f->text.error;
	for (size_t i = 0; i < f->name_count; i++)
		if (f->fields[i] != NULL)
			canon_field(c, f->fields[i], sink);
	canon_signature_field(c, &self, self.value.len, self.value.len, sink);
	if (f->hashed.error != RES_OK)
		return f->hashed.error;
	struct str parts[] = { before, buf_str(&f->hashed) };
	return digest_sha256_parts(parts, 2, out);
}

/* b=, in base64, folded where a line is full: blanks mean nothing in it. */
static void
put_signature(struct signfield *f, struct str signature)
{
	struct buf b;
	buf_init(&b, 2 * MAX_SIGNATURE_BYTES);
	base64_encode(&b, signature.ptr, signature.len);
	if (b.error != RES_OK)
		f->text.error = b.error;
	struct str rest = buf_str(&b);
	while (rest.len != 0) {
		if (f->column >= SIGNFIELD_WIDTH)
			fold(f);
		struct str line = str_sub(rest, 0, SIGNFIELD_WIDTH - f->column);
		put(f, line);
		rest = str_skip(rest, line.len);
	}
	buf_done(&b);
}

static struct str
to_lf(struct arena *a, struct str v)
{
	struct str copy = arena_dup(a, v);
	char *p = (char *)copy.ptr;
	size_t n = 0;
	for (size_t i = 0; i < copy.len; i++)
		if (p[i] != '\r')
			p[n++] = p[i];
	copy.len = n;
	return copy;
}

struct str
signfield_to_crlf(struct arena *a, struct str value)
{
	char *p = arena_array(a, value.len + 1, 2);
	size_t n = 0;
	if (p == NULL)
		return STR_EMPTY;
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n')
			p[n++] = '\r';
		p[n++] = value.ptr[i];
	}
	return str_of(p, n);
}

enum res
signfield_sign_after(struct signfield *f, enum canon c, struct str before,
    struct signer *signer, const struct signing_key *key, struct str *out_value)
{
	uint8_t digest[DIGEST_LEN];
	struct buf signature;
	fold(f);
	put(f, STR("b="));
	enum res r = digest_all(f, c, before, digest);
	if (r != RES_OK)
		return r;
	buf_init(&signature, MAX_SIGNATURE_BYTES);
	r = signer->sign(signer, key, digest, &signature);
	if (r == RES_OK)
		put_signature(f, buf_str(&signature));
	buf_done(&signature);
	if (r == RES_OK)
		r = f->text.error;
	if (r != RES_OK)
		return r;
	struct str value = to_lf(f->arena, buf_str(&f->text));
	if (value.ptr == NULL)
		return RES_NOMEM;
	*out_value = value;
	return RES_OK;
}

enum res
signfield_sign(struct signfield *f, enum canon c, struct signer *signer,
    const struct signing_key *key, struct str *out_value)
{
	return signfield_sign_after(f, c, STR_EMPTY, signer, key, out_value);
}

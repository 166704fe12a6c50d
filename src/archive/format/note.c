#include "archive/format/note.h"

#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "base/codec.h"
#include "keys/digest.h"

#define DASH           "\xE2\x80\x94 " /* U+2014, space */
#define SIGNATURE_LEN  (4 + 64)
#define KEY_LEN        (1 + 32)
#define ED25519_KIND   1
#define MAX_LINE       256

/* --- parts of lines --- */

static void
put_origin(struct buf *b, const struct note_origin *o)
{
	hex_encode(b, o->store, sizeof o->store);
	buf_addf(b, "/%" PRIu32 "/%" PRIu32, o->epoch, o->shard);
}

static void
put_time(struct buf *b, int64_t us)
{
	buf_add_c(b, "time ");
	clock_format_us(b, us);
	buf_add_char(b, '\n');
}

/* Exactly `len` bytes. */
static bool
get_bytes(struct str text, bool hex, void *out, size_t len)
{
	struct buf b;
	buf_init(&b, len + 3);
	enum res r = hex ? hex_decode(text, &b) : base64_decode(text, false, &b);
	bool good = r == RES_OK && b.len == len;
	if (good)
		memcpy(out, b.ptr, len);
	buf_done(&b);
	return good;
}

static bool
get_number(struct str s, uint64_t max, uint64_t *out)
{
	return (s.len == 1 || (s.len > 1 && s.ptr[0] != '0')) &&
	    str_to_u64(s, max, out) == RES_OK;
}

static bool
get_origin(struct str *line, struct note_origin *out)
{
	struct str store, epoch, shard;
	uint64_t e, n;
	struct note_origin o;
	if (!str_split(line, '/', &store) || !str_split(line, '/', &epoch) ||
	    !str_split(line, '/', &shard) || store.len != 32 ||
	    !get_bytes(store, true, o.store, sizeof o.store) ||
	    !get_number(epoch, UINT32_MAX, &e) ||
	    !get_number(shard, UINT32_MAX, &n))
		return false;
	o.epoch = (uint32_t)e;
	o.shard = (uint32_t)n;
	*out = o;
	return true;
}

/* "time 2026-11-30T17:03:05.123456Z"; that it is the one way to write this
 * time is checked by whoever writes it again. */
static bool
get_time(struct str line, int64_t *out)
{
	static const struct {
		uint8_t at, len;
	} parts[] = { { 0, 4 }, { 5, 2 }, { 8, 2 }, { 11, 2 }, { 14, 2 },
		{ 17, 2 }, { 20, 6 } };
	uint64_t v[7];
	if (!str_starts(line, STR("time ")))
		return false;
	line = str_skip(line, 5);
	if (line.len != 27)
		return false;
	for (size_t i = 0; i < 7; i++)
		if (str_to_u64(str_sub(line, parts[i].at, parts[i].len),
			999999, &v[i]) != RES_OK)
			return false;
	if (v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31)
		return false;
	struct tm tm = { .tm_year = (int)v[0] - 1900, .tm_mon = (int)v[1] - 1,
		.tm_mday = (int)v[2], .tm_hour = (int)v[3], .tm_min = (int)v[4],
		.tm_sec = (int)v[5] };
	*out = (int64_t)timegm(&tm) * 1000000 + (int64_t)v[6];
	return true;
}

/* Cut `n` lines off a text; false unless it has just these, each ended. */
static bool
get_lines(struct str text, struct str *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!str_split(&text, '\n', &lines[i]))
			return false;
	return text.ptr != NULL && text.len == 0;
}

bool
note_origin_same(const struct note_origin *a, const struct note_origin *b)
{
	return a->epoch == b->epoch && a->shard == b->shard &&
	    memcmp(a->store, b->store, sizeof a->store) == 0;
}

struct note_origin
note_origin_of(const struct shard_header *h)
{
	struct note_origin o = { .epoch = h->epoch, .shard = h->number };
	memcpy(o.store, h->store_uuid, sizeof o.store);
	return o;
}

/* --- checkpoints --- */

void
note_head_format(struct buf *out, const struct note_head *h)
{
	put_origin(out, &h->origin);
	buf_addf(out, "\n%" PRIu64 "\n", h->size);
	base64_encode(out, h->root, sizeof h->root);
	buf_add_char(out, '\n');
	put_time(out, h->time_us);
}

enum res
note_head_parse(struct str text, struct note_head *out)
{
	struct str line[4];
	struct note_head h;
	struct buf again;
	if (text.len > SIGNER_MAX_NOTE || !get_lines(text, line, 4) ||
	    !get_origin(&line[0], &h.origin) || line[0].ptr != NULL ||
	    !get_number(line[1], UINT64_MAX, &h.size) ||
	    !get_bytes(line[2], false, h.root, sizeof h.root) ||
	    !get_time(line[3], &h.time_us))
		return RES_SYNTAX;
	buf_init(&again, SIGNER_MAX_NOTE);
	note_head_format(&again, &h);
	enum res r = again.error;
	if (r == RES_OK && !str_eq(buf_str(&again), text))
		r = RES_SYNTAX;
	buf_done(&again);
	if (r == RES_OK)
		*out = h;
	return r == RES_LIMIT ? RES_SYNTAX : r;
}

/* --- keys --- */

static enum res
key_id(struct str name, const uint8_t public[32], uint8_t out[4])
{
	uint8_t hash[DIGEST_LEN];
	const struct str parts[] = { name, STR("\n\1"), str_of(public, 32) };
	enum res r = digest_sha256_parts(parts, 3, hash);
	if (r == RES_OK)
		memcpy(out, hash, 4);
	return r;
}

enum res
note_key_of(const uint8_t store[16], const struct signing_key *k,
    struct note_key *out)
{
	struct buf name;
	if (k->type != KEY_ED25519 || k->public_der.len != 32)
		return RES_UNSUPPORTED;
	struct note_key key = { .name = "" };
	memcpy(key.public, k->public_der.ptr, 32);
	buf_init(&name, NOTE_MAX_NAME);
	buf_add_c(&name, "hanaper/");
	hex_encode(&name, store, 16);
	enum res r = name.error;
	if (r == RES_OK) {
		memcpy(key.name, name.ptr, name.len);
		r = key_id(buf_str(&name), key.public, key.id);
	}
	buf_done(&name);
	if (r == RES_OK)
		*out = key;
	return r;
}

void
note_key_format(struct buf *out, const struct note_key *k)
{
	uint8_t bytes[KEY_LEN] = { ED25519_KIND };
	memcpy(bytes + 1, k->public, 32);
	buf_addf(out, "%s+", k->name);
	hex_encode(out, k->id, sizeof k->id);
	buf_add_char(out, '+');
	base64_encode(out, bytes, sizeof bytes);
}

static bool
name_ok(struct str name)
{
	if (name.len == 0 || name.len > NOTE_MAX_NAME)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] <= ' ' || name.ptr[i] > '~' ||
		    name.ptr[i] == '+')
			return false;
	return true;
}

enum res
note_key_parse(struct str text, struct note_key *out)
{
	struct str name, id, rest = text;
	uint8_t bytes[KEY_LEN], want[4];
	struct note_key k = { .name = "" };
	struct buf again;
	if (!str_split(&rest, '+', &name) || !str_split(&rest, '+', &id) ||
	    !name_ok(name) || !get_bytes(id, true, k.id, sizeof k.id) ||
	    !get_bytes(rest, false, bytes, sizeof bytes) ||
	    bytes[0] != ED25519_KIND)
		return RES_SYNTAX;
	memcpy(k.name, name.ptr, name.len);
	memcpy(k.public, bytes + 1, sizeof k.public);
	enum res r = key_id(name, k.public, want);
	buf_init(&again, MAX_LINE);
	note_key_format(&again, &k);
	if (r == RES_OK && (memcmp(want, k.id, sizeof want) != 0 ||
			       !str_eq(buf_str(&again), text)))
		r = RES_SYNTAX;
	buf_done(&again);
	if (r == RES_OK)
		*out = k;
	return r;
}

bool
note_key_same(const struct note_key *a, const struct note_key *b)
{
	return strcmp(a->name, b->name) == 0 &&
	    memcmp(a->public, b->public, sizeof a->public) == 0;
}

void
note_handover_format(struct buf *out, const struct note_handover *h)
{
	put_origin(out, &h->origin);
	buf_add_c(out, "/key\n");
	note_key_format(out, &h->key);
	buf_add_char(out, '\n');
	put_time(out, h->time_us);
}

enum res
note_handover_parse(struct str text, struct note_handover *out)
{
	struct str line[3];
	struct note_handover h;
	struct buf again;
	if (text.len > SIGNER_MAX_NOTE || !get_lines(text, line, 3) ||
	    !get_origin(&line[0], &h.origin) ||
	    !str_eq(line[0], STR("key")) ||
	    note_key_parse(line[1], &h.key) != RES_OK ||
	    !get_time(line[2], &h.time_us))
		return RES_SYNTAX;
	buf_init(&again, SIGNER_MAX_NOTE);
	note_handover_format(&again, &h);
	bool same = str_eq(buf_str(&again), text);
	buf_done(&again);
	if (!same)
		return RES_SYNTAX;
	*out = h;
	return RES_OK;
}

/* --- signatures --- */

/* "— NAME BASE64" */
static bool
get_signature(struct str line, struct note_signature *out)
{
	uint8_t bytes[SIGNATURE_LEN];
	struct note_signature s;
	if (!str_starts(line, STR(DASH)))
		return false;
	line = str_skip(line, sizeof DASH - 1);
	if (!str_split(&line, ' ', &s.name) || !name_ok(s.name) ||
	    line.ptr == NULL || !get_bytes(line, false, bytes, sizeof bytes))
		return false;
	memcpy(s.id, bytes, sizeof s.id);
	memcpy(s.bytes, bytes + 4, sizeof s.bytes);
	/* one way to write it: no bits beside the last byte */
	struct buf again;
	buf_init(&again, MAX_LINE);
	base64_encode(&again, bytes, sizeof bytes);
	bool same = str_eq(buf_str(&again), line);
	buf_done(&again);
	*out = s;
	return same;
}

enum res
note_open(struct str bytes, struct note *out)
{
	struct note n = { .count = 0 };
	size_t end = str_find(bytes, STR("\n\n"));
	if (end == SIZE_MAX || bytes.len > SHARD_MAX_NOTE)
		return RES_SYNTAX;
	n.text = str_sub(bytes, 0, end + 1);
	struct str line, rest = str_skip(bytes, end + 2);
	if (!signer_note_ok(n.text))
		return RES_SYNTAX;
	while (rest.len > 0 && str_split(&rest, '\n', &line)) {
		if (rest.ptr == NULL || n.count == NOTE_MAX_SIGNATURES ||
		    !get_signature(line, &n.signatures[n.count]))
			return RES_SYNTAX;
		n.count++;
	}
	if (n.count == 0)
		return RES_SYNTAX;
	*out = n;
	return RES_OK;
}

enum res
note_check(const struct note *n, const struct note_key *k)
{
	enum res result = RES_NOTFOUND;
	struct pubkey *pub = NULL;
	enum res r = pubkey_from_ed25519(str_of(k->public, 32), &pub);
	if (r == RES_SYNTAX)
		return RES_CORRUPT;
	for (size_t i = 0; r == RES_OK && i < n->count; i++) {
		const struct note_signature *s = &n->signatures[i];
		bool fits = false;
		if (!str_eq(s->name, str_c(k->name)) ||
		    memcmp(s->id, k->id, sizeof s->id) != 0)
			continue;
		r = pubkey_verify_text(
		    pub, n->text, str_of(s->bytes, sizeof s->bytes), &fits);
		if (result != RES_CORRUPT)
			result = fits ? RES_OK : RES_CORRUPT;
	}
	pubkey_unref(&pub);
	return r != RES_OK ? r : result;
}

/* --- signing --- */

static int64_t
since(const struct signing_key *k)
{
	uint64_t s;
	return str_to_u64(k->selector, INT64_MAX / 1000000, &s) == RES_OK ?
	    (int64_t)s : INT64_MAX;
}

size_t
note_signers(const struct manifest *m, int64_t now_s,
    const struct signing_key *out[NOTE_MAX_SIGNATURES])
{
	size_t all, count = 0;
	const struct signing_key *k = manifest_find(m, SIGNER_NOTES, &all);
	int64_t next = INT64_MAX; /* when the key found before began */
	while (count < NOTE_MAX_SIGNATURES) {
		const struct signing_key *best = NULL;
		for (size_t i = 0; i < all; i++)
			if (k[i].notes && k[i].type == KEY_ED25519 &&
			    since(&k[i]) <= now_s && since(&k[i]) < next &&
			    (best == NULL || since(&k[i]) > since(best)))
				best = &k[i];
		if (best == NULL ||
		    (count > 0 && now_s - next >= NOTE_BOTH_SIGN_S))
			break;
		next = since(best);
		out[count++] = best;
	}
	return count;
}

static enum res
add_signature(struct signer *s, const uint8_t store[16],
    const struct signing_key *k, struct str text, struct buf *out)
{
	struct note_key key;
	struct buf signature;
	buf_init(&signature, SIGNATURE_LEN);
	enum res r = note_key_of(store, k, &key);
	if (r == RES_OK) {
		buf_add(&signature, key.id, sizeof key.id);
		r = s->sign_note(s, k, text, &signature);
	}
	if (r == RES_OK && signature.len != SIGNATURE_LEN)
		r = RES_IO;
	if (r == RES_OK) {
		buf_addf(out, DASH "%s ", key.name);
		base64_encode(out, signature.ptr, signature.len);
		buf_add_char(out, '\n');
		r = out->error;
	}
	buf_done(&signature);
	return r;
}

enum res
note_sign(struct signer *s, const uint8_t store[16], struct str text,
    int64_t now_us, struct buf *out)
{
	const struct signing_key *keys[NOTE_MAX_SIGNATURES];
	struct manifest *m = s != NULL ? s->manifest(s) : NULL;
	if (m == NULL)
		return RES_NOTFOUND;
	size_t count = note_signers(m, now_us / 1000000, keys);
	enum res r = count > 0 ? RES_OK : RES_NOTFOUND;
	buf_add_str(out, text);
	buf_add_char(out, '\n');
	for (size_t i = 0; r == RES_OK && i < count; i++)
		r = add_signature(s, store, keys[i], text, out);
	manifest_unref(&m);
	return r;
}

enum res
note_signing_keys(struct signer *s, const uint8_t store[16], int64_t now_us,
    struct note_key out[NOTE_MAX_SIGNATURES], size_t *out_count)
{
	const struct signing_key *keys[NOTE_MAX_SIGNATURES];
	struct manifest *m = s != NULL ? s->manifest(s) : NULL;
	if (m == NULL)
		return RES_NOTFOUND;
	size_t count = note_signers(m, now_us / 1000000, keys);
	enum res r = count > 0 ? RES_OK : RES_NOTFOUND;
	for (size_t i = 0; i < count && r == RES_OK; i++)
		r = note_key_of(store, keys[i], &out[i]);
	manifest_unref(&m);
	if (r == RES_OK)
		*out_count = count;
	return r;
}

enum res
note_newest_key(struct signer *s, const uint8_t store[16], int64_t now_us,
    struct note_key *out)
{
	struct note_key keys[NOTE_MAX_SIGNATURES];
	size_t count;
	enum res r = note_signing_keys(s, store, now_us, keys, &count);
	if (r == RES_OK)
		*out = keys[0];
	return r;
}

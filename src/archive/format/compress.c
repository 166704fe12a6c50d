#include "archive/format/compress.h"

#include <stdlib.h>
#include <zdict.h>
#include <zstd.h>
#include <zstd_errors.h>

/* A context clears its tables, and now and then gets them anew, when a text
 * of another size class comes. Each message brings small records and then a
 * body, which would be each time. */
#define SMALL_BYTES 4096

struct packer {
	ZSTD_CCtx *context;
	ZSTD_CCtx *small; /* for up to SMALL_BYTES */
	/* with a dictionary; made when first needed, as the dictionary brings
	 * its own parameters */
	ZSTD_CCtx *primed;
	const struct pack_dictionary *dictionary;
};

struct pack_dictionary {
	ZSTD_CDict *dictionary;
};

static enum res
pack_error(size_t code)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_memory_allocation:
		return RES_NOMEM;
	case ZSTD_error_srcSize_wrong:
		return RES_INVALID;
	default:
		return RES_IO;
	}
}

uint32_t
dictionary_id(struct str content)
{
	return ZDICT_getDictID(content.ptr, content.len);
}

enum res
dictionary_make(uint32_t id, struct str strings, const char *samples,
    const size_t *sizes, size_t count, struct buf *out)
{
	const ZDICT_params_t params = { .dictID = id,
		.compressionLevel = PACK_DICTIONARY_LEVEL };
	size_t room = strings.len + DICTIONARY_HEAD;
	char *at = buf_reserve(out, room);
	if (at == NULL)
		return out->error;
	size_t n = ZDICT_finalizeDictionary(at, room, strings.ptr, strings.len,
	    samples, sizes, (unsigned)count, params);
	if (ZDICT_isError(n))
		return RES_INVALID;
	out->len += n;
	return RES_OK;
}

static ZSTD_CCtx *
context_new(void)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	if (c != NULL &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(
		c, ZSTD_c_compressionLevel, PACK_LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(
		c, ZSTD_c_windowLog, PACK_WINDOW_LOG)))
		return c;
	ZSTD_freeCCtx(c);
	return NULL;
}

struct packer *
packer_new(void)
{
	struct packer *p = calloc(1, sizeof *p);
	if (p == NULL)
		return NULL;
	p->context = context_new();
	p->small = context_new();
	if (p->context == NULL || p->small == NULL)
		packer_free(&p);
	return p;
}

void
packer_free(struct packer **p)
{
	if (*p == NULL)
		return;
	ZSTD_freeCCtx((*p)->context);
	ZSTD_freeCCtx((*p)->small);
	ZSTD_freeCCtx((*p)->primed);
	free(*p);
	*p = NULL;
}

enum res
packer_begin(struct packer *p, uint64_t plain)
{
	size_t code = ZSTD_CCtx_reset(p->context, ZSTD_reset_session_only);
	if (!ZSTD_isError(code))
		code = ZSTD_CCtx_setPledgedSrcSize(p->context, plain);
	return ZSTD_isError(code) ? pack_error(code) : RES_OK;
}

enum res
packer_push(
    struct packer *p, const void *bytes, size_t len, bool last, struct buf *out)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	ZSTD_EndDirective how = last ? ZSTD_e_end : ZSTD_e_continue;
	for (;;) {
		size_t room = ZSTD_CStreamOutSize();
		char *at = buf_reserve(out, room);
		if (at == NULL)
			return out->error;
		ZSTD_outBuffer o = { at, room, 0 };
		size_t left = ZSTD_compressStream2(p->context, &o, &in, how);
		if (ZSTD_isError(left))
			return pack_error(left);
		out->len += o.pos;
		if (last ? left == 0 : in.pos == in.size)
			return RES_OK;
	}
}

struct pack_dictionary *
pack_dictionary_new(struct str content)
{
	struct pack_dictionary *d = calloc(1, sizeof *d);
	if (d == NULL)
		return NULL;
	/* without an id it would be taken for raw text */
	if (dictionary_id(content) != 0)
		d->dictionary = ZSTD_createCDict(
		    content.ptr, content.len, PACK_DICTIONARY_LEVEL);
	if (d->dictionary == NULL)
		pack_dictionary_free(&d);
	return d;
}

void
pack_dictionary_free(struct pack_dictionary **d)
{
	if (*d == NULL)
		return;
	ZSTD_freeCDict((*d)->dictionary);
	free(*d);
	*d = NULL;
}

void
packer_use(struct packer *p, const struct pack_dictionary *d)
{
	p->dictionary = d;
}

enum res
packer_whole(struct packer *p, struct str plain, struct buf *out)
{
	const struct pack_dictionary *d = p->dictionary;
	size_t room = ZSTD_compressBound(plain.len), n;
	char *at = buf_reserve(out, room);
	if (at == NULL)
		return out->error;
	if (d != NULL && p->primed == NULL &&
	    (p->primed = ZSTD_createCCtx()) == NULL)
		return RES_NOMEM;
	if (d != NULL)
		n = ZSTD_compress_usingCDict(p->primed, at, room, plain.ptr,
		    plain.len, d->dictionary);
	else
		n = ZSTD_compress2(
		    plain.len <= SMALL_BYTES ? p->small : p->context, at,
		    room, plain.ptr, plain.len);
	if (ZSTD_isError(n))
		return pack_error(n);
	out->len += n;
	return RES_OK;
}

struct unpack_dictionary {
	ZSTD_DDict *dictionary;
};

struct unpack_dictionary *
unpack_dictionary_new(struct str content)
{
	struct unpack_dictionary *d = calloc(1, sizeof *d);
	if (d == NULL)
		return NULL;
	d->dictionary = ZSTD_createDDict(content.ptr, content.len);
	if (d->dictionary == NULL)
		unpack_dictionary_free(&d);
	return d;
}

void
unpack_dictionary_free(struct unpack_dictionary **d)
{
	if (*d == NULL)
		return;
	ZSTD_freeDDict((*d)->dictionary);
	free(*d);
	*d = NULL;
}

uint32_t
packed_dictionary_id(struct str packed)
{
	return ZSTD_getDictID_fromFrame(packed.ptr, packed.len);
}

struct unpacker {
	ZSTD_DCtx *context;
	bool ended;
};

struct unpacker *
unpacker_new(void)
{
	struct unpacker *u = calloc(1, sizeof *u);
	if (u == NULL)
		return NULL;
	u->context = ZSTD_createDCtx();
	if (u->context == NULL ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(u->context,
		ZSTD_d_windowLogMax, UNPACK_MAX_WINDOW_LOG)))
		unpacker_free(&u);
	return u;
}

void
unpacker_free(struct unpacker **u)
{
	if (*u == NULL)
		return;
	ZSTD_freeDCtx((*u)->context);
	free(*u);
	*u = NULL;
}

enum res
unpacker_begin(struct unpacker *u, const struct unpack_dictionary *dictionary)
{
	u->ended = false;
	size_t code = ZSTD_DCtx_reset(u->context, ZSTD_reset_session_only);
	if (!ZSTD_isError(code))
		code = ZSTD_DCtx_refDDict(u->context,
		    dictionary != NULL ? dictionary->dictionary : NULL);
	return ZSTD_isError(code) ? RES_NOMEM : RES_OK;
}

enum res
unpacker_whole(struct unpacker *u, struct str packed,
    const struct unpack_dictionary *dictionary, uint64_t max, struct arena *a,
    struct str *out)
{
	unsigned long long plain =
	    ZSTD_getFrameContentSize(packed.ptr, packed.len);
	if (plain == ZSTD_CONTENTSIZE_ERROR ||
	    plain == ZSTD_CONTENTSIZE_UNKNOWN)
		return RES_CORRUPT;
	if (plain > max)
		return RES_LIMIT;
	if (ZSTD_findFrameCompressedSize(packed.ptr, packed.len) != packed.len)
		return RES_CORRUPT;
	enum res r = unpacker_begin(u, dictionary);
	if (r != RES_OK)
		return r;
	char *to = arena_alloc(a, (size_t)plain);
	if (to == NULL)
		return RES_NOMEM;
	size_t n = ZSTD_decompressDCtx(
	    u->context, to, (size_t)plain, packed.ptr, packed.len);
	if (ZSTD_isError(n))
		return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ?
		    RES_NOMEM : RES_CORRUPT;
	if (n != plain)
		return RES_CORRUPT;
	*out = str_of(to, n);
	return RES_OK;
}

enum res
unpacker_push(struct unpacker *u, struct str packed, struct sink *out)
{
	char plain[16384];
	ZSTD_inBuffer in = { packed.ptr, packed.len, 0 };
	bool more = packed.len > 0;
	while (more) {
		if (u->ended)
			return RES_CORRUPT; /* bytes behind the frame */
		ZSTD_outBuffer o = { plain, sizeof plain, 0 };
		size_t left = ZSTD_decompressStream(u->context, &o, &in);
		if (ZSTD_isError(left))
			return ZSTD_getErrorCode(left) ==
				ZSTD_error_memory_allocation ?
			    RES_NOMEM : RES_CORRUPT;
		if (o.pos > 0)
			sink_push(out, plain, o.pos);
		u->ended = left == 0;
		more = in.pos < in.size || (o.pos == o.size && !u->ended);
	}
	return RES_OK;
}

enum res
unpacker_finish(struct unpacker *u)
{
	return u->ended ? RES_OK : RES_CORRUPT;
}

#include "archive/compress.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct packer {
	ZSTD_CCtx *context;
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

struct packer *
packer_new(void)
{
	struct packer *p = calloc(1, sizeof *p);
	if (p == NULL)
		return NULL;
	p->context = ZSTD_createCCtx();
	if (p->context == NULL ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(p->context,
		ZSTD_c_compressionLevel, PACK_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(
		p->context, ZSTD_c_windowLog, PACK_WINDOW_LOG)))
		packer_free(&p);
	return p;
}

void
packer_free(struct packer **p)
{
	if (*p == NULL)
		return;
	ZSTD_freeCCtx((*p)->context);
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

enum res
packer_whole(struct packer *p, struct str plain, struct buf *out)
{
	size_t room = ZSTD_compressBound(plain.len);
	char *at = buf_reserve(out, room);
	if (at == NULL)
		return out->error;
	size_t n = ZSTD_compress2(p->context, at, room, plain.ptr, plain.len);
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

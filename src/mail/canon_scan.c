#include "mail/canon_scan.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* A bit of `blank << 1` says "the byte before is one". */
static inline struct canon_marks
combine(uint64_t blank, uint64_t tab, uint64_t cr, uint64_t *carry)
{
	uint64_t behind = blank << 1 | *carry;
	*carry = blank >> 63;
	return (struct canon_marks){ tab | ((blank | cr) & behind), blank };
}

static uint64_t
scan_plain(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry)
{
	uint64_t dirty = 0;
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		uint64_t blank = 0, tab = 0, cr = 0;
		for (unsigned i = 0; i < CANON_SCAN_BLOCK; i++) {
			blank |= (uint64_t)(p[i] == ' ' || p[i] == '\t') << i;
			tab |= (uint64_t)(p[i] == '\t') << i;
			cr |= (uint64_t)(p[i] == '\r') << i;
		}
		marks[b] = combine(blank, tab, cr, carry);
		dirty |= (uint64_t)(marks[b].spots != 0) << b;
	}
	return dirty;
}

/* Each byte is written, but a dropped one over by the next: no branch depends
 * on what the bytes are. */
static size_t
pack_plain(const char *p, uint64_t drop, char *out)
{
	char spaced[CANON_SCAN_BLOCK];
	for (size_t i = 0; i < CANON_SCAN_BLOCK; i++)
		spaced[i] = p[i] == '\t' ? ' ' : p[i];
	size_t n = 0;
	for (size_t i = 0; i < CANON_SCAN_BLOCK; i++, drop >>= 1) {
		out[n] = spaced[i];
		n += ~drop & 1;
	}
	return n;
}

static const struct canon_scanner plain = { scan_plain, pack_plain };

#if defined(__x86_64__)

/* SSE2 is part of x86-64, AVX2 is asked for at run time. */
static inline uint64_t
eq_sse2(const __m128i v[4], char c)
{
	__m128i want = _mm_set1_epi8(c);
	uint64_t m = 0;
	for (int i = 0; i < 4; i++) {
		__m128i eq = _mm_cmpeq_epi8(v[i], want);
		m |= (uint64_t)(uint32_t)_mm_movemask_epi8(eq) << (16 * i);
	}
	return m;
}

static uint64_t
scan_sse2(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry)
{
	uint64_t dirty = 0;
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		__m128i v[4];
		for (int i = 0; i < 4; i++)
			v[i] = _mm_loadu_si128(
			    (const __m128i *)(const void *)(p + 16 * i));
		uint64_t tab = eq_sse2(v, '\t');
		marks[b] = combine(
		    tab | eq_sse2(v, ' '), tab, eq_sse2(v, '\r'), carry);
		dirty |= (uint64_t)(marks[b].spots != 0) << b;
	}
	return dirty;
}

__attribute__((target("avx2"))) static inline uint64_t
eq_avx2(__m256i low, __m256i high, char c)
{
	__m256i want = _mm256_set1_epi8(c);
	uint32_t a =
	    (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, want));
	uint32_t b =
	    (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, want));
	return a | (uint64_t)b << 32;
}

__attribute__((target("avx2"))) static uint64_t
scan_avx2(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry)
{
	uint64_t dirty = 0;
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		__m256i low =
		    _mm256_loadu_si256((const __m256i *)(const void *)p);
		__m256i high =
		    _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
		uint64_t tab = eq_avx2(low, high, '\t');
		marks[b] = combine(tab | eq_avx2(low, high, ' '), tab,
		    eq_avx2(low, high, '\r'), carry);
		dirty |= (uint64_t)(marks[b].spots != 0) << b;
	}
	return dirty;
}

__attribute__((target("avx512bw"))) static uint64_t
scan_avx512(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry)
{
	uint64_t dirty = 0;
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		__m512i v = _mm512_loadu_si512(p);
		uint64_t tab =
		    _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\t'));
		uint64_t sp = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(' '));
		uint64_t cr = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\r'));
		marks[b] = combine(tab | sp, tab, cr, carry);
		dirty |= (uint64_t)(marks[b].spots != 0) << b;
	}
	return dirty;
}

#define COMPRESS "avx512f,avx512bw,avx512vbmi2,popcnt"

__attribute__((target(COMPRESS))) static size_t
pack_avx512(const char *p, uint64_t drop, char *out)
{
	__m512i v = _mm512_loadu_si512(p);
	__mmask64 tab = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\t'));
	v = _mm512_mask_mov_epi8(v, tab, _mm512_set1_epi8(' '));
	_mm512_storeu_si512(out, _mm512_maskz_compress_epi8(~drop, v));
	return (size_t)_mm_popcnt_u64(~drop);
}

static const struct canon_scanner *
variant(size_t i)
{
	static const struct canon_scanner sse2 = { scan_sse2, pack_plain };
	static const struct canon_scanner avx2 = { scan_avx2, pack_plain };
	static const struct canon_scanner avx512 = { scan_avx512, pack_avx512 };
	const struct canon_scanner *all[] = { &plain, &sse2, NULL, NULL };
	size_t count = 2;
	if (__builtin_cpu_supports("avx2"))
		all[count++] = &avx2;
	if (__builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vbmi2"))
		all[count++] = &avx512;
	return i < count ? all[i] : NULL;
}

#elif defined(__aarch64__)

static inline uint64_t
eq_neon(const uint8x16_t v[4], uint8_t c)
{
	static const uint8_t weights[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2,
		4, 8, 16, 32, 64, 128 };
	uint8x16_t weight = vld1q_u8(weights), want = vdupq_n_u8(c);
	uint8x16_t m[4];
	for (int i = 0; i < 4; i++)
		m[i] = vandq_u8(vceqq_u8(v[i], want), weight);
	uint8x16_t sum =
	    vpaddq_u8(vpaddq_u8(m[0], m[1]), vpaddq_u8(m[2], m[3]));
	sum = vpaddq_u8(sum, sum);
	return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

static uint64_t
scan_neon(
    const char *p, size_t blocks, struct canon_marks *marks, uint64_t *carry)
{
	uint64_t dirty = 0;
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		uint8x16_t v[4];
		for (int i = 0; i < 4; i++)
			v[i] = vld1q_u8((const uint8_t *)p + 16 * i);
		uint64_t tab = eq_neon(v, '\t');
		marks[b] = combine(
		    tab | eq_neon(v, ' '), tab, eq_neon(v, '\r'), carry);
		dirty |= (uint64_t)(marks[b].spots != 0) << b;
	}
	return dirty;
}

static const struct canon_scanner *
variant(size_t i)
{
	static const struct canon_scanner neon = { scan_neon, pack_plain };
	return i == 0 ? &plain : i == 1 ? &neon : NULL;
}

#else

static const struct canon_scanner *
variant(size_t i)
{
	return i == 0 ? &plain : NULL;
}

#endif

const struct canon_scanner *
canon_scanner_variant(size_t i)
{
	return variant(i);
}

const struct canon_scanner *
canon_scanner_best(void)
{
	const struct canon_scanner *best = &plain;
	for (size_t i = 1; variant(i) != NULL; i++)
		best = variant(i);
	return best;
}

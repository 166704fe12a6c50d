#include "mail/canon_scan.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* blank = SP and HTAB. A bit of `blank << 1` says "the byte before is one". */
static inline uint64_t
combine(uint64_t blank, uint64_t tab, uint64_t cr, uint64_t *carry)
{
	uint64_t behind = blank << 1 | *carry;
	*carry = blank >> 63;
	return tab | ((blank | cr) & behind);
}

static void
scan_plain(const char *p, size_t blocks, uint64_t *masks, uint64_t *carry)
{
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		uint64_t blank = 0, tab = 0, cr = 0;
		for (unsigned i = 0; i < CANON_SCAN_BLOCK; i++) {
			blank |= (uint64_t)(p[i] == ' ' || p[i] == '\t') << i;
			tab |= (uint64_t)(p[i] == '\t') << i;
			cr |= (uint64_t)(p[i] == '\r') << i;
		}
		masks[b] = combine(blank, tab, cr, carry);
	}
}

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

static void
scan_sse2(const char *p, size_t blocks, uint64_t *masks, uint64_t *carry)
{
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		__m128i v[4];
		for (int i = 0; i < 4; i++)
			v[i] = _mm_loadu_si128(
			    (const __m128i *)(const void *)(p + 16 * i));
		uint64_t tab = eq_sse2(v, '\t');
		masks[b] = combine(
		    tab | eq_sse2(v, ' '), tab, eq_sse2(v, '\r'), carry);
	}
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

__attribute__((target("avx2"))) static void
scan_avx2(const char *p, size_t blocks, uint64_t *masks, uint64_t *carry)
{
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		__m256i low =
		    _mm256_loadu_si256((const __m256i *)(const void *)p);
		__m256i high =
		    _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
		uint64_t tab = eq_avx2(low, high, '\t');
		masks[b] = combine(tab | eq_avx2(low, high, ' '), tab,
		    eq_avx2(low, high, '\r'), carry);
	}
}

static canon_scan_fn *
variant(size_t i)
{
	if (i == 2 && !__builtin_cpu_supports("avx2"))
		return NULL;
	static canon_scan_fn *const fns[] = { scan_plain, scan_sse2,
		scan_avx2 };
	return i < sizeof fns / sizeof fns[0] ? fns[i] : NULL;
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

static void
scan_neon(const char *p, size_t blocks, uint64_t *masks, uint64_t *carry)
{
	for (size_t b = 0; b < blocks; b++, p += CANON_SCAN_BLOCK) {
		uint8x16_t v[4];
		for (int i = 0; i < 4; i++)
			v[i] = vld1q_u8((const uint8_t *)p + 16 * i);
		uint64_t tab = eq_neon(v, '\t');
		masks[b] = combine(
		    tab | eq_neon(v, ' '), tab, eq_neon(v, '\r'), carry);
	}
}

static canon_scan_fn *
variant(size_t i)
{
	static canon_scan_fn *const fns[] = { scan_plain, scan_neon };
	return i < sizeof fns / sizeof fns[0] ? fns[i] : NULL;
}

#else

static canon_scan_fn *
variant(size_t i)
{
	return i == 0 ? scan_plain : NULL;
}

#endif

canon_scan_fn *
canon_scan_variant(size_t i)
{
	return variant(i);
}

/* Variants are listed from slow to fast. */
canon_scan_fn *
canon_scan_best(void)
{
	canon_scan_fn *best = scan_plain;
	for (size_t i = 1; variant(i) != NULL; i++)
		best = variant(i);
	return best;
}

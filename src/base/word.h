/* Eight bytes of text looked at at once, for what is mostly clean. A mask has
 * bit 7 of each byte that is meant; the first byte of the text is the lowest
 * (get_le64). */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stdint.h>

#define WORD_ONES UINT64_C(0x0101010101010101)
#define WORD_HIGH UINT64_C(0x8080808080808080)

/* The bytes equal to `c`. */
static inline uint64_t
word_equal(uint64_t word, char c)
{
	uint64_t x = word ^ (WORD_ONES * (unsigned char)c);
	return ~(((x & ~WORD_HIGH) + ~WORD_HIGH) | x) & WORD_HIGH;
}

/* The ASCII bytes from `c` (1–127) on. */
static inline uint64_t
word_at_least(uint64_t word, char c)
{
	return ((word & ~WORD_HIGH) + WORD_ONES * (0x80u - (unsigned char)c)) &
	    ~word & WORD_HIGH;
}

#endif

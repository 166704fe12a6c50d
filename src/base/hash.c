#include "base/hash.h"

#include <stdatomic.h>
#include <sys/auxv.h>

#include "base/codec.h"
#include "base/word.h"

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void
sip_round(struct sip *s)
{
	s->a += s->b;
	s->b = rotate(s->b, 13) ^ s->a;
	s->a = rotate(s->a, 32);
	s->c += s->d;
	s->d = rotate(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = rotate(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = rotate(s->b, 17) ^ s->c;
	s->c = rotate(s->c, 32);
}

static inline void
sip_word(struct sip *s, uint64_t word)
{
	s->d ^= word;
	sip_round(s);
	s->a ^= word;
}

/* The kernel gives each process 16 random bytes in its auxiliary vector: no
 * system call. Looked for once, as a short name is hashed faster than they
 * are found. Without them the hash is only unkeyed. */
static const uint8_t *
sip_key(void)
{
	static const uint8_t no_key[16];
	static _Atomic(const uint8_t *) found;
	const uint8_t *key = atomic_load_explicit(&found, memory_order_relaxed);
	if (key == NULL) {
		key = (const uint8_t *)getauxval(AT_RANDOM);
		if (key == NULL)
			key = no_key;
		atomic_store_explicit(&found, key, memory_order_relaxed);
	}
	return key;
}

static void
sip_start(struct sip *s)
{
	const uint8_t *key = sip_key();
	uint64_t k0 = get_le64(key), k1 = get_le64(key + 8);
	s->a = k0 ^ UINT64_C(0x736f6d6570736575);
	s->b = k1 ^ UINT64_C(0x646f72616e646f6d);
	s->c = k0 ^ UINT64_C(0x6c7967656e657261);
	s->d = k1 ^ UINT64_C(0x7465646279746573);
}

/* Sets bit 5 of each byte that is an ASCII capital letter. */
static uint64_t
lower8(uint64_t w)
{
	return w | (word_at_least(w, 'A') & ~word_at_least(w, 'Z' + 1)) >> 2;
}

static uint64_t
sip(struct str s, bool fold)
{
	struct sip st;
	sip_start(&st);
	const uint8_t *p = (const uint8_t *)s.ptr;
	size_t left = s.len;
	for (; left >= 8; p += 8, left -= 8) {
		uint64_t w = get_le64(p);
		sip_word(&st, fold ? lower8(w) : w);
	}
	uint64_t last = 0;
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)p[i] << (8 * i);
	if (fold)
		last = lower8(last);
	sip_word(&st, last | (uint64_t)(s.len & 0xff) << 56);
	st.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&st);
	return st.a ^ st.b ^ st.c ^ st.d;
}

uint64_t
hash_bytes(struct str s)
{
	return sip(s, false);
}

uint64_t
hash_lower(struct str s)
{
	return sip(s, true);
}

#include "mail/domain.h"

#include <idn2.h>

#include "base/codec.h"

/* A name of 253 bytes in A-labels is at most this long in UTF-8: fewer bytes
 * of Punycode never stand for more than four bytes each. */
#define MAX_UNICODE_BYTES ((size_t)DOMAIN_MAX * 4)

static bool
is_label_byte(char c)
{
	return ascii_is_alpha(c) || ascii_is_digit(c) || c == '-' || c == '_';
}

bool
domain_valid(struct str d)
{
	if (d.len == 0 || d.len > DOMAIN_MAX)
		return false;
	size_t label = 0;
	for (size_t i = 0; i < d.len; i++) {
		if (d.ptr[i] == '.') {
			if (label == 0)
				return false;
			label = 0;
		} else if (!is_label_byte(d.ptr[i]) ||
		    ++label > DOMAIN_MAX_LABEL) {
			return false;
		}
	}
	return label != 0;
}

static bool
is_ascii(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] >= 0x80)
			return false;
	return true;
}

/* Non-transitional: "ß" and the final sigma are letters of their own, as in
 * IDNA2008; capitals and width forms are mapped first, as users type them. */
static enum res
to_ascii(struct arena *a, struct str d, struct str *out)
{
	if (d.len > MAX_UNICODE_BYTES || str_chr(d, '\0') != SIZE_MAX ||
	    !utf8_valid(d))
		return RES_SYNTAX;
	char *text = arena_cstr(a, d);
	if (text == NULL)
		return RES_NOMEM;
	uint8_t *ascii = NULL;
	int rc = idn2_lookup_u8((const uint8_t *)text, &ascii,
	    IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	if (rc == IDN2_MALLOC)
		return RES_NOMEM;
	if (rc != IDN2_OK)
		return RES_SYNTAX;
	struct str copy = arena_dup(a, str_c((const char *)ascii));
	idn2_free(ascii);
	if (copy.ptr == NULL)
		return RES_NOMEM;
	*out = copy;
	return RES_OK;
}

enum res
domain_normalize(struct arena *a, struct str d, struct str *out)
{
	if (!is_ascii(d)) {
		enum res r = to_ascii(a, d, &d);
		if (r != RES_OK)
			return r;
	}
	if (d.len > 0 && d.ptr[d.len - 1] == '.')
		d.len--;
	if (!domain_valid(d))
		return RES_SYNTAX;
	struct str lower = arena_lower(a, d);
	if (lower.ptr == NULL)
		return RES_NOMEM;
	*out = lower;
	return RES_OK;
}

bool
domain_equal(struct str a, struct str b)
{
	return str_eq(a, b);
}

bool
domain_is_below(struct str d, struct str parent)
{
	return parent.len != 0 && d.len > parent.len + 1 &&
	    d.ptr[d.len - parent.len - 1] == '.' && str_ends(d, parent);
}

bool
domain_equal_or_below(struct str d, struct str parent)
{
	return domain_equal(d, parent) || domain_is_below(d, parent);
}

unsigned
domain_labels(struct str d)
{
	unsigned n = d.len != 0;
	for (size_t i = 0; i < d.len; i++)
		n += d.ptr[i] == '.';
	return n;
}

struct str
domain_last_labels(struct str d, unsigned n)
{
	if (n == 0)
		return str_skip(d, d.len);
	for (size_t i = d.len; i > 0; i--)
		if (d.ptr[i - 1] == '.' && --n == 0)
			return str_skip(d, i);
	return d;
}

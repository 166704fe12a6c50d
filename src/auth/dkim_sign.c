#include "auth/dkim_sign.h"

#include "auth/signfield.h"

/* SIGN-02: what a reader sees or software acts on. From first, so that a
 * glance at h= shows it. */
const struct str dkim_sign_default_headers[] = {
	STR("from"),
	STR("sender"),
	STR("reply-to"),
	STR("to"),
	STR("cc"),
	STR("subject"),
	STR("date"),
	STR("message-id"),
	STR("in-reply-to"),
	STR("references"),
	STR("mime-version"),
	STR("content-type"),
	STR("content-transfer-encoding"),
	STR("content-id"),
	STR("content-description"),
	STR("resent-from"),
	STR("resent-sender"),
	STR("resent-to"),
	STR("resent-cc"),
	STR("resent-date"),
	STR("resent-message-id"),
	STR("list-id"),
	STR("list-help"),
	STR("list-unsubscribe"),
	STR("list-unsubscribe-post"),
	STR("list-subscribe"),
	STR("list-post"),
	STR("list-owner"),
	STR("list-archive"),
	{ NULL, 0 },
};

/* SIGN-04: names that a second field of must not be added under way. */
const struct str dkim_sign_default_oversign[] = {
	STR("from"),
	STR("reply-to"),
	STR("subject"),
	STR("date"),
	STR("to"),
	STR("cc"),
	STR("message-id"),
	STR("in-reply-to"),
	STR("references"),
	STR("mime-version"),
	STR("content-type"),
	STR("content-transfer-encoding"),
	{ NULL, 0 },
};

/* --- which names ----------------------------------------------------------- */
struct list {
	const struct str *items;
	size_t count;
};

static struct list
list_or(const struct str *items, size_t count, const struct str *fallback)
{
	if (items != NULL)
		return (struct list){ items, count };
	for (count = 0; fallback[count].len != 0;)
		count++;
	return (struct list){ fallback, count };
}

static bool
list_has(struct list l, size_t before, struct str name)
{
	for (size_t i = 0; i < before; i++)
		if (str_case_eq(l.items[i], name))
			return true;
	return false;
}

/* `name` as often as it is there, and once more when oversigned. A name that
 * stands in both lists is met twice and added once. */
static enum res
add_name(
    struct signfield *f, const struct header *h, struct str name, bool oversign)
{
	size_t times = header_count_name(h, name) + (oversign ? 1 : 0);
	enum res r = RES_OK;
	while (times-- > 0 && r == RES_OK)
		r = signfield_name(f, name);
	return r;
}

static enum res
add_names(struct signfield *f, const struct header *h,
    const struct dkim_sign_options *o)
{
	struct list sign =
	    list_or(o->headers, o->header_count, dkim_sign_default_headers);
	struct list over =
	    list_or(o->oversign, o->oversign_count, dkim_sign_default_oversign);
	enum res r = RES_OK;
	/* From is signed whatever the lists say (SIGN-01). */
	if (!list_has(sign, sign.count, STR("from")) &&
	    !list_has(over, over.count, STR("from")))
		r = add_name(f, h, STR("from"), false);
	for (size_t i = 0; i < sign.count && r == RES_OK; i++)
		if (!list_has(sign, i, sign.items[i]))
			r = add_name(f, h, sign.items[i],
			    list_has(over, over.count, sign.items[i]));
	for (size_t i = 0; i < over.count && r == RES_OK; i++)
		if (!list_has(sign, sign.count, over.items[i]) &&
		    !list_has(over, i, over.items[i]))
			r = add_name(f, h, over.items[i], true);
	return r;
}

enum res
dkim_sign_field(struct arena *a, const struct header *h,
    const struct dkim_sign_options *o, const struct bodyhash_set *hashes,
    size_t body_index, struct signer *signer, const struct signing_key *key,
    struct str *out_value)
{
	struct signfield *f;
	if (header_count_name(h, STR("from")) != 1)
		return RES_INVALID;
	enum res r = signfield_new(a, "DKIM-Signature", h, &f);
	if (r == RES_OK)
		r = add_names(f, h, o);
	if (r != RES_OK)
		return r;
	signfield_tag(f, "v", STR("1"));
	signfield_algorithm(f, key->type);
	signfield_canon(f, o->header_canon, o->body_canon);
	signfield_tag(f, "d", key->domain);
	signfield_tag(f, "s", key->selector);
	if (o->identity.len != 0)
		signfield_quoted(f, "i", o->identity);
	signfield_number(f, "t", o->now_s);
	if (o->lifetime_s > 0)
		signfield_number(f, "x", o->now_s + o->lifetime_s);
	signfield_names(f);
	signfield_body_hash(f, bodyhash_digest(hashes, body_index));
	return signfield_sign(f, o->header_canon, signer, key, out_value);
}

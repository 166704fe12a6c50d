/* Generated mail for the archive's measurements: the same number gives the
 * same bytes. English-like text over a vocabulary of 20,000 words in Zipf's
 * proportions, some hundred senders with their own names, domains and
 * signature lines, and an envelope like the one hanaperd keeps.
 *
 * Small mail is multipart/alternative (text and the same text as HTML),
 * large mail has a base64 attachment that does not compress further. */
#ifndef TESTS_BENCH_MAIL_H
#define TESTS_BENCH_MAIL_H

#include "archive/format/record.h"
#include "base/buf.h"

#define MAIL_SMALL 2100
#define MAIL_LARGE 205000
#define MAIL_MAX   (MAIL_LARGE + 4096)

/* In every message; in ten of `total`; in every second. */
#define MAIL_COMMON "hanaper"
#define MAIL_RARE   "zyzzyva"
#define MAIL_HALF   "quillwort"

struct mail_maker;

struct mail_maker *mail_maker_new(unsigned long long total);
void mail_maker_free(struct mail_maker **m);
/* Message `number` of about `bytes` bytes. */
void mail_make(const struct mail_maker *m, unsigned long long number,
    size_t bytes, struct buf *out);
/* What stands in META for it. */
void mail_meta(const struct mail_maker *m, unsigned long long number,
    struct record *out);

#endif

#include "archive/store/trainer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "archive/store/store_dir.h"
#include "base/codec.h"
#include "mail/address.h"

#define MAX_HEADER ((size_t)64 << 10)
/* Records of one message, so that those of enough messages have room. */
#define MAX_RECORDS ((size_t)1400)
_Static_assert(TRAIN_MIN_SAMPLES * (MAX_RECORDS + 32) <= TRAIN_MAX_RECORDS,
    "the first dictionary has room");
/* Frames of one shard that are looked at. */
#define MAX_FRAMES (20 * TRAIN_MAX_SAMPLES)

struct trainer {
	char *store_path, *family;
	size_t wanted; /* samples; with fewer than `least` nothing is made */
	size_t least;
	uint32_t first_id;
	pthread_t thread;
	atomic_bool stop, done;
	struct dictionary *dictionary;
};

/* The samples: what was packed as records, and as messages. */
struct samples {
	struct train *body, *records;
};

/* --- whose --- */

/* The value of the first From field, folds and all. */
static bool
find_from(struct str message, struct str *out)
{
	struct str rest = str_sub(message, 0, MAX_HEADER);
	while (rest.len > 0 && rest.ptr[0] != '\r' && rest.ptr[0] != '\n') {
		size_t end = 0;
		do {
			size_t n = str_chr(str_skip(rest, end), '\n');
			end = n == SIZE_MAX ? rest.len : end + n + 1;
		} while (end < rest.len && ascii_is_wsp(rest.ptr[end]));
		struct str field = str_sub(rest, 0, end);
		size_t colon = str_chr(field, ':');
		if (colon != SIZE_MAX &&
		    str_case_eq(
			str_trim(str_sub(field, 0, colon)), STR("from"))) {
			*out = str_trim(str_skip(field, colon + 1));
			return true;
		}
		rest = str_skip(rest, end);
	}
	return false;
}

enum res
trainer_sender(struct arena *a, struct str message, struct str *out)
{
	struct str value;
	struct address_list list;
	if (!find_from(message, &value))
		return RES_NOTFOUND;
	enum res r = address_parse_list(a, value, &list);
	if (r == RES_NOMEM)
		return r;
	if (r != RES_OK || list.count == 0)
		return RES_NOTFOUND;
	struct str local = list.items[0].local;
	struct str domain = list.items[0].domain;
	local = str_sub(local, 0, str_chr(local, '+'));
	struct str both = arena_printf(a, "%.*s@%.*s", (int)local.len,
	    local.ptr, (int)domain.len, domain.ptr);
	*out = arena_lower(a, both);
	return out->ptr != NULL ? RES_OK : RES_NOMEM;
}

/* --- samples --- */

/* Keys and policies of large domains stand in the evidence of all their mail,
 * so what there is room for is a sample, too. */
static enum res
add_records(struct train *train, struct arena *a, struct str sender,
    const struct segment_content *c)
{
	const struct str parts[] = { c->meta, c->edits, c->evidence };
	char *text = arena_alloc(a, MAX_RECORDS);
	size_t len = 0;
	if (text == NULL)
		return RES_NOMEM;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct str part = str_sub(parts[i], 0, MAX_RECORDS - len);
		if (part.len > 0)
			memcpy(text + len, part.ptr, part.len);
		len += part.len;
	}
	(void)train_add(train, sender, str_of(text, len));
	return RES_OK;
}

static enum res
add_frame(const struct samples *samples, struct segment_reader *r,
    const struct segment_frame *f)
{
	struct segment_content c;
	struct buf body;
	struct str sender;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	buf_init(&body, DICTIONARY_MAX_BODY);
	struct sink *sink = sink_buf(a, &body);
	enum res res = segment_reader_load(r, a, f, NULL, &c);
	if (res == RES_OK)
		res = sink != NULL ? segment_reader_body(r, f, NULL, sink)
				   : RES_NOMEM;
	if (res == RES_OK)
		res = trainer_sender(a, buf_str(&body), &sender);
	/* those of one sender too many are in neither */
	if (res == RES_OK &&
	    train_add(samples->body, sender, buf_str(&body)))
		res = add_records(samples->records, a, sender, &c);
	buf_done(&body);
	arena_free(&a);
	return res == RES_NOMEM ? res : RES_OK; /* damage: not a sample */
}

static bool
has_enough(const struct trainer *t, const struct samples *samples)
{
	return train_samples(samples->body) == t->wanted ||
	    train_full(samples->body);
}

static enum res
add_shard(struct trainer *t, const struct samples *samples, const char *dir)
{
	struct segment_reader *r;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res res = segment_reader_open(dir, NULL, NULL, &r);
	if (res != RES_OK)
		return res == RES_NOMEM ? res : RES_OK;
	for (size_t n = 0; n < MAX_FRAMES && res == RES_OK; n++) {
		if (atomic_load(&t->stop) || has_enough(t, samples) ||
		    segment_reader_at(r, at, &f) != RES_OK)
			break;
		if (f.header.type == FRAME_MESSAGE &&
		    f.header.body_plain <= DICTIONARY_MAX_BODY)
			res = add_frame(samples, r, &f);
		at = segment_frame_end(&f);
	}
	segment_reader_close(&r);
	return res;
}

static enum res
add_shards(struct trainer *t, const struct samples *samples)
{
	struct shard_entry *entries;
	size_t count;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    t->store_path, t->family, a, NULL, &entries, &count);
	while (r == RES_OK && count-- > 0 &&
	    !has_enough(t, samples))
		if (entries[count].status == RES_OK)
			r = add_shard(t, samples, entries[count].dir);
	arena_free(&a);
	return r;
}

/* --- the thread --- */

/* RES_NOTFOUND: no dictionary comes of these. */
static enum res
make_parts(
    struct trainer *t, struct samples *samples, struct dictionary_parts *out)
{
	size_t count = train_samples(samples->body);
	if (count < t->least || atomic_load(&t->stop))
		return RES_NOTFOUND;
	out->samples = (uint32_t)count;
	enum res r =
	    train_finish(samples->records, t->first_id + 1, &out->records);
	train_free(&samples->records);
	if (r == RES_NOTFOUND) /* then one serves both */
		r = RES_OK;
	return r == RES_OK ?
	    train_finish(samples->body, t->first_id, &out->body) : r;
}

static void *
work(void *context)
{
	struct trainer *t = context;
	struct dictionary_parts parts;
	struct samples samples = { train_new(TRAIN_MAX_BYTES),
		train_new(TRAIN_MAX_RECORDS) };
	dictionary_parts_init(&parts);
	enum res r = samples.body != NULL && samples.records != NULL ?
	    add_shards(t, &samples) : RES_NOMEM;
	if (r == RES_OK)
		r = make_parts(t, &samples, &parts);
	if (r == RES_OK)
		r = dictionary_new(&parts, &t->dictionary);
	if (r != RES_OK)
		t->dictionary = NULL; /* tried again with more mail */
	dictionary_parts_done(&parts);
	train_free(&samples.body);
	train_free(&samples.records);
	atomic_store(&t->done, true);
	return NULL;
}

/* Ids that the family has not used: two for each dictionary. */
static uint32_t
next_id(const struct dictionary *before)
{
	uint32_t id =
	    before != NULL ? dictionary_id(buf_str(&before->parts.body)) : 0;
	return id != 0 && id + 3 < DICTIONARY_IDS ? id + 2 : 1;
}

struct trainer *
trainer_start(const char *store_path, const char *family,
    const struct dictionary *before)
{
	struct trainer *t = calloc(1, sizeof *t);
	if (t == NULL)
		return NULL;
	size_t had = before != NULL ? before->parts.samples : 0;
	t->wanted = before != NULL ? TRAIN_MAX_SAMPLES : TRAIN_MIN_SAMPLES;
	t->least = had * 5 / 4 > TRAIN_MIN_SAMPLES ? had * 5 / 4 :
						     TRAIN_MIN_SAMPLES;
	t->first_id = next_id(before);
	atomic_init(&t->stop, false);
	atomic_init(&t->done, false);
	t->store_path = strdup(store_path);
	t->family = strdup(family);
	if (t->store_path == NULL || t->family == NULL ||
	    pthread_create(&t->thread, NULL, work, t) != 0) {
		free(t->store_path);
		free(t->family);
		free(t);
		return NULL;
	}
	return t;
}

bool
trainer_poll(struct trainer *t, struct dictionary **out)
{
	if (!atomic_load(&t->done))
		return false;
	*out = t->dictionary;
	t->dictionary = NULL;
	return true;
}

void
trainer_stop(struct trainer **trainer)
{
	struct trainer *t = *trainer;
	if (t == NULL)
		return;
	atomic_store(&t->stop, true);
	pthread_join(t->thread, NULL);
	dictionary_unref(&t->dictionary);
	free(t->store_path);
	free(t->family);
	free(t);
	*trainer = NULL;
}

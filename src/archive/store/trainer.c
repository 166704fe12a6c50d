#include "archive/store/trainer.h"

#include <pthread.h>
#include <stdlib.h>

#include "archive/store/store_dir.h"
#include "base/codec.h"
#include "mail/address.h"

#define MAX_HEADER ((size_t)64 << 10)
/* Frames of one shard that are looked at. */
#define MAX_FRAMES (20 * TRAIN_MAX_SAMPLES)

struct trainer {
	char *store_path, *family;
	pthread_t thread;
	atomic_bool stop, done;
	struct dictionary *dictionary;
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

/* META and body as one text: both get packed with the dictionary. */
static enum res
add_frame(struct train *train, struct segment_reader *r,
    const struct segment_frame *f)
{
	struct segment_content c;
	struct buf body, text;
	struct str sender;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	buf_init(&body, DICTIONARY_MAX_BODY);
	buf_init(&text, DICTIONARY_MAX_BODY + SEGMENT_MAX_RECORD);
	struct sink *sink = sink_buf(a, &body);
	enum res res = segment_reader_load(r, a, f, NULL, &c);
	if (res == RES_OK)
		res = sink != NULL ? segment_reader_body(r, f, NULL, sink)
				   : RES_NOMEM;
	if (res == RES_OK)
		res = trainer_sender(a, buf_str(&body), &sender);
	if (res == RES_OK) {
		buf_add_str(&text, c.meta);
		buf_add_str(&text, buf_str(&body));
		res = text.error;
	}
	if (res == RES_OK)
		(void)train_add(train, sender, buf_str(&text));
	buf_done(&body);
	buf_done(&text);
	arena_free(&a);
	return res == RES_NOMEM ? res : RES_OK; /* damage: not a sample */
}

static enum res
add_shard(struct trainer *t, struct train *train, const char *dir)
{
	struct segment_reader *r;
	struct segment_frame f;
	uint64_t at = SHARD_HEADER_BYTES;
	enum res res = segment_reader_open(dir, NULL, NULL, &r);
	if (res != RES_OK)
		return res == RES_NOMEM ? res : RES_OK;
	for (size_t n = 0; n < MAX_FRAMES && res == RES_OK; n++) {
		if (atomic_load(&t->stop) ||
		    train_samples(train) == TRAIN_MAX_SAMPLES ||
		    segment_reader_at(r, at, &f) != RES_OK)
			break;
		if (f.header.type == FRAME_MESSAGE &&
		    f.header.body_plain <= DICTIONARY_MAX_BODY)
			res = add_frame(train, r, &f);
		at = segment_frame_end(&f);
	}
	segment_reader_close(&r);
	return res;
}

static enum res
add_shards(struct trainer *t, struct train *train)
{
	struct shard_entry *entries;
	size_t count;
	struct arena *a = arena_new(0);
	if (a == NULL)
		return RES_NOMEM;
	enum res r = store_dir_shards(
	    t->store_path, t->family, a, NULL, &entries, &count);
	while (r == RES_OK && count-- > 0 &&
	    train_samples(train) < TRAIN_MIN_SAMPLES)
		if (entries[count].status == RES_OK)
			r = add_shard(t, train, entries[count].dir);
	arena_free(&a);
	return r;
}

/* --- the thread --- */

static void *
work(void *context)
{
	struct trainer *t = context;
	struct buf content;
	struct train *train = train_new();
	buf_init(&content, SEGMENT_MAX_DICTIONARY);
	enum res r = train != NULL ? add_shards(t, train) : RES_NOMEM;
	if (r == RES_OK && !atomic_load(&t->stop))
		r = train_finish(train, &content);
	if (r == RES_OK && content.len > 0)
		r = dictionary_new(buf_str(&content), &t->dictionary);
	if (r != RES_OK)
		t->dictionary = NULL; /* tried again with more mail */
	buf_done(&content);
	train_free(&train);
	atomic_store(&t->done, true);
	return NULL;
}

struct trainer *
trainer_start(const char *store_path, const char *family)
{
	struct trainer *t = calloc(1, sizeof *t);
	if (t == NULL)
		return NULL;
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

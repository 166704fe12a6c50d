/* fill_store DIR FILE ...: archives message files as if they had come in, for
 * the tests of `hanaper archive`. Prints the id of each. With `-k` first it
 * does not close the store but ends as a crash would. A FILE may be written
 * QUEUEID@SECONDS:FILE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/search/search.h"
#include "archive/store/store.h"

#define START ((int64_t)1780000000 * 1000000) /* 2026-05-28 */
#define MAX_FILE ((size_t)64 << 20)

static void
need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fill_store: %s\n", what);
	exit(1);
}

/* Cut "QUEUEID@SECONDS:" off. */
static const char *
take_queue_id(const char *path, struct str *out_id, int64_t *out_us)
{
	const char *at = strchr(path, '@'), *colon = strchr(path, ':');
	uint64_t seconds;
	if (at == NULL || colon == NULL || colon < at)
		return path;
	need(str_to_u64(str_of(at + 1, (size_t)(colon - at - 1)), INT32_MAX,
		 &seconds) == RES_OK, path);
	*out_id = str_of(path, (size_t)(at - path));
	*out_us = (int64_t)seconds * 1000000;
	return colon + 1;
}

static uint64_t
submit(struct store *s, const char *path, int64_t time_us)
{
	struct str queue_id = STR("4F1A2B3C");
	path = take_queue_id(path, &queue_id, &time_us);
	static char bytes[65536];
	struct arena *a = arena_new(MAX_FILE);
	struct spool *sp = spool_new(a, s);
	FILE *f = fopen(path, "rb");
	struct record meta;
	uint64_t id;
	need(sp != NULL && f != NULL, path);
	for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;)
		sink_push(spool_sink(sp), bytes, n);
	fclose(f);
	need(sink_finish(spool_sink(sp)) == RES_OK, "spool");
	record_init(&meta, 65536);
	record_add(&meta, META_DIRECTION, STR("in"));
	record_add(&meta, META_QUEUE_ID, queue_id);
	record_add(&meta, META_MAIL_FROM, STR("sender@example.org"));
	record_add(&meta, META_RCPT, STR("bcc@example.com"));
	record_add(&meta, META_CLIENT_IP, STR("192.0.2.7"));
	record_add(&meta, META_FACT, STR("dkim=pass"));
	const struct store_message m = { .family = "mail",
		.time_us = time_us,
		.meta = buf_str(&meta.buf),
		.body = sp };
	need(store_submit(s, &m, &id) == RES_OK, "store_submit");
	record_done(&meta);
	arena_free(&a);
	return id;
}

int
main(int argc, char **argv)
{
	bool crash = argc > 1 && strcmp(argv[1], "-k") == 0;
	int first = crash ? 2 : 1;
	struct store *s;
	struct err err = { "" };
	need(argc > first, "usage: fill_store [-k] DIR FILE ...");
	const struct store_options o = { .path = argv[first],
		.roll_bytes = (uint64_t)1 << 30,
		.clock = { START } };
	need(store_open(&o, &err, &s) == RES_OK, err.text);
	for (int i = first + 1; i < argc; i++) {
		struct buf b;
		buf_init(&b, 64);
		archive_id_format(&b, submit(s, argv[i], START + i));
		printf("%s\n", buf_cstr(&b));
		buf_done(&b);
	}
	if (crash) {
		/* let the index be written, so that a WAL is left */
		usleep(300000);
		(void)fflush(stdout);
		_exit(0);
	}
	store_close(&s);
	return 0;
}

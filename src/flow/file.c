#include "flow/file.h"

#include <errno.h>
#include <unistd.h>

#include "flow/state.h"
#include "mail/reader.h"

#define CHUNK 65536

static enum res
end_of_header(void *context, struct header *h)
{
	struct message *m = context;
	for (size_t i = 0; i < header_count(h); i++) {
		const struct field *f = header_at(h, i);
		message_header(m, f->raw_name, f->value);
	}
	message_end_of_header(m);
	return RES_OK;
}

static void
body(void *context, const char *bytes, size_t len)
{
	message_body(context, bytes, len);
}

enum res
file_push(struct sink *s, int fd)
{
	char chunk[CHUNK];
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? RES_OK : RES_IO;
		sink_push(s, chunk, (size_t)n);
	}
}

static struct reader *
new_reader(struct message *m)
{
	static const struct reader_ops ops = { end_of_header, body };
	struct header *h = header_new(
	    m->arena, (size_t)m->config->max_header_bytes);
	return h != NULL ? reader_new(m->arena, h, READER_AUTO, &ops, m) : NULL;
}

/* The reader has no other limits than the header's. */
static enum res
settle(struct message *m, enum res r)
{
	if (r != RES_LIMIT)
		return r;
	message_refuse(m, REPLY_REJECT, "554", "5.6.0", "limit",
	    "Header is larger than this site accepts");
	return RES_OK;
}

enum res
file_feed(struct message *m, int fd, bool *out_malformed)
{
	struct reader *r = new_reader(m);
	if (r == NULL)
		return RES_NOMEM;
	enum res result = file_push(reader_sink(r), fd);
	if (result != RES_OK)
		return result;
	result = sink_finish(reader_sink(r));
	if (out_malformed != NULL)
		*out_malformed = reader_malformed(r);
	return settle(m, result);
}

enum res
file_feed_from(struct message *m,
    enum res (*pour)(void *context, struct sink *out), void *context)
{
	struct reader *r = new_reader(m);
	if (r == NULL)
		return RES_NOMEM;
	return settle(m, pour(context, reader_sink(r)));
}

/* What an MTA says: any bytes as packets (a byte of length, then that many)
 * never read outside their bounds, and never leave a message or session. The
 * flow beneath only reads what it is given. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "milter/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct session {
	int unused;
};

struct message {
	int unused;
};

static int alive;
static volatile unsigned char seen;
static struct config config = { .max_sessions = 10 };
static struct flow_env env = { .config = &config };

static void
look(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		seen = (unsigned char)(seen + (unsigned char)s.ptr[i]);
}

struct session *
session_new(const struct flow_env *e)
{
	alive++;
	return calloc(1, sizeof(struct session));
}

void
session_free(struct session **s)
{
	alive -= *s != NULL;
	free(*s);
	*s = NULL;
}

void
session_set_facts(struct session *s, const struct session_facts *f)
{
	look(f->client_name);
	look(f->client_ptr);
	look(f->daemon_name);
	look(f->hostname);
}

void
session_set_helo(struct session *s, struct str helo)
{
	look(helo);
}

enum res
message_begin(
    struct session *s, const struct envelope *e, struct message **out)
{
	look(e->mail_from);
	look(e->auth);
	look(e->tls);
	for (size_t i = 0; i < e->arg_count; i++)
		look(e->args[i]);
	alive++;
	*out = calloc(1, sizeof **out);
	return RES_OK;
}

void
message_rcpt(struct message *m, struct str rcpt)
{
	look(rcpt);
}

void
message_header(struct message *m, struct str name, struct str value)
{
	look(name);
	look(value);
}

void
message_end_of_header(struct message *m)
{
}

void
message_body(struct message *m, const char *bytes, size_t len)
{
	look(str_of(bytes, len));
}

const struct decision *
message_finish(struct message *m, struct str queue_id)
{
	static const struct flow_edit edit = { EDIT_KIND_INSERT, 0, "X", " y" };
	static const struct decision d = { .edit_count = 1, .edits = &edit };
	look(queue_id);
	return &d;
}

void
message_free(struct message **m)
{
	alive -= *m != NULL;
	free(*m);
	*m = NULL;
}

static const struct flow_env *
take(void *context)
{
	return &env;
}

static void
give(void *context, const struct flow_env *e)
{
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct milter m = { .lock = PTHREAD_MUTEX_INITIALIZER,
		.options = { .env_take = take, .env_give = give },
		.told_missing = true };
	struct buf out;
	struct connection *c =
	    connection_new(&m, open("/dev/null", O_RDONLY | O_CLOEXEC));
	enum command_after after = COMMAND_GO_ON;
	buf_init(&out, WIRE_MAX_ANSWER);
	while (size > 1 && after != COMMAND_CLOSE) {
		size_t len = data[0] < size - 1 ? data[0] : size - 1;
		char *packet = malloc(len != 0 ? len : 1);
		memcpy(packet, data + 1, len);
		if (len > 0)
			after = command_take(&m, c, packet[0],
			    str_of(packet + 1, len - 1), &out);
		if (after == COMMAND_ANSWERED)
			transaction_end(&m, c);
		free(packet);
		data += 1 + len;
		size -= 1 + len;
	}
	connection_free(&m, &c);
	buf_done(&out);
	if (alive != 0 || m.transactions != 0 || m.connections != NULL)
		abort();
	return 0;
}

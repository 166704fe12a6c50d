#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/log.h"
#include "daemon/ipc.h"
#include "daemon/roles.h"
#include "keys/keyring.h"
#include "keys/remote.h"

#define MAX_ARENA ((size_t)1 << 30)
#define KEY_HEAD  7

/* Key files that came since the last IPC_LOAD. */
struct batch {
	struct arena *arena; /* holds the descriptors */
	struct keydir keys;
	size_t room;
};

struct role {
	struct batch batch;
	struct signer *ring;           /* NULL before the first load */
	struct remote_server *server;  /* NULL: no milter process */
};

static void
close_fd(void *arg)
{
	close((int)(intptr_t)arg);
}

static enum res
batch_room(struct batch *b)
{
	if (b->arena == NULL) {
		b->arena = arena_new(MAX_ARENA);
		b->room = 0;
		b->keys = (struct keydir){ 0 };
	}
	if (b->arena == NULL)
		return RES_NOMEM;
	if (b->keys.count < b->room)
		return RES_OK;
	size_t room = b->room == 0 ? 64 : b->room * 2;
	struct keyfile *files = arena_array(b->arena, room, sizeof *files);
	if (files == NULL)
		return RES_NOMEM;
	if (b->keys.count > 0)
		memcpy(files, b->keys.files, b->keys.count * sizeof *files);
	b->keys.files = files;
	b->room = room;
	return RES_OK;
}

static enum res
batch_add(struct batch *b, const struct ipc_packet *p)
{
	const uint8_t *head = (const uint8_t *)p->payload.ptr;
	struct str text = str_skip(p->payload, KEY_HEAD);
	if (p->fd < 0 || p->payload.len < KEY_HEAD ||
	    (head[0] & ~(IPC_BY_RULE | IPC_NOTES)) > KEY_STATE_RETIRED)
		return RES_SYNTAX;
	size_t domain = get_le16(head + 1), selector = get_le16(head + 3);
	if (domain + selector + get_le16(head + 5) != text.len)
		return RES_SYNTAX;
	enum res r = batch_room(b);
	if (r == RES_OK)
		r = arena_on_free(b->arena, close_fd,
		    (void *)(intptr_t)p->fd);
	if (r != RES_OK)
		return r;
	struct keyfile f = { .state = (enum key_state)(head[0] &
				 ~(IPC_BY_RULE | IPC_NOTES)),
		.by_rule = (head[0] & IPC_BY_RULE) != 0,
		.notes = (head[0] & IPC_NOTES) != 0,
		.fd = p->fd,
		.domain = arena_dup(b->arena, str_sub(text, 0, domain)),
		.selector =
		    arena_dup(b->arena, str_sub(text, domain, selector)),
		.path = arena_dup(
		    b->arena, str_skip(text, domain + selector)) };
	if (f.domain.ptr == NULL || f.selector.ptr == NULL ||
	    f.path.ptr == NULL)
		return RES_NOMEM;
	b->keys.files[b->keys.count++] = f;
	return RES_OK;
}

/* Each load, so that a reload says it as well. */
static void
warn_weak(struct signer *ring)
{
	struct manifest *m = ring->manifest(ring);
	for (size_t i = 0; i < manifest_count(m); i++) {
		const struct signing_key *k = manifest_at(m, i);
		if (signing_key_weak(k))
			log_warning("key %.*s._domainkey.%.*s has %u bits; use "
				    "at least %d", STR_ARG(k->selector),
			    STR_ARG(k->domain), k->bits, SIGNER_MIN_RSA_BITS);
	}
	manifest_unref(&m);
}

/* All keys are there: use them, or keep the old ones and say why. */
static void
load(struct role *role)
{
	struct err err = { "" };
	enum res r = role->ring == NULL ?
	    keyring_from_keydir(&role->batch.keys, &err, &role->ring) :
	    keyring_reload(role->ring, &role->batch.keys, &err);
	arena_free(&role->batch.arena);
	role->batch = (struct batch){ 0 };
	if (r == RES_OK)
		warn_weak(role->ring);
	if (r == RES_OK && role->server != NULL &&
	    remote_server_push(role->server) != RES_OK)
		remote_server_free(&role->server); /* a new one will come */
	ipc_answer(r, &err);
}

static void
serve(struct role *role, int fd)
{
	remote_server_free(&role->server);
	if (fd < 0 || role->ring == NULL ||
	    remote_server_new(role->ring, fd, &role->server) != RES_OK)
		log_warning("the milter process could not be served");
}

static void
confine(void)
{
	const struct rlimit none = { 0, 0 };
	/* neither a core file nor another process of our user may show keys */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	/* we end with the supervisor, when it closes the control socket: a
	 * signal to all of us must not stop signing while mail drains */
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

void
signer_role(void)
{
	static struct ipc_packet p;
	struct role role = { 0 };
	confine();
	while (ipc_receive(IPC_CHILD_FD, &p) == RES_OK) {
		struct err err = { "" };
		enum res r = RES_OK;
		switch (p.type) {
		case IPC_KEY:
			r = batch_add(&role.batch, &p);
			if (r != RES_OK) {
				log_error("a key did not arrive: %s",
				    res_text(r));
				_exit(1);
			}
			break;
		case IPC_LOAD:
			load(&role);
			break;
		case IPC_PEER:
			serve(&role, p.fd);
			break;
		default:
			err_set(&err, "the signer was asked for '%c'", p.type);
			ipc_answer(RES_INVALID, &err);
			break;
		}
	}
	remote_server_free(&role.server);
	signer_free(&role.ring); /* wipes */
	arena_free(&role.batch.arena);
	_exit(0);
}

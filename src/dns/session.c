#include "dns/session.h"

#include "base/buf.h"
#include "base/clock.h"
#include "dns/name.h"

/* One question of this message. `answer` is set once it was looked up (the
 * session then owns a reference); until then a query may be under way. */
struct question {
	struct str name; /* lower case, without final dot */
	enum dns_type type;
	uint32_t hash;
	struct dns_query *query;
	int64_t begun_us;
	const char *refused; /* why no query could be begun */
	struct dns_answer *answer;
	struct question *next;
};

#define BUCKETS 64

struct dns_session {
	struct arena *arena;
	struct resolver *resolver;
	struct dns_limits limits;
	int64_t waited_us;
	unsigned asked;
	struct question *buckets[BUCKETS];
	struct dns_answer **evidence;
	size_t evidence_count, evidence_cap;
};

/* For when not even an answer of ours can be made. */
static const struct dns_answer no_memory = {
	.type = DNS_TXT,
	.status = DNS_TIMEOUT,
	.detail = "out of memory",
};

static void
session_done(void *arg)
{
	struct dns_session *s = arg;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct question *q = s->buckets[i]; q; q = q->next) {
			if (q->query != NULL)
				s->resolver->release(s->resolver, &q->query);
			dns_answer_unref(&q->answer);
		}
	}
}

struct dns_session *
dns_session_new(
    struct arena *a, struct resolver *r, const struct dns_limits *limits)
{
	struct dns_session *s = ARENA_NEW(a, struct dns_session);
	if (s == NULL)
		return NULL;
	s->arena = a;
	s->resolver = r;
	s->limits = *limits;
	if (s->limits.max_queries == 0)
		s->limits.max_queries = DNS_SESSION_MAX_QUERIES;
	if (arena_on_free(a, session_done, s) != RES_OK)
		return NULL;
	return s;
}

/* FNV-1a over the folded name and the type. */
static uint32_t
question_hash(struct str name, enum dns_type type)
{
	uint32_t h = 2166136261u ^ (uint32_t)type;
	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (uint8_t)ascii_lower(name.ptr[i])) * 16777619u;
	return h;
}

/* The question, new or known; a new one is begun if that is possible. NULL
 * without memory. */
static struct question *
question_for(struct dns_session *s, struct str name, enum dns_type type)
{
	name = dns_name_chop(name);
	uint32_t hash = question_hash(name, type);
	struct question **at = &s->buckets[hash % BUCKETS];
	for (; *at != NULL; at = &(*at)->next) {
		struct question *q = *at;
		if (q->hash == hash && q->type == type &&
		    str_case_eq(q->name, name))
			return q;
	}
	struct question *q = ARENA_NEW(s->arena, struct question);
	if (q == NULL)
		return NULL;
	q->name = arena_lower(s->arena, name);
	if (q->name.ptr == NULL)
		return NULL;
	q->type = type;
	q->hash = hash;
	*at = q;
	if (!dns_name_ok(q->name))
		return q;
	if (s->asked >= s->limits.max_queries) {
		q->refused = "too many look-ups for one message";
		return q;
	}
	s->asked++;
	q->begun_us = clock_mono_us();
	enum res r = s->resolver->start(s->resolver, q->name, type, &q->query);
	if (r == RES_AGAIN)
		q->refused = "too many look-ups under way";
	else if (r != RES_OK)
		q->refused = "the look-up could not be begun";
	return q;
}

void
dns_session_prefetch(struct dns_session *s, struct str name, enum dns_type type)
{
	(void)question_for(s, name, type);
}

static struct dns_answer *
own_answer(const struct question *q, enum dns_status status, const char *detail)
{
	struct dns_answer *a =
	    dns_answer_new(q->name, q->type, status, 0, NULL, 0);
	if (a != NULL)
		a->detail = detail;
	return a;
}

static struct dns_answer *
wait_for(struct dns_session *s, struct question *q)
{
	if (q->query == NULL && q->refused == NULL)
		return own_answer(q, DNS_BADNAME, "not a domain name");
	if (q->query == NULL)
		return own_answer(q, DNS_TIMEOUT, q->refused);
	int64_t now = clock_mono_us();
	int64_t left = s->limits.budget_us - s->waited_us;
	int64_t deadline = q->begun_us + s->limits.lookup_us;
	bool by_budget = deadline > now + left;
	if (by_budget)
		deadline = now + left;
	struct dns_answer *a =
	    s->resolver->wait(s->resolver, q->query, deadline);
	s->waited_us += clock_mono_us() - now;
	s->resolver->release(s->resolver, &q->query);
	if (a == NULL)
		a = own_answer(q, DNS_TIMEOUT,
		    by_budget ? "the message's DNS budget is used up"
			      : "no answer in time");
	return a;
}

static bool
keep_evidence(struct dns_session *s, struct dns_answer *a)
{
	if (s->evidence_count == s->evidence_cap) {
		size_t cap = s->evidence_cap == 0 ? 16 : s->evidence_cap * 2;
		struct dns_answer **more =
		    arena_array(s->arena, cap, sizeof(*more));
		if (more == NULL)
			return false;
		if (s->evidence_count > 0)
			memcpy(more, s->evidence,
			    s->evidence_count * sizeof(*more));
		s->evidence = more;
		s->evidence_cap = cap;
	}
	s->evidence[s->evidence_count++] = a;
	return true;
}

const struct dns_answer *
dns_session_get(struct dns_session *s, struct str name, enum dns_type type)
{
	struct question *q = question_for(s, name, type);
	if (q == NULL)
		return &no_memory;
	if (q->answer != NULL)
		return q->answer;
	q->answer = wait_for(s, q);
	if (q->answer != NULL && !keep_evidence(s, q->answer))
		dns_answer_unref(&q->answer);
	if (q->answer == NULL) {
		/* The query is spent: the same answer from now on. */
		q->refused = "out of memory";
		return &no_memory;
	}
	return q->answer;
}

size_t
dns_session_count(const struct dns_session *s)
{
	return s->evidence_count;
}

const struct dns_answer *
dns_session_at(const struct dns_session *s, size_t i)
{
	return s->evidence[i];
}

struct str
dns_reverse_name(struct arena *a, const struct ip *ip)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *b = ip->bytes;
	if (ip->family == IP_V4)
		return arena_printf(
		    a, "%u.%u.%u.%u.in-addr.arpa", b[3], b[2], b[1], b[0]);
	if (ip->family != IP_V6)
		return STR_EMPTY;
	char text[64];
	for (size_t i = 0; i < 16; i++) {
		uint8_t byte = b[15 - i];
		text[4 * i] = hex[byte & 15];
		text[4 * i + 1] = '.';
		text[4 * i + 2] = hex[byte >> 4];
		text[4 * i + 3] = '.';
	}
	return arena_printf(a, "%.*sip6.arpa", (int)sizeof(text), text);
}

#include "tests/hn_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "dns/unbound.h"
#include "tests/dns/authority.h"

static atomic_int changes; /* of DNSSEC's state; + on, - off */

static void
dnssec_changed(const char *note)
{
	atomic_fetch_add(&changes, note == NULL ? 1 : -1);
}

/* The hook comes after those are woken who wait for the note. */
static void
assert_changes(int want)
{
	for (int i = 0; i < 20000 && atomic_load(&changes) != want; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&changes), want);
}

#define LONG_US 20000000 /* only a broken test waits so long */

struct world {
	struct authority *authority;
	struct resolver *resolver;
};

static int
setup_with(void **state, enum dnssec_mode dnssec, const char *anchor)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->authority = authority_new(anchor);
	assert_non_null(w->authority);
	struct str server = str_c(authority_address(w->authority));
	struct unbound_options o = { .nameservers = &server,
		.nameserver_count = 1,
		.dnssec = dnssec,
		.trust_anchor = anchor,
		.dnssec_changed = dnssec_changed };
	struct err err = { "" };
	enum res r = unbound_new(&o, &err, &w->resolver, NULL);
	if (r != RES_OK)
		print_error("%s\n", err.text);
	assert_int_equal(r, RES_OK);
	*state = w;
	return 0;
}

static int
setup(void **state)
{
	return setup_with(state, DNSSEC_OFF, NULL);
}

static int
teardown(void **state)
{
	struct world *w = *state;
	resolver_free(&w->resolver);
	authority_free(&w->authority);
	free(w);
	return 0;
}

static struct dns_answer *
ask(struct world *w, const char *name, enum dns_type type, int64_t wait_us)
{
	struct resolver *r = w->resolver;
	struct dns_query *q = NULL;
	assert_ok(r->start(r, str_c(name), type, &q));
	struct dns_answer *a = r->wait(r, q, clock_mono_us() + wait_us);
	r->release(r, &q);
	return a;
}

static void
answers(void **state)
{
	static const struct {
		const char *name;
		enum dns_type type;
		enum dns_status status;
		size_t count;
		const char *data;
	} rows[] = {
		{ "txt.example", DNS_TXT, DNS_OK, 1, "v=spf1 -all" },
		{ "txt.example", DNS_A, DNS_NODATA, 0, NULL },
		{ "nx.example", DNS_TXT, DNS_NXDOMAIN, 0, NULL },
		{ "nodata.example", DNS_TXT, DNS_NODATA, 0, NULL },
		{ "servfail.example", DNS_TXT, DNS_SERVFAIL, 0, NULL },
		{ "refused.example", DNS_TXT, DNS_SERVFAIL, 0, NULL },
		{ "tc.example", DNS_TXT, DNS_OK, 1, "by tcp" },
		{ "mx1000.example", DNS_MX, DNS_OK, 1000, NULL },
		{ "chain.example", DNS_TXT, DNS_OK, 1, "v=spf1 -all" },
		{ "loop.example", DNS_TXT, DNS_SERVFAIL, 0, NULL },
		{ "odd\\label+x y%.example", DNS_A, DNS_OK, 1, NULL },
	};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dns_answer *a =
		    ask(w, rows[i].name, rows[i].type, LONG_US);
		if (a == NULL || a->status != rows[i].status ||
		    a->count != rows[i].count)
			fail_msg("%s: %s %s, %zu records", rows[i].name,
			    a == NULL ? "none" : dns_status_text(a->status),
			    a != NULL && a->detail != NULL ? a->detail : "",
			    a == NULL ? 0 : a->count);
		assert_str(a->name, rows[i].name);
		if (rows[i].data != NULL)
			assert_str(a->records[0].data, rows[i].data);
		if (dns_status_temporary(a->status))
			assert_non_null(a->detail);
		else
			assert_true(a->ttl > 0);
		assert_false(a->secure);
		dns_answer_unref(&a);
	}
}

static void
big_txt(void **state)
{
	struct dns_answer *a = ask(*state, "big.example", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_int_equal(a->status, DNS_OK);
	assert_int_equal(a->records[0].data.len, 240 * 255);
	dns_answer_unref(&a);
}

/* Nothing of these may be believed; waiting ends at the deadline. */
static void
forged_or_silent(void **state)
{
	static const char *const names[] = { "silent.example",
		"wrongid.example", "wrongq.example" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t begun = clock_mono_us();
		struct dns_answer *a = ask(*state, names[i], DNS_TXT, 200000);
		if (a == NULL)
			assert_true(clock_mono_us() - begun >= 200000);
		else
			assert_true(dns_status_temporary(a->status));
		dns_answer_unref(&a);
	}
}

static void
malformed(void **state)
{
	static const char *const names[] = { "wrongowner.example",
		"garbage.example" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct dns_answer *a = ask(*state, names[i], DNS_TXT, 1000000);
		/* libunbound may drop it and go on asking, or say that there
		 * is nothing; records there are none. */
		assert_true(a == NULL || a->count == 0);
		dns_answer_unref(&a);
	}
}

static void
cached(void **state)
{
	struct world *w = *state;
	struct dns_answer *a = ask(w, "txt.example", DNS_TXT, LONG_US);
	struct dns_answer *b = ask(w, "txt.example", DNS_TXT, 0);
	assert_non_null(a);
	assert_ptr_equal(a, b);
	dns_answer_unref(&b);
	dns_answer_unref(&a);
	a = ask(w, "nx.example", DNS_TXT, LONG_US);
	b = ask(w, "nx.example", DNS_TXT, 0);
	assert_non_null(a);
	assert_ptr_equal(a, b);
	assert_true(a->ttl <= 30);
	dns_answer_unref(&b);
	dns_answer_unref(&a);
	assert_int_equal(authority_seen(w->authority, "txt."), 1);
}

/* Given up by the message that asked; the late answer serves the next. */
static void
late_answer(void **state)
{
	struct world *w = *state;
	assert_null(ask(w, "late.example", DNS_TXT, 50000));
	struct dns_answer *a = ask(w, "late.example", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_str(a->records[0].data, "late");
	dns_answer_unref(&a);
}

static void
release_without_waiting(void **state)
{
	struct world *w = *state;
	struct resolver *r = w->resolver;
	for (unsigned i = 0; i < 200; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%s%u.example",
		    i % 2 ? "p" : "silent.x", i);
		struct dns_query *q = NULL;
		assert_ok(r->start(r, str_c(name), DNS_A, &q));
		r->release(r, &q);
		assert_null(q);
	}
	/* and it still answers */
	struct dns_answer *a = ask(w, "txt.example", DNS_TXT, LONG_US);
	assert_non_null(a);
	dns_answer_unref(&a);
}

static void
equal_questions_are_one(void **state)
{
	struct world *w = *state;
	struct resolver *r = w->resolver;
	struct dns_query *q[50];
	for (size_t i = 0; i < 50; i++)
		assert_ok(r->start(r, STR("late.example"), DNS_TXT, &q[i]));
	/* one of them gives up */
	r->release(r, &q[0]);
	struct dns_answer *first = NULL;
	for (size_t i = 1; i < 50; i++) {
		struct dns_answer *a =
		    r->wait(r, q[i], clock_mono_us() + LONG_US);
		assert_non_null(a);
		if (first == NULL)
			first = dns_answer_ref(a);
		assert_ptr_equal(a, first);
		dns_answer_unref(&a);
		r->release(r, &q[i]);
	}
	dns_answer_unref(&first);
}

static void
too_many_under_way(void **state)
{
	struct world *w = *state;
	struct resolver *r = w->resolver;
	struct dns_query **q = calloc(UNBOUND_MAX_UNDER_WAY, sizeof(*q));
	assert_non_null(q);
	char name[40];
	for (unsigned i = 0; i < UNBOUND_MAX_UNDER_WAY; i++) {
		snprintf(name, sizeof(name), "silent.y%u.example", i);
		assert_ok(r->start(r, str_c(name), DNS_A, &q[i]));
	}
	struct dns_query *one = NULL;
	assert_int_equal(
	    r->start(r, STR("silent.z.example"), DNS_A, &one), RES_AGAIN);
	assert_null(one);
	/* what is asked already may still be joined */
	assert_ok(r->start(r, str_c(name), DNS_A, &one));
	r->release(r, &one);
	for (unsigned i = 0; i < UNBOUND_MAX_UNDER_WAY; i++)
		r->release(r, &q[i]);
	free(q);
}

#define THREADS 8

struct worker {
	pthread_t thread;
	struct world *world;
	unsigned number, good;
};

/* 125 questions each at once; half of them are asked by all threads. */
static void *
work(void *arg)
{
	struct worker *me = arg;
	struct resolver *r = me->world->resolver;
	struct dns_query *q[125];
	for (unsigned i = 0; i < 125; i++) {
		char name[40];
		snprintf(name, sizeof(name), "p%u-%u.example",
		    i % 2 ? me->number : 0, i);
		if (r->start(r, str_c(name), DNS_A, &q[i]) != RES_OK)
			return NULL;
	}
	for (unsigned i = 0; i < 125; i++) {
		struct dns_answer *a =
		    r->wait(r, q[i], clock_mono_us() + LONG_US);
		me->good += a != NULL && a->status == DNS_OK &&
		    a->records[0].ip.bytes[0] == 10;
		dns_answer_unref(&a);
		r->release(r, &q[i]);
	}
	return NULL;
}

static void
thousand_parallel(void **state)
{
	struct worker workers[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] =
		    (struct worker){ .world = *state, .number = i + 1 };
		assert_int_equal(
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]),
		    0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].good, 125);
	}
}

static void
free_while_under_way(void **state)
{
	struct world *w = *state;
	struct resolver *r = w->resolver;
	for (unsigned i = 0; i < 20; i++) {
		char name[40];
		snprintf(name, sizeof(name), "silent.f%u.example", i);
		assert_null(ask(w, name, DNS_A, 1000));
	}
	resolver_free(&r);
	w->resolver = NULL;
}

static void
forwarder_without_dnssec(void **state)
{
	atomic_store(&changes, 0);
	setup_with(state, DNSSEC_AUTO, NULL);
	struct world *w = *state;
	assert_non_null(unbound_dnssec_note(w->resolver, 0));
	const char *note =
	    unbound_dnssec_note(w->resolver, clock_mono_us() + LONG_US);
	assert_non_null(note);
	assert_non_null(strstr(note, "name servers"));
	assert_changes(-1);
	struct dns_answer *a = ask(w, "txt.example", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_int_equal(a->status, DNS_OK);
	assert_false(a->secure);
	dns_answer_unref(&a);
	teardown(state);
}

/* Asked for, it is never left out: bogus data is no data. */
static void
dnssec_on_uses_nothing_bogus(void **state)
{
	setup_with(state, DNSSEC_ON, NULL);
	struct dns_answer *a = ask(*state, "txt.example", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_true(dns_status_temporary(a->status));
	assert_int_equal(a->count, 0);
	dns_answer_unref(&a);
	teardown(state);
}

/* The probe finds signatures; then right ones are told, wrong ones no data. */
static void
dnssec_by_probe(void **state)
{
	char anchor[] = "anchor-XXXXXX";
	int fd = mkstemp(anchor);
	assert_true(fd >= 0);
	close(fd);
	atomic_store(&changes, 0);
	setup_with(state, DNSSEC_AUTO, anchor);
	struct world *w = *state;
	const char *note =
	    unbound_dnssec_note(w->resolver, clock_mono_us() + LONG_US);
	if (note != NULL)
		fail_msg("%s", note);
	assert_changes(1);
	struct dns_answer *a = ask(w, "signed", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_int_equal(a->status, DNS_OK);
	assert_true(a->secure);
	assert_str(a->records[0].data, "text");
	dns_answer_unref(&a);
	a = ask(w, "forged", DNS_TXT, LONG_US);
	assert_non_null(a);
	assert_int_equal(a->status, DNS_BOGUS);
	assert_int_equal(a->count, 0);
	assert_non_null(a->detail);
	dns_answer_unref(&a);
	teardown(state);
	unlink(anchor);
}

static void
bad_options(void **state)
{
	struct str server = STR("not-an-address");
	struct unbound_options o = { .nameservers = &server,
		.nameserver_count = 1 };
	struct resolver *r = NULL;
	struct err err = { "" };
	assert_int_equal(unbound_new(&o, &err, &r, NULL), RES_SYNTAX);
	assert_non_null(strstr(err.text, "not-an-address"));
	server = STR("127.0.0.1@5353");
	o.dnssec = DNSSEC_ON;
	o.trust_anchor = "no/such/file";
	err_clear(&err);
	assert_int_equal(unbound_new(&o, &err, &r, NULL), RES_IO);
	assert_non_null(strstr(err.text, "no/such/file"));
	assert_null(r);
	/* AUTO does without, and says so */
	const char *note = NULL;
	o.dnssec = DNSSEC_AUTO;
	assert_ok(unbound_new(&o, &err, &r, &note));
	assert_string_equal(note, "no DNSSEC trust anchor is installed");
	resolver_free(&r);
	o.dnssec = DNSSEC_OFF;
	assert_ok(unbound_new(&o, &err, &r, &note));
	assert_string_equal(note, "DNSSEC validation is switched off");
	resolver_free(&r);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(answers),
		T(big_txt),
		T(forged_or_silent),
		T(malformed),
		T(cached),
		T(late_answer),
		T(release_without_waiting),
		T(equal_questions_are_one),
		T(too_many_under_way),
		T(thousand_parallel),
		T(free_while_under_way),
		cmocka_unit_test(forwarder_without_dnssec),
		cmocka_unit_test(dnssec_on_uses_nothing_bogus),
		cmocka_unit_test(dnssec_by_probe),
		cmocka_unit_test(bad_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

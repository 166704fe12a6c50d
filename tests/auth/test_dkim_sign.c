#include "auth/dkim_sign.h"

#include "auth_test.h"
#include "mail/taglist.h"

#define NOW 1700000000

static const char *const canons[] = { "simple", "relaxed" };

struct signing {
	struct fixture f;
	size_t body[2]; /* by canonicalization */
	struct signer *signer;
	struct manifest *manifest;
	struct dkim_sign_options options;
};

static void
signing_open(
    struct signing *s, const char *message, const char *pem, const char *domain)
{
	fixture_open(&s->f, str_c(message), "");
	for (int c = 0; c < 2; c++)
		assert_ok(bodyhash_want(
		    s->f.hashes, (enum canon)c, BODYHASH_WHOLE, &s->body[c]));
	fixture_push(&s->f, 0);
	s->signer = signer_from_pem(pem, domain, "test");
	s->manifest = s->signer->manifest(s->signer);
	s->options = (struct dkim_sign_options){ CANON_RELAXED, CANON_RELAXED,
		NOW, 0, STR_EMPTY, NULL, 0, NULL, 0 };
}

static enum res
signing_run(struct signing *s, struct str *out)
{
	return dkim_sign_field(s->f.arena, s->f.header, &s->options,
	    s->f.hashes, s->body[s->options.body_canon], s->signer,
	    manifest_at(s->manifest, 0), out);
}

static void
signing_close(struct signing *s)
{
	manifest_unref(&s->manifest);
	signer_free(&s->signer);
	fixture_close(&s->f);
}

/* The message with the field on top, folds as on the wire. */
static void
put_on_top(struct buf *out, struct str value, const char *message)
{
	buf_add_c(out, "DKIM-Signature:");
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n')
			buf_add_char(out, '\r');
		buf_add_char(out, value.ptr[i]);
	}
	buf_add_c(out, "\r\n");
	buf_add_c(out, message);
}

static void
expect_verifies(
    struct str value, const char *message, const char *zone, const char *want)
{
	struct buf b;
	struct fixture f;
	buf_init(&b, 1 << 20);
	put_on_top(&b, value, message);
	fixture_open(&f, buf_str(&b), zone);
	f.options.now_s = NOW;
	fixture_dkim(&f, 0);
	expect_result(&f, 0, want);
	fixture_close(&f);
	buf_done(&b);
}

static const char *
message(void)
{
	static char m[4096];
	snprintf(m, sizeof m, "%s\r\n%s", rfc8463_header, rfc8463_body);
	return m;
}

static struct str
tag(struct signing *s, struct str value, const char *name)
{
	struct taglist tags;
	struct buf b;
	buf_init(&b, 65536);
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] == '\n')
			buf_add_char(&b, '\r');
		buf_add_char(&b, value.ptr[i]);
	}
	assert_ok(taglist_parse(buf_str(&b), false, &tags));
	struct str v = taglist_strip(s->f.arena, taglist_get(&tags, name));
	buf_done(&b);
	return v;
}

/* --- the field itself -------------------------------------------------------- */
static void
exact_form(void **state)
{
	struct signing s;
	struct str value;
	signing_open(&s, message(), rfc8463_rsa_pem, "football.example.com");
	s.options.lifetime_s = 14 * 86400;
	assert_ok(signing_run(&s, &value));
	struct str head = str_sub(value, 0, str_find(value, STR("\n\tb=")));
	assert_str(head,
	    " v=1; a=rsa-sha256; c=relaxed/relaxed;\n"
	    "\td=football.example.com; s=test; t=1700000000; x=1701209600;\n"
	    "\th=from:from:reply-to:to:to:cc:subject:subject:date:date:"
	    "message-id:\n"
	    "\tmessage-id:in-reply-to:references:mime-version:"
	    "content-type:\n"
	    "\tcontent-transfer-encoding;\n"
	    "\tbh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;");
	assert_int_equal(tag(&s, value, "b").len, 172);
	expect_verifies(value, message(), RFC8463_ZONE, "pass");
	signing_close(&s);
}

static void
lines_are_short(void **state)
{
	struct signing s;
	struct str value, line;
	signing_open(&s, message(), rfc8463_rsa_pem, "football.example.com");
	s.options.lifetime_s = 1;
	s.options.identity =
	    STR("somebody.with.a.rather.long.name@football.example.com");
	assert_ok(signing_run(&s, &value));
	bool first = true;
	while (str_split(&value, '\n', &line)) {
		size_t columns = line.len + (first ? 15 : 7);
		assert_true(columns <= 78);
		assert_true(first || line.ptr[0] == '\t');
		first = false;
	}
	signing_close(&s);
}

static void
all_canonicalizations_and_keys(void **state)
{
	static const char odd[] = "from: \t Joe <joe@football.example.com> \r\n"
				  "SUBJECT: folded\r\n \t twice\r\n\there  \r\n"
				  "To :x@y.example\r\n"
				  "\r\n"
				  " body \t with  blanks \r\n\r\n\r\n";
	for (int c = 0; c < 4; c++) {
		struct signing s;
		struct str value;
		char want[32];
		signing_open(&s, odd, rfc8463_rsa_pem, "football.example.com");
		s.options.header_canon = (enum canon)(c & 1);
		s.options.body_canon = (enum canon)(c >> 1);
		assert_ok(signing_run(&s, &value));
		snprintf(
		    want, sizeof want, "%s/%s", canons[c & 1], canons[c >> 1]);
		assert_str(tag(&s, value, "c"), want);
		expect_verifies(value, odd, RFC8463_ZONE, "pass");
		signing_close(&s);
	}
}

static void
ed25519(void **state)
{
	/* RFC 8463's secret key, in PKCS#8. */
	static const char pem[] =
	    "-----BEGIN PRIVATE KEY-----\n"
	    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
	    "-----END PRIVATE KEY-----\n";
	struct signing s;
	struct str value;
	signing_open(&s, message(), pem, "football.example.com");
	assert_ok(signing_run(&s, &value));
	assert_str(tag(&s, value, "a"), "ed25519-sha256");
	assert_int_equal(tag(&s, value, "b").len, 88);
	expect_verifies(value, message(),
	    "test._domainkey.football.example.com TXT "
	    "\"k=ed25519; p=" RFC8463_ED25519_P "\"\n",
	    "pass");
	signing_close(&s);
}

/* --- which fields -------------------------------------------------------------- */
static const char many[] =
    "Received: a\r\n"
    "Received: b\r\n"
    "From: joe@football.example.com\r\n"
    "Sender: x@y.example\r\n"
    "List-Unsubscribe: <https://x.example/>\r\n"
    "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    "Subject: x\r\n"
    "\r\nbody\r\n";

static void
default_names(void **state)
{
	struct signing s;
	struct str value;
	signing_open(&s, many, rfc8463_rsa_pem, "football.example.com");
	assert_ok(signing_run(&s, &value));
	assert_str(tag(&s, value, "h"),
	    "from:from:sender:reply-to:to:cc:subject:subject:date:message-id:"
	    "in-reply-to:references:mime-version:content-type:"
	    "content-transfer-encoding:list-unsubscribe:"
	    "list-unsubscribe-post");
	/* Nothing may be added that was named once more than present. */
	expect_verifies(value, many, RFC8463_ZONE, "pass");
	expect_verifies(value, replaced(many, "Subject:", "To: z\r\nSubject:"),
	    RFC8463_ZONE, "fail (signature did not verify)");
	expect_verifies(value,
	    replaced(many, "Subject:", "List-Id: z\r\nSubject:"), RFC8463_ZONE,
	    "pass");
	signing_close(&s);
}

static void
chosen_names(void **state)
{
	static const struct {
		const char *headers[4], *oversign[4], *want;
	} rows[] = {
		{ { "Received", "FROM" }, { NULL }, "received:received:from" },
		{ { "subject" }, { NULL }, "from:subject" },
		{ { "subject", "Subject" }, { NULL }, "from:subject" },
		{ { "from" }, { "from", "x-y" }, "from:from:x-y" },
		{ { "x-y" }, { "sender", "Sender" }, "from:sender:sender" },
		{ { NULL }, { "from" }, "from:from" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct str headers[4], oversign[4];
		struct signing s;
		struct str value;
		signing_open(&s, many, rfc8463_rsa_pem, "football.example.com");
		s.options.headers = headers;
		s.options.oversign = oversign;
		while (rows[i].headers[s.options.header_count] != NULL) {
			headers[s.options.header_count] =
			    str_c(rows[i].headers[s.options.header_count]);
			s.options.header_count++;
		}
		while (rows[i].oversign[s.options.oversign_count] != NULL) {
			oversign[s.options.oversign_count] =
			    str_c(rows[i].oversign[s.options.oversign_count]);
			s.options.oversign_count++;
		}
		assert_ok(signing_run(&s, &value));
		assert_str(tag(&s, value, "h"), rows[i].want);
		expect_verifies(value, many, RFC8463_ZONE, "pass");
		signing_close(&s);
	}
}

static void
identity(void **state)
{
	struct signing s;
	struct str value;
	signing_open(&s, message(), rfc8463_rsa_pem, "football.example.com");
	s.options.identity = STR("a;b=c d@sub.football.example.com");
	assert_ok(signing_run(&s, &value));
	assert_str(
	    tag(&s, value, "i"), "a=3Bb=3Dc=20d@sub.football.example.com");
	expect_verifies(value, message(), RFC8463_ZONE, "pass");
	signing_close(&s);
}

/* --- what is not signed ---------------------------------------------------------- */
static void
not_signed(void **state)
{
	static const char *const messages[] = {
		"To: x\r\n\r\nbody\r\n",
		"From: a@b.c\r\nFrom: d@e.f\r\n\r\nbody\r\n",
	};
	for (size_t i = 0; i < 2; i++) {
		struct signing s;
		struct str value = STR("untouched");
		signing_open(&s, messages[i], rfc8463_rsa_pem, "b.c");
		assert_int_equal(signing_run(&s, &value), RES_INVALID);
		assert_str(value, "untouched");
		signing_close(&s);
	}
}

static void
too_many_fields(void **state)
{
	/* Names besides To: from twice, ten once; To once more than present.
	 * So 187 To fields make SIG_MAX_NAMES. */
	for (size_t to = 186; to <= 188; to++) {
		struct buf m;
		struct signing s;
		struct str value;
		buf_init(&m, 1 << 20);
		buf_add_c(&m, "From: joe@football.example.com\r\n");
		for (size_t i = 0; i < to; i++)
			buf_add_c(&m, "To: x\r\n");
		buf_add_c(&m, "\r\nbody\r\n");
		signing_open(
		    &s, buf_cstr(&m), rfc8463_rsa_pem, "football.example.com");
		enum res r = signing_run(&s, &value);
		assert_int_equal(r, to <= 187 ? RES_OK : RES_LIMIT);
		if (r == RES_OK)
			expect_verifies(
			    value, buf_cstr(&m), RFC8463_ZONE, "pass");
		signing_close(&s);
		buf_done(&m);
	}
}

/* The signer's own refusals come through. */
static enum res
refuse_again(struct signer *s, const struct signing_key *key,
    const uint8_t digest[32], struct buf *out)
{
	return RES_AGAIN;
}

static void
signer_refuses(void **state)
{
	struct signing s;
	struct str value;
	signing_open(&s, message(), rfc8463_rsa_pem, "football.example.com");
	struct signer refusing = *s.signer, *real = s.signer;
	refusing.sign = refuse_again;
	s.signer = &refusing;
	assert_int_equal(signing_run(&s, &value), RES_AGAIN);
	s.signer = real;
	signing_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_form),
		cmocka_unit_test(lines_are_short),
		cmocka_unit_test(all_canonicalizations_and_keys),
		cmocka_unit_test(ed25519),
		cmocka_unit_test(default_names),
		cmocka_unit_test(chosen_names),
		cmocka_unit_test(identity),
		cmocka_unit_test(not_signed),
		cmocka_unit_test(too_many_fields),
		cmocka_unit_test(signer_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "hn_test.h"

#include "base/json.h"

static void
test_document(void **state)
{
	(void)state;
	struct buf b;
	struct json j;
	buf_init(&b, 1000);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_str(&j, "s", STR("x"));
	json_key_c(&j, "c", NULL);
	json_key_c(&j, "d", "y");
	json_key_int(&j, "n", INT64_MIN);
	json_key_bool(&j, "t", true);
	json_key(&j, "list");
	json_open(&j, '[');
	json_int(&j, 1);
	json_null(&j);
	json_bool(&j, false);
	json_open(&j, '{');
	json_close(&j, '}');
	json_open(&j, '[');
	json_close(&j, ']');
	json_str(&j, STR(""));
	json_close(&j, ']');
	json_key(&j, "o");
	json_open(&j, '{');
	json_key_int(&j, "a", 1);
	json_key_int(&j, "b", 2);
	json_close(&j, '}');
	json_close(&j, '}');
	assert_str(buf_str(&b),
	    "{\"s\":\"x\",\"c\":null,\"d\":\"y\",\"n\":-9223372036854775808,"
	    "\"t\":true,\"list\":[1,null,false,{},[],\"\"],"
	    "\"o\":{\"a\":1,\"b\":2}}");
	buf_done(&b);
}

static void
test_escapes(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "a\"b\\c/", "\"a\\\"b\\\\c/\"" },
		{ "\n", "\"\\n\"" },
		{ "\r\t\x01\x7f", "\"\\u000d\\u0009\\u0001\\u007f\"" },
		{ "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
		{ "a\xff\xc3", "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf b;
		struct json j;
		buf_init(&b, 1000);
		json_init(&j, &b);
		json_str(&j, str_c(rows[i].in));
		assert_str(buf_str(&b), rows[i].out);
		buf_done(&b);
	}
	struct buf b;
	struct json j;
	buf_init(&b, 1000);
	json_init(&j, &b);
	json_str(&j, str_of("a\0b", 3));
	assert_str(buf_str(&b), "\"a\\u0000b\"");
	buf_reset(&b);
	json_init(&j, &b);
	json_open(&j, '{');
	json_key_int(&j, "k\"", 1);
	json_close(&j, '}');
	assert_str(buf_str(&b), "{\"k\\\"\":1}");
	buf_done(&b);
}

static void
test_depth(void **state)
{
	(void)state;
	struct buf b, want;
	struct json j;
	buf_init(&b, 1000);
	buf_init(&want, 1000);
	json_init(&j, &b);
	for (int i = 0; i < 31; i++) {
		json_open(&j, '[');
		json_int(&j, i);
		buf_addf(&want, "[%d%s", i, i < 30 ? "," : "");
	}
	for (int i = 30; i >= 0; i--) {
		json_int(&j, i);
		json_close(&j, ']');
		buf_addf(&want, ",%d]", i);
	}
	assert_string_equal(buf_cstr(&b), buf_cstr(&want));
	buf_done(&b);
	buf_done(&want);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_depth),
	};
	return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}

#include "keys/keydir.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hn_test.h"

/* Each test works in a fresh key folder. */
static char top[256];
static struct arena *arena;
static struct err err;

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

static int
begin(void **state)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(top, sizeof top, "%s/keydirXXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	umask(022);
	arena = arena_new(0);
	err_clear(&err);
	return mkdtemp(top) != NULL ? 0 : -1;
}

static int
end(void **state)
{
	arena_free(&arena);
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *
below(const char *name)
{
	static char path[1024];
	snprintf(path, sizeof path, "%s/%s", top, name);
	return path;
}

static void
folder(const char *name)
{
	assert_int_equal(mkdir(below(name), 0750), 0);
}

static void
file(const char *name, struct str text, mode_t mode)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text.ptr, text.len), (ssize_t)text.len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void
key(const char *name, enum key_type type, mode_t mode)
{
	struct privkey *k = NULL;
	struct buf pem;
	buf_init(&pem, PRIVKEY_MAX_FILE);
	assert_ok(privkey_generate(type, 1024, NULL, &k));
	assert_ok(privkey_to_pem(k, &pem));
	file(name, buf_str(&pem), mode);
	buf_done(&pem);
	privkey_free(&k);
}

static void
expect(enum res want, const char *words)
{
	struct keydir d;
	enum res r = keydir_open(arena, top, &err, &d);
	if (r != want)
		fail_msg("%s, not %s: %s", res_text(r), res_text(want),
		    err.text);
	if (strstr(err.text, words) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
	err_clear(&err);
}

static void
lists_sorted(void **state)
{
	struct keydir d;
	folder("b.example");
	folder("a.example");
	folder("lost+found");
	folder(".git");
	key("b.example/rsa.pem", KEY_RSA, 0640);
	key("b.example/ed.pem", KEY_ED25519, 0400);
	key("a.example/k_1.x.pem", KEY_ED25519, 0600);
	file("b.example/rsa.txt", STR("the record"), 0666);
	file("b.example/.hidden.pem", STR("no key"), 0666);
	file("README", STR("text"), 0644);
	assert_ok(keydir_open(arena, top, &err, &d));
	assert_int_equal(d.count, 3);
	assert_str(d.files[0].domain, "a.example");
	assert_str(d.files[0].selector, "k_1.x");
	assert_str(d.files[1].selector, "ed");
	assert_str(d.files[2].selector, "rsa");
	for (size_t i = 0; i < 3; i++) {
		struct privkey *k = NULL;
		assert_int_equal(d.files[i].state, KEY_STATE_ACTIVE);
		/* twice: the offset does not matter */
		assert_ok(keyfile_load(&d.files[i], &err, &k));
		privkey_free(&k);
		assert_ok(keyfile_load(&d.files[i], &err, &k));
		privkey_free(&k);
	}
	int fd = d.files[0].fd;
	arena_free(&arena);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed with the arena */
}

static void
nothing_there(void **state)
{
	struct keydir d;
	assert_ok(keydir_open(arena, top, &err, &d));
	assert_int_equal(d.count, 0);
	assert_int_equal(
	    keydir_open(arena, below("none"), &err, &d), RES_NOTFOUND);
	assert_non_null(strstr(err.text, "/none: cannot open: No such file"));
	err_clear(&err);
	file("plain", STR(""), 0600);
	assert_int_equal(keydir_open(arena, below("plain"), &err, &d), RES_IO);
	err_clear(&err);
	folder("empty.example");
	expect(RES_NOTFOUND, "empty.example: no key in it; make one with: "
			     "hanaper key generate empty.example");
}

static void
modes(void **state)
{
	static const struct {
		mode_t mode;
		const char *words; /* NULL: fine */
	} rows[] = {
		{ 0400, NULL },
		{ 0440, NULL },
		{ 0640, NULL },
		{ 0644, "mode 0644 is too open for a private key; run: chmod "
			"0640 " },
		{ 0660, "mode 0660 is too open for a private key; run: chmod "
			"0640 " },
		{ 0604, "run: chmod 0600 " },
		{ 0601, "run: chmod 0600 " },
	};
	folder("a.example");
	key("a.example/k.pem", KEY_ED25519, 0600);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(
		    chmod(below("a.example/k.pem"), rows[i].mode), 0);
		if (rows[i].words == NULL)
			expect(RES_OK, "");
		else
			expect(RES_DENIED, rows[i].words);
	}
	chmod(below("a.example/k.pem"), 0600);
	chmod(below("a.example"), 0770);
	expect(RES_DENIED, "/a.example: mode 0770 is too open for a key "
			   "folder; run: chmod 0750 /");
	chmod(below("a.example"), 0755);
	expect(RES_OK, "");
	chmod(top, 0757);
	expect(RES_DENIED, "run: chmod 0755 /");
	chmod(top, 0700);
}

static void
owners(void **state)
{
	folder("a.example");
	key("a.example/k.pem", KEY_ED25519, 0600);
	if (geteuid() != 0) {
		/* only root can give files away: contrib/check runs this
		 * as root, too */
		assert_int_equal(chown(below("a.example/k.pem"), 12345, 0), -1);
		return;
	}
	assert_int_equal(chown(below("a.example/k.pem"), 12345, 0), 0);
	expect(RES_DENIED, "k.pem: owned by user 12345, not by root or by "
			   "user 0, who reads it; run: chown root /");
	/* unless the whole folder is the daemon's */
	assert_int_equal(chown(top, 12345, 0), 0);
	expect(RES_OK, "");
}

static void
names(void **state)
{
	folder("A.example");
	key("A.example/k.pem", KEY_ED25519, 0600);
	expect(RES_SYNTAX, "/A.example: not a domain");
	assert_int_equal(rename(below("A.example"), top), -1);
	char from[1024];
	snprintf(from, sizeof from, "%s", below("A.example"));
	assert_int_equal(rename(from, below("a.example")), 0);
	expect(RES_OK, "");
	key("a.example/K.pem", KEY_RSA, 0600);
	expect(RES_SYNTAX, "/a.example/K.pem: not a selector");
	unlink(below("a.example/K.pem"));
	file("k.pem", STR(""), 0600);
	expect(RES_SYNTAX, "/k.pem: a key belongs into a folder");
	unlink(below("k.pem"));
	assert_int_equal(mkfifo(below("a.example/f.pem"), 0600), 0);
	expect(RES_DENIED, "/a.example/f.pem: not a regular file");
	unlink(below("a.example/f.pem"));
	folder("a.example/d.pem");
	expect(RES_DENIED, "/a.example/d.pem: not a regular file");
}

static void
valid_names(void **state)
{
	static const struct {
		const char *name;
		bool good;
	} rows[] = {
		{ "a", true }, { "a.b", true }, { "xn--e1afmkfd", true },
		{ "_x-1.y", true }, { "", false }, { ".", false },
		{ "a.", false }, { ".a", false }, { "a..b", false },
		{ "A", false }, { "a b", false }, { "a/b", false },
		{ "\xc3\xa4", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(
		    keydir_name_valid(str_c(rows[i].name)), rows[i].good);
	char label[65];
	memset(label, 'a', sizeof label);
	assert_true(keydir_name_valid(str_of(label, 63)));
	assert_false(keydir_name_valid(str_of(label, 64)));
	char name[256];
	for (size_t i = 0; i < sizeof name; i++)
		name[i] = i % 2 == 0 ? 'a' : '.';
	assert_true(keydir_name_valid(str_of(name, 253)));
	assert_false(keydir_name_valid(str_of(name, 255)));
}

static void
two_of_a_type(void **state)
{
	struct keydir d;
	folder("a.example");
	key("a.example/k1.pem", KEY_RSA, 0600);
	key("a.example/k2.pem", KEY_RSA, 0600);
	expect(RES_EXISTS, "two RSA keys in use for a.example; say which one "
			   "signs: hanaper key rotate a.example");
	file("a.example/state", STR("k1 retired 1\nk2 active 2\n"), 0640);
	assert_ok(keydir_open(arena, top, &err, &d));
	assert_int_equal(d.count, 2);
	assert_int_equal(d.files[0].state, KEY_STATE_RETIRED);
	assert_int_equal(d.files[1].state, KEY_STATE_ACTIVE);
	/* one that the state does not name counts as active */
	key("a.example/k3.pem", KEY_ED25519, 0600);
	expect(RES_OK, "");
	key("a.example/k4.pem", KEY_ED25519, 0600);
	expect(RES_EXISTS, "two Ed25519 keys");
	file("a.example/k4.pem", STR("rubbish"), 0600);
	expect(RES_SYNTAX, "/a.example/k4.pem: no private key in PEM form");
}

static void
bad_state(void **state)
{
	folder("a.example");
	key("a.example/k1.pem", KEY_RSA, 0600);
	file("a.example/state", STR("k1 actve 1\n"), 0640);
	expect(RES_SYNTAX, "/a.example/state:1: not SELECTOR");
	file("a.example/state", STR("k1 active 1\nk9 next 1\n"), 0640);
	expect(RES_SYNTAX, "/a.example/state: selector k9 is next, but ");
	/* a retired key's private half may be gone */
	file("a.example/state", STR("k1 active 1\nk9 retired 1\n"), 0640);
	expect(RES_OK, "");
	file("a.example/state", STR("k1 active 1\n"), 0662);
	expect(RES_DENIED, "/a.example/state: mode 0662");
}

static void
too_many(void **state)
{
	char name[64];
	folder("a.example");
	for (int i = 0; i <= KEYDIR_MAX_KEYS_PER_DOMAIN; i++) {
		snprintf(name, sizeof name, "a.example/k%d.pem", i);
		file(name, STR("x"), 0600);
	}
	expect(RES_LIMIT, "/a.example: more than 64 keys");
}

static void
notes(void **state)
{
	struct keydir d;
	const char *path = below("notes");
	char dir[1024];
	snprintf(dir, sizeof dir, "%s", path);
	assert_int_equal(
	    keydir_open_notes(arena, dir, &err, &d), RES_NOTFOUND);
	folder("notes");
	err_clear(&err);
	assert_int_equal(
	    keydir_open_notes(arena, dir, &err, &d), RES_NOTFOUND);
	assert_non_null(strstr(err.text, "/notes: no key in it"));
	key("notes/1800000000.pem", KEY_ED25519, 0600);
	key("notes/999.pem", KEY_ED25519, 0600);
	file("notes/README", STR("x"), 0644);
	assert_ok(keydir_open_notes(arena, dir, &err, &d));
	assert_int_equal(d.count, 2);
	assert_str(d.files[0].selector, "999"); /* by time, not by letters */
	assert_int_equal(d.files[1].since_s, 1800000000);
	assert_str(d.files[1].domain, ".archive");
	assert_true(d.files[1].notes);
	static const char *const bad[] = { "notes/a.pem", "notes/01.pem",
		"notes/99999999999999999.pem" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		key(bad[i], KEY_ED25519, 0600);
		err_clear(&err);
		assert_int_equal(
		    keydir_open_notes(arena, dir, &err, &d), RES_SYNTAX);
		assert_non_null(strstr(err.text, "named after the time"));
		unlink(below(bad[i]));
	}
	chmod(below("notes/999.pem"), 0644);
	err_clear(&err);
	assert_int_equal(keydir_open_notes(arena, dir, &err, &d), RES_DENIED);
	assert_non_null(strstr(err.text, "999.pem: mode 0644"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_sorted),
		TEST(nothing_there),
		TEST(modes),
		TEST(owners),
		TEST(names),
		TEST(valid_names),
		TEST(two_of_a_type),
		TEST(bad_state),
		TEST(too_many),
		TEST(notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

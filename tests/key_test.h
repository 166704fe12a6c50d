/* A private key in a file without a folder, as the signer is given one: its
 * offset is at the end. */
#ifndef KEY_TEST_H
#define KEY_TEST_H

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "hn_test.h"
#include "keys/privkey.h"

static inline int
test_key_fd(enum key_type type)
{
	char name[256];
	const char *tmp = getenv("TMPDIR");
	struct privkey *k = NULL;
	struct buf pem;
	snprintf(name, sizeof name, "%s/keyXXXXXX", tmp != NULL ? tmp : "/tmp");
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	buf_init(&pem, PRIVKEY_MAX_FILE);
	assert_ok(privkey_generate(type, 1024, NULL, &k));
	assert_ok(privkey_to_pem(k, &pem));
	assert_int_equal(write(fd, pem.ptr, pem.len), (ssize_t)pem.len);
	buf_done(&pem);
	privkey_free(&k);
	return fd;
}

#endif

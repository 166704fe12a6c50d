/* A signer of notes in this process, with keys of chosen times. */
#ifndef NOTE_TEST_H
#define NOTE_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/format/note.h"
#include "key_test.h"
#include "keys/keyring.h"

#define NOTE_TEST_KEYS 6

struct note_test {
	struct signer *signer;
	char times[NOTE_TEST_KEYS][24];
	struct keyfile files[NOTE_TEST_KEYS];
	size_t count;
};

/* One more key, used from `since_s` on. */
static inline void
note_test_add(struct note_test *t, long long since_s)
{
	assert_true(t->count < NOTE_TEST_KEYS);
	snprintf(t->times[t->count], sizeof t->times[0], "%lld", since_s);
	t->files[t->count] = (struct keyfile){ .domain = SIGNER_NOTES,
		.selector = str_c(t->times[t->count]),
		.state = KEY_STATE_ACTIVE,
		.notes = true,
		.fd = test_key_fd(KEY_ED25519),
		.path = STR("test") };
	t->count++;
	const struct keydir d = { t->count, t->files };
	if (t->signer == NULL)
		assert_ok(keyring_from_keydir(&d, NULL, &t->signer));
	else
		assert_ok(keyring_reload(t->signer, &d, NULL));
}

static inline void
note_test_done(struct note_test *t)
{
	signer_free(&t->signer);
	for (size_t i = 0; i < t->count; i++)
		close(t->files[i].fd);
	t->count = 0;
}

#endif

#include "daemon/child.h"

#include "hn_test.h"

/* A process that dies while it is being started is noticed twice: by the
 * signal, and by whoever waits for its answer. It is one death. */
static void
one_death_one_pause(void **state)
{
	struct child c = { .role = "milter", .control = -1,
		.started_us = 1000000 };
	(void)state;
	for (int64_t pause = CHILD_FIRST_PAUSE_US; pause < CHILD_MAX_PAUSE_US;
	     pause *= 2) {
		child_gone(&c, 2000000);
		child_kill(&c);
		assert_int_equal(c.pause_us, pause);
		assert_int_equal(c.start_at_us, 2000000 + pause);
	}
	child_gone(&c, 2000000);
	assert_int_equal(c.pause_us, CHILD_MAX_PAUSE_US);
	child_gone(&c, c.started_us + CHILD_CALM_US);
	assert_int_equal(c.pause_us, CHILD_FIRST_PAUSE_US);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_death_one_pause),
	};
	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}

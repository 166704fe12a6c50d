#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/archive.h"

#define BAR       20
#define MAX_LINE  ((size_t)1024)
#define NO_WIDTH  80
#define SETTLE_US 1000000 /* before that the speed is a guess */

void
progress_init(struct progress *p)
{
	*p = (struct progress){ .terminal = isatty(STDERR_FILENO) != 0 };
}

static unsigned
width(void)
{
	struct winsize w = { 0 };
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
		return NO_WIDTH;
	return w.ws_col;
}

/* The end of a path tells more than its beginning. */
static struct str
end_of(struct str label)
{
	return label.len > PROGRESS_LABEL
	    ? str_skip(label, label.len - PROGRESS_LABEL)
	    : label;
}

static void
begin(struct progress *p, struct str label, uint64_t done)
{
	memcpy(p->label, label.ptr, label.len);
	p->label_len = label.len;
	p->begun_us = clock_mono_us();
	p->drawn_us = 0;
	p->begun_at = done;
}

static void
put_bar(struct buf *b, uint64_t done, uint64_t all)
{
	double part = all == 0 || done > all ? 1 : (double)done / (double)all;
	unsigned full = (unsigned)(part * BAR);
	buf_add_char(b, '[');
	for (unsigned i = 0; i < BAR; i++)
		buf_add_char(b, i < full ? '=' : i == full ? '>' : ' ');
	buf_addf(b, "] %3u%%", (unsigned)(part * 100));
}

static void
put_speed(struct buf *b, const struct progress *p, uint64_t done, uint64_t all,
    enum progress_unit unit)
{
	int64_t us = clock_mono_us() - p->begun_us;
	if (us < SETTLE_US || done <= p->begun_at || done > all)
		return;
	double a_second =
	    (double)(done - p->begun_at) * 1000000 / (double)us;
	double left_s = (double)(all - done) / a_second;
	if (unit == PROGRESS_BYTES)
		buf_addf(b, "  %.1f MB/s", a_second / 1048576);
	else
		buf_addf(b, "  %.0f frames/s", a_second);
	if (left_s >= 3600 * 100)
		return;
	unsigned s = (unsigned)left_s;
	if (s >= 3600)
		buf_addf(b, "  %u:%02u:%02u left", s / 3600, s / 60 % 60,
		    s % 60);
	else
		buf_addf(b, "  %u:%02u left", s / 60, s % 60);
}

void
progress_show(struct progress *p, struct str label, uint64_t done, uint64_t all,
    enum progress_unit unit, struct str note)
{
	int64_t now_us = clock_mono_us();
	struct buf b;
	if (!p->terminal)
		return;
	label = end_of(label);
	if (!str_eq(label, str_of(p->label, p->label_len)))
		begin(p, label, done);
	if (p->drawn_us != 0 && done < all &&
	    now_us - p->drawn_us < PROGRESS_EVERY_US)
		return;
	p->drawn_us = now_us;
	buf_init(&b, MAX_LINE);
	put_bar(&b, done, all);
	put_speed(&b, p, done, all, unit);
	if (note.len > 0) {
		buf_add_c(&b, "  ");
		buf_add_str(&b, note);
	}
	buf_add_c(&b, "  ");
	archive_put_safe(&b, label);
	/* a line that wraps cannot be drawn over */
	size_t room = width() - 1;
	fprintf(stderr, "\r\033[K%.*s", (int)(b.len < room ? b.len : room),
	    b.len > 0 ? b.ptr : "");
	fflush(stderr);
	p->shown = true;
	buf_done(&b);
}

void
progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

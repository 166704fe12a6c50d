#include "archive/state/reports.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS        5000
#define SCHEMA_VERSION 1
#define DAY_S          86400
#define FIRST_DELAY_S  900
#define MAX_DELAY_S    (6 * 3600)
#define MAX_DOUBLINGS  6 /* 64 days */
#define FORGIVE_S      (4 * DAY_S) /* after the last time out */

struct reports {
	sqlite3 *db;
	int lock_fd;
};

static const char schema[] =
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS mail(domain TEXT, day INTEGER, address TEXT, "
    "state INTEGER, tries INTEGER, next INTEGER, token TEXT, bounced INTEGER, "
    "time INTEGER, PRIMARY KEY(domain, day, address));"
    "CREATE INDEX IF NOT EXISTS mail_token ON mail(token);"
    "CREATE TABLE IF NOT EXISTS dead(address TEXT PRIMARY KEY, "
    "count INTEGER, until INTEGER);"
    "PRAGMA user_version=1;";

/* --- life -------------------------------------------------------------------- */

/* A file of its own: SQLite's locks are not ours to take. */
static enum res
lock(const char *path, struct reports *r, struct err *err)
{
	char name[4096];
	if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
		return RES_LIMIT;
	r->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (r->lock_fd < 0) {
		err_set(err, "%s: %s", name, strerror(errno));
		return errno == EACCES || errno == EPERM ? RES_DENIED : RES_IO;
	}
	if (flock(r->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return RES_OK;
	err_set(err, "reports are being sent already (%s is locked)", name);
	return RES_AGAIN;
}

static int
version_of(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int version = -1;
	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL) ==
		SQLITE_OK &&
	    sqlite3_step(s) == SQLITE_ROW)
		version = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	return version;
}

static enum res
open_db(const char *path, bool read_only, struct reports *r, struct err *err)
{
	int flags = read_only ? SQLITE_OPEN_READONLY :
				SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	int rc = sqlite3_open_v2(path, &r->db, flags, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(r->db, BUSY_MS);
	int version = rc == SQLITE_OK ? version_of(r->db) : -1;
	if (version == 0 && !read_only)
		rc = sqlite3_exec(r->db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK &&
	    (version == SCHEMA_VERSION || (version == 0 && !read_only)))
		return RES_OK;
	err_set(err, "%s: %s", path, rc == SQLITE_OK && version > 0 ?
	    "made by another version" : sqlite3_errmsg(r->db));
	return rc == SQLITE_OK ? RES_CORRUPT : RES_IO;
}

enum res
reports_open(const char *path, bool read_only, struct err *err,
    struct reports **out)
{
	if (read_only && access(path, F_OK) != 0)
		return RES_NOTFOUND;
	struct reports *r = calloc(1, sizeof *r);
	if (r == NULL)
		return RES_NOMEM;
	r->lock_fd = -1;
	mode_t old = umask(0027);
	enum res res = read_only ? RES_OK : lock(path, r, err);
	if (res == RES_OK)
		res = open_db(path, read_only, r, err);
	umask(old);
	if (res == RES_OK)
		*out = r;
	else
		reports_close(&r);
	return res;
}

void
reports_close(struct reports **rp)
{
	struct reports *r = *rp;
	if (r == NULL)
		return;
	*rp = NULL;
	sqlite3_close(r->db);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	free(r);
}

/* --- statements -------------------------------------------------------------- */

static sqlite3_stmt *
prepare(struct reports *r, const char *sql)
{
	sqlite3_stmt *s = NULL;
	return sqlite3_prepare_v2(r->db, sql, -1, &s, NULL) == SQLITE_OK ?
	    s : NULL;
}

static void
bind(sqlite3_stmt *s, int at, struct str v)
{
	sqlite3_bind_text64(s, at, v.ptr != NULL ? v.ptr : "", v.len,
	    SQLITE_STATIC, SQLITE_UTF8);
}

/* Finalizes; `s` may be NULL. */
static enum res
run(sqlite3_stmt *s)
{
	int rc = s != NULL ? sqlite3_step(s) : SQLITE_ERROR;
	sqlite3_finalize(s);
	return rc == SQLITE_DONE ? RES_OK : RES_IO;
}

enum res
reports_trim(struct reports *r, int64_t now_s)
{
	sqlite3_stmt *s = prepare(r, "DELETE FROM mail WHERE time < ?1");
	sqlite3_bind_int64(s, 1, now_s - REPORTS_KEEP_S);
	return run(s);
}

/* --- mails ------------------------------------------------------------------- */

int64_t
reports_next_s(unsigned tries, int64_t now_s)
{
	int64_t delay = FIRST_DELAY_S;
	while (tries-- > 1 && delay < MAX_DELAY_S)
		delay *= 2;
	return now_s + (delay < MAX_DELAY_S ? delay : MAX_DELAY_S);
}

enum res
reports_get(struct reports *r, struct report_mail *m)
{
	sqlite3_stmt *s = prepare(r, "SELECT state, tries, next, token FROM "
	    "mail WHERE domain = ?1 AND day = ?2 AND address = ?3");
	if (s == NULL)
		return RES_IO;
	bind(s, 1, m->domain);
	sqlite3_bind_int64(s, 2, m->day);
	bind(s, 3, m->address);
	int rc = sqlite3_step(s);
	m->state = REPORT_DUE;
	m->tries = 0;
	m->next_s = 0;
	m->token[0] = '\0';
	if (rc == SQLITE_ROW) {
		int state = sqlite3_column_int(s, 0);
		m->state = state == REPORT_SENT ? REPORT_SENT :
		    state == REPORT_GIVEN_UP	? REPORT_GIVEN_UP :
						  REPORT_DUE;
		m->tries = (unsigned)sqlite3_column_int(s, 1);
		m->next_s = sqlite3_column_int64(s, 2);
		const unsigned char *token = sqlite3_column_text(s, 3);
		snprintf(m->token, sizeof m->token, "%s",
		    token != NULL ? (const char *)token : "");
	}
	sqlite3_finalize(s);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? RES_OK : RES_IO;
}

enum res
reports_put(struct reports *r, const struct report_mail *m, int64_t now_s)
{
	sqlite3_stmt *s = prepare(r,
	    "INSERT OR REPLACE INTO mail VALUES(?1,?2,?3,?4,?5,?6,?7,0,?8)");
	if (s == NULL)
		return RES_IO;
	bind(s, 1, m->domain);
	sqlite3_bind_int64(s, 2, m->day);
	bind(s, 3, m->address);
	sqlite3_bind_int(s, 4, (int)m->state);
	sqlite3_bind_int64(s, 5, m->tries);
	sqlite3_bind_int64(s, 6, m->next_s);
	bind(s, 7, str_c(m->token));
	sqlite3_bind_int64(s, 8, now_s);
	return run(s);
}

/* --- dead addresses ---------------------------------------------------------- */

static enum res
get_dead(struct reports *r, struct str address, int64_t *count, int64_t *until)
{
	sqlite3_stmt *s = prepare(
	    r, "SELECT count, until FROM dead WHERE address = ?1");
	if (s == NULL)
		return RES_IO;
	*count = *until = 0;
	bind(s, 1, address);
	int rc = sqlite3_step(s);
	if (rc == SQLITE_ROW) {
		*count = sqlite3_column_int64(s, 0);
		*until = sqlite3_column_int64(s, 1);
	}
	sqlite3_finalize(s);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? RES_OK : RES_IO;
}

/* One bounce may be a warning about a delay; a second one is no accident. */
static enum res
count_bounce(struct reports *r, struct str address, int64_t now_s)
{
	int64_t count, until;
	enum res res = get_dead(r, address, &count, &until);
	if (res != RES_OK)
		return res;
	if (count > 0 && now_s > until + FORGIVE_S)
		count = 0;
	count++;
	int64_t shift = count - 1 < MAX_DOUBLINGS ? count - 1 : MAX_DOUBLINGS;
	until = now_s + (count > 1 ? ((int64_t)DAY_S << shift) : 0);
	sqlite3_stmt *s =
	    prepare(r, "INSERT OR REPLACE INTO dead VALUES(?1, ?2, ?3)");
	if (s == NULL)
		return RES_IO;
	bind(s, 1, address);
	sqlite3_bind_int64(s, 2, count);
	sqlite3_bind_int64(s, 3, until);
	return run(s);
}

enum res
reports_bounced(struct reports *r, struct str token, int64_t now_s)
{
	sqlite3_stmt *s = prepare(r, "SELECT address FROM mail "
	    "WHERE token = ?1 AND bounced = 0 AND token != ''");
	if (s == NULL)
		return RES_IO;
	bind(s, 1, token);
	int rc = sqlite3_step(s);
	enum res res = rc == SQLITE_DONE ? RES_NOTFOUND : RES_IO;
	if (rc == SQLITE_ROW)
		res = count_bounce(r, str_of(sqlite3_column_text(s, 0),
		    (size_t)sqlite3_column_bytes(s, 0)), now_s);
	sqlite3_finalize(s);
	if (res != RES_OK)
		return res;
	s = prepare(r, "UPDATE mail SET bounced = 1 WHERE token = ?1");
	if (s == NULL)
		return RES_IO;
	bind(s, 1, token);
	return run(s);
}

enum res
reports_dead_until(struct reports *r, struct str address, int64_t *out_until_s)
{
	int64_t count;
	return get_dead(r, address, &count, out_until_s);
}

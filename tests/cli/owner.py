#!/usr/bin/env python3
"""What root's commands leave behind in the daemon's folders is the daemon's.
Prints TAP."""
import os
import pwd
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.environ.get("SRCDIR", "."), "tests")
sys.path.insert(0, TESTS)
sys.dont_write_bytecode = True
import tap  # noqa: E402
from tap import check, check_in  # noqa: E402

HANAPER = os.environ.get("HANAPER", "./hanaper")
BUILT = os.path.join(os.environ.get("BUILDDIR", "."), "tests", "cli")
NOBODY = pwd.getpwnam("nobody")
CLOCK = 1700000000
work = tempfile.TemporaryDirectory(prefix="hnw")
cases = tap.Cases()


def path(*names):
    return os.path.join(work.name, *names)


def write(name, text, mode=0o644):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path(name), mode)


def each(top):
    for folder, _, names in os.walk(path(top)):
        yield folder
        for name in names:
            yield os.path.join(folder, name)


def give(top):
    for name in each(top):
        os.chown(name, NOBODY.pw_uid, NOBODY.pw_gid)


def strangers(top):
    return [name for name in each(top)
            if os.stat(name).st_uid != NOBODY.pw_uid]


def run(*command, status=0, stdin=None):
    done = subprocess.run(command, capture_output=True, timeout=60,
                          check=False, stdin=stdin, cwd="/")
    check(done.returncode, status, f"{command}: {done.stderr.decode()}")
    return done


def setup():
    os.chmod(work.name, 0o755)
    os.mkdir(path("state"), 0o750)
    os.mkdir(path("mails"), 0o777)
    os.chmod(path("mails"), 0o777)
    write("zone", '_dmarc.example.org TXT "v=DMARC1; p=none; '
          'rua=mailto:d@example.org"\n')
    write("mail", "From: a@example.org\nSubject: x\n\nHi\n")
    write("sendmail", f"#!/bin/sh\nid -u >{path('mails')}/uid\ncat >"
          f"{path('mails')}/mail\n", 0o755)
    write("conf", f"state_dir = {path('state')}\nzone_file = {path('zone')}\n"
          f"archive_dir = {path('none')}\narchive = yes\nreport = send\n"
          "report_from = dmarc@us.example\n", 0o600)
    with open(path("mail"), "rb") as f:
        run(os.path.join(BUILT, "report_fill"), path("conf"), path("zone"),
            str(CLOCK), "192.0.2.1", "<b@example.org>", "<r@us.example>", "1",
            stdin=f)
    run(os.path.join(BUILT, "fill_store"), path("store"), path("mail"))
    give("state")
    give("store")


@cases.add
def sending_reports():
    run(HANAPER, "report", "send", "-c", path("conf"), "--clock",
        str(CLOCK + 86400), "--sendmail", path("sendmail"))
    check(strangers("state"), [])
    check(os.path.exists(path("state", "reports.db")), True)
    with open(path("mails", "uid"), encoding="ascii") as f:
        check(int(f.read()), NOBODY.pw_uid, "user of sendmail")


@cases.add
def looking_at_reports_and_decisions():
    for command in (("report", "list"), ("explain", "QUEUEID"),
                    ("report", "dmarc", "--domain", "example.org",
                     "--preview")):
        clock = () if command[0] == "explain" else (
            "--day", "2023-11-14")
        run(HANAPER, *command, "-c", path("conf"), *clock)
    check(strangers("state"), [])


@cases.add
def a_new_index():
    run(HANAPER, "archive", "reindex", "--dir", path("store"))
    run(HANAPER, "archive", "search", "--dir", path("store"), "subject:x")
    check(strangers("store"), [])


@cases.add
def bringing_mail_in():
    for command in (("import", path("mail")), ("add",)):
        for place in (("--dir", path("store")), ("-c", path("conf"))):
            with open(path("mail"), "rb") as f:
                done = subprocess.run(
                    [HANAPER, "archive", command[0], *place, *command[1:]],
                    stdin=f, capture_output=True, timeout=60, check=False)
            check_in(b"run this as that user" if place[0] == "--dir" else
                     b"the daemon makes it", done.stderr)
            check(done.returncode in (75, 77), True, done)
    check(strangers("store"), [])
    check(os.path.exists(path("none")), False)


setup()
tap.run(cases, cleanup=work.cleanup)

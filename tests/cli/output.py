#!/usr/bin/env python3
"""Every command of hanaper that prints says so when what it prints has no
place to go: a full disk, a reader that has gone. Prints TAP."""
import os
import shutil
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
EX_IOERR = 74
work = tempfile.TemporaryDirectory(prefix="hno")
cases = tap.Cases()

ZONE = """\
_dmarc.example.org TXT "v=DMARC1; p=none; rua=mailto:d@example.org"
example.org TXT "v=spf1 ip4:192.0.2.1 -all"
"""
MAIL = b"From: a@example.org\r\nSubject: x\r\n\r\nHi\r\n"
CLOCK = 1700000000


def path(name):
    return os.path.join(work.name, name)


def write(name, data):
    with open(path(name), "wb") as f:
        f.write(data)


def setup():
    for name in ("state", "keys"):
        os.mkdir(path(name), 0o750)
    write("zone", ZONE.encode())
    write("mail", MAIL)
    write("conf", f"""\
state_dir = {path('state')}
key_dir = {path('keys')}
zone_file = {path('zone')}
user = nobody
listen = unix:{path('socket')}
archive_dir = {path('store')}
report = send
report_from = dmarc@us.example
""".encode())
    subprocess.run([HANAPER, "key", "generate", "example.org", "--selector",
                    "s", "-c", path("conf")], check=True, capture_output=True)
    with open(path("mail"), "rb") as f:
        subprocess.run([os.path.join(BUILT, "report_fill"), path("conf"),
                        path("zone"), str(CLOCK), "192.0.2.1",
                        "<b@example.org>", "<r@us.example>", "1"], stdin=f,
                       check=True)
    subprocess.run([os.path.join(BUILT, "fill_store"), path("store"),
                    path("mail")], check=True, capture_output=True)


CONF = ("-c", path("conf"))
DAY = ("--day", "2023-11-14", *CONF)
STORE = ("--dir", path("store"))
COMMANDS = [
    ("help",),
    ("--version",),
    ("archive", "help"),
    ("archive", "search", *STORE, "subject:x"),
    ("archive", "search", *STORE, "--count", "subject:x"),
    ("archive", "search", *STORE, "--json", "subject:x"),
    ("archive", "search", *STORE, "--explain", "subject:x"),
    ("archive", "list", *STORE),
    ("archive", "show", *STORE, "1.0"),
    ("archive", "show", *STORE, "--raw", "1.0"),
    ("archive", "show", *STORE, "--structure", "1.0"),
    ("archive", "show", *STORE, "--attachment", "0", "1.0"),
    ("archive", "export", *STORE, "--mbox", "-", "subject:x"),
    ("archive", "stats", *STORE),
    ("archive", "whatif", *STORE, "--dmarc=reject"),
    ("archive", "rescue", "--to", path("rescued"), path("store")),
    ("check", "--dump", *CONF),
    ("check", *CONF),
    ("explain", *CONF, "--ip", "192.0.2.1", path("mail")),
    ("explain", *CONF, "QUEUEID"),
    ("key", "dns", *CONF, "example.org"),
    ("key", "list", *CONF),
    ("key", "check", *CONF),
    ("report", "dmarc", *DAY, "--domain", "example.org", "-O", "-"),
    ("report", "dmarc", *DAY, "--domain", "example.org", "--preview"),
    ("report", "list", *DAY),
    ("report", "list", *DAY, "--json"),
    ("report", "send", *DAY, "--dry-run"),
    ("sign", "--domain", "example.org", "--selector", "s", "--key",
     path("keys/example.org/s.pem"), path("mail")),
    ("verify", *CONF, "--ip", "192.0.2.1", path("mail")),
    ("verify", *CONF, "--ip", "192.0.2.1", "--json", path("mail")),
]


def run(command, stdout):
    return subprocess.run([HANAPER, *command], stdout=stdout,
                          stderr=subprocess.PIPE, timeout=60, check=False,
                          restore_signals=True)


def must_complain(command, stdout):
    shutil.rmtree(path("rescued"), ignore_errors=True)
    done = run(command, stdout)
    said = done.stderr.decode()
    check(done.returncode, EX_IOERR, f"status of {command}: {said}")
    check_in("hanaper: standard output: ", said)


@cases.add
def commands_print_something():
    for command in COMMANDS:
        shutil.rmtree(path("rescued"), ignore_errors=True)
        done = run(command, subprocess.PIPE)
        if not done.stdout or done.returncode not in (0, 1, 78):
            raise AssertionError(f"{command}: {done}")


@cases.add
def a_full_disk_is_told():
    with open("/dev/full", "wb", buffering=0) as full:
        for command in COMMANDS:
            must_complain(command, full)


@cases.add
def a_reader_that_has_gone_is_told():
    reader, writer = os.pipe()
    os.close(reader)
    for command in COMMANDS:
        must_complain(command, writer)
    os.close(writer)


@cases.add
def a_new_key_whose_record_could_not_be_printed_is_told():
    with open("/dev/full", "wb", buffering=0) as full:
        must_complain(("key", "generate", *CONF, "third.example"), full)


setup()
tap.run(cases, cleanup=work.cleanup)

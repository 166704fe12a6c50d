#!/usr/bin/env python3
"""Checkpoints of the archive: the running daemon's signer makes them, and
`hanaper` with its keys when it is down. Prints TAP."""
import base64
import glob
import hashlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("SRCDIR", "."), "tests",
                                "daemon"))
sys.dont_write_bytecode = True
from daemon import Daemon, HANAPER  # noqa: E402
import tap  # noqa: E402

cases = tap.Cases()


def archive(d, *args, status=0):
    run = subprocess.run([HANAPER, "archive", args[0], "-c", d.conf,
                          *args[1:]], capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == status, (args, run)
    return run


def daemon(**settings):
    d = Daemon(start=False, **settings)
    d.configure(archive_keys=d.path("archive-keys"))
    return d


def read_keys(d):
    d.hup()
    d.wait_log("configuration and keys were read again")


def make_older(d, days):
    """As if all keys there had been made so long ago."""
    for path in glob.glob(d.path("archive-keys", "*.pem")):
        when = int(os.path.basename(path)[:-4]) - days * 86400
        os.rename(path, d.path("archive-keys", f"{when}.pem"))


def notes(text):
    """[(lines of the text, {(name, key id)})], each checked for its form."""
    found = []
    while text:
        body, _, rest = text.partition("\n\n")
        signatures, _, text = rest.partition("\n\n")
        lines = body.split("\n")
        assert len(lines) == 4 and len(base64.b64decode(lines[2])) == 32, body
        assert lines[3].startswith("time 20"), body
        keys = set()
        for line in signatures.split("\n"):
            dash, name, code = line.split(" ")
            raw = base64.b64decode(code)
            assert dash == "\u2014" and len(raw) == 68, line
            keys.add((name, raw[:4].hex()))
        found.append((lines, keys))
    return found


def verification_keys(d):
    found = []
    for line in archive(d, "key").stdout.splitlines():
        day, clock, state, key = line.split()
        name, number, code = key.split("+", 2)
        raw = base64.b64decode(code)
        assert raw[0] == 1 and len(raw) == 33
        want = hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4]
        tap.check(number, want.hex(), "key id")
        found.append((state, (name, number)))
    return found


@cases.add
def without_a_key_nothing_is_signed():
    with daemon() as d:
        d.start()
        tap.check_in("archive_keys", d.log())
        assert d.send()[-1] == (b"c", b"")
        run = archive(d, "checkpoint", status=1)
        tap.check_in("no key", run.stderr)
        tap.check(d.term(), 0, "exit")
        run = archive(d, "checkpoint", status=66)
        tap.check_in("hanaper archive key --new", run.stderr)


@cases.add
def the_daemon_signs():
    with daemon() as d:
        d.start()
        assert d.send()[-1] == (b"c", b"")
        run = archive(d, "key", "--new")
        tap.check_in("HUP", run.stderr)
        tap.check_in(" signs ", run.stdout)
        for path in glob.glob(d.path("archive-keys", "*.pem")):
            tap.check(os.stat(path).st_mode & 0o777, 0o640, "mode")
        read_keys(d)
        first = archive(d, "checkpoint").stdout
        (lines, keys), = notes(first)
        store, epoch, shard = lines[0].split("/")
        tap.check((epoch, shard, lines[1]), ("1", "1", "2"), "the note")
        tap.check(keys, {verification_keys(d)[0][1]}, "signed by")
        # nothing new: the same note
        tap.check(archive(d, "checkpoint").stdout, first, "again")
        assert d.send()[-1] == (b"c", b"")
        (lines, _), = notes(archive(d, "checkpoint").stdout)
        tap.check(lines[1], "4", "size")
        # an orderly stop signs what is there
        assert d.send()[-1] == (b"c", b"")
        tap.check(d.term(), 0, "exit")
        path, = glob.glob(d.path("archive", "families", "mail", "*",
                                 "checkpoints"))
        with open(path) as file:
            kept = notes(file.read())
        tap.check([n[0][1] for n in kept], ["2", "4", "6"], "sizes")


@cases.add
def a_new_key_takes_over():
    with daemon() as d:
        archive(d, "key", "--new")
        make_older(d, 40)
        d.start()
        assert d.send()[-1] == (b"c", b"")
        (_, old), = notes(archive(d, "checkpoint").stdout)
        archive(d, "key", "--new")
        read_keys(d)
        (_, both), = notes(archive(d, "checkpoint").stdout)
        tap.check(len(both), 2, "signatures")
        assert old < both
        tap.check([s for s, _ in verification_keys(d)], ["signs", "signs"],
                  "states")
        # a month later the old one is done
        tap.check(d.term(), 0, "exit")
        make_older(d, 31)
        tap.check(sorted(s for s, _ in verification_keys(d)),
                  ["retired", "signs"], "states")
        d.log_at = len(d.log())
        d.start()
        assert d.send()[-1] == (b"c", b"")
        (_, new), = notes(archive(d, "checkpoint").stdout)
        tap.check(new, both - old, "signed by")
        assert "archive:" not in d.log()[d.log_at:], d.log()


@cases.add
def while_it_is_down():
    with daemon() as d:
        archive(d, "key", "--new")
        d.start()
        assert d.send()[-1] == (b"c", b"")
        tap.check(d.term(), 0, "exit")
        (lines, _), = notes(archive(d, "checkpoint").stdout)
        tap.check(lines[1], "1", "size")
        if os.geteuid() == 0:  # nothing there belongs to us now
            for top, _, files in os.walk(d.path("archive")):
                for name in files:
                    assert os.stat(os.path.join(top, name)).st_uid != 0, name
        d.start()
        assert d.send()[-1] == (b"c", b"")


@cases.add
def without_a_signer_mail_goes_on():
    with daemon(mode="verify") as d:
        archive(d, "key", "--new")
        d.start()
        assert d.send()[-1] == (b"c", b"")
        os.kill(d.roles()["signer"], signal.SIGSTOP)
        assert d.send()[-1] == (b"c", b"")
        os.kill(d.roles()["signer"], signal.SIGKILL)
        d.wait_log("the signer process was killed")
        assert d.send()[-1] == (b"c", b"")


@cases.add
def bad_keys_are_named():
    with daemon() as d:
        archive(d, "key", "--new")
        path, = glob.glob(d.path("archive-keys", "*.pem"))
        os.chmod(path, 0o644)
        run = subprocess.run([HANAPER, "check", "-c", d.conf], text=True,
                             capture_output=True, timeout=60)
        tap.check_in("mode 0644", run.stdout + run.stderr)
        run = archive(d, "key", status=77)
        tap.check_in(path, run.stderr)


if __name__ == "__main__":
    tap.run(cases)

#!/usr/bin/env python3
"""hanaperd with many connections at once: right answers, nothing left behind,
little memory for those that are idle. What depends on the machine's speed is
measured by tests/bench/load instead. Prints TAP."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from daemon import Daemon  # noqa: E402
import tap  # noqa: E402
from milter_client import wait_until  # noqa: E402

MTA = os.path.join(os.environ.get("BUILDDIR", "."), "tests/milter/mta")
MAIL = """\
From: a@{domain}
To: b@example.net
Date: Mon, 30 Nov 2026 12:00:00 +0000
Message-ID: <{n}@{domain}>
Subject: {n}

{body}
"""
cases = tap.Cases()


def needs_files(count):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < count + 100:
        raise tap.Skip(f"needs {count} descriptors")


def mails(domain):
    folder = tempfile.TemporaryDirectory(prefix="hnm")
    for n in range(4):
        with open(os.path.join(folder.name, f"{n}.eml"), "w") as file:
            file.write(MAIL.format(domain=domain, n=n,
                                   body="some words\n" * 40 * (n + 1)))
    return folder


def run_mta(d, domain, ip, connections, messages, *expect, more=()):
    with mails(domain) as folder:
        command = [MTA, "-s", f"unix:{d.address()}", "-c", str(connections),
                   "-n", str(messages), "-x", ip, "-f", f"a@{domain}", *more]
        for e in expect:
            command += ["-e", e]
        files = [os.path.join(folder, f) for f in sorted(os.listdir(folder))]
        p = subprocess.run(command + files, capture_output=True, text=True,
                           timeout=120)
    assert p.returncode == 0, p
    result = json.loads(p.stdout)
    tap.check(result["messages"], messages, "messages answered")
    return result


def open_files(d):
    return len(os.listdir(f"/proc/{d.roles()['milter']}/fd"))


def settled(d, files):
    wait_until(lambda: open_files(d) <= files)


def right_answers(connections, messages):
    needs_files(connections)
    with Daemon(archive="off", max_sessions="3000") as d:
        run_mta(d, "example.org", "127.0.0.1", 1, 2, "DKIM-Signature")
        files = open_files(d)
        run_mta(d, "example.org", "127.0.0.1", connections, messages,
                "DKIM-Signature:d=example.org;")
        run_mta(d, "sender.example", "192.0.2.25", connections, messages,
                "Authentication-Results:dkim=none",
                "Authentication-Results:spf=pass",
                "Authentication-Results:dmarc=pass", more=("-k", "3"))
        run_mta(d, "sender.example", "192.0.2.26", connections, messages,
                "Authentication-Results:spf=fail",
                "Authentication-Results:dmarc=fail")
        settled(d, files)
        assert set(d.roles()) == {"signer", "milter"}
        log = d.log()
        for bad in ("error:", "tempfail", "died"):
            assert bad not in log, [x for x in log.splitlines() if bad in x]


@cases.add
def right_answers_to_64_connections():
    right_answers(64, 400)


@cases.add
def right_answers_to_1000_connections():
    right_answers(1000, 2000)


@cases.add
def archived_by_64_connections():
    with Daemon(max_sessions="100") as d:
        run_mta(d, "example.org", "127.0.0.1", 64, 200, "DKIM-Signature")
        count = subprocess.run(
            [os.environ.get("HANAPER", "./hanaper"), "archive", "search",
             "-c", d.conf, "--count", "dir:out"], capture_output=True,
            text=True)
        tap.check(count.stdout.strip(), "4", "different messages archived")
        tap.check(d.log().count(" archive="), 200, "messages archived")


def own_memory(d):
    """Bytes of all its processes that no file holds."""
    kib = 0
    for pid in (d.process.pid, *d.roles().values()):
        with open(f"/proc/{pid}/status") as file:
            kib += int(re.search(r"RssAnon:\s+(\d+)", file.read())[1])
    return 1024 * kib


def idle(d, count):
    """A client with so many sessions that do nothing."""
    p = subprocess.Popen([MTA, "-i", "-s", f"unix:{d.address()}", "-c",
                          str(count)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    tap.check(p.stdout.readline(), b"idle\n", "what the client says")
    return p


@cases.add
def idle_sessions_cost_little():
    count = 2000
    needs_files(count)
    with open(os.environ.get("HANAPERD", "./hanaperd"), "rb") as file:
        program = file.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        raise tap.Skip("a sanitizer's memory is another")
    with Daemon(archive="off", max_sessions="3000") as d:
        run_mta(d, "example.org", "127.0.0.1", 64, 200, "DKIM-Signature")
        # what a process keeps that has been busy is no session's
        few = idle(d, 500)
        files, before = open_files(d), own_memory(d)
        many = idle(d, count)
        each = (own_memory(d) - before) / count
        with open(f"/proc/{d.roles()['milter']}/status") as file:
            threads = int(re.search(r"Threads:\s+(\d+)", file.read())[1])
        # and it stops with all of them
        assert open_files(d) >= files + count
        began = time.monotonic()
        tap.check(d.term(), 0, "exit")
        took = time.monotonic() - began
        few.communicate()
        many.communicate()
        tap.note(f"{each:.0f} bytes a session, {threads} threads, stopped in "
                 f"{took:.2f} s")
        assert each < 2000, each
        assert threads < 100, threads
        assert took < 4, took


if __name__ == "__main__":
    tap.run(cases, None if os.path.exists(MTA) else "no tests/milter/mta")
